"""What happens on the day, as a table, and the clock that tells the day's time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prices.shop.catalogue import HOUR

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DAY_BEGINS = 6.0 * HOUR

ACTS = ("robot", "hang", "reset", "429")

# The prices move at 12:00, and the shop looks hard at who comes back too eagerly.
# A "*" stands for every generation or session; hours beyond 24 are of the next day.
SCRIPT = """
    from   until  cell  generation  session  act     what is to be seen
    12:00  30:00  03    0           *        robot   retired; the next cohort is fine
    12:10  13:20  07    *           *        429     held as asked, then one first
    12:15  15:00  11    *           *        hang    opens, probes, opens, closes
    12:30  15:00  14    *           *        reset   opens, probes, closes
    12:00  30:00  18    0           1        robot   one session is replaced
    12:00  30:00  21    *           *        robot   retired, then quarantined
"""


@dataclass(frozen=True, slots=True)
class Exit:
    """An exit address, and whose it is.

    :param session: as in the user name: ``"2"``, or ``"2r1"`` once replaced
    """

    address: str
    cell: str = ""
    generation: int = 0
    session: str = ""

    @property
    def network(self) -> str:
        """The addresses next door, which a shop takes for the same customer's."""
        return self.address.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Act:
    """A line of the script.

    :param start: seconds since midnight
    :param end: seconds since midnight
    :param generation: ``"*"`` for all
    :param session: ``"*"`` for all
    """

    start: float
    end: float
    cell: str
    generation: str
    session: str
    what: str

    def concerns(self, exit_: Exit, at: float) -> bool:
        return (
            self.start <= at < self.end
            and self.cell == exit_.cell
            and self.generation in {"*", str(exit_.generation)}
            and self.session in {"*", exit_.session}
        )


class Story:
    """The script, to be asked what is on."""

    def __init__(self, acts: Sequence[Act] = ()) -> None:
        self.acts = tuple(acts)

    def now_on(self, exit_: Exit, at: float) -> Act | None:
        """Return the act that an exit is in at a time of the story."""
        for act in self.acts:
            if act.concerns(exit_, at):
                return act
        return None

    @property
    def cells(self) -> frozenset[str]:
        """The cells that something happens to."""
        return frozenset(act.cell for act in self.acts)


def read_story(script: str) -> Story:
    """Read a table like :data:`SCRIPT`; what follows the act is for people.

    :raises ValueError: naming the line that is wrong
    """
    acts = []
    for line in script.strip().splitlines()[1:]:
        fields = line.split()
        if len(fields) < 6 or fields[5] not in ACTS:
            raise ValueError(f"no line of a script: {line.strip()!r}")
        start, end, cell, generation, session, what = fields[:6]
        acts.append(
            Act(time_of_day(start), time_of_day(end), cell, generation, session, what)
        )
    return Story(acts)


def time_of_day(text: str) -> float:
    """Return seconds since midnight of "12:30"."""
    hours, _, minutes = text.partition(":")
    return int(hours) * HOUR + int(minutes) * 60.0


def clock_face(at: float) -> str:
    """Return "12:30" for seconds since midnight."""
    minutes = int(at // 60)
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"


class StoryClock:
    """Tells the time of the story.

    :param factor: seconds of the story in one second of ours
    :param monotonic: seconds of ours
    """

    def __init__(
        self, factor: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        if not factor > 0:
            raise ValueError(f"SHOP_TIME_FACTOR={factor!r}: must be a number > 0")
        self.factor = factor
        self._monotonic = monotonic
        self._began = monotonic()

    def begin(self) -> None:
        """Make it the beginning of the day."""
        self._began = self._monotonic()

    def now(self) -> float:
        """Return seconds of the story since midnight of its first day."""
        return DAY_BEGINS + (self._monotonic() - self._began) * self.factor
