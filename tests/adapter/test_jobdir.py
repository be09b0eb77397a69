"""What a JOBDIR keeps of the cells from one run to the next."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from scrapy import Request, Spider
from scrapy.core.scheduler import Scheduler
from scrapy.pqueues import DownloaderAwarePriorityQueue, ScrapyPriorityQueue
from scrapy.squeues import PickleFifoDiskQueue, PickleLifoDiskQueue
from scrapy.utils.spider import DefaultSpider
from scrapy.utils.test import get_crawler

from scrapy_cells import CellsConfigError
from scrapy_cells.crawl import jobdir
from scrapy_cells.crawl.lane import NOT_BEFORE
from tests.adapter.rig import NOW

NO_FILTER = {"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}


class Run:
    """One run of a crawl: the scheduler of Scrapy with the cells' queue in it."""

    def __init__(self, new_rig, path, **settings) -> None:
        self.rig = new_rig(JOBDIR=str(path), **NO_FILTER, **settings)
        self.scheduler = Scheduler.from_crawler(self.rig.crawler)
        self.scheduler.open(self.rig.crawler.spider)

    def push(self, *requests: Request) -> None:
        for request in requests:
            assert self.scheduler.enqueue_request(request)

    def pop_all(self) -> list[Request]:
        return list(iter(self.scheduler.next_request, None))

    def close(self) -> None:
        self.scheduler.close("shutdown")


def content(path) -> dict[str, bytes]:
    """Return every file below *path*."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file()
    }


def urls(requests) -> list[str]:
    return sorted(request.url for request in requests)


def test_every_cell_finds_its_requests_again(new_rig, tmp_path):
    """Cell, key, priority and order survive; nothing is left behind at the end."""
    first = Run(new_rig, tmp_path)
    for n in range(12):
        first.push(first.rig.request(f"0{n % 3}", f"k{n}", priority=n % 2))
    first.push(Request("data:,x"))
    first.close()
    second = Run(new_rig, tmp_path)
    assert len(second.scheduler) == 13
    out = second.pop_all()
    assert len(out) == 13
    assert len(second.scheduler) == 0
    cells = {r.meta["cell_key"]: r.meta["cell"] for r in out if "cell" in r.meta}
    assert cells == {f"k{n}": f"0{n % 3}" for n in range(12)}
    of_cell = [r.meta["cell_key"] for r in out if r.meta.get("cell") == "00"]
    assert of_cell == ["k9", "k3", "k6", "k0"], "priority, then last in first out"
    second.close()
    assert [name for name in content(tmp_path) if name[-2:] == "/0"] == []
    third = Run(new_rig, tmp_path)
    assert third.pop_all() == []
    third.close()


def test_delayed_requests_still_wait_after_a_restart(new_rig, tmp_path):
    """What was to wait is written at the end, and waits for the rest of its time."""
    first = Run(new_rig, tmp_path)
    for n, seconds in enumerate((30, 10, 20)):
        meta = {NOT_BEFORE: NOW + seconds}
        first.push(first.rig.request("00", f"k{n}", meta=meta))
    first.push(first.rig.request("00", "fresh"))
    first.close()
    second = Run(new_rig, tmp_path)
    assert len(second.scheduler) == 4
    assert [r.meta["cell_key"] for r in second.pop_all()] == ["fresh"]
    assert len(second.scheduler) == 3
    second.rig.advance(10)
    assert [r.meta["cell_key"] for r in second.pop_all()] == ["k1"]
    second.rig.advance(20)
    assert [r.meta["cell_key"] for r in second.pop_all()] == ["k2", "k0"]
    second.close()


def test_session_of_a_request_survives_but_not_its_permit(new_rig, tmp_path):
    """A permit is this process's; the next run asks for one of its own."""
    first = Run(new_rig, tmp_path)
    first.push(first.rig.request("00", "a"))
    (request,) = first.pop_all()
    session = request.meta["cell_session"]
    first.push(request.replace(dont_filter=True))
    first.close()
    second = Run(new_rig, tmp_path)
    (again,) = second.pop_all()
    assert again.meta["cell_session"] == session
    assert second.rig.runtime.permit_of(again) is not None
    assert len(second.rig.runtime.permits) == 1
    second.close()


def test_request_that_cannot_be_written_stays_in_memory(new_rig, tmp_path):
    """Scrapy's scheduler keeps it in the memory queue, delayed or not."""
    run = Run(new_rig, tmp_path)
    run.push(run.rig.request("00", "a", callback=lambda response: None))
    meta = {NOT_BEFORE: NOW + 5}
    run.push(run.rig.request("00", "b", meta=meta, callback=lambda response: None))
    assert len(run.scheduler.mqs) == 2
    run.rig.advance(5)
    assert len(run.pop_all()) == 2
    run.close()


def test_what_is_left_is_deferred_and_only_what_is_lost_a_hole(new_rig, tmp_path):
    """On the disk a request is deferred; in memory it is also a hole."""
    run = Run(new_rig, tmp_path)
    run.push(run.rig.request("00", "a"), run.rig.request("01", "b"))
    run.push(run.rig.request("01", "c", callback=lambda response: None))
    run.close()
    run.rig.runtime.collect_deferred("shutdown")
    assert run.rig.runtime.deferred == {"00": 1, "01": 2}
    assert run.rig.runtime.holes.by_reason == {"shutdown": 1}


# Other cells than before


@pytest.mark.parametrize(("before", "after"), [(4, 7), (7, 4), (12, 1), (3, 30)])
@pytest.mark.parametrize("queue", [PickleLifoDiskQueue, PickleFifoDiskQueue])
def test_other_number_of_cells_reroutes_everything(
    new_rig, tmp_path, before, after, queue
):
    """Every request is there once, in the cell that its key belongs to by now."""
    settings = {"SCHEDULER_DISK_QUEUE": queue, "CELLS_KEY": "url"}
    first = Run(new_rig, tmp_path, CELLS_COUNT=before, **settings)
    made = [Request(f"http://shop.example/{n}", priority=n % 3) for n in range(90)]
    for n, request in enumerate(made):
        if n % 9 == 0:
            request.meta[NOT_BEFORE] = NOW + 5
        first.push(request)
    first.close()
    second = Run(new_rig, tmp_path, CELLS_COUNT=after, **settings)
    assert len(second.scheduler) == 90
    out = second.pop_all()
    assert len(out) == 80
    second.rig.advance(5)
    out += second.pop_all()
    assert urls(out) == urls(made)
    for request in out:
        key = request.meta["cell_key"]
        assert request.meta["cell"] == second.rig.runtime.router.route(key)
    second.close()
    third = Run(new_rig, tmp_path, CELLS_COUNT=after, **settings)
    assert len(third.scheduler) == 0
    third.close()


def test_rerouted_requests_survive_another_restart(new_rig, tmp_path):
    """A run that only moved the requests and stopped has lost none."""
    for count in (6, 3, 9, 2):
        run = Run(new_rig, tmp_path, CELLS_COUNT=count, CELLS_KEY="url")
        if count == 6:
            run.push(*(Request(f"http://shop.example/{n}") for n in range(60)))
        assert len(run.scheduler) == 60
        run.close()
    last = Run(new_rig, tmp_path, CELLS_COUNT=2, CELLS_KEY="url")
    assert urls(last.pop_all()) == sorted(f"http://shop.example/{n}" for n in range(60))
    last.close()


def test_cell_that_left_the_catalog_gives_its_requests_to_others(new_rig, tmp_path):
    """Its keys are routed anew; what the other cells held stays theirs."""
    catalog = tmp_path / "catalog.csv"
    catalog.write_text("key,cell\nk0,aa\nk1,mm\nk2,zz\n")
    settings = {"CELLS_ROUTER": "catalog", "CELLS_CATALOG": str(catalog)}
    folder = tmp_path / "job"
    first = Run(new_rig, folder, **settings)
    for n in range(9):
        meta = {"key": f"k{n % 3}"}
        first.push(Request(f"http://shop.example/{n}", meta=meta))
    first.close()
    catalog.write_text("key,cell\nk0,mm\nk1,mm\nk2,zz\nk9,nn\n")
    second = Run(new_rig, folder, **settings)
    assert len(second.scheduler) == 9
    out = second.pop_all()
    assert Counter(request.meta["cell"] for request in out) == {"mm": 6, "zz": 3}
    assert len(urls(out)) == len(set(urls(out))) == 9
    second.close()


# Some of the cells


def test_cells_that_do_not_run_here_are_set_aside_and_kept(new_rig, tmp_path):
    """CELLS_ONLY takes its cells' requests; the others find theirs when they run."""
    first = Run(new_rig, tmp_path)
    for n in range(12):
        first.push(first.rig.request(f"0{n % 4}", f"k{n}"))
    first.close()
    kept = {n: b for n, b in content(tmp_path).items() if "queue/02" in n}
    assert kept
    second = Run(new_rig, tmp_path, CELLS_ONLY="01,03")
    assert len(second.scheduler) == 6
    assert {r.meta["cell"] for r in second.pop_all()} == {"01", "03"}
    second.push(second.rig.request("01", "new"))
    second.close()
    after = content(tmp_path)
    assert {n: after[n] for n in kept} == kept, "not even touched"
    third = Run(new_rig, tmp_path)
    out = third.pop_all()
    assert Counter(r.meta["cell"] for r in out) == {"00": 3, "01": 1, "02": 3}
    third.close()


# Somebody else's JOBDIR, and ours for others


def stock_jobdir(path, queue) -> None:
    """Let Scrapy's own queue leave two requests behind."""
    settings = {"JOBDIR": str(path), "SCHEDULER_PRIORITY_QUEUE": queue, **NO_FILTER}
    crawler = get_crawler(DefaultSpider, settings)
    spider = crawler.spider = DefaultSpider.from_crawler(crawler)
    crawler.engine = type("Engine", (), {"downloader": None})()
    scheduler = Scheduler.from_crawler(crawler)
    if queue is DownloaderAwarePriorityQueue:
        crawler.engine.downloader = type(
            "Downloader", (), {"slots": {}, "get_slot_key": lambda self, r: "shop"}
        )()
    scheduler.open(spider)
    for n in range(2):
        assert scheduler.enqueue_request(Request(f"http://shop.example/{n}"))
    scheduler.close("shutdown")


@pytest.mark.parametrize("queue", [DownloaderAwarePriorityQueue, ScrapyPriorityQueue])
def test_jobdir_of_a_stock_queue_is_refused_and_untouched(new_rig, tmp_path, queue):
    """Neither shape of state is taken for ours, and the job can still be finished."""
    stock_jobdir(tmp_path, queue)
    before = content(tmp_path)
    state = json.loads(before["requests.queue/active.json"])
    assert isinstance(state, dict if queue is DownloaderAwarePriorityQueue else list)
    with pytest.raises(CellsConfigError, match=r"active\.json.*CELLS_ENABLED=False"):
        new_rig(JOBDIR=str(tmp_path))
    assert content(tmp_path) == before


@pytest.mark.parametrize("text", ["", "[", "\xff", '["a"', "nonsense"])
def test_damaged_state_is_refused_with_its_path(new_rig, tmp_path, text):
    """A file that is no JSON is no fresh start: its requests would be lost."""
    path = tmp_path / "requests.queue" / "active.json"
    path.parent.mkdir()
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(CellsConfigError, match=r"damaged.*new JOBDIR") as caught:
        new_rig(JOBDIR=str(tmp_path))
    assert str(path) in str(caught.value)
    assert path.read_bytes() == text.encode("latin-1")


@pytest.mark.parametrize(
    "state",
    [
        [0, -1],
        {"shop.example": [0]},
        ["scrapy_cells.CellPriorityQueue/2", {}],
        ["scrapy_cells.CellPriorityQueue/1"],
        ["scrapy_cells.CellPriorityQueue/1", {"cells": {}, "more": 1}],
        ["scrapy_cells.CellPriorityQueue/1", 5],
        "text",
        7,
    ],
)
def test_state_of_another_shape_is_refused(state):
    """Only what this version writes is read, with the same words for all others."""
    with pytest.raises(CellsConfigError, match="another SCHEDULER_PRIORITY_QUEUE"):
        jobdir.read_state(state)


@pytest.mark.parametrize("state", [None, (), [], {}])
def test_nothing_is_a_fresh_start(state):
    """A job whose queues were empty can be gone on with."""
    assert jobdir.read_state(state) == jobdir.QueueState()


@pytest.mark.parametrize("queue", [DownloaderAwarePriorityQueue, ScrapyPriorityQueue])
def test_stock_queues_refuse_our_state_aloud(new_rig, tmp_path, queue):
    """A job begun in cells does not come up empty without them."""
    run = Run(new_rig, tmp_path)
    run.push(run.rig.request("00", "a"))
    run.close()
    settings = {"JOBDIR": str(tmp_path), "SCHEDULER_PRIORITY_QUEUE": queue}
    crawler = get_crawler(Spider, {**settings, **NO_FILTER})
    crawler.engine = run.rig.engine
    scheduler = Scheduler.from_crawler(crawler)
    with pytest.raises((TypeError, ValueError)):
        scheduler.open(run.rig.crawler.spider)
    assert any("requests.queue/00/" in name for name in content(tmp_path))


def test_state_that_was_written_is_read(tmp_path):
    """The two halves of the format agree, through JSON."""
    written = jobdir.write_state({"00": [0, -5]}, [1], 24)
    read = jobdir.read_state(json.loads(json.dumps(written)))
    assert read == jobdir.QueueState({"00": [0, -5]}, [1], 24)
