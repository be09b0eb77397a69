"""Runs one crawl: ``python -m tests.world.runner SPEC RESULT``."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import scrapy
from scrapy import signals
from scrapy.utils.misc import load_object

from scrapy_cells import signals as cell_signals


class Recorder:
    """Collects what a crawl yields; lives as long as the process."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.events: list[dict[str, Any]] = []
        self.reason = ""
        self.stats: dict[str, Any] = {}

    def item(self, item: Any) -> None:
        self.items.append(dict(item))

    def event(self, event: Any) -> None:
        self.events.append(
            {
                **dataclasses.asdict(event),
                "type": type(event).__name__,
                "mono": time.monotonic(),
                "text": event.describe(),
            }
        )

    def closed(self, spider: Any, reason: str) -> None:
        self.reason = reason
        self.stats = spider.crawler.stats.get_stats()


def main(spec_path: str, result_path: str) -> None:
    spec = json.loads(Path(spec_path).read_text())
    settings = {
        **spec["settings"],
        "TELNETCONSOLE_ENABLED": False,
    }
    if spec["reactor"] == "none":
        settings["TWISTED_REACTOR_ENABLED"] = False
        from scrapy.crawler import AsyncCrawlerProcess as Process
    else:
        from scrapy.crawler import CrawlerProcess as Process
    process = Process(settings)
    crawler = process.create_crawler(find_spider(spec["spider"]))
    crawler.failures = []
    recorder = Recorder()
    crawler.signals.connect(recorder.item, signals.item_scraped)
    crawler.signals.connect(recorder.closed, signals.spider_closed)
    crawler.signals.connect(recorder.event, cell_signals.cell_event)
    started = time.monotonic()
    process.crawl(crawler, **spec["args"])
    process.start()
    Path(result_path).write_text(
        json.dumps(
            {
                "items": recorder.items,
                "events": recorder.events,
                "reason": recorder.reason,
                "stats": recorder.stats,
                "failures": crawler.failures,
                "started": started,
                "outstanding": permits_out(crawler),
                "cpu_seconds": time.process_time(),
                "max_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            },
            default=str,
        )
    )
    if getattr(process, "bootstrap_failed", False):
        sys.exit(1)


def find_spider(path: str) -> type[scrapy.Spider]:
    """Return the class at *path*, or the last spider of the module at *path*."""
    if "." in path:
        spider: type[scrapy.Spider] = load_object(path)
        return spider
    module = importlib.import_module(path)
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, scrapy.Spider)
        and value.__module__ == path
    ][-1]


def permits_out(crawler: Any) -> int:
    """Return how many permits were never settled; without the add-on there are none."""
    from scrapy_cells.crawl import runtime

    known = runtime._runtimes.get(crawler)
    if known is None:
        return 0
    return sum(len(cell.outstanding) for cell in known.cells)


if __name__ == "__main__":
    main(*sys.argv[1:3])
