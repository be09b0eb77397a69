"""Every key is a row or a hole."""

from __future__ import annotations

import random

from scrapy_cells import read_holes
from tests.crawl.common import HTML, captcha, crawl, keys, right_keys
from tests.harness.target import Reply

N = 60


def test_no_key_is_lost_in_random_trouble(site, reactor, tmp_path):
    """A fifth of all answers is bad; what is not a row can be read as a hole."""
    rng = random.Random(7)
    kinds = [
        Reply(429, b"slow down"),
        Reply(503, b"down"),
        Reply(403, b"no", HTML),
        Reply(fault="reset"),
        captcha(),
        Reply(body=b"", headers=HTML),
    ]
    site.respond = lambda a: rng.choice(kinds) if rng.random() < 0.2 else None
    site.gate = lambda k: "407" if rng.random() < 0.02 else ""
    path = tmp_path / "deep" / "holes.jsonl"
    settings = {"CELLS_HOLES": str(path), "CELLS_RETRY_TIMES": 1, "CELLS_WARMUP": 1}
    crawled = crawl(site, settings, n=N, reactor=reactor)
    holes = list(read_holes(path))
    assert sorted([*right_keys(crawled), *(hole.key for hole in holes)]) == keys(N)
    assert crawled.stats["cells/hole_count"] == len(holes) > 0
    for hole in holes:
        assert hole.url.endswith(f"/p/{hole.key}")
        assert crawled.stats[f"cells/by_cell/{hole.cell}/hole_count"] > 0
        assert crawled.stats[f"cells/hole_count/{hole.reason}"] > 0
    assert sum(1 for a in site.arrivals) <= 2 * N
