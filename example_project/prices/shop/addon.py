"""Brings the shop into a crawl: opens it, tells where it is, checks the rows.

Only an example needs this. In a project of your own the shop is out there, and
``CELLS_PROXY`` is a line of ``settings.py``.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.utils.asyncio import call_later

from prices.shop.catalogue import PRICE_MOVES
from prices.shop.host import Host
from prices.shop.story import DAY_BEGINS, StoryClock, clock_face
from prices.watchlist import read_cells
from scrapy_cells.crawl.runtime import runtime_of
from scrapy_cells.report.holes import read_holes

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from scrapy.utils.asyncio import CallLaterResult
    from typing_extensions import Self

    from prices.shop.truth import Report
    from scrapy_cells.report.holes import Hole

logger = logging.getLogger(__name__)

_FACTOR = 1440.0
"""A day in a minute."""


class ShopAddon:
    """Opens the shop before the cells' settings are read.

    Its number in ``ADDONS`` must be lower than that of ``scrapy_cells.Addon``.
    """

    def __init__(self) -> None:
        self.host: Host | None = None

    def update_settings(self, settings: BaseSettings) -> None:
        # Scrapy's cookies need a list of public suffixes, which is fetched once if the
        # net is there, and comes with the package if it is not: do not wait for it
        os.environ.setdefault("TLDEXTRACT_CACHE_TIMEOUT", "1")
        logging.getLogger("tldextract").setLevel(logging.ERROR)
        factor = settings.getfloat("SHOP_TIME_FACTOR", _FACTOR)
        self.host = Host(StoryClock(factor))
        self.host.start()
        settings.set("SHOP_URL", self.host.url, "addon")
        settings.set("CELLS_PROXY", self.host.proxy_template, "addon")
        settings.setdefault_in_component_priority_dict("EXTENSIONS", ShopExtension, 900)


class ShopExtension:
    """Begins the day when the spider opens, and checks the rows when the crawl is over.

    :ivar report: the verdict, once there is one
    """

    def __init__(self, crawler: Crawler, host: Host) -> None:
        self._crawler = crawler
        self._host = host
        self._rows: list[dict[str, Any]] = []
        self._news: list[CallLaterResult] = []
        self.report: Report | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        hosts = (getattr(addon, "host", None) for addon in crawler.addons.addons)
        extension = cls(crawler, next(h for h in hosts if isinstance(h, Host)))
        connect = crawler.signals.connect
        connect(extension.spider_opened, signal=signals.spider_opened)
        connect(extension.item_scraped, signal=signals.item_scraped)
        connect(extension.spider_closed, signal=signals.spider_closed)
        connect(extension.engine_stopped, signal=signals.engine_stopped)
        return extension

    def spider_opened(self) -> None:
        clock = self._host.clock
        clock.begin()
        for at, text in self._program():
            delay = (at - DAY_BEGINS) / clock.factor
            self._news.append(call_later(delay, self._tell, at, text))

    def item_scraped(self, item: Any) -> None:
        self._rows.append(ItemAdapter(item).asdict())

    def spider_closed(self) -> None:
        for call in self._news:
            call.cancel()

    def engine_stopped(self) -> None:
        self._host.stop()
        report = self._host.check(self._rows, self._cells(), self._reasons())
        self.report = report
        logger.log(
            logging.INFO if report.fine else logging.ERROR,
            "The shop's truth:\n%(lines)s",
            {"lines": "\n".join(report.lines())},
        )

    def _program(self) -> list[tuple[float, str]]:
        news = [(DAY_BEGINS, "the day begins")]
        news += [(at, "all prices move") for at in PRICE_MOVES]
        for act in self._host.story.acts:
            session = "" if act.session == "*" else f", session {act.session}"
            generation = "" if act.generation == "*" else f", g{act.generation}"
            text = f"cell {act.cell}{generation}{session}: {act.what}"
            news.append((act.start, text))
        return sorted(news)

    def _tell(self, at: float, text: str) -> None:
        logger.info(
            "%(time)s in the shop: %(text)s", {"time": clock_face(at), "text": text}
        )

    def _cells(self) -> dict[str, str]:
        cells = read_cells()
        if not self._crawler.settings.getbool("CELLS_ENABLED", True):
            return cells
        router = runtime_of(self._crawler).router
        return {key: router.route(key) for key in cells}

    def _reasons(self) -> dict[str, str]:
        settings = self._crawler.settings
        path = settings["CELLS_HOLES"]
        if not settings.getbool("CELLS_ENABLED", True) or not Path(path).exists():
            return {}
        return {hole.key: self._in_words(hole) for hole in read_holes(path)}

    def _in_words(self, hole: Hole) -> str:
        if hole.outcome:
            return f"given up after {hole.outcome}"
        stats = self._crawler.stats
        state = stats.get_value(f"cells/by_cell/{hole.cell}/state")
        return f"{hole.reason}: the cell is {state}"
