"""Signals of this package.

``cell_event(event)``
    Sent for every transition of a cell with a frozen dataclass of
    :mod:`scrapy_cells.domain.events`. Scrapy holds receivers weakly: connect a bound
    method of an object that lives, never a lambda.
"""

from __future__ import annotations

cell_event = object()
