"""The closing table: every cell in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from scrapy_cells.domain.cell import CellSnapshot

_COLUMNS = (
    "cell",
    "state",
    "health",
    "gen",
    "sent",
    "ok",
    "blocked",
    "failed",
    "holes",
    "deferred",
)
_MOST = 60
"""Cells shown one by one; beyond that only those with something to tell."""

_BLOCKS = ("captcha", "blocked", "soft_block", "rate_limited")
_FINE = ("ok", "neutral")


def closing_table(
    snapshots: Sequence[CellSnapshot],
    holes: Mapping[str, int],
    deferred: Mapping[str, int],
) -> str:
    """Return the table of all cells, with a line of sums.

    :param holes: keys given up, by cell
    :param deferred: requests left in the queue, by cell
    """
    rows = [_row(snapshot, holes, deferred) for snapshot in snapshots]
    shown = rows
    if len(rows) > _MOST:
        shown = [row for row in rows if _tells(row)][:_MOST]
    sums = ["all", "", "", ""]
    sums += [str(sum(int(row[n]) for row in rows)) for n in range(4, len(_COLUMNS))]
    lines = _aligned([list(_COLUMNS), *shown, sums])
    if len(shown) < len(rows):
        lines.insert(-1, f"... and {len(rows) - len(shown)} cells more")
    return "\n".join(lines)


def _row(
    snapshot: CellSnapshot, holes: Mapping[str, int], deferred: Mapping[str, int]
) -> list[str]:
    outcomes = snapshot.outcomes
    blocked = sum(outcomes.get(name, 0) for name in _BLOCKS)
    failed = sum(n for name, n in outcomes.items() if name not in _FINE) - blocked
    return [
        snapshot.id,
        snapshot.state,
        f"{snapshot.health:.2f}",
        f"g{snapshot.generation}",
        str(snapshot.requests),
        str(outcomes.get("ok", 0)),
        str(blocked),
        str(failed),
        str(holes.get(snapshot.id, 0)),
        str(deferred.get(snapshot.id, 0)),
    ]


def _tells(row: Sequence[str]) -> bool:
    return row[1] != "closed" or any(number != "0" for number in row[6:])


def _aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    rows = list(rows)
    widths = [max(len(row[n]) for row in rows) for n in range(len(_COLUMNS))]
    return [
        "  ".join(
            text.ljust(width) if n < 2 else text.rjust(width)
            for n, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
