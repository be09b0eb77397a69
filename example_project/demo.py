"""Tells the story of a day in a minute: ``python demo.py``.

In a terminal it shows every cell as it lives; the log goes to ``prices.log``. Piped, it
writes the log instead. Exit code 1: a row was wrong, or a cell was hurt that the story
had nothing to do with.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prices.shop.addon import ShopExtension
from prices.shop.story import SCRIPT
from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings

from scrapy_cells.crawl.runtime import runtime_of
from scrapy_cells.report.table import closing_table

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

HERE = Path(__file__).parent


def main() -> int:
    """Run the crawl; return the exit code."""
    os.environ.setdefault("SCRAPY_SETTINGS_MODULE", "prices.settings")
    settings = get_project_settings()
    settings.set("EXTENSIONS", {"scrapy_cells.crawl.live.LiveView": 500}, "project")
    in_terminal = sys.stdout.isatty()
    if in_terminal:
        settings.set("LOG_FILE", "prices.log", "project")
        settings.set("LOG_FILE_APPEND", False, "project")
    print(_introduction(settings["SHOP_TIME_FACTOR"]), flush=True)
    process = CrawlerProcess(settings)
    crawler = process.create_crawler("price")
    process.crawl(crawler)
    process.start()
    return _finish(crawler, show_table=in_terminal)


def _finish(crawler: Crawler, *, show_table: bool) -> int:
    try:
        shop = crawler.get_extension(ShopExtension)
    except RuntimeError:  # the crawl did not even begin
        shop = None
    if shop is None or shop.report is None:
        print("The crawl did not come to its end; see the log.")
        return 1
    if show_table:
        runtime: Any = runtime_of(crawler)
        print(
            closing_table(runtime.snapshots(), runtime.holes.by_cell, runtime.deferred)
        )
    print("\nThe shop's truth")
    print("\n".join(shop.report.lines()))
    return 0 if shop.report.fine else 1


def _introduction(factor: float) -> str:
    return (
        f"2,000 prices, 24 cells of 4 sessions, a day in {86400 / factor:.0f} s, and"
        f" this happens:\n{SCRIPT}"
    )


if __name__ == "__main__":
    os.chdir(HERE)
    sys.exit(main())
