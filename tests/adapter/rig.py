"""A real crawler whose engine, clock and timers stand still until told otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.squeues import FifoMemoryQueue
from scrapy.utils.spider import DefaultSpider
from scrapy.utils.test import get_crawler

from scrapy_cells.crawl.queue import CellPriorityQueue
from scrapy_cells.crawl.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_cells.domain.outcome import Outcome
    from scrapy_cells.domain.permit import Permit

NOW = 1.8e9

ADDONS = {"scrapy_cells.Addon": 900}

WIDE = {
    "ADDONS": ADDONS,
    "CELLS_COUNT": 4,
    "CELLS_KEY": "meta:key",
    "CELLS_RATE": 1000,
    "CELLS_BURST": 1000,
    "CELLS_SITE_RATE": 0,
    "CELLS_CONCURRENCY": 1000,
    "CELLS_SESSION_ROTATION": 0,
}
"""Cells whose budget and bulkhead are never in the way."""


class Clock:
    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> float:
        return self.time


class NextCall:
    def __init__(self) -> None:
        self.scheduled = 0

    def schedule(self, delay: float = 0) -> None:
        self.scheduled += 1


class Slot:
    def __init__(self) -> None:
        self.closing = None
        self.nextcall = NextCall()


class Downloader:
    def __init__(self) -> None:
        self.per_slot_settings: dict[str, Any] = {}
        self.total_concurrency = 16


class Engine:
    """As much of an engine as the cells touch."""

    def __init__(self) -> None:
        self.downloader = Downloader()
        self._slot = Slot()

    @property
    def woken(self) -> int:
        return self._slot.nextcall.scheduled


class Timer:
    def __init__(self, when: float, function: Callable[[], object]) -> None:
        self.when = when
        self.function = function
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Rig:
    """The crawler, its runtime, and shortcuts."""

    def __init__(self, spider: type[Any] | None = None, **settings: Any) -> None:
        self.clock = Clock()
        self._timers: list[Timer] = []
        self.crawler = get_crawler(spider or DefaultSpider, {**WIDE, **settings})
        self.crawler.spider = self.crawler.spidercls.from_crawler(self.crawler)
        self.engine = self.crawler.engine = Engine()
        self.runtime = Runtime(self.crawler, self.clock)
        self.crawler._scrapy_cells_runtime = self.runtime

    @property
    def stats(self) -> dict[str, Any]:
        return self.crawler.stats.get_stats()

    # Time

    def call_later(self, delay: float, function: Callable[[], object]) -> Timer:
        timer = Timer(self.clock.time + delay, function)
        self._timers.append(timer)
        return timer

    @property
    def timers(self) -> list[float]:
        """Seconds until each timer that is set."""
        return [t.when - self.clock.time for t in self._timers if not t.cancelled]

    def advance(self, seconds: float) -> None:
        """Let time pass and the timers that are due go off."""
        self.clock.time += seconds
        due = [t for t in self._timers if t.when <= self.clock.time]
        self._timers = [t for t in self._timers if t not in due]
        for timer in due:
            if not timer.cancelled:
                timer.function()

    # Requests

    def queue(self, folder: str = "", state: Any = (), cls: Any = FifoMemoryQueue):
        return CellPriorityQueue.from_crawler(
            self.crawler, cls, folder, state, start_queue_cls=cls
        )

    def request(self, cell: str = "00", key: str = "k", **kwargs: Any) -> Request:
        """Return a request as the spider middleware hands it to the scheduler."""
        meta = {"cell": cell, "cell_key": key, **kwargs.pop("meta", {})}
        url = kwargs.pop("url", f"http://shop.example/{key}")
        return Request(url, meta=meta, **kwargs)

    def admit(self, request: Request) -> Permit:
        """Let a request out of its cell, as the queue does."""
        cell = self.runtime.cell(request.meta["cell"])
        permit = cell.admit(
            self.clock.time,
            request.meta["cell_key"],
            session=request.meta.get("cell_session"),
            avoid=request.meta.get("_cells_avoid", ()),
        )
        assert permit is not None
        self.runtime.grant(request, permit)
        return permit

    def send(self, request: Request) -> Permit:
        """Let a request out and onto the wire."""
        permit = self.admit(request)
        self.mark_sent(permit)
        return permit

    def mark_sent(self, permit: Permit) -> None:
        self.runtime.cell(permit.cell).mark_sent(permit, self.clock.time, 20.0)

    def end(self, request: Request, outcome: Outcome, **how: Any) -> None:
        """Let a request that was popped be sent and come to its end."""
        permit = self.runtime.permit_of(request)
        assert permit is not None
        self.mark_sent(permit)
        self.runtime.settle(permit, outcome, **how)


def page(request: Request, body: str = "", status: int = 200, **headers: str):
    """Return an answer: a page of this request alone, unless *body* is given."""
    text = body or (
        f"<html><head><title>{request.url}</title></head><body><h1>{request.url}</h1>"
        + "<p>It boils two litres in four minutes.</p>" * 20
        + "</body></html>"
    )
    return HtmlResponse(
        request.url,
        status=status,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        body=text.encode(),
        request=request,
    )
