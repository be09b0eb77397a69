"""Answers that are no pages, on their way to the spider."""

from __future__ import annotations

from collections import Counter

from tests.crawl.common import captcha, crawl, keys
from tests.harness.target import Reply

GENTLE = {"CELLS_RETRY_TIMES": 0, "CELLS_BREAKER_THRESHOLD": 100}
GENTLE["CELLS_RETIRE_BELOW"] = 0


def test_block_page_goes_to_the_errback_unless_the_spider_wants_it(site, reactor):
    """The errback gets the answer and what it was taken for."""
    walled = {"k00002", "k00003", "k00008", "k00009"}
    site.respond = lambda a: captcha() if a.key in walled else None
    crawled = crawl(site, GENTLE, "PassSpider", n=12, reactor=reactor)
    titles = {item["url"][-6:]: item["title"] for item in crawled.items}
    assert {key: title for key, title in titles.items() if key not in walled} == {
        key: f"Product {key}" for key in keys(12) if key not in walled
    }
    assert titles.keys() & walled == {"k00003", "k00009"}
    assert titles["k00003"] == titles["k00009"] == "Robot Check"
    assert sorted(f["url"][-6:] for f in crawled.failures) == ["k00002", "k00008"]
    failure = crawled.failures[0]
    assert failure["error"] == "CellBlocked"
    assert failure["outcome"] == "captcha"
    assert failure["vendor"] == "amazon"
    assert failure["status"] == 200
    assert crawled.stats[f"cells/verdict_count/{failure['rule']}"] == 4
    assert crawled.stats["cells/outcome_count/captcha"] == 4


def test_spider_decides_before_all_rules(site, reactor):
    """What its classify() says counts, for worse and for better."""

    def respond(arrival):
        if arrival.key == "k00001":
            page = b"<html><title>Shop</title><body>we are resting</body></html>"
            return Reply(body=page, headers={"Content-Type": "text/html"})
        return captcha() if arrival.key == "k00002" else None

    site.respond = respond
    crawled = crawl(site, GENTLE, "ClassifySpider", n=4, reactor=reactor)
    titles = sorted(item["title"] for item in crawled.items)
    assert titles == ["Product k00000", "Product k00003", "Robot Check"]
    [failure] = crawled.failures
    assert failure["url"].endswith("k00001")
    assert crawled.stats["cells/outcome_count/soft_block"] == 1
    assert crawled.stats["cells/verdict_count/spider.classify"] == 1


def test_page_with_what_only_served_pages_have_is_never_flagged(site, reactor):
    """CELLS_OK_SELECTOR overrules every rule, for answers of status 2xx."""

    def respond(arrival):
        reply = site.usual(arrival)
        if arrival.key in {"k00001", "k00002"}:
            reply.body = captcha().body.replace(b"<body>", reply.body)
        if arrival.key == "k00002":
            reply.body = captcha().body
        return reply

    site.respond = respond
    settings = {**GENTLE, "CELLS_OK_SELECTOR": "h1 + .price"}
    crawled = crawl(site, settings, n=4, reactor=reactor)
    assert sorted(i["key"] for i in crawled.items) == ["k00000", "k00001", "k00003"]
    assert [f["url"][-6:] for f in crawled.failures] == ["k00002"]


def test_callback_without_an_item_is_a_parse_failure(site, reactor, tmp_path):
    """One that raises is as well; neither is the fault of the session."""
    settings = {
        **GENTLE,
        "CELLS_EXPECT_ITEMS": True,
        "CELLS_HOLES": str(tmp_path / "holes.jsonl"),
    }
    crawled = crawl(site, settings, "BarrenSpider", n=12, reactor=reactor, errors=4)
    assert sorted(i["key"] for i in crawled.items) == [
        key for key in keys(12) if int(key[1:]) % 3 == 2
    ]
    assert crawled.stats["cells/outcome_count/parse_failure"] == 8
    assert crawled.stats["cells/outcome_count/ok"] == 4
    assert crawled.stats["cells/hole_count/no item"] == 4
    assert crawled.stats["cells/hole_count/LookupError"] == 4
    assert Counter(a.key for a in site.arrivals) == Counter(keys(12))
    assert crawled.stats.get("cells/event_count/SessionReplaced") is None
