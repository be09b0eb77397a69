"""Crawls that stop and go on from their JOBDIR."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.crawl.common import (
    OLD_SCRAPY,
    base_of,
    crawl,
    keys,
    right_keys,
    usual_settings,
)
from tests.harness.crawl import run_crawl
from tests.harness.target import Reply

N = 48


@pytest.mark.parametrize("count", [4, 6])
def test_resumed_crawl_does_what_was_not_done(site, reactor, tmp_path, count):
    """Every key once, those that waited for a retry too, in as many cells or more."""
    late = {key for key in keys(N) if key[-1] in "02468"}
    seen = Counter()

    def respond(arrival):
        seen[arrival.key] += 1
        if arrival.key in late and seen[arrival.key] == 1:
            return Reply(503, b"down")
        return None

    site.respond = respond
    settings = {
        "JOBDIR": str(tmp_path / "job"),
        "CELLS_RATE": 16,
        "CELLS_BURST": 2,
        "CELLS_RETRY_DELAY": 2,
        "CELLS_RETRY_TIMES": 3,
        "CELLS_BREAKER_THRESHOLD": 100,
        "CELLS_RETIRE_BELOW": 0,
    }
    first = crawl(
        site,
        settings,
        n=N,
        reactor=reactor,
        interrupt_when=lambda: len(site.arrivals) >= 16,
    )
    assert first.reason == "shutdown"
    assert first.stats["cells/deferred_count"] > 0
    assert first.stats["cells/hole_count"] == 0
    before = Counter(a.key for a in site.arrivals)
    waiting = {a.key for a in site.arrivals} - set(right_keys(first))
    assert waiting & late
    settings.update(CELLS_COUNT=count, CELLS_RATE=1000, CELLS_BURST=1000)
    second = crawl(site, settings, n=N, reactor=reactor)
    assert second.reason == "finished"
    assert sorted(right_keys(first) + right_keys(second)) == keys(N)
    assert waiting <= set(right_keys(second))
    good = Counter(a.key for a in site.arrivals if a.status == 200)
    assert good == Counter(keys(N))
    assert second.stats["cells/cell_count"] <= count
    assert before == Counter(a.key for a in site.arrivals[: before.total()])
    assert all(a.user for a in site.arrivals)


@pytest.mark.parametrize("state", [[0, -1], {"127.0.0.1": [0]}])
def test_job_of_another_queue_is_refused(site, reactor, tmp_path, state):
    """With exit code 1, before anything is sent, and not a file of it is changed."""
    job = tmp_path / "job"
    (job / "requests.queue" / "0").mkdir(parents=True)
    (job / "requests.queue" / "active.json").write_text(json.dumps(state))
    (job / "requests.queue" / "0" / "q00000").write_bytes(b"requests")
    (job / "requests.seen").write_text("a" * 40 + "\n")
    before = {p: p.read_bytes() for p in job.rglob("*") if p.is_file()}
    crawled = run_crawl(
        usual_settings(site, JOBDIR=str(job)), base=base_of(site), n=8, reactor=reactor
    )
    assert crawled.returncode == (0 if OLD_SCRAPY else 1)
    assert "was written by another SCHEDULER_PRIORITY_QUEUE" in crawled.log
    assert {p: p.read_bytes() for p in job.rglob("*") if p.is_file()} == before
    assert site.arrivals == site.knocks == []
