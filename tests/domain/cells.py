"""A cell to try things on: a source that counts, and shortcuts."""

from __future__ import annotations

import math
import random

from scrapy_cells.domain.cell import Cell, CellOptions
from scrapy_cells.domain.cohort import Draw
from scrapy_cells.domain.outcome import Outcome

NOW = 1.8e9
DAY = 86400.0


class Source:
    """As many proxies as wanted, or a list that is drawn from and rests."""

    def __init__(self, reserve: float = math.inf) -> None:
        self.reserve = reserve
        self.drawn: list[str] = []
        self.burnt: list[tuple[float, str]] = []
        self.resting: list[tuple[float, str]] = []

    def draw(self, cell: str, generation: int, name: str, now: float) -> Draw | None:
        if len(self.drawn) < self.reserve:
            proxy = f"http://user{len(self.drawn)}:secret@gate:1"
        elif self.resting and now - self.resting[0][0] >= DAY:
            proxy = self.resting.pop(0)[1]
        else:
            return None
        self.drawn.append(proxy)
        self.reserve += proxy in self.drawn[:-1]
        return Draw(proxy)

    def burn(self, cell: str, draw: Draw, now: float) -> None:
        assert draw.proxy is not None
        self.burnt.append((now, draw.proxy))
        self.resting.append((now, draw.proxy))


def new_cell(
    source: Source | None = None, cell_id: str = "07", **options: float
) -> Cell:
    """Return a cell whose budget is never what is in the way, unless asked for."""
    wide = {"rate": 1000.0, "burst": 1000.0, "concurrency": 16, "session_rotation": 0}
    return Cell(
        cell_id,
        CellOptions(**{**wide, **options}),
        source or Source(),
        random.Random(1),
        NOW,
    )


def send(cell: Cell, now: float, index: int | None = None, **how):
    """Let a request go out on the wire, on the session at *index* if one is named."""
    session = None if index is None else cell.cohort.sessions[index].id
    permit = cell.admit(now, f"key-{cell.admitted}", session=session, **how)
    assert permit is not None
    cell.mark_sent(permit, now, cell.options.timeout)
    return permit


def end(cell: Cell, outcome: Outcome, now: float, index: int | None = None, **how):
    """Let a request go out and come to its end at once; return its permit."""
    permit = send(cell, now, index)
    assert cell.settle(permit, outcome, now, **how)
    return permit


def wait(cell: Cell, now: float) -> float:
    """Return when the cell is ready, asking again as a timer would."""
    while (due := cell.ready_at(now)) > now:
        assert due < math.inf
        now = due
    return now


def trip(cell: Cell, now: float) -> None:
    """Open the breaker by soft failures, with nobody given up for it."""
    cell.suspended = True
    for _ in range(cell.options.breaker_threshold):
        end(cell, Outcome.SERVER_ERROR, now)
    cell.suspended = False


def names(cell: Cell) -> list[str]:
    """Return the kinds of events that happened since the last look."""
    return [type(event).__name__ for event in cell.take_events()]
