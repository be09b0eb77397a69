"""What a crawl tells about its cells: stats, events, log lines."""

from __future__ import annotations

from tests.crawl.common import HTML, crawl, keys_by_cell
from tests.harness.target import Reply

N = 24


def test_stats_of_a_small_crawl(site, reactor):
    """Exactly these: one refusal each of two keys, one for good."""
    site.respond = lambda a: (
        Reply(403, b"no", HTML)
        if a.key == "k00003"
        or (a.key == "k00004" and sum(b.key == a.key for b in site.arrivals) == 1)
        else None
    )
    crawled = crawl(site, n=N, reactor=reactor)
    cells = keys_by_cell(N)
    refused = dict.fromkeys(cells, 0)
    first = next(cell for cell, ks in cells.items() if "k00003" in ks)
    second = next(cell for cell, ks in cells.items() if "k00004" in ks)
    refused[first] += 3
    refused[second] += 1
    assert first != second
    expected = {
        "cells/cell_count": 4,
        "cells/request_count": N + 3,
        "cells/outcome_count/ok": N - 1,
        "cells/outcome_count/blocked": 4,
        "cells/retry_count": 3,
        "cells/deferred_count": 0,
        "cells/hole_count": 1,
        "cells/hole_count/blocked": 1,
        "cells/outstanding_permit_count": 0,
        "cells/repeated_settlement_count": 0,
    }
    for cell, ks in cells.items():
        base = f"cells/by_cell/{cell}"
        good = len(ks) - (cell == first)
        expected[f"{base}/state"] = "closed"
        expected[f"{base}/generation"] = 0
        expected[f"{base}/request_count"] = good + refused[cell]
        expected[f"{base}/outcome_count/ok"] = good
        if refused[cell]:
            expected[f"{base}/outcome_count/blocked"] = refused[cell]
    expected[f"cells/by_cell/{first}/hole_count"] = 1
    stats = {k: v for k, v in crawled.stats.items() if k.startswith("cells/")}
    health = {k: stats.pop(k) for k in list(stats) if k.endswith("/health")}
    assert set(health) == {f"cells/by_cell/{cell}/health" for cell in cells}
    assert all(0.5 < value <= 1 for value in health.values())
    verdicts = {
        k: stats.pop(k) for k in list(stats) if k.startswith("cells/verdict_count/")
    }
    assert list(verdicts.values()) == [4]
    assert stats == expected
    assert crawled.stats["retry/count"] == 3
    assert crawled.stats["retry/max_reached"] == 1
    assert crawled.stats["downloader/request_count"] == N + 3


def test_events_are_signals_stats_and_log_lines(site, reactor):
    """Every transition is told three times, and the end is told as a table."""
    site.respond = lambda a: Reply(503, b"down") if a.cell == "01" else None
    settings = {"CELLS_BREAKER_THRESHOLD": 3}
    crawled = crawl(site, settings, n=N, reactor=reactor)
    [event] = crawled.events
    assert event["type"] == "CellOpened"
    assert event["cell"] == "01"
    assert event["text"].startswith("cell 01 opened: 3 server errors in ")
    assert crawled.stats["cells/event_count"] == 1
    assert crawled.stats["cells/event_count/CellOpened"] == 1
    assert f"INFO: {event['text']}" in crawled.log
    assert "4 of 4 cells run here; 1000 requests/s a cell" in crawled.log
    assert "Only cells that stay closed for another" in crawled.log
    assert "Cells at the end (cells_deferred):" in crawled.log
    table = crawled.log.partition("Cells at the end")[2].splitlines()
    assert [line.split()[0] for line in table[1:7]] == [
        "cell",
        "00",
        "01",
        "02",
        "03",
        "all",
    ]
    assert table[3].split()[1] == "open"
