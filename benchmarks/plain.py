"""What cells are measured against: the same sessions and concurrency on plain Scrapy."""

from __future__ import annotations

import scrapy

from tests.harness.spiders import KeySpider


class PlainSpider(KeySpider):
    """Deals the sessions out itself."""

    def __init__(self, proxy: str = "", **kwargs: str) -> None:
        super().__init__(**kwargs)
        self.proxy = proxy

    def request(self, key: str) -> scrapy.Request:
        number = int(key[1:])
        cell, session = number % 24, number // 24 % 4
        user = f"u-{cell:02d}-0-{session}"
        return scrapy.Request(
            f"{self.base}/p/{key}",
            errback=self.failed,
            meta={
                "proxy": f"http://{user}:S3CR3T-x9@127.0.0.1:{self.proxy}",
                "cookiejar": user,
            },
        )


class MillionSpider(KeySpider):
    """Closes when all was read: a million requests wait."""

    async def start(self):
        async for request in super().start():
            yield request
        self.crawler.engine.close_spider_async(reason="all_read")
