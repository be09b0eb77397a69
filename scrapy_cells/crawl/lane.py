"""The requests of one cell, in the order they go out."""

from __future__ import annotations

import hashlib
import heapq
import itertools
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.pqueues import ScrapyPriorityQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_cells.crawl.spill import Spill

NOT_BEFORE = "_cells_not_before"
"""Meta key: epoch seconds before which a request must not go out."""

_MOST_IN_MEMORY = 1000
"""Requests of a cell beyond which its backlog goes to a temporary file."""

_sequence = itertools.count()


class Lane:
    """One cell's requests in one of the scheduler's queues (memory or disk).

    Fresh requests stand in Scrapy's own priority queue, with its order and its disk
    format. Requests that have to wait (``_cells_not_before``) stand in a heap by the
    time they are due, and go to the disk when the queue closes.

    :param folder: where the disk queue keeps its files, ``""`` for memory
    :param new_spill: makes the place for what is too much for memory
    """

    def __init__(
        self,
        cell: str,
        crawler: Crawler,
        queue_cls: type[Any],
        start_queue_cls: type[Any] | None,
        folder: str,
        priorities: Iterable[int] = (),
        new_spill: Callable[[], Spill] | None = None,
    ) -> None:
        self.cell = cell
        self.version = 0
        self.scheduled_at: float | None = None
        self._crawler = crawler
        self._folder = folder
        self._fresh = ScrapyPriorityQueue.from_crawler(
            crawler, queue_cls, folder, priorities, start_queue_cls=start_queue_cls
        )
        self._delayed: list[tuple[float, int, Request]] = []
        self._fresh_count = len(self._fresh)
        self._new_spill = new_spill
        self._spill: Spill | None = None
        self._spilled = 0

    def __len__(self) -> int:
        return self._fresh_count + self._spilled + len(self._delayed)

    def push(self, request: Request, now: float) -> None:
        """Add a request; one that is to wait waits.

        :raises ValueError: if it has to go to the disk and cannot be serialised
        """
        not_before = request.meta.get(NOT_BEFORE)
        if not_before is None or not_before <= now:
            if not self._spill_over(request):
                self._fresh.push(request)
                self._fresh_count += 1
            return
        if self._folder:
            # found out now, while the scheduler can still keep it in memory instead
            request.to_dict(spider=self._crawler.spider)
        heapq.heappush(self._delayed, (not_before, next(_sequence), request))

    def _spill_over(self, request: Request) -> bool:
        """Write a request to the disk if there is no room, or no turn, before others.

        Start requests go out in the order in which they came.
        """
        if self._new_spill is None or request.priority:
            return False
        if not request.meta.get("is_start_request"):
            return (
                False  # what callbacks made goes out before, and shares their objects
            )
        if self._fresh_count < _MOST_IN_MEMORY and not self._spilled:
            return False
        if self._spill is None:
            self._spill = self._new_spill()
        if not self._spill.push(request):
            return False
        self._spilled += 1
        return True

    def due_at(self) -> float:
        """Return when the next request is due: 0 for at once. Not for empty lanes."""
        return 0.0 if self._fresh_count or self._spilled else self._delayed[0][0]

    def pop(self, now: float, *, fresh_first: bool) -> Request | None:
        """Take the next request that is due.

        :param fresh_first: whether untried requests go before due retries: so that a
            cell is not probed over and over with the one page that always fails
        """
        due = bool(self._delayed) and self._delayed[0][0] <= now
        if due and not (fresh_first and (self._fresh_count or self._spilled)):
            return heapq.heappop(self._delayed)[2]
        while self._fresh_count or self._spilled:
            request = self._pop_fresh()
            if request is None:
                continue
            not_before = request.meta.get(NOT_BEFORE, 0.0)
            if not_before <= now:
                return request
            # came from the disk of an earlier run and still has to wait
            heapq.heappush(self._delayed, (not_before, next(_sequence), request))
        return heapq.heappop(self._delayed)[2] if due else None

    def _pop_fresh(self) -> Request | None:
        if self._fresh_count:
            self._fresh_count -= 1
            return self._fresh.pop()
        assert self._spill is not None
        self._spilled -= 1
        request = self._spill.pop()
        if not self._spilled:
            self._spill.close()
            self._spill = None
        return request

    def drain(self) -> Iterator[Request]:
        """Take out everything, due or not."""
        while self._fresh_count or self._spilled:
            request = self._pop_fresh()
            if request is not None:
                yield request
        while self._delayed:
            yield heapq.heappop(self._delayed)[2]

    def close(self) -> list[int]:
        """Write what waits to the disk; return the priorities in use."""
        for _, _, request in sorted(self._delayed):
            self._fresh.push(request)
        self._delayed.clear()
        if self._spill is not None:
            self._spill.close()
        priorities = self._fresh.close()
        if self._folder and not priorities:
            with suppress(OSError):
                Path(self._folder).rmdir()
        return priorities


def folder_of(base: str, cell: str) -> str:
    """Return the folder of a cell's disk queue: safe, and different for every cell."""
    if not base:
        return ""
    if re.fullmatch(r"[0-9A-Za-z]{1,40}", cell):
        return f"{base}/{cell}"
    safe = re.sub(r"[^0-9A-Za-z._-]", "_", cell)[:40]
    tag = hashlib.blake2b(cell.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{base}/{safe}-{tag}"
