"""All ``CELLS_*`` settings, read once and checked before anything starts."""

from __future__ import annotations

from scrapy_cells.config.model import CellsConfig

__all__ = ["CellsConfig"]
