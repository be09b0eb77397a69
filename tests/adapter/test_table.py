"""The closing table."""

from __future__ import annotations

from scrapy_cells.domain.cell import CellSnapshot
from scrapy_cells.report.table import closing_table


def snapshot(cell: str, state: str = "closed", **outcomes: int) -> CellSnapshot:
    return CellSnapshot(
        id=cell,
        state=state,
        until=None,
        health=0.954,
        generation=1,
        factor=1.0,
        in_flight=0,
        requests=sum(outcomes.values()),
        outcomes=outcomes,
        replaced=0,
    )


def test_every_cell_has_its_line_and_all_their_sum():
    """Blocks and other failures are told apart; neutral ones are neither."""
    text = closing_table(
        [
            snapshot("00", ok=10, neutral=3),
            snapshot("01", "open", ok=2, captcha=3, rate_limited=1, timeout=4),
        ],
        {"01": 7},
        {"01": 21},
    )
    assert [line.split() for line in text.splitlines()] == [
        [
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
        ],
        ["00", "closed", "0.95", "g1", "13", "10", "0", "0", "0", "0"],
        ["01", "open", "0.95", "g1", "10", "2", "4", "4", "7", "21"],
        ["all", "23", "12", "4", "4", "7", "21"],
    ]


def test_columns_are_aligned():
    """Every number ends where its column's head ends."""
    text = closing_table([snapshot("00", ok=12345), snapshot("000001")], {}, {})
    head, *rows = text.splitlines()
    end = head.index("sent") + len("sent")
    assert [row[:end].split()[-1] for row in rows] == ["12345", "0", "12345"]
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_many_cells_are_shown_by_what_they_tell():
    """Beyond sixty, only cells in trouble have a line; the sum is of all."""
    cells = [snapshot(f"{n:03d}", ok=1) for n in range(200)]
    cells[7] = snapshot("007", "quarantined", ok=1)
    cells[8] = snapshot("008", ok=1, captcha=1)
    lines = closing_table(cells, {"009": 1}, {"010": 1}).splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["007", "008", "009", "010"]
    assert lines[5] == "... and 196 cells more"
    assert lines[6].split() == ["all", "201", "200", "1", "0", "1", "1"]


def test_at_most_sixty_cells_are_shown():
    """A crawl that is all trouble is still a table that can be read."""
    cells = [snapshot(f"{n:03d}", "open") for n in range(100)]
    lines = closing_table(cells, {}, {}).splitlines()
    assert len(lines) == 63
    assert "... and 40 cells more" in lines
