"""What the spider finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass
class Price:
    """One check of one product.

    The last fields are written by scrapy-cells, see ``CELLS_ITEM_FIELDS``.
    """

    key: str
    title: str
    price: Decimal
    currency: str
    category: str
    cell_id: str | None = None
    cell_session: str | None = None
    cell_checked_at: str | None = None
