"""What one crawler's components share: its cells, and the permits that are out."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

from scrapy_cells import _scrapy_compat as compat
from scrapy_cells.clock import SystemClock
from scrapy_cells.config import CellsConfig
from scrapy_cells.crawl import checks
from scrapy_cells.crawl.bypass import BypassGate
from scrapy_cells.crawl.routing import Routing
from scrapy_cells.crawl.spill import SpillFolder
from scrapy_cells.domain.cell import Cell
from scrapy_cells.domain.guard import OutageGuard
from scrapy_cells.domain.outcome import Outcome
from scrapy_cells.report.holes import HoleBook
from scrapy_cells.report.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_cells.clock import Clock
    from scrapy_cells.crawl.intake import Intake
    from scrapy_cells.crawl.queue import CellPriorityQueue
    from scrapy_cells.domain.cell import CellSnapshot
    from scrapy_cells.domain.permit import Permit

PERMIT = "_cells_permit"
"""Meta key: id of the permit a request goes out with; means nothing to a later run."""

_OUTAGE_PROBE = 10.0
"""Seconds between two looks of one cell whether an outage is over."""


def runtime_of(crawler: Crawler) -> Runtime:
    """Return the crawler's one runtime, built when first asked for.

    :raises CellsConfigError: if the crawler's settings cannot work
    """
    return compat.shared(crawler, "runtime", lambda: Runtime(crawler))


class Runtime:
    """The cells of one crawler, who holds a permit, and when to look again."""

    def __init__(self, crawler: Crawler, clock: Clock | None = None) -> None:
        checks.check_settings(crawler.settings)
        self.crawler = crawler
        self.config = CellsConfig.from_settings(crawler.settings)
        self.clock = clock or SystemClock()
        self.started = self.clock.now()
        self.router = self.config.build_router()
        self.all_cells: Sequence[str] = tuple(self.router.cells)
        self.running: Sequence[str] = self.config.running_cells(self.all_cells)
        self.routing = Routing(self)
        self.source = self.config.build_source(self.all_cells)
        checks.check_proxies(self.config, crawler.settings)
        self.share = checks.share_of_concurrency(
            crawler.settings, len(self.running), self.config
        )
        self.guard = OutageGuard()
        self.gate = BypassGate(self)
        self.spill_folder = SpillFolder()
        self.holes = HoleBook(self.config.holes)
        self.journal = Journal(crawler)
        self.registered: set[str] = set()
        self.queues: list[CellPriorityQueue] = []
        self.intake: Intake | None = None
        self.permits: dict[str, Permit] = {}
        self.deferred: Counter[str] = Counter()
        self.retired_sessions: list[Callable[[str], None]] = []
        self._cells: dict[str, Cell] = {}
        self._rng = random.Random()
        self._outage_probe_at = 0.0
        self._wake_at = math.inf
        self._wake_call: CallLaterResult | None = None

    # Cells

    def cell(self, cell_id: str) -> Cell:
        """Return a running cell, made at its first use."""
        cell = self._cells.get(cell_id)
        if cell is None:
            cell = self._cells[cell_id] = self._build_cell(cell_id)
        return cell

    def _build_cell(self, cell_id: str) -> Cell:
        index, total = self.routing.index[cell_id], len(self.all_cells)
        options = self.config.options_for(cell_id, index, total, self.share)
        cell = Cell(
            cell_id,
            options,
            self.source,
            random.Random(self._rng.getrandbits(64)),
            self.started,
            tokens=self.config.first_tokens(index, total, cell_id),
        )
        cell.suspended = self.guard.suspended
        compat.give_slot(
            self.crawler.engine.downloader, f"cell:{cell_id}", options.concurrency
        )
        return cell

    @property
    def cells(self) -> Iterable[Cell]:
        """The cells in use so far."""
        return self._cells.values()

    def snapshots(self) -> list[CellSnapshot]:
        """Return what there is to see of every cell in use, sorted by id."""
        now = self.clock.now()
        return [self._cells[cell].snapshot(now) for cell in sorted(self._cells)]

    def governs(self, request: Request) -> bool:
        """Tell whether a request goes through a cell: http and https do."""
        # told from the text, since this is asked several times a request
        return request.url[:8].lower().startswith(("http://", "https://"))

    # Permits

    def permit_of(self, request: Request) -> Permit | None:
        """Return the request's permit unless it was settled."""
        return self.permits.get(request.meta.get(PERMIT, ""))

    def grant(self, request: Request, permit: Permit) -> None:
        """Send *request* on its way with *permit*."""
        self.permits[permit.id] = permit
        request.meta[PERMIT] = permit.id
        request.meta["cell_session"] = permit.session.id

    def settle(
        self, permit: Permit, outcome: Outcome, *, retry_after: float | None = None
    ) -> None:
        """Settle a permit, and let everybody know what that changed."""
        self.permits.pop(permit.id, None)
        if permit.settled:
            return
        now = self.clock.now()
        cell = self._cells[permit.cell]
        if outcome is not Outcome.NEUTRAL:
            self.journal.count_outcome(outcome)
            # before the cell acts on it: the fault may be everybody's
            if self.guard.note(cell.id, outcome, now):
                self._watch_outage(now)
        cell.settle(permit, outcome, now, retry_after=retry_after)
        self.changed(cell)

    def left_wire(self, permit: Permit) -> None:
        """Give the bulkhead place back."""
        cell = self._cells[permit.cell]
        cell.left_wire(permit)
        self.touch(cell.id)

    def drop_stale(self, request: Request) -> None:
        """Settle the permit that a request still carries from an earlier trip.

        A redirect, a retry or any other request made from one that was under way
        comes back to the scheduler with the permit of the first: whoever made it took
        the first one off its way without a word.
        """
        permit_id = request.meta.pop(PERMIT, None)
        if permit_id is not None:
            permit = self.permits.get(permit_id)
            if permit is not None:
                self.settle(permit, Outcome.NEUTRAL)

    def sweep(self) -> None:
        """Take back the permits of requests that vanished, and watch for outages."""
        now = self.clock.now()
        for cell in list(self._cells.values()):
            if cell.outstanding and cell.sweep(now):
                self.changed(cell)
        self.permits = {k: v for k, v in self.permits.items() if not v.settled}
        self._watch_outage(now)

    def _watch_outage(self, now: float) -> None:
        was = self.guard.suspended
        events = self.guard.check(now)
        suspended = self.guard.suspended
        if suspended != was:
            for cell in self._cells.values():
                cell.suspended = suspended
        for event in events:
            self.journal.publish(event)
        if suspended:
            if now >= self._outage_probe_at and self._probe_for_all(now):
                self._outage_probe_at = now + _OUTAGE_PROBE
        elif was:
            for cell in list(self._cells.values()):
                cell.probe_early(now)
                self.changed(cell)

    def _probe_for_all(self, now: float) -> bool:
        """Let the lowest cell with work look whether the outage is over, if any."""
        for cell_id in sorted(self._cells):
            cell = self._cells[cell_id]
            if self.queued(cell_id) and cell.probe_early(now):
                self.changed(cell)
                return True
        return False

    # Waking up

    def changed(self, cell: Cell) -> None:
        """Publish a cell's news and look again at what waits for it."""
        for event in cell.take_events():
            self.journal.publish(event)
            for old in getattr(event, "retired", ()):
                for close in self.retired_sessions:
                    close(old)
        self.touch(cell.id)

    def touch(self, cell_id: str) -> None:
        """Look again at what waits for a cell: it may be ready earlier than thought."""
        self.gate.serve(cell_id)
        woken = False
        for queue in self.queues:
            woken = queue.touch(cell_id) or woken
        if woken:
            compat.wake_engine(self.crawler.engine)

    def wake_at(self, when: float) -> None:
        """Ask the scheduler again at *when* (epoch seconds): one timer for all cells.

        ``inf`` asks for nothing. A timer that is due earlier stays.
        """
        if when >= self._wake_at:
            return
        if self._wake_call is not None:
            self._wake_call.cancel()
        self._wake_at = when
        delay = max(0.0, when - self.clock.now())
        self._wake_call = call_later(min(delay, 86400.0), self._wake)

    def _wake(self) -> None:
        self._wake_call = None
        self._wake_at = math.inf
        self.gate.serve_due()
        compat.wake_engine(self.crawler.engine)

    def stop_timer(self) -> None:
        if self._wake_call is not None:
            self._wake_call.cancel()
            self._wake_call = None

    # Queued work

    def queued(self, cell_id: str) -> int:
        """Return how many requests of a cell the scheduler holds."""
        return sum(queue.queued(cell_id) for queue in self.queues)

    def defer(self, request: Request, why: str = "deferred") -> None:
        """Note a request that no cell will send in this run."""
        cell = str(request.meta.get("cell", ""))
        self.deferred[cell] += 1
        self.holes.given_up(request, cell, why)

    def collect_deferred(self, reason: str) -> None:
        """Count what the queues still hold; what is not kept on disk becomes a hole.

        :param reason: the crawl's close reason
        """
        why = "deferred" if reason == "cells_deferred" else reason
        for queue in self.queues:
            for request in queue.drain():
                self.defer(request, why)

    def next_ready_at(self) -> float:
        """Return when the first queued request may go; ``inf`` if only parked ones."""
        now = self.clock.now()
        return min(
            (queue.next_ready_at(now) for queue in self.queues), default=math.inf
        )
