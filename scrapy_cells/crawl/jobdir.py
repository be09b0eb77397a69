"""The part of a JOBDIR that the queue writes, and the refusal of anybody else's."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy_cells.errors import CellsConfigError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

# Written as a list that starts with a string: the queues of Scrapy refuse it aloud,
# where one of them would take a dict for a queue with nothing in it.
_MARK = "scrapy_cells.CellPriorityQueue/1"


@dataclass(frozen=True, slots=True)
class QueueState:
    """What an earlier run left: the priorities in use, by cell."""

    cells: dict[str, list[int]] = field(default_factory=dict)
    ungoverned: list[int] = field(default_factory=list)
    cell_count: int = 0


def write_state(
    cells: dict[str, list[int]], ungoverned: list[int], cell_count: int
) -> list[Any]:
    """Return what Scrapy's scheduler stores as ``active.json``."""
    return [
        _MARK,
        {"cells": cells, "ungoverned": ungoverned, "cell_count": cell_count},
    ]


def read_state(state: Any) -> QueueState:
    """Read what :func:`write_state` made; nothing at all is a fresh start.

    :raises CellsConfigError: if another queue class wrote it
    """
    if not state:
        return QueueState()
    if isinstance(state, list) and len(state) == 2 and state[0] == _MARK:
        with suppress(TypeError):
            return QueueState(**state[1])
    raise CellsConfigError([_refusal("the JOBDIR's requests.queue/active.json")])


def check_jobdir(settings: BaseSettings) -> None:
    """Refuse a JOBDIR of another queue class before anything of it is touched.

    :raises CellsConfigError: naming the file
    """
    jobdir = settings.get("JOBDIR")
    if not jobdir:
        return
    path = Path(jobdir, "requests.queue", "active.json")
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except ValueError as error:
        raise CellsConfigError(
            [f"JOBDIR={jobdir!r}: {path} is damaged ({error}); use a new JOBDIR"]
        ) from error
    try:
        read_state(state)
    except CellsConfigError as error:
        raise CellsConfigError([_refusal(str(path))]) from error


def move_aside(folder: str) -> str:
    """Rename a cell's folder so that a new cell can take its name."""
    path = Path(folder)
    number = 0
    # one of that name may be left of a run that was killed just then
    while (aside := path.with_name(f"{path.name}~moving{number or ''}")).exists():
        number += 1
    if path.exists():
        path.rename(aside)
    return str(aside)


def _refusal(what: str) -> str:
    return (
        f"JOBDIR: {what} was written by another SCHEDULER_PRIORITY_QUEUE, and its"
        " requests would be lost. Finish that job with CELLS_ENABLED=False (or the"
        " queue class that started it), or use a new JOBDIR. Nothing was changed"
    )
