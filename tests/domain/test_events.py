"""Events: what a person reads of them."""

from __future__ import annotations

import dataclasses

import pytest

from scrapy_cells.domain import events
from scrapy_cells.domain.events import (
    CellClosed,
    CellEvent,
    CellHeld,
    CellOpened,
    CellProbed,
    CellQuarantined,
    CohortRetired,
    KeyMoved,
    OutageEnded,
    OutageSuspected,
    SessionReplaced,
    SessionRotated,
    SiteChangeSuspected,
)

AT = 1.8e9

LINES = [
    (CellEvent("07", AT), "cell 07: CellEvent"),
    (
        CellOpened("07", AT, "8 timeouts in 41 s", AT + 900),
        "cell 07 opened: 8 timeouts in 41 s; next probe in 15 min",
    ),
    (
        CellOpened("07", AT, "its probe ended in blocked", AT + 14400, 4),
        "cell 07 opened again: its probe ended in blocked; next probe in 4 h",
    ),
    (CellProbed("07", AT, "ok"), "cell 07 probed: ok"),
    (
        CellClosed("07", AT, 912.0, 0.25, 300.0),
        "cell 07 closed after 15 min; its rate rises from 25 % to 100 % in 300 s",
    ),
    (
        CellHeld("07", AT, AT + 2.5),
        "cell 07 holds for 2.5 s, as the site asked; then one first",
    ),
    (
        SessionReplaced("07", AT, "07g0s2", "07g0s2r1", "3 failures in a row"),
        "cell 07 replaced session 07g0s2 by 07g0s2r1: 3 failures in a row",
    ),
    (
        SessionRotated("07", AT, "07g0s2", "07g0s2r1"),
        "cell 07 rotated session 07g0s2 to 07g0s2r1",
    ),
    (
        CohortRetired("07", AT, 0, 0.421875, "3 captchas in 41 s", 0.25, 300.0),
        (
            "cell 07 retired cohort g0: health 0.42 after 3 captchas in 41 s;"
            " g1 warms up at 25 % for 300 s"
        ),
    ),
    (
        CellQuarantined("07", AT, 1, AT + 5400, "no proxy is left in its reserve"),
        "cell 07 quarantined for 90 min: no proxy is left in its reserve",
    ),
    (
        KeyMoved("07", AT, "B00X", "03"),
        "cell 07 took over key B00X from cell 03",
    ),
    (
        OutageSuspected("", AT, 12, 20),
        (
            "outage suspected: 12 of 20 cells fail within a minute; no session is given"
            " up for it, and one cell probes for all"
        ),
    ),
    (OutageEnded("", AT, 65.0), "outage over after 65 s"),
    (
        SiteChangeSuspected("", AT, 12, 20),
        (
            "site change suspected: callbacks of 12 of 20 cells fail within a minute;"
            " that is no block, look at the spider"
        ),
    ),
]


@pytest.mark.parametrize(
    ("event", "line"), LINES, ids=[type(event).__name__ for event, _ in LINES]
)
def test_event_says_in_one_line_what_happened(event, line):
    """Cell, reason, numbers with units: a line that needs no manual."""
    assert event.describe() == line


def test_every_event_has_its_line_here():
    """No kind of event is left out of the table above."""
    kinds = {
        kind
        for kind in vars(events).values()
        if isinstance(kind, type) and issubclass(kind, CellEvent)
    }
    assert {type(event) for event, _ in LINES} == kinds


def test_event_cannot_be_changed():
    """Receivers share events, so that none can change what the next one sees."""
    event = CellProbed("07", AT, "ok")
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.outcome = "captcha"


def test_pause_that_is_over_is_no_negative_number():
    """A probe that is due already is due in 0 s."""
    assert CellOpened("07", AT, "forced open", AT - 5).describe().endswith("in 0 s")
