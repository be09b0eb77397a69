"""Spiders of the crawl tests."""

from __future__ import annotations

import scrapy


class KeySpider(scrapy.Spider):
    """Asks for the pages of numbered products and yields what is on them."""

    name = "keys"

    def __init__(self, base: str = "", n: str = "10", **kwargs: str) -> None:
        super().__init__(**kwargs)
        self.base = base
        self.n = int(n)

    async def start(self):
        for number in range(self.n):
            yield self.request(f"k{number:05d}")

    def request(self, key: str) -> scrapy.Request:
        return scrapy.Request(f"{self.base}/p/{key}", errback=self.failed)

    def parse(self, response):
        yield {
            "key": response.css("h1::text").get(),
            "price": response.css(".price::text").get(),
            "cell": response.meta.get("cell"),
            "session": response.meta.get("cell_session"),
        }

    def failed(self, failure):
        self.crawler.failures.append(
            {
                "url": failure.request.url,
                "error": type(failure.value).__name__,
                "text": str(failure.value),
            }
        )
