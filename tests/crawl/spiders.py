"""Spiders of the crawl tests that do more than ask for pages."""

from __future__ import annotations

import asyncio

import scrapy
from scrapy.exceptions import CloseSpider

from tests.harness.spiders import KeySpider


class AgainSpider(KeySpider):
    """Asks for every product twice."""

    async def start(self):
        for again in range(2):
            for number in range(self.n):
                yield self.request(f"k{number:05d}?again={again}")


class FilesSpider(KeySpider):
    """Wants a picture of every product."""

    def parse(self, response):
        for item in super().parse(response):
            path = f"/files/{item['key']}.bin"
            yield {**item, "file_urls": [response.urljoin(path)]}


class AsideSpider(KeySpider):
    """Asks for two more pages in the middle of its callback, past the scheduler."""

    async def parse(self, response):
        item = next(iter(super().parse(response)))
        found = await asyncio.gather(
            *(self.aside(response, f"/{what}/{item['key']}") for what in "ab")
        )
        yield {**item, "aside": found}

    async def aside(self, response, path):
        request = scrapy.Request(response.urljoin(path))
        try:
            return (await self.crawler.engine.download_async(request)).status
        except Exception as error:
            return type(error).__name__


class RedirectSpider(KeySpider):
    """Comes to its products by redirects of three kinds."""

    async def start(self):
        for number in range(self.n):
            key = f"k{number:05d}"
            url = f"{self.base}/{('found', 'refresh', 'post')[number % 3]}/{key}"
            if number % 3 == 2:
                yield scrapy.Request(
                    url, method="POST", body="a=b", errback=self.failed
                )
            else:
                yield scrapy.Request(url, errback=self.failed)


class FollowSpider(KeySpider):
    """Goes from every product to its offers and to its neighbour, with copied meta."""

    def parse(self, response):
        item = next(iter(super().parse(response)))
        yield item
        key = item["key"]
        yield response.follow(f"/offers/{key}", self.parse_more, meta=response.meta)
        yield response.follow(f"/more/{key}", self.parse_more)
        neighbour = f"k{int(key[1:]) + 500:05d}"
        yield response.follow(f"/p/{neighbour}", self.parse_more, meta=response.meta)

    def parse_more(self, response):
        return super().parse(response)


class PassSpider(KeySpider):
    """Wants to see the block pages of products with an odd number."""

    def request(self, key):
        odd = bool(int(key[1:]) % 2)
        return super().request(key).replace(meta={"cells_pass_blocked": odd})

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}

    def failed(self, failure):
        verdict = failure.value.verdict
        self.crawler.failures.append(
            {
                "url": failure.request.url,
                "error": type(failure.value).__name__,
                "outcome": str(verdict.outcome),
                "vendor": verdict.vendor,
                "rule": verdict.rule,
                "status": failure.value.response.status,
            }
        )


class ClassifySpider(KeySpider):
    """Knows better than all rules."""

    def classify(self, request, response):
        if b"resting" in response.body:
            return "soft_block"
        if b"Robot Check" in response.body and "?" not in request.url:
            return "ok"
        return None

    def parse(self, response):
        yield {"title": response.css("title::text").get()}


class BarrenSpider(KeySpider):
    """Finds nothing on some pages, and trips over others."""

    def parse(self, response):
        number = int(response.url[-5:])
        if number % 3 == 0:
            return
        if number % 3 == 1:
            raise LookupError(response.url)
        yield from super().parse(response)


class CloseSpiderSpider(KeySpider):
    """Has seen enough after its first page."""

    def parse(self, response):
        raise CloseSpider("seen_enough")
