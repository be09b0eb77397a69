"""The control plane: sees all cells, checks the start, ends the crawl, reports."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import CloseSpider
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro

from scrapy_cells import _scrapy_compat as compat
from scrapy_cells.crawl import checks
from scrapy_cells.crawl.queue import CellPriorityQueue
from scrapy_cells.crawl.runtime import runtime_of
from scrapy_cells.report.table import closing_table

if TYPE_CHECKING:
    from collections import Counter

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import AsyncioLoopingCall
    from twisted.internet.task import LoopingCall
    from typing_extensions import Self

    from scrapy_cells.crawl.runtime import Runtime

logger = logging.getLogger(__name__)

_TICK = 0.5
"""Seconds between two looks at leases, outages, and whether the crawl is to end."""

_MOST_CELL_STATS = 100
"""With more cells than this, stats are not kept one by one."""


class CellExtension:
    """Runs beside the crawl: nothing here is on the way of a request."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._crawler = runtime.crawler
        self._tick_call: AsyncioLoopingCall | LoopingCall | None = None
        self._closing = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(runtime_of(crawler))
        connect = crawler.signals.connect
        connect(extension.spider_opened, signal=signals.spider_opened)
        connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    async def spider_opened(self, spider: Spider) -> None:
        """Check that what was configured is what was built.

        :raises CloseSpider: ``cells_misconfigured`` if not
        """
        runtime = self._runtime
        missing = checks.missing_parts(runtime.registered)
        scheduler = compat.scheduler_of(self._crawler.engine)
        if not isinstance(getattr(scheduler, "mqs", None), CellPriorityQueue):
            missing.append("the scheduler's queue")
        if missing:
            logger.error(
                "Cells are not all there, and the crawl would run half-equipped:"
                " %(missing)s. Something replaced it after the settings were checked;"
                " turn that off, or cells with CELLS_ENABLED=False",
                {"missing": ", ".join(missing)},
                extra={"spider": spider},
            )
            if compat.close_on_open_is_honoured():
                raise CloseSpider("cells_misconfigured")
            await self._crawler.engine.close_spider_async(reason="cells_misconfigured")
            return
        self._tell_start(spider)
        self._tick_call = create_looping_call(self._tick)
        self._tick_call.start(_TICK, now=False)

    def _tell_start(self, spider: Spider) -> None:
        runtime = self._runtime
        config = runtime.config
        logger.info(
            "%(running)d of %(all)d cells run here; %(site)s",
            {
                "running": len(runtime.running),
                "all": len(runtime.all_cells),
                "site": config.rate_in_words(len(runtime.all_cells)),
            },
            extra={"spider": spider},
        )
        if config.proxy is None:
            logger.warning(
                "CELLS_PROXY is not set: all cells share one exit address, so what"
                " blocks one of them blocks all",
                extra={"spider": spider},
            )

    # While it runs

    def _tick(self) -> None:
        runtime = self._runtime
        if compat.is_closing(self._crawler.engine):
            runtime.gate.refuse_all("the crawl is closing")
            return
        runtime.sweep()
        runtime.gate.refuse_closed()
        if runtime.intake is not None:
            runtime.intake.reconsider()
        self._close_if_deferred()

    def _close_if_deferred(self) -> None:
        """Close the spider if only cells that stay closed for long hold requests."""
        runtime = self._runtime
        if self._closing or runtime.permits or not any(map(len, runtime.queues)):
            return
        intake = runtime.intake
        if intake is not None and not (
            intake.exhausted or intake.paused or intake.noting
        ):
            return
        left = runtime.next_ready_at() - runtime.clock.now()
        if left <= runtime.config.max_wait:
            return
        engine = self._crawler.engine
        if compat.is_closing(engine) or not compat.engine_is_quiet(engine):
            return
        runtime.sweep()  # so fast may all cells have closed that it is news
        since = runtime.guard.outage_since
        if since is not None and runtime.clock.now() - since <= runtime.config.max_wait:
            return  # one cell looks whether it is over, and the others wait for that
        if intake is not None and not intake.note_the_rest():
            return
        self._closing = True
        logger.info(
            "Only cells that stay closed for %(left)s hold requests"
            " (CELLS_MAX_WAIT=%(most)g): the rest is deferred%(unread)s",
            {
                "left": f"another {left:.0f} s" if left < 1e9 else "good",
                "most": runtime.config.max_wait,
                "unread": "; start() was not read to its end"
                if intake is not None and not intake.exhausted
                else "",
            },
            extra={"spider": self._crawler.spider},
        )
        deferred_from_coro(engine.close_spider_async(reason="cells_deferred"))

    # At the end

    def spider_closed(self, spider: Spider, reason: str) -> None:
        runtime = self._runtime
        if self._tick_call is not None and self._tick_call.running:
            self._tick_call.stop()
        runtime.gate.refuse_all("the crawl is closing")
        runtime.stop_timer()
        runtime.collect_deferred(reason)
        runtime.spill_folder.remove()
        deferred = runtime.deferred
        self._write_stats(deferred)
        runtime.holes.close()
        snapshots = runtime.snapshots()
        if snapshots:
            logger.info(
                "Cells at the end (%(reason)s):\n%(table)s",
                {
                    "reason": reason,
                    "table": closing_table(snapshots, runtime.holes.by_cell, deferred),
                },
                extra={"spider": spider},
            )

    def _write_stats(self, deferred: Counter[str]) -> None:
        runtime = self._runtime
        stats = self._crawler.stats
        snapshots = runtime.snapshots()
        stats.set_value("cells/cell_count", len(snapshots))
        stats.set_value("cells/request_count", sum(s.requests for s in snapshots))
        stats.set_value("cells/deferred_count", sum(deferred.values()))
        stats.set_value("cells/hole_count", sum(runtime.holes.by_reason.values()))
        stats.set_value("cells/outstanding_permit_count", len(runtime.permits))
        repeated = sum(cell.repeated_settlements for cell in runtime.cells)
        stats.set_value("cells/repeated_settlement_count", repeated)
        for why, count in runtime.holes.by_reason.items():
            stats.set_value(f"cells/hole_count/{why}", count)
        if len(snapshots) > _MOST_CELL_STATS:
            return
        for snapshot in snapshots:
            base = f"cells/by_cell/{snapshot.id}"
            stats.set_value(f"{base}/state", snapshot.state)
            stats.set_value(f"{base}/request_count", snapshot.requests)
            stats.set_value(f"{base}/health", round(snapshot.health, 3))
            stats.set_value(f"{base}/generation", snapshot.generation)
            if deferred[snapshot.id]:
                stats.set_value(f"{base}/deferred_count", deferred[snapshot.id])
            if holes := runtime.holes.by_cell[snapshot.id]:
                stats.set_value(f"{base}/hole_count", holes)
            for outcome, count in snapshot.outcomes.items():
                stats.set_value(f"{base}/outcome_count/{outcome}", count)
