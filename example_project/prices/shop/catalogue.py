"""What the shop sells: 2,000 products in 48 categories, the same in every run.

``python -m prices.shop.catalogue > prices/keys.csv`` writes the watch list.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import sys
from dataclasses import dataclass
from decimal import Decimal

HOUR = 3600.0
COUNT = 2000
CELLS = 24
CURRENCY = "EUR"

PRICE_MOVES = (12.0 * HOUR, 18.0 * HOUR)
"""Seconds since midnight at which all prices change."""

_CATEGORIES = """
headphones keyboards monitors webcams routers printers tablets cameras tripods
microphones speakers turntables kettles toasters blenders mixers spoons pans plates
lamps desks chairs sofas beds pillows curtains rugs clocks drills saws sanders ladders
hoses mowers grills tents backpacks boots jackets bicycles helmets kayaks rackets skates
puzzles models puppets guitars
"""
CATEGORIES = tuple(_CATEGORIES.split())
_MAKERS = ("Arno", "Belmo", "Corvin", "Dorlan", "Elwin", "Farnit", "Gollan", "Hesper")


@dataclass(frozen=True, slots=True)
class Product:
    """What does not change about a product."""

    key: str
    title: str
    category: str
    base: int


class Catalogue:
    """All products, by key."""

    def __init__(self, count: int = COUNT) -> None:
        products = (_product(number) for number in range(count))
        self.products = {product.key: product for product in products}

    def get(self, key: str) -> Product | None:
        return self.products.get(key)

    def price(self, key: str, at: float) -> Decimal:
        """Return the price of a product.

        :param at: seconds of the story since midnight
        """
        product = self.products[key]
        moves = sum(at >= move for move in PRICE_MOVES)
        percent = 100 if moves == 0 else 80 + _number(f"{key} move {moves}") % 36
        return Decimal(product.base * percent // 100).scaleb(-2)


def watchlist(catalogue: Catalogue) -> list[tuple[str, str]]:
    """Return ``(key, cell)`` of all products, cells mixed: two categories a cell."""
    return sorted(
        (product.key, f"{CATEGORIES.index(product.category) * CELLS // 48:02d}")
        for product in catalogue.products.values()
    )


def _product(number: int) -> Product:
    digest = hashlib.blake2b(f"product {number}".encode(), digest_size=5).digest()
    key = "B0" + base64.b32encode(digest).decode("ascii")
    category = CATEGORIES[number % len(CATEGORIES)]
    seed = _number(key)
    maker = _MAKERS[seed % len(_MAKERS)]
    title = f"{maker} {category.removesuffix('s').capitalize()} {seed % 900 + 100}"
    return Product(key, title, category, base=1000 + seed // 7 % 49_000)


def _number(text: str) -> int:
    digest = hashlib.blake2b(text.encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big")


if __name__ == "__main__":
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("key", "cell"))
    writer.writerows(watchlist(Catalogue()))
