"""Cut a Scrapy crawl into cells that cannot hurt each other."""

from __future__ import annotations

from scrapy_cells.addon import Addon
from scrapy_cells.domain.outcome import Outcome, Verdict
from scrapy_cells.errors import (
    CellBlocked,
    CellsConfigError,
    CellsError,
    CellUnavailable,
)
from scrapy_cells.report.holes import Hole, read_holes

__all__ = [
    "Addon",
    "CellBlocked",
    "CellUnavailable",
    "CellsConfigError",
    "CellsError",
    "Hole",
    "Outcome",
    "Verdict",
    "read_holes",
]
