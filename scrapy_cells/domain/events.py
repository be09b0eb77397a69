"""What can happen to a cell: one frozen dataclass each, with its sentence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CellEvent:
    """Something that happened.

    :param cell: id of the cell, ``""`` for what concerns all
    :param at: epoch seconds
    """

    cell: str
    at: float

    def describe(self) -> str:
        """Return one line that a person can read."""
        return f"cell {self.cell}: {type(self).__name__}"


@dataclass(frozen=True, slots=True)
class CellOpened(CellEvent):
    """The breaker opened: nothing goes out until a probe passes.

    :param why: what led to it, in words
    :param until: epoch seconds of the next probe
    :param level: how many times in a row a probe has failed
    """

    why: str
    until: float
    level: int = 0

    def describe(self) -> str:
        again = " again" if self.level else ""
        pause = _duration(self.until - self.at)
        return f"cell {self.cell} opened{again}: {self.why}; next probe in {pause}"


@dataclass(frozen=True, slots=True)
class CellProbed(CellEvent):
    """The one request of a half-open breaker came back.

    :param outcome: what became of it
    """

    outcome: str

    def describe(self) -> str:
        return f"cell {self.cell} probed: {self.outcome}"


@dataclass(frozen=True, slots=True)
class CellClosed(CellEvent):
    """The breaker closed.

    :param seconds: how long it was open
    :param factor: share of the budget to start with
    :param ramp: seconds until the whole budget
    """

    seconds: float
    factor: float
    ramp: float

    def describe(self) -> str:
        return (
            f"cell {self.cell} closed after {_duration(self.seconds)}; its rate rises"
            f" from {self.factor:.0%} to 100% in {_duration(self.ramp)}".replace(
                "%", " %"
            )
        )


@dataclass(frozen=True, slots=True)
class CellHeld(CellEvent):
    """The site asked to wait (``Retry-After``).

    :param until: epoch seconds
    """

    until: float

    def describe(self) -> str:
        pause = _duration(self.until - self.at)
        return f"cell {self.cell} holds for {pause}, as the site asked; then one first"


@dataclass(frozen=True, slots=True)
class SessionReplaced(CellEvent):
    """A session was given up for a new one.

    :param session: id of the one that is gone
    :param new: id of the one in its place
    :param why: in words
    :param retired: ids of the sessions that are gone
    """

    session: str
    new: str
    why: str
    retired: tuple[str, ...] = ()

    def describe(self) -> str:
        gone = f"cell {self.cell} replaced session {self.session}"
        return f"{gone} by {self.new}: {self.why}"


@dataclass(frozen=True, slots=True)
class SessionRotated(CellEvent):
    """A session reached its age and made way for a new one."""

    session: str
    new: str
    retired: tuple[str, ...] = ()

    def describe(self) -> str:
        return f"cell {self.cell} rotated session {self.session} to {self.new}"


@dataclass(frozen=True, slots=True)
class CohortRetired(CellEvent):
    """All sessions were given up for the next generation.

    :param generation: the one that is gone
    :param health: score at the end
    :param why: in words
    :param factor: share of the budget during warm-up
    :param warmup: seconds
    """

    generation: int
    health: float
    why: str
    factor: float
    warmup: float
    retired: tuple[str, ...] = ()

    def describe(self) -> str:
        return (
            f"cell {self.cell} retired cohort g{self.generation}: health"
            f" {self.health:.2f} after {self.why}; g{self.generation + 1} warms up at"
            f" {100 * self.factor:.0f} % for {_duration(self.warmup)}"
        )


@dataclass(frozen=True, slots=True)
class CellQuarantined(CellEvent):
    """The cell stays closed off for hours: new addresses would only be burnt too.

    :param generation: the cohort that was blocked last
    :param until: epoch seconds
    :param why: in words
    :param times: how many times in a row
    """

    generation: int
    until: float
    why: str
    times: int = 1
    retired: tuple[str, ...] = ()

    def describe(self) -> str:
        pause = _duration(self.until - self.at)
        return f"cell {self.cell} quarantined for {pause}: {self.why}"


@dataclass(frozen=True, slots=True)
class KeyMoved(CellEvent):
    """A key belongs to another cell from now on.

    :param key: the key
    :param source: id of the cell it left
    """

    key: str
    source: str

    def describe(self) -> str:
        return f"cell {self.cell} took over key {self.key} from cell {self.source}"


@dataclass(frozen=True, slots=True)
class OutageSuspected(CellEvent):
    """So many cells fail at once that the target or the gateway must be down.

    :param failing: cells that fail
    :param reporting: cells that reported lately
    """

    failing: int
    reporting: int

    def describe(self) -> str:
        return (
            f"outage suspected: {self.failing} of {self.reporting} cells fail within a"
            " minute; no session is given up for it, and one cell probes for all"
        )


@dataclass(frozen=True, slots=True)
class OutageEnded(CellEvent):
    """A cell that was failing got an answer again.

    :param seconds: how long it lasted
    """

    seconds: float

    def describe(self) -> str:
        return f"outage over after {_duration(self.seconds)}"


@dataclass(frozen=True, slots=True)
class SiteChangeSuspected(CellEvent):
    """So many cells fail to parse at once that the site or the spider has changed."""

    failing: int
    reporting: int

    def describe(self) -> str:
        return (
            f"site change suspected: callbacks of {self.failing} of {self.reporting}"
            " cells fail within a minute; that is no block, look at the spider"
        )


def _duration(seconds: float) -> str:
    """Return seconds as people say them."""
    seconds = max(0.0, seconds)
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if seconds < 600:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f}".removesuffix(".0") + " h"
