"""The price spider: knows keys and pages, and nothing of proxies, cells or blocks."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import scrapy

from prices.items import Price
from prices.watchlist import read_keys

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response


class PriceSpider(scrapy.Spider):
    """Checks every key of the watch list once."""

    name = "price"

    async def start(self) -> AsyncIterator[Any]:
        shop = self.settings["SHOP_URL"]
        for key in read_keys():
            yield scrapy.Request(f"{shop}/dp/{key}", cb_kwargs={"key": key})

    def parse(self, response: Response, key: str) -> Iterator[Price]:
        yield Price(
            key=key,
            title=response.css("#title::text").get(""),
            price=Decimal(response.css("#price::attr(data-amount)").get("")),
            currency=response.css("#price::attr(data-currency)").get(""),
            category=response.css("#category::text").get(""),
        )
