"""The picture of all cells that the live view draws."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from scrapy_cells.domain.cell import CellSnapshot

MOST_ROWS = 40
"""With more cells than this, only those in trouble are shown one by one."""

_COLOURS = {
    "closed": "green",
    "warming": "yellow",
    "half_open": "yellow",
    "held": "cyan",
    "open": "red",
    "quarantined": "magenta",
}
_BLOCKS = ("captcha", "blocked", "soft_block", "rate_limited")


def picture(
    snapshots: Sequence[CellSnapshot],
    now: float,
    last: Mapping[str, str],
    news: Iterable[str],
    most: int = MOST_ROWS,
) -> RenderableType:
    """Return the table of cells with the news below it.

    :param now: epoch seconds
    :param last: what happened last to each cell, in words
    :param most: rows; with more cells, only those in trouble are shown
    """
    from rich.console import Group
    from rich.text import Text

    shown: Sequence[CellSnapshot] = snapshots
    if len(snapshots) > most:
        shown = [s for s in snapshots if s.state != "closed"][:most]
    table = _table()
    for snapshot in shown:
        table.add_row(*_row(snapshot, now, last.get(snapshot.id, "")))
    rest = len(snapshots) - len(shown)
    words = summary(snapshots) + (f" ({rest} not shown)" if rest else "")
    lines = [Text(line, no_wrap=True, overflow="ellipsis") for line in news]
    return Group(table, Text(words, style="bold"), *lines)


def summary(snapshots: Sequence[CellSnapshot]) -> str:
    """Return all cells in one line."""
    states = Counter(snapshot.state for snapshot in snapshots)
    parts = []
    for state in _COLOURS:
        if count := states[state]:
            which = [s.id for s in snapshots if s.state == state]
            # names of a few in trouble say more than their number
            named = f" ({', '.join(which)})" if state != "closed" and count < 6 else ""
            parts.append(f"{count} {state}{named}")
    done = sum(snapshot.outcomes.get("ok", 0) for snapshot in snapshots)
    blocked = sum(map(_blocked, snapshots))
    flying = sum(snapshot.in_flight for snapshot in snapshots)
    return (
        f"{', '.join(parts) or 'none yet'}; {done} done, {blocked} blocked,"
        f" {flying} in flight"
    )


def _table() -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, expand=True, padding=(0, 1))
    table.add_column("cell")
    table.add_column("state", min_width=11)
    table.add_column("health", min_width=10)
    for name in ("gen", "pace", "flying", "done", "blocked", "next try"):
        table.add_column(name, justify="right")
    table.add_column("what happened last", no_wrap=True, overflow="ellipsis", ratio=1)
    return table


def _row(
    snapshot: CellSnapshot, now: float, last: str
) -> tuple[str | RenderableType, ...]:
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    colour = _COLOURS.get(snapshot.state, "white")
    health = 100 * snapshot.health
    bar_colour = "green" if health >= 90 else "yellow" if health >= 50 else "red"
    left = "" if snapshot.until is None else f"{max(0.0, snapshot.until - now):.1f} s"
    blocked = _blocked(snapshot)
    return (
        Text(snapshot.id),
        Text(snapshot.state, style=colour),
        ProgressBar(
            total=100,
            completed=health,
            width=10,
            complete_style=bar_colour,
            finished_style=bar_colour,
        ),
        f"g{snapshot.generation}",
        f"{100 * snapshot.factor:.0f} %",
        str(snapshot.in_flight),
        str(snapshot.outcomes.get("ok", 0)),
        Text(str(blocked), style="red" if blocked else "dim"),
        left,
        Text(last, style="dim"),
    )


def _blocked(snapshot: CellSnapshot) -> int:
    return sum(snapshot.outcomes.get(name, 0) for name in _BLOCKS)
