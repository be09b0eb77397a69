"""The scheduler's priority queue: one lane a cell, and only ready cells are asked."""

from __future__ import annotations

import heapq
import itertools
import math
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

from scrapy.pqueues import ScrapyPriorityQueue

from scrapy_cells.crawl import jobdir
from scrapy_cells.crawl.dress import undress
from scrapy_cells.crawl.lane import NOT_BEFORE, Lane, folder_of
from scrapy_cells.crawl.runtime import runtime_of
from scrapy_cells.crawl.spill import Spill
from scrapy_cells.domain.breaker import BreakerState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler
    from typing_extensions import Self


class CellPriorityQueue:
    """Holds every cell's requests; gives out one of a cell that may send it now.

    Set as ``SCHEDULER_PRIORITY_QUEUE``. :meth:`pop` returns ``None`` while no cell is
    ready, and one timer wakes the engine when the first will be: a cell that waits for
    its budget, its breaker or its bulkhead holds up nobody else. A request comes out
    with the permit to be sent. Ready cells take turns; which of a cell's requests goes
    first is Scrapy's usual order.

    Requests of other schemes than http and https pass untouched.
    """

    @classmethod
    def from_crawler(
        cls,
        crawler: Crawler,
        downstream_queue_cls: type[Any],
        key: str,
        startprios: Any = (),
        *,
        start_queue_cls: type[Any] | None = None,
    ) -> Self:
        return cls(
            crawler,
            downstream_queue_cls,
            key,
            startprios,
            start_queue_cls=start_queue_cls,
        )

    def __init__(
        self,
        crawler: Crawler,
        downstream_queue_cls: type[Any],
        key: str,
        startprios: Any = (),
        *,
        start_queue_cls: type[Any] | None = None,
    ) -> None:
        self._crawler = crawler
        self._queue_cls = downstream_queue_cls
        self._start_queue_cls = start_queue_cls
        self._folder = key
        self._runtime = runtime_of(crawler)
        self._clock = self._runtime.clock
        self._lanes: dict[str, Lane] = {}
        self._heap: list[tuple[float, int, int, Lane]] = []
        self._sequence = itertools.count()
        self._count = 0
        state = jobdir.read_state(startprios)
        self._ungoverned = self._new_ungoverned(state.ungoverned)
        self._count = len(self._ungoverned)
        self._set_aside: dict[str, list[int]] = {}
        self._resume(state)
        self._runtime.queues.append(self)
        self._runtime.registered.add("queue")

    # What Scrapy's scheduler calls

    def push(self, request: Request) -> None:
        """Add a request to its cell's lane.

        :raises ValueError: if it is for the disk and cannot be serialised
        """
        runtime = self._runtime
        if not runtime.governs(request):
            self._ungoverned.push(request)
            self._count += 1
            return
        runtime.drop_stale(request)
        undress(request)
        cell = request.meta.get("cell")
        if cell not in runtime.routing.running:
            cell = runtime.routing.settle_on_running(request)
        lane = self._lanes.get(cell)
        if lane is None:
            lane = self._open(cell)
        now = self._clock.now()
        lane.push(request, now)
        self._count += 1
        due = lane.due_at()
        if lane.scheduled_at is None or due < lane.scheduled_at:
            self._place(lane, now)

    def pop(self) -> Request | None:
        """Take a request of the cell that has been ready longest, or ``None``."""
        if self._ungoverned:
            self._count -= 1
            return self._ungoverned.pop()
        now = self._clock.now()
        heap = self._heap
        while heap:
            when, _, version, lane = heap[0]
            if lane.version != version:
                heapq.heappop(heap)
                continue
            if when > now:
                break
            heapq.heappop(heap)
            lane.scheduled_at = None
            request = self._pop_lane(lane, now)
            self._place(lane, now)
            if request is not None:
                return request
        if heap:
            self._runtime.wake_at(heap[0][0])
        return None

    def _pop_lane(self, lane: Lane, now: float) -> Request | None:
        cell = self._runtime.cell(lane.cell)
        if not len(lane) or self._ready_at(lane, now) > now:
            return None
        request = lane.pop(
            now, fresh_first=cell.breaker.state is not BreakerState.CLOSED
        )
        if request is None:
            return None
        meta = request.meta
        permit = cell.admit(
            now,
            meta.get("cell_key", request.url),
            session=meta.get("cell_session"),
            avoid=meta.get("_cells_avoid", ()),
        )
        if permit is None:
            lane.push(request, now)
            return None
        meta.pop(NOT_BEFORE, None)
        self._count -= 1
        self._runtime.grant(request, permit)
        if self._runtime.intake is not None:
            self._runtime.intake.served(lane.cell)
        return request

    def peek(self) -> Request | None:
        """Not offered: what comes next depends on when it is asked for."""
        return None

    def close(self) -> list[Any]:
        """Put everything away; the result resumes a later run through its JOBDIR."""
        self._runtime.deferred.update(self.backlogs())
        lanes = {cell: lane.close() for cell, lane in self._lanes.items()}
        used = {cell: prios for cell, prios in lanes.items() if prios}
        self._runtime.stop_timer()
        if self in self._runtime.queues:
            self._runtime.queues.remove(self)
        return jobdir.write_state(
            {**self._set_aside, **used},
            self._ungoverned.close(),
            len(self._runtime.all_cells),
        )

    def __len__(self) -> int:
        return self._count

    # What the runtime asks

    def touch(self, cell_id: str) -> bool:
        """Look again at a cell; tell whether it is ready earlier than thought."""
        lane = self._lanes.get(cell_id)
        if lane is None or not len(lane):
            return False
        before = lane.scheduled_at
        now = self._clock.now()
        due = self._ready_at(lane, now)
        if due == math.inf or (before is not None and due >= before):
            return False
        self._enter(lane, due)
        return due <= now or self._heap[0][3] is lane

    def queued(self, cell_id: str) -> int:
        lane = self._lanes.get(cell_id)
        return 0 if lane is None else len(lane)

    def backlogs(self) -> dict[str, int]:
        """Return how many requests wait for each cell that has any."""
        return {cell: len(lane) for cell, lane in self._lanes.items() if len(lane)}

    def next_ready_at(self, now: float) -> float:
        """Return when the first queued request may go; ``inf`` while all are parked."""
        if self._ungoverned:
            return now
        while self._heap and self._heap[0][3].version != self._heap[0][2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else math.inf

    def drain(self) -> Iterator[Request]:
        """Take out everything, ready or not."""
        for lane in self._lanes.values():
            yield from lane.drain()
        self._count = len(self._ungoverned)

    # Inside

    def _ready_at(self, lane: Lane, now: float) -> float:
        if self._runtime.gate.waiting(lane.cell):
            return math.inf  # who waits in a middleware goes first
        return max(lane.due_at(), self._runtime.cell(lane.cell).ready_at(now))

    def _place(self, lane: Lane, now: float) -> None:
        if len(lane):
            due = self._ready_at(lane, now)
            if due != math.inf:
                self._enter(lane, max(due, now))
                return
        lane.version += 1
        lane.scheduled_at = None

    def _enter(self, lane: Lane, due: float) -> None:
        lane.version += 1
        lane.scheduled_at = due
        heapq.heappush(self._heap, (due, next(self._sequence), lane.version, lane))

    def _open(self, cell: str, priorities: Any = ()) -> Lane:
        lane = self._lanes[cell] = Lane(
            cell,
            self._crawler,
            self._queue_cls,
            self._start_queue_cls,
            folder_of(self._folder, cell),
            priorities,
            # with a JOBDIR everything is on the disk already
            new_spill=None if self._folder else partial(self._new_spill, cell),
        )
        return lane

    def _new_spill(self, cell: str) -> Spill:
        name = f"{next(self._sequence)}"
        path = f"{folder_of(self._runtime.spill_folder.path, cell)}/{name}"
        return Spill(self._crawler, path)

    def _new_ungoverned(self, priorities: Any) -> ScrapyPriorityQueue:
        return ScrapyPriorityQueue.from_crawler(
            self._crawler,
            self._queue_cls,
            folder_of(self._folder, "~"),
            priorities,
            start_queue_cls=self._start_queue_cls,
        )

    def _resume(self, state: jobdir.QueueState) -> None:
        now = self._clock.now()
        index, running = self._runtime.routing.index, set(self._runtime.running)
        moved = state.cell_count not in (0, len(self._runtime.all_cells))
        moving: list[tuple[str, str, list[int]]] = []
        for cell, priorities in state.cells.items():
            if moved or cell not in index:
                # all files move aside before the first cell is filled: it may have
                # the name of one that is still to be emptied
                aside = jobdir.move_aside(folder_of(self._folder, cell))
                moving.append((cell, aside, priorities))
            elif cell in running:
                lane = self._open(cell, priorities)
                self._count += len(lane)
                self._place(lane, now)
            else:  # another process runs it, or this one will again
                self._set_aside[cell] = priorities
        for cell, aside, priorities in moving:
            self._reroute(cell, aside, priorities)

    def _reroute(self, cell: str, aside: str, priorities: list[int]) -> None:
        """Move the requests of a cell to where their keys belong by now.

        :param aside: the folder in which its files are
        """
        lane = Lane(
            cell,
            self._crawler,
            self._queue_cls,
            self._start_queue_cls,
            aside,
            priorities,
        )
        for request in lane.drain():
            request.meta.pop("cell", None)
            request.meta.pop("cell_session", None)
            self.push(request)
        lane.close()
        # Scrapy 2.14 leaves empty files, which would be in the way of the next move
        shutil.rmtree(aside, ignore_errors=True)
