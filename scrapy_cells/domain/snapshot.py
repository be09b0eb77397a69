"""What there is to see of a cell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CellSnapshot:
    """What there is to see of a cell.

    :param state: closed, warming, held, open, half_open or quarantined
    :param until: epoch seconds when the state ends, ``None`` if that is open
    :param factor: share of the budget in use
    :param requests: sent so far
    """

    id: str
    state: str
    until: float | None
    health: float
    generation: int
    factor: float
    in_flight: int
    requests: int
    outcomes: dict[str, int]
    replaced: int
