"""Two crawlers in one process: ``python -m tests.crawl.two_crawlers SPEC RESULT``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from scrapy import signals

from tests.harness.spiders import KeySpider


class First(KeySpider):
    """Has its site in trouble."""

    name = "first"


class Second(KeySpider):
    """Has not."""

    name = "second"


class Keep:
    """Keeps rows and stats of one crawler."""

    def __init__(self, crawler):
        self.rows = []
        self.stats = {}
        self.reason = ""
        crawler.failures = []
        crawler.signals.connect(self.item, signals.item_scraped)
        crawler.signals.connect(self.closed, signals.spider_closed)

    def item(self, item):
        self.rows.append(dict(item))

    def closed(self, spider, reason):
        self.stats = spider.crawler.stats.get_stats()
        self.reason = reason


def main(spec_path: str, result_path: str) -> None:
    spec = json.loads(Path(spec_path).read_text())
    settings = dict(spec["settings"])
    if spec["reactor"] == "none":
        settings["TWISTED_REACTOR_ENABLED"] = False
        from scrapy.crawler import AsyncCrawlerProcess as Process
    else:
        from scrapy.crawler import CrawlerProcess as Process
    process = Process(settings)
    kept = {}
    for spider in (First, Second):
        spider.custom_settings = spec["own"][spider.name]
        crawler = process.create_crawler(spider)
        kept[spider.name] = Keep(crawler)
        process.crawl(crawler, base=spec["base"], n=spec["n"])
    process.start()
    Path(result_path).write_text(
        json.dumps({name: vars(keep) for name, keep in kept.items()}, default=str)
    )


if __name__ == "__main__":
    main(*sys.argv[1:3])
