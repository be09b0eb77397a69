"""Permits for requests that did not come through the scheduler.

robots.txt, media pipelines and ``engine.download_async`` hand requests straight to the
downloader. They go through a cell like all others, wait for their turn here, and go
before what the scheduler holds for that cell.
"""

from __future__ import annotations

import heapq
import itertools
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred

from scrapy_cells import _scrapy_compat as compat
from scrapy_cells.crawl.lane import NOT_BEFORE
from scrapy_cells.errors import CellUnavailable

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_cells.crawl.runtime import Runtime
    from scrapy_cells.domain.cell import Cell
    from scrapy_cells.domain.permit import Permit

PARENT: ContextVar[dict[str, Any] | None] = ContextVar(
    "scrapy_cells_parent", default=None
)
"""Routing meta of the page whose callback or items are being worked on."""

AVOID_CELLS = "_cells_avoid_cells"
"""Meta key: cells that already failed a request which any cell can serve."""

_CELLS_TO_TRY = 64


@dataclass(order=True)
class _Waiter:
    not_before: float
    order: int
    request: Request = field(compare=False)
    permit: Deferred[Permit] = field(compare=False, default_factory=Deferred)


class BypassGate:
    """Where requests without a permit wait for one."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._waiters: dict[str, list[_Waiter]] = {}
        self._order = itertools.count()

    def waiting(self, cell_id: str) -> bool:
        """Tell whether somebody waits who could go as soon as the cell is ready."""
        waiters = self._waiters.get(cell_id)
        if not waiters:
            return False
        return waiters[0].not_before <= self._runtime.clock.now()

    async def acquire(self, request: Request) -> Permit:
        """Wait for a permit.

        :raises CellUnavailable: at once if the cell stays closed for longer than a
            request may take, or when the crawl closes meanwhile
        """
        runtime = self._runtime
        cell = self._choose(request)
        now = runtime.clock.now()
        not_before = request.meta.pop(NOT_BEFORE, 0.0)
        closed_until = max(cell.closed_until(now), not_before)
        if closed_until - now > max(
            cell.options.timeout, runtime.config.retry_max_delay
        ):
            raise CellUnavailable(
                cell.id, f"closed for another {closed_until - now:.0f} s"
            )
        waiter = _Waiter(not_before, next(self._order), request)
        heapq.heappush(self._waiters.setdefault(cell.id, []), waiter)
        self.serve(cell.id)
        if not waiter.permit.called:
            with compat.outside_concurrency(runtime.crawler.engine.downloader):
                return await maybe_deferred_to_future(waiter.permit)
        return await maybe_deferred_to_future(waiter.permit)

    def serve(self, cell_id: str) -> None:
        """Give out the permits a cell has now; ask to be woken for the next one."""
        waiters = self._waiters.get(cell_id)
        if not waiters:
            return
        runtime = self._runtime
        cell = runtime.cell(cell_id)
        now = runtime.clock.now()
        while waiters:
            due = max(waiters[0].not_before, cell.ready_at(now, bypass=True))
            if due > now:
                runtime.wake_at(due)
                return
            waiter = heapq.heappop(waiters)
            permit = self._admit(cell, waiter.request, now)
            if permit is None:
                heapq.heappush(waiters, waiter)
                return
            runtime.grant(waiter.request, permit)
            waiter.permit.callback(permit)
        del self._waiters[cell_id]
        for queue in runtime.queues:
            queue.touch(cell_id)

    def serve_due(self) -> None:
        """Look at every cell that somebody waits for."""
        for cell_id in list(self._waiters):
            self.serve(cell_id)

    def refuse_all(self, reason: str) -> None:
        """End all waiting."""
        for cell_id, waiters in list(self._waiters.items()):
            for waiter in waiters:
                waiter.permit.errback(CellUnavailable(cell_id, reason))
        self._waiters.clear()

    def refuse_closed(self) -> None:
        """End the waiting for cells that closed meanwhile for long."""
        now = self._runtime.clock.now()
        for cell_id, waiters in list(self._waiters.items()):
            cell = self._runtime.cell(cell_id)
            left = cell.closed_until(now) - now
            if left > max(cell.options.timeout, self._runtime.config.retry_max_delay):
                del self._waiters[cell_id]
                reason = f"closed for another {left:.0f} s"
                for waiter in waiters:
                    waiter.permit.errback(CellUnavailable(cell_id, reason))

    def _admit(self, cell: Cell, request: Request, now: float) -> Permit | None:
        meta = request.meta
        return cell.admit(
            now,
            meta.get("cell_key", request.url),
            session=meta.get("cell_session"),
            avoid=meta.get("_cells_avoid", ()),
            bypass=True,
        )

    def _choose(self, request: Request) -> Cell:
        runtime = self._runtime
        meta = request.meta
        if is_robots_txt(request):
            return self._readiest(request)
        if meta.get("cell") not in runtime.routing.index:
            parent = PARENT.get()
            if parent is not None:
                runtime.routing.route_follow_up(request, parent)
        return runtime.cell(runtime.routing.settle_on_running(request))

    def _readiest(self, request: Request) -> Cell:
        """Choose any cell for what belongs to no key: the first that can send it."""
        runtime = self._runtime
        tried = request.meta.get(AVOID_CELLS, ())
        request.meta.pop("cell", None)
        own = runtime.routing.settle_on_running(request)
        others = itertools.islice(runtime.running, _CELLS_TO_TRY)
        now = runtime.clock.now()
        cells = [runtime.cell(c) for c in [own, *others] if c not in tried]
        best = min(
            cells or [runtime.cell(own)],
            key=lambda cell: (
                cell.closed_until(now),
                cell.ready_at(now, bypass=True),
            ),
        )
        request.meta["cell"] = best.id
        return best


def is_robots_txt(request: Request) -> bool:
    """Tell whether Scrapy's robots.txt middleware made the request."""
    return (
        bool(request.meta.get("dont_obey_robotstxt"))
        and urlparse_cached(request).path == "/robots.txt"
    )
