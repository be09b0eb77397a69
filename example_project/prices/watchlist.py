"""The keys that are watched, and the cell that each belongs to: ``keys.csv``.

``CELLS_CATALOG`` names the same file, so that every cell keeps to two categories of the
shop, as a person who looks for something would.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib import resources


@lru_cache(maxsize=1)
def read_cells() -> dict[str, str]:
    """Return the cell of every key, in the file's order."""
    text = resources.files("prices").joinpath("keys.csv").read_text(encoding="utf-8")
    return {row["key"]: row["cell"] for row in csv.DictReader(text.splitlines())}


def read_keys() -> list[str]:
    return list(read_cells())
