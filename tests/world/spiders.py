"""Spiders of the crawl tests."""

from __future__ import annotations

import scrapy


class KeySpider(scrapy.Spider):
    """Asks for the pages of numbered products and yields what is on them.

    Arguments: ``base`` (address of the shop), ``n`` (how many products), ``first``
    (number of the first), ``path`` (where the pages are, ``p`` by default).
    """

    name = "keys"

    def __init__(
        self,
        base: str = "",
        n: str = "10",
        first: str = "0",
        path: str = "p",
        **kwargs: str,
    ) -> None:
        super().__init__(**kwargs)
        self.base = base
        self.path = path
        self.numbers = range(int(first), int(first) + int(n))

    async def start(self):
        for number in self.numbers:
            yield self.request(f"k{number:05d}")

    def request(self, key: str) -> scrapy.Request:
        return scrapy.Request(f"{self.base}/{self.path}/{key}", errback=self.failed)

    def parse(self, response):
        yield {
            "key": response.css("h1::text").get(),
            "price": response.css(".price::text").get(),
            "cell": response.meta.get("cell"),
            "session": response.meta.get("cell_session"),
        }

    def failed(self, failure):
        request = getattr(failure, "request", None)
        self.crawler.failures.append(
            {
                "url": request.url if request is not None else "",
                "error": type(failure.value).__name__,
                "text": str(failure.value),
            }
        )


class LinkSpider(KeySpider):
    """Follows from each product to the next, *depth* times."""

    name = "links"

    def __init__(self, depth: str = "3", **kwargs: str) -> None:
        super().__init__(**kwargs)
        self.depth = int(depth)

    def parse(self, response):
        yield from super().parse(response)
        step = response.meta.get("step", 0)
        if step < self.depth:
            key = response.css("h1::text").get()
            yield response.follow(
                f"/{self.path}/{key}-{step + 1}",
                meta={"step": step + 1},
                errback=self.failed,
            )


class CookieSpider(KeySpider):
    """Asks what cookies came, *rounds* times for each product, one after the other."""

    name = "cookies"

    def __init__(self, rounds: str = "2", **kwargs: str) -> None:
        super().__init__(path="cookie", **kwargs)
        self.rounds = int(rounds)

    def parse(self, response):
        step = response.meta.get("step", 1)
        yield {
            "url": response.url,
            "cookies": response.text,
            "session": response.meta.get("cell_session"),
        }
        if step < self.rounds:
            yield response.request.replace(
                dont_filter=True, meta={**response.meta, "step": step + 1}
            )
