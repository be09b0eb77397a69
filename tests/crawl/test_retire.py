"""Sessions that are burnt: the next generation, and quarantine."""

from __future__ import annotations

from tests.crawl.common import (
    HURT,
    captcha,
    crawl,
    keys,
    keys_by_cell,
    read_lines,
    right_keys,
)


def test_next_generation_takes_over(site, reactor):
    """A few captchas retire a cohort, and the new one gets every page."""
    site.respond = lambda a: (
        captcha() if a.cell == HURT and a.generation == "0" else None
    )
    settings = {"CELLS_WARMUP": 1, "CELLS_RETRY_TIMES": 4}
    crawled = crawl(site, settings, n=60, reactor=reactor)
    assert right_keys(crawled) == keys(60)
    assert crawled.event_types(HURT) == ["CohortRetired"]
    burnt = [a for a in site.arrivals if a.cell == HURT and a.generation == "0"]
    assert len(burnt) <= 8
    assert {a.generation for a in site.arrivals if a.cell == HURT} == {"0", "1"}
    assert {a.generation for a in site.arrivals if a.cell != HURT} == {"0"}
    assert crawled.stats[f"cells/by_cell/{HURT}/generation"] == 1


def test_cell_whose_new_generation_is_blocked_too_is_quarantined(
    site, reactor, tmp_path
):
    """No third generation is burnt; the crawl ends and says what is missing."""
    site.respond = lambda a: captcha() if a.cell == HURT else None
    holes = tmp_path / "holes.jsonl"
    settings = {"CELLS_WARMUP": 1, "CELLS_HOLES": str(holes)}
    crawled = crawl(site, settings, n=60, reactor=reactor)
    assert crawled.reason == "cells_deferred"
    assert crawled.event_types(HURT) == ["CohortRetired", "CellQuarantined"]
    tries = [a for a in site.arrivals if a.cell == HURT]
    assert len(tries) <= 16
    assert {a.generation for a in tries} == {"0", "1"}
    assert crawled.stats[f"cells/by_cell/{HURT}/state"] == "quarantined"
    missing = {line["key"]: line for line in read_lines(holes)}
    assert sorted(missing) == keys_by_cell(60)[HURT]
    assert sorted([*right_keys(crawled), *missing]) == keys(60)
    assert "deferred" in {line["reason"] for line in missing.values()}
