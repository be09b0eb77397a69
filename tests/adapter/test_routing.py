"""Which cell, key and session a request gets."""

from __future__ import annotations

import logging
import pickle

import pytest
from scrapy import Request
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.utils.spider import DefaultSpider

from scrapy_cells.crawl.bypass import PARENT
from scrapy_cells.crawl.routing import strip_private
from scrapy_cells.crawl.spidermw import CellSpiderMiddleware
from scrapy_cells.domain.outcome import Outcome
from tests.adapter.rig import page


def routed(rig, url: str = "http://shop.example/1", **meta) -> Request:
    request = Request(url, meta=meta)
    rig.runtime.routing.route(request)
    return request


def follow_ups(rig, parent: Request, *found):
    """Let a callback of *parent* yield these; return what goes on."""
    middleware = CellSpiderMiddleware.from_crawler(rig.crawler)
    response = page(parent)
    middleware.process_spider_input(response)
    return list(middleware.process_spider_output(response, found))


def follow(rig, parent: Request, **kwargs) -> Request:
    """Return the one follow-up that a callback of *parent* makes."""
    url = kwargs.pop("url", "http://shop.example/reviews")
    (request,) = follow_ups(rig, parent, Request(url, **kwargs))
    return request


def other_cell(rig, cell: str) -> str:
    """Return a key that belongs to another cell."""
    router = rig.runtime.router
    return next(k for k in map(str, range(100)) if router.route(k) != cell)


# Requests without a parent


def test_request_is_routed_by_its_key(new_rig):
    """``CELLS_KEY`` finds the key, the router the cell, and both are in meta."""
    rig = new_rig()
    request = routed(rig, key="B07")
    assert request.meta["cell_key"] == "B07"
    assert request.meta["cell"] == rig.runtime.router.route("B07")


def test_request_without_a_key_is_known_by_its_url(new_rig):
    """Nothing that the spider yields is without a cell."""
    rig = new_rig()
    assert routed(rig).meta["cell_key"] == "http://shop.example/1"
    assert routed(rig, key="").meta["cell_key"] == "http://shop.example/1"


def test_key_of_the_spider_wins(new_rig):
    """``cell_key`` in meta is what a product is known by, in NFC."""
    rig = new_rig()
    assert routed(rig, key="a", cell_key="b").meta["cell_key"] == "b"
    assert routed(rig, cell_key=42).meta["cell_key"] == "42"
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    first, second = (routed(rig, cell_key=k).meta for k in (composed, decomposed))
    assert first == second


def test_cell_of_the_spider_wins(new_rig):
    """A known cell in meta stays, whatever the key says."""
    rig = new_rig()
    key = other_cell(rig, "03")
    request = routed(rig, key=key, cell="03")
    assert request.meta["cell"] == "03"


def test_unknown_cell_is_routed_by_key_with_one_warning(new_rig, caplog):
    """A cell that is none costs a warning, not the request."""
    rig = new_rig()
    for _ in range(2):
        request = routed(rig, key="B07", cell="99")
        assert request.meta["cell"] == rig.runtime.router.route("B07")
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "'99'" in warnings[0].getMessage()


def test_cell_that_runs_elsewhere_is_told(new_rig):
    """``None`` for a cell of another process: the request is not for this one."""
    rig = new_rig(CELLS_ONLY="00")
    request = Request("http://shop.example/1", meta={"cell": "01", "cell_key": "a"})
    assert rig.runtime.routing.route(request) is None
    assert request.meta["cell"] == "01"


def test_routing_is_the_same_in_every_process(new_rig):
    """Cells of keys are facts, to be found again after a restart."""
    rig = new_rig(CELLS_COUNT=24)
    cells = {key: routed(rig, key=key).meta["cell"] for key in ("B07", "café", "1")}
    again = new_rig(CELLS_COUNT=24)
    assert {key: routed(again, key=key).meta["cell"] for key in cells} == cells
    assert {key: rig.runtime.router.route(key) for key in cells} == cells


# Follow-ups


def test_follow_up_stays_with_its_parent(new_rig):
    """Without a key of its own it has its parent's cell, key and session."""
    rig = new_rig()
    parent = rig.request("02", "B07")
    session = rig.send(parent).session.id
    found = follow(rig, parent)
    assert found.meta == {"cell": "02", "cell_key": "B07", "cell_session": session}


@pytest.mark.parametrize("key", ["url", "path"])
def test_address_is_no_key_of_a_follow_up(new_rig, key):
    """By url and path every page is another; what hangs together stays together."""
    rig = new_rig(CELLS_KEY=key)
    parent = rig.request("02", "B07")
    rig.send(parent)
    found = follow(rig, parent)
    assert (found.meta["cell"], found.meta["cell_key"]) == ("02", "B07")


def test_follow_up_with_a_key_of_its_own_is_routed_by_it(new_rig):
    """A list page hands its products to their cells, without its own session."""
    rig = new_rig(CELLS_KEY="regex:/item/([0-9]+)")
    parent = rig.request("02", "list")
    rig.send(parent)
    key = other_cell(rig, "02")
    found = follow(rig, parent, url=f"http://shop.example/item/{key}")
    assert found.meta == {"cell": rig.runtime.router.route(key), "cell_key": key}


def test_copied_meta_is_not_a_key_of_its_own(new_rig):
    """``meta=response.meta`` carries the parent's key along; the URL's counts."""
    rig = new_rig(CELLS_KEY="regex:/item/([0-9]+)")
    parent = rig.request("02", "list", meta={"page": 3})
    rig.send(parent)
    key = other_cell(rig, "02")
    found = follow(
        rig, parent, url=f"http://shop.example/item/{key}", meta=parent.meta.copy()
    )
    assert found.meta == {
        "cell": rig.runtime.router.route(key),
        "cell_key": key,
        "page": 3,
    }


def test_key_in_meta_of_a_follow_up_wins(new_rig):
    """A ``cell_key`` that is not the parent's is the spider's word."""
    rig = new_rig()
    parent = rig.request("02", "B07")
    rig.send(parent)
    key = other_cell(rig, "02")
    found = follow(rig, parent, meta={"cell_key": key})
    assert (found.meta["cell"], found.meta["cell_key"]) == (
        rig.runtime.router.route(key),
        key,
    )
    assert "cell_session" not in found.meta


def test_cell_in_meta_of_a_follow_up_wins(new_rig):
    """A cell that is not the parent's is the spider's word; an unknown one is not."""
    rig = new_rig()
    parent = rig.request("02", "B07")
    rig.send(parent)
    found = follow(rig, parent, meta={"cell": "01", "key": "B08"})
    assert (found.meta["cell"], found.meta["cell_key"]) == ("01", "B08")
    found = follow(rig, parent, meta={"cell": "nowhere", "key": "B08"})
    assert found.meta["cell"] == rig.runtime.router.route("B08")


def test_follow_up_for_another_process_is_counted_and_dropped(new_rig):
    """Its cell's own process has that key in its start requests."""
    rig = new_rig(CELLS_ONLY="02")
    parent = rig.request("02", "B07")
    rig.send(parent)
    item = {"name": "kettle"}
    found = Request("http://shop.example/x", meta={"cell": "01"})
    assert follow_ups(rig, parent, found, item) == [item]
    assert rig.stats["cells/skipped_count"] == 1


def test_follow_up_of_a_page_without_a_cell_is_routed(new_rig):
    """A callback of a file or data URL makes requests like start requests."""
    rig = new_rig()
    found = follow(rig, Request("data:,x"), meta={"key": "B07"})
    assert found.meta["cell"] == rig.runtime.router.route("B07")


def test_foreign_schemes_are_left_alone(new_rig):
    """A follow-up that goes through no cell gets no cell."""
    rig = new_rig()
    parent = rig.request("02", "B07")
    rig.send(parent)
    assert follow(rig, parent, url="data:,x").meta == {}


# What must not be copied


def test_private_meta_never_reaches_a_follow_up(new_rig):
    """Permit, clothes, delays and avoided sessions belong to one request alone."""
    rig = new_rig()
    parent = rig.request("02", "B07", meta={"cookiejar": "mine", "page": 3})
    permit = rig.send(parent)
    parent.meta.update(
        {
            "_cells_avoid": ("02g0s1",),
            "_cells_not_before": 5.0,
            "_cells_hole": True,
            "_cells_worn": {},
            "download_slot": "cell:02",
        }
    )
    found = follow(rig, parent, meta=parent.meta.copy())
    assert found.meta == {
        "cell": "02",
        "cell_key": "B07",
        "cell_session": permit.session.id,
        "cookiejar": "mine",
        "page": 3,
    }


def test_slot_of_the_user_is_not_taken_for_ours():
    """Only a slot of a cell is removed from copied meta."""
    meta = {"download_slot": "mine", "_cells_permit": "00:1"}
    strip_private(meta)
    assert meta == {"download_slot": "mine"}


def test_copied_retry_count_goes_and_an_own_one_stays():
    """A follow-up starts with all its tries, unless somebody counted one more."""
    parent = {"retry_times": 2}
    copied, counted, alone = {"retry_times": 2}, {"retry_times": 3}, {"retry_times": 2}
    strip_private(copied, parent)
    strip_private(counted, parent)
    strip_private(alone)
    assert (copied, counted, alone) == ({}, {"retry_times": 3}, {"retry_times": 2})


@pytest.mark.parametrize("times", [None, 1])
def test_get_retry_request_keeps_its_counter(new_rig, times):
    """A callback that asks for a retry is not given endless ones."""
    rig = new_rig()
    parent = rig.request("02", "B07")
    session = rig.send(parent).session.id
    if times is not None:
        parent.meta["retry_times"] = times
    retry = get_retry_request(parent, spider=rig.crawler.spider, reason="empty")
    (found,) = follow_ups(rig, parent, retry)
    assert found.meta == {
        "cell": "02",
        "cell_key": "B07",
        "cell_session": session,
        "retry_times": (times or 0) + 1,
    }
    assert found.dont_filter


def test_meta_can_be_written_to_the_disk(new_rig):
    """What we put into meta are plain values."""
    rig = new_rig()
    parent = rig.request("02", "B07")
    rig.send(parent)
    found = follow(rig, parent)
    assert pickle.loads(pickle.dumps(found.meta)) == found.meta


# Start requests, and the settling that callbacks do


def started(rig, run, *found):
    """Let start() yield these; return what goes on."""
    middleware = CellSpiderMiddleware.from_crawler(rig.crawler)

    async def start():
        for each in found:
            yield each

    async def collect():
        return [each async for each in middleware.process_start(start())]

    return run(collect())


def test_start_requests_get_their_cells(new_rig, run):
    """Each its own, items and foreign schemes pass, others' cells are skipped."""
    rig = new_rig(CELLS_ONLY="00,01")
    keys = [str(n) for n in range(20)]
    requests = [Request("http://shop.example/", meta={"key": k}) for k in keys]
    foreign, item = Request("data:,x"), {"a": 1}
    out = started(rig, run, *requests, foreign, item)
    assert out[-2:] == [foreign, item]
    ours = [k for k in keys if rig.runtime.router.route(k) in {"00", "01"}]
    assert [r.meta["cell_key"] for r in out[:-2]] == ours
    assert rig.stats["cells/skipped_count"] == len(keys) - len(ours)
    assert rig.runtime.intake.exhausted


def callback_ends(rig, how: str) -> Outcome:
    """Let a callback end in one way; return what the request was settled with."""
    middleware = CellSpiderMiddleware.from_crawler(rig.crawler)
    request = rig.request("00", "a")
    rig.send(request)

    def callback():
        if how == "items":
            yield {"a": 1}
        elif how == "requests":
            yield Request("http://shop.example/next")
        elif how == "raises":
            yield {"a": 1}
            raise KeyError("price")
        elif how == "interrupted":
            yield {"a": 1}
            yield {"b": 1}

    output = middleware.process_spider_output(page(request), callback())
    if how == "interrupted":
        next(output)
        output.close()
    elif how == "raises":
        with pytest.raises(KeyError):
            list(output)
    else:
        list(output)
    assert rig.runtime.permits == {}
    (outcome,) = rig.runtime.cell("00").counts
    return outcome


@pytest.mark.parametrize(
    ("how", "expect", "outcome"),
    [
        ("items", False, Outcome.OK),
        ("items", True, Outcome.OK),
        ("requests", True, Outcome.OK),
        ("nothing", False, Outcome.OK),
        ("nothing", True, Outcome.PARSE_FAILURE),
        ("raises", False, Outcome.PARSE_FAILURE),
        ("interrupted", False, Outcome.NEUTRAL),
    ],
)
def test_callback_settles_what_it_was_given(new_rig, how, expect, outcome):
    """Ok, a parse failure (with a hole) or, when it was broken off, neither."""
    rig = new_rig(CELLS_EXPECT_ITEMS=expect)
    assert callback_ends(rig, how) is outcome
    holes = sum(rig.runtime.holes.by_reason.values())
    assert holes == (outcome is Outcome.PARSE_FAILURE)


def test_downloads_of_a_callback_find_their_parent(new_rig):
    """Media pipelines and the like go through the cell of the page they belong to."""
    rig = new_rig(DefaultSpider)
    parent = rig.request("02", "B07")
    rig.send(parent)
    PARENT.set(None)
    follow_ups(rig, parent)
    try:
        image = Request("http://img.example/1.jpg")
        waiting = rig.runtime.gate.acquire(image)
        with pytest.raises(StopIteration):
            waiting.send(None)
        assert image.meta["cell"] == "02"
        assert image.meta["cell_session"] == parent.meta["cell_session"]
        assert rig.runtime.permit_of(image).bypass
    finally:
        PARENT.set(None)
