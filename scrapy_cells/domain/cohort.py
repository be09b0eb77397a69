"""A cell's sessions of one generation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from scrapy_cells.domain.checked import not_negative
from scrapy_cells.domain.router import hash64

if TYPE_CHECKING:
    from collections.abc import Collection

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Draw:
    """What a session goes out with.

    :param proxy: URL with credentials, ``None`` for no proxy
    :param user_agent: ``None`` for the crawl's own
    """

    proxy: str | None = field(repr=False)
    user_agent: str | None = None


class SessionSource(Protocol):
    """Where proxies come from."""

    def draw(self, cell: str, generation: int, name: str, now: float) -> Draw | None:
        """Return the proxy of a session; ``None`` if the cell's reserve is empty."""

    def burn(self, cell: str, draw: Draw, now: float) -> None:
        """Hear that a session was given up: not to be drawn again for a day."""


class Session:
    """One sticky identity.

    :ivar id: letters and digits, "07g1s2r1"
    :ivar name: "2", or "2r1" once it was replaced
    :ivar strikes: failures in a row that count against it
    :ivar blame: product of the health factors it cost since its last fine answer
    :ivar burnt: whether the source was told that it is given up
    """

    __slots__ = (
        "blame",
        "born",
        "burnt",
        "draw",
        "generation",
        "id",
        "index",
        "name",
        "replacement",
        "strikes",
    )

    def __init__(
        self,
        tag: str,
        generation: int,
        index: int,
        replacement: int,
        draw: Draw,
        born: float,
    ) -> None:
        self.index = index
        self.replacement = replacement
        self.name = session_name(index, replacement)
        self.id = f"{tag}g{generation}s{self.name}"
        self.generation = generation
        self.draw = draw
        self.born = born
        self.strikes = 0
        self.blame = 1.0
        self.burnt = False

    def __repr__(self) -> str:
        return f"<Session {self.id}>"


def session_name(index: int, replacement: int) -> str:
    """Return what the template field ``{session}`` holds."""
    return f"{index}r{replacement}" if replacement else str(index)


def cell_tag(cell: str) -> str:
    """Return a cell's id in letters and digits, different for every cell."""
    if cell.isascii() and cell.isalnum():
        return cell
    plain = "".join(c for c in cell if c.isascii() and c.isalnum())
    return f"{plain}x{hash64(cell):016x}"


class Cohort:
    """The sessions a cell has now.

    :param size: sessions at a time
    :param rotation: seconds after which the oldest makes way; 0 for never
    :raises ValueError: if the source cannot fill the first generation
    """

    def __init__(
        self,
        cell: str,
        size: int,
        source: SessionSource,
        now: float,
        *,
        rotation: float = 0.0,
        generation: int = 0,
        born: float | None = None,
    ) -> None:
        self._cell = cell
        self._tag = cell_tag(cell)
        self._size = size
        self._source = source
        self._rotation = not_negative("rotation", rotation)
        self.generation = generation
        self.born = born
        self._spare: dict[int, Draw] = {}
        self.sessions = self._fill(generation, now) or []
        if not self.sessions:
            raise ValueError(f"cell {cell}: no proxies for {size} sessions")
        self._replaced_at: list[float] = []
        # every cell at another time of the period
        phase = hash64(cell) / 2.0**64
        self._rotate_at = now + self._rotation * phase if self._rotation else math.inf

    def pick(
        self, key: str, prefer: str | None = None, avoid: Collection[str] = ()
    ) -> Session:
        """Return the session of a key: always the same while it lives.

        Rendezvous hashing (Thaler and Ravishankar 1998), so that one session more or
        less moves only the keys it concerns.

        :param prefer: id of a session to take if it is still there
        :param avoid: ids of sessions to take only when there is no other
        """
        if prefer is not None and prefer not in avoid:
            for session in self.sessions:
                if session.id == prefer:
                    return session
        order = _preference(key, len(self.sessions))
        if avoid:
            for index in order:
                if self.sessions[index].id not in avoid:
                    return self.sessions[index]
        return self.sessions[order[0]]

    def get(self, session_id: str) -> Session | None:
        """Return a session of the present cohort."""
        for session in self.sessions:
            if session.id == session_id:
                return session
        return None

    def fresh(self, now: float, window: float) -> bool:
        """Tell whether the cohort is younger than *window* seconds.

        The first one of a crawl is not: its sessions may have been in use for days.
        """
        return self.born is not None and now - self.born < window

    def replace(self, session: Session, now: float) -> Session | None:
        """Put a new session in the place of one; ``None`` if there is none to have."""
        new = self._successor(session, now)
        if new is not None:
            self._replaced_at.append(now)
        return new

    def replaced_within(self, window: float, now: float) -> int:
        """Return how many sessions were replaced in the last *window* seconds."""
        self._replaced_at = [at for at in self._replaced_at if now - at < window]
        return len(self._replaced_at)

    def rotation_due(self, now: float) -> bool:
        return now >= self._rotate_at

    def rotate(self, now: float) -> tuple[Session, Session] | None:
        """Let the oldest session make way; return it and the new one."""
        self._rotate_at = now + self._rotation
        oldest = min(self.sessions, key=lambda session: (session.born, session.index))
        new = self._successor(oldest, now)
        return None if new is None else (oldest, new)

    def advance(self, now: float) -> bool:
        """Give up all sessions for the next generation.

        :return: whether there were enough to have; else the old ones stay, and rest
        """
        # also if there are too few: the day after which they may be drawn again begins
        for session in self.sessions:
            self._burn(session, now)
        sessions = self._fill(self.generation + 1, now)
        if sessions is None:
            return False
        self.generation += 1
        self.sessions = sessions
        self.born = now
        self._replaced_at.clear()
        return True

    def _successor(self, session: Session, now: float) -> Session | None:
        name = session_name(session.index, session.replacement + 1)
        draw = self._source.draw(self._cell, self.generation, name, now)
        if draw is None:
            return None
        self._burn(session, now)
        new = Session(
            self._tag,
            self.generation,
            session.index,
            session.replacement + 1,
            draw,
            now,
        )
        self.sessions[session.index] = new
        return new

    def _burn(self, session: Session, now: float) -> None:
        if not session.burnt:
            session.burnt = True
            self._source.burn(self._cell, session.draw, now)

    def _fill(self, generation: int, now: float) -> list[Session] | None:
        # what was drawn for a generation that fell short is kept for the next try
        draws = self._spare
        for index in range(self._size):
            if index in draws:
                continue
            draw = self._source.draw(self._cell, generation, str(index), now)
            if draw is None:
                return None
            draws[index] = draw
        self._spare = {}
        return [
            Session(self._tag, generation, index, 0, draws[index], now)
            for index in range(self._size)
        ]


@lru_cache(maxsize=65536)
def _preference(key: str, count: int) -> tuple[int, ...]:
    start = hash64(key)
    weights = [(_mixed(start + index * _STEP), index) for index in range(count)]
    return tuple(index for _, index in sorted(weights))


def _mixed(number: int) -> int:
    """Return 64 bits that look unrelated for neighbours: the finisher of SplitMix64.

    Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
    """
    number &= _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)
