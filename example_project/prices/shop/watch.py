"""Whom the shop suspects, and why."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from prices.shop.catalogue import HOUR

if TYPE_CHECKING:
    from prices.shop.story import Exit


class Standing(str, Enum):
    """How an exit is treated: served, asked whether it is a robot, or turned away."""

    FINE = "fine"
    ROBOT = "robot"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the shop puts up with from one exit address; hours are of the story.

    :param per_hour: pages
    :param categories_per_hour: different ones
    :param polite: robot checks before an exit that goes on is turned away
    :param spread_after: requests after which its neighbours are suspected too
    :param hours: for how long
    """

    per_hour: int = 12
    categories_per_hour: int = 3
    polite: int = 6
    spread_after: int = 10
    hours: float = 18.0


@dataclass(frozen=True, slots=True)
class Flag:
    """A suspicion."""

    at: float
    exit: Exit
    why: str


@dataclass(slots=True)
class _Record:
    visits: deque[tuple[float, str]] = field(default_factory=deque)
    until: float = 0.0
    hits: int = 0


class Watch:
    """Looks at every request, as anti-bot vendors do: by address, and by network.

    :ivar flags: all suspicions so far
    """

    def __init__(self, rules: Rules | None = None) -> None:
        self._rules = rules or Rules()
        self._records: dict[str, _Record] = {}
        self._networks: dict[str, float] = {}
        self.flags: list[Flag] = []

    def visit(self, exit_: Exit, category: str, now: float) -> Standing:
        """Take note of a request and say how to treat it.

        :param now: seconds of the story
        """
        record = self._records.setdefault(exit_.address, _Record())
        if record.until <= now < self._networks.get(exit_.network, 0.0):
            self.flag(exit_, now, "neighbour of an exit that went on and on")
        elif record.until <= now and (why := self._suspicion(record, category, now)):
            self.flag(exit_, now, why)
        if record.until <= now:
            return Standing.FINE
        return self._flagged(exit_, record)

    def flag(self, exit_: Exit, now: float, why: str) -> None:
        """Suspect an exit from now on; nothing new if it is suspected already."""
        record = self._records.setdefault(exit_.address, _Record())
        if record.until <= now:
            record.hits = 0
            record.visits.clear()
            self.flags.append(Flag(now, exit_, why))
        record.until = now + self._rules.hours * HOUR

    def _suspicion(self, record: _Record, category: str, now: float) -> str:
        visits = record.visits
        visits.append((now, category))
        while now - visits[0][0] >= HOUR:
            visits.popleft()
        if len(visits) > self._rules.per_hour:
            return "too fast"
        if len({name for _, name in visits}) > self._rules.categories_per_hour:
            return "hops categories"
        return ""

    def _flagged(self, exit_: Exit, record: _Record) -> Standing:
        record.hits += 1
        if record.hits > self._rules.spread_after:
            self._networks[exit_.network] = record.until
        if record.hits > self._rules.polite:
            return Standing.REFUSED
        return Standing.ROBOT
