"""How fast ``start()`` is read: lazily, and never held up by one cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_cells.crawl.runtime import Runtime

_ROUNDS_AHEAD = 4
"""A cell is fed when this many requests wait for each it may have in flight."""

_READ_FREELY = 1000
"""Requests that are read without looking: small crawls are read at once."""

_NOTING = 30.0
"""Seconds for noting the rest of ``start()``, which may have no end."""


class Intake:
    """Reads on while a cell that could send has too little to do.

    A cell that is closed does not count: its requests wait on the disk (JOBDIR) or,
    when there are many, in a temporary file, and the others are fed meanwhile. When
    nobody is hungry, reading pauses until somebody is.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._paused: Deferred[None] | None = None
        self._hungry: set[str] = set(runtime.running)
        self._read = 0
        self.exhausted = False
        self.noting = False
        self._noting_until = 0.0
        runtime.intake = self

    @property
    def paused(self) -> bool:
        return self._paused is not None

    def count(self, request: Request) -> None:
        """Take note of a request that goes to the scheduler next."""
        self._read += 1
        cell = request.meta["cell"]
        if cell in self._hungry and self._is_fed(cell):
            self._hungry.discard(cell)

    def served(self, cell: str) -> None:
        """Take note that a cell sent one of its waiting requests."""
        if self.exhausted or cell in self._hungry or self._is_fed(cell):
            return
        self._hungry.add(cell)
        self.reconsider()

    def reconsider(self) -> None:
        """Read on if somebody is hungry again."""
        if self._paused is not None and self._somebody_hungry():
            paused, self._paused = self._paused, None
            paused.callback(None)

    async def room(self) -> None:
        """Wait until another request is wanted."""
        if self._read < _READ_FREELY or self._somebody_hungry():
            return
        self._paused = Deferred()
        await maybe_deferred_to_future(self._paused)

    def note_the_rest(self) -> bool:
        """Read what is left only to note that it was not checked.

        :return: whether that is done, or takes longer than it is worth
        """
        now = self._runtime.clock.now()
        if not self.noting:
            self.noting = True
            self._noting_until = now + _NOTING
            if self._paused is not None:
                paused, self._paused = self._paused, None
                paused.callback(None)
        return self.exhausted or now >= self._noting_until

    async def breathe(self) -> None:
        """Let others work from time to time while the rest is noted."""
        self._read += 1
        if self._read % 100 == 0:
            turn: Deferred[None] = Deferred()
            call_later(0, turn.callback, None)
            await maybe_deferred_to_future(turn)

    def ended(self) -> None:
        self.exhausted = True
        self._paused = None

    def _is_fed(self, cell: str) -> bool:
        options = self._runtime.cell(cell).options
        return self._runtime.queued(cell) >= _ROUNDS_AHEAD * options.concurrency

    def _somebody_hungry(self) -> bool:
        runtime = self._runtime
        now = runtime.clock.now()
        return any(runtime.cell(cell).closed_until(now) <= now for cell in self._hungry)
