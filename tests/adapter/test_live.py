"""The live view, drawn without a terminal."""

from __future__ import annotations

import sys

import pytest
from scrapy.exceptions import NotConfigured
from scrapy.utils.test import get_crawler

from scrapy_cells.crawl.live import LiveView
from scrapy_cells.domain.cell import CellSnapshot
from scrapy_cells.report.live import picture, summary

rich_console = pytest.importorskip("rich.console")


def snapshot(cell: str, state: str = "closed", **changes) -> CellSnapshot:
    values = {
        "until": None,
        "health": 1.0,
        "generation": 0,
        "factor": 1.0,
        "in_flight": 1,
        "requests": 5,
        "outcomes": {"ok": 4},
        "replaced": 0,
    }
    return CellSnapshot(id=cell, state=state, **{**values, **changes})


def drawn(*args, **kwargs) -> str:
    console = rich_console.Console(width=140, height=60, record=True, file=sys.stderr)
    with console.capture() as capture:
        console.print(picture(*args, **kwargs))
    return capture.get()


def test_picture_shows_every_cell_with_what_happened_last():
    """A row a cell: state, generation, pace, counts, the next try, the last event."""
    text = drawn(
        [
            snapshot("00"),
            snapshot(
                "07",
                "open",
                until=112.0,
                generation=2,
                factor=0.25,
                outcomes={"ok": 3, "captcha": 2, "rate_limited": 1, "timeout": 9},
            ),
        ],
        100.0,
        {"07": "opened: 4 timeouts"},
        ["cell 07 opened: 4 timeouts"],
    )
    row = next(line for line in text.splitlines() if line.startswith("07"))
    for part in ("open", "g2", "25 %", "12.0 s", "opened: 4 timeouts"):
        assert part in row
    assert row.split("25 %")[1].split()[:3] == ["1", "3", "3"]
    assert "cell 07 opened: 4 timeouts" in text.splitlines()[-1]


def test_many_cells_are_summed_up_but_for_those_in_trouble():
    """Above the number of rows, only cells that are not closed have one."""
    cells = [snapshot(f"{n:02d}") for n in range(99)]
    text = drawn([*cells, snapshot("99", "quarantined")], 0.0, {}, [], 40)
    assert len(text.splitlines()) == 3
    assert "99 closed, 1 quarantined (99); 400 done, 0 blocked, 100 in flight" in text
    assert "(99 not shown)" in text


def test_summary_of_nothing():
    """Before the first request there is no cell."""
    assert summary([]) == "none yet; 0 done, 0 blocked, 0 in flight"


def test_missing_rich_is_said_in_a_terminal(monkeypatch):
    """The view turns itself off and names the extra; the crawl goes on."""
    crawler = get_crawler(settings_dict={"ADDONS": {"scrapy_cells.Addon": 900}})
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(NotConfigured, match=r"scrapy-cells\[live\]"):
        LiveView.from_crawler(crawler)
