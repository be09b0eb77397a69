"""Two crawlers in one process."""

from __future__ import annotations

import json

from tests.crawl.common import (
    base_of,
    captcha,
    keys,
    keys_by_cell,
    proxy_of,
    run_python,
    usual_settings,
)


def test_crawlers_of_one_process_share_nothing(site, reactor, tmp_path):
    """A cell of one is quarantined; the other's cell of that name is not."""
    site.respond = lambda a: captcha() if a.cell == "first01" else None
    own = {
        name: {
            "CELLS_PROXY": proxy_of(
                site, f"u-{name}{{cell}}-{{generation}}-{{session}}"
            ),
            "CELLS_COUNT": count,
        }
        for name, count in (("first", 4), ("second", 3))
    }
    spec, result = tmp_path / "spec.json", tmp_path / "result.json"
    spec.write_text(
        json.dumps(
            {
                "settings": usual_settings(site, TELNETCONSOLE_ENABLED=False),
                "own": own,
                "reactor": reactor,
                "base": base_of(site),
                "n": 32,
            }
        )
    )
    done = run_python("-m", "tests.crawl.two_crawlers", spec, result, cwd=tmp_path)
    assert done.returncode == 0, done.log
    told = json.loads(result.read_text())
    first, second = told["first"], told["second"]
    assert first["reason"] == "cells_deferred"
    assert second["reason"] == "finished"
    assert sorted(row["key"] for row in second["rows"]) == keys(32)
    hurt = keys_by_cell(32)["01"]
    healthy = [key for key in keys(32) if key not in hurt]
    assert sorted(row["key"] for row in first["rows"]) == healthy
    assert first["stats"]["cells/cell_count"] == 4
    assert second["stats"]["cells/cell_count"] == 3
    assert first["stats"]["cells/by_cell/01/state"] in {"open", "quarantined"}
    assert second["stats"]["cells/by_cell/01/state"] == "closed"
    for stats in (first["stats"], second["stats"]):
        assert stats["cells/outstanding_permit_count"] == 0
    cells = {a.cell for a in site.arrivals}
    assert cells == {"first00", "first01", "first02", "first03"} | {
        "second00",
        "second01",
        "second02",
    }
    ours = {a.connection for a in site.arrivals if a.cell.startswith("first")}
    theirs = {a.connection for a in site.arrivals if a.cell.startswith("second")}
    assert not ours & theirs
