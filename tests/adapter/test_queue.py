"""The scheduler's priority queue, on a real crawler with a clock that stands still."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from scrapy import Request

from scrapy_cells.crawl import lane as lane_module
from scrapy_cells.crawl.lane import NOT_BEFORE, folder_of
from scrapy_cells.domain.outcome import Outcome
from tests.adapter.rig import NOW


def delayed(rig, seconds: float, **kwargs) -> Request:
    return rig.request(meta={NOT_BEFORE: rig.clock.time + seconds}, **kwargs)


def popped(queue) -> list[Request]:
    """Take out whatever may go now."""
    return list(iter(queue.pop, None))


def keys(requests) -> list[str]:
    return [request.meta["cell_key"] for request in requests]


# Turns


def test_ready_cells_take_turns_whatever_the_size_of_their_backlogs(new_rig):
    """A cell with 300 requests goes as often as those with ten, not before them."""
    rig = new_rig()
    queue = rig.queue()
    for cell, count in (("00", 300), ("01", 10), ("02", 10)):
        for n in range(count):
            queue.push(rig.request(cell, f"{cell}-{n}"))
    first = Counter(queue.pop().meta["cell"] for _ in range(30))
    assert first == {"00": 10, "01": 10, "02": 10}


def test_within_a_cell_the_order_is_that_of_scrapy(new_rig):
    """Higher priorities first; among equals, as the downstream queue has it."""
    rig = new_rig()
    queue = rig.queue()
    for key, priority in (("a", 0), ("b", 5), ("c", 0), ("d", -1)):
        queue.push(rig.request("00", key, priority=priority))
    assert keys(popped(queue)) == ["b", "a", "c", "d"]


def test_start_requests_have_a_queue_of_their_own(new_rig):
    """``start_queue_cls`` is honoured: of equals, what callbacks made goes first."""
    rig = new_rig()
    queue = rig.queue()
    for n in range(2):
        queue.push(rig.request("00", f"s{n}", meta={"is_start_request": True}))
    queue.push(rig.request("00", "found"))
    assert keys(popped(queue)) == ["found", "s0", "s1"]


# Permits


def test_what_comes_out_has_the_permit_to_be_sent(new_rig):
    """A popped request carries permit and session; its place and token are taken."""
    rig = new_rig()
    queue = rig.queue()
    queue.push(rig.request("02", "a"))
    request = queue.pop()
    permit = rig.runtime.permit_of(request)
    assert permit.cell == "02"
    assert request.meta["cell_session"] == permit.session.id
    assert rig.runtime.cell("02").in_flight == 1
    assert not permit.bypass


def test_session_hint_and_sessions_to_avoid_are_heeded(new_rig):
    """The session a follow-up names is used, and one that failed it is not."""
    rig = new_rig()
    queue = rig.queue()
    queue.push(rig.request("00", "a", meta={"cell_session": "00g0s3"}))
    assert queue.pop().meta["cell_session"] == "00g0s3"
    usual = rig.runtime.cell("00").cohort.pick("b").id
    queue.push(rig.request("00", "b", meta={"_cells_avoid": (usual,)}))
    assert queue.pop().meta["cell_session"] != usual


def test_permit_of_an_earlier_trip_is_settled(new_rig):
    """A redirect or retry comes back with the first permit, which then ends neutral."""
    rig = new_rig()
    queue = rig.queue()
    queue.push(rig.request("00", "a"))
    request = queue.pop()
    first = rig.runtime.permit_of(request)
    queue.push(request.copy())
    assert first.settled
    assert rig.runtime.permits == {}
    assert rig.runtime.cell("00").counts == {Outcome.NEUTRAL: 1}
    again = queue.pop()
    assert rig.runtime.permit_of(again) not in {None, first}


def test_request_stays_queued_when_the_cell_admits_nobody(new_rig):
    """A quarantined cell with an empty reserve keeps its request and closes again."""
    rig = new_rig(
        CELLS_COUNT=1, CELLS_SESSIONS=1, CELLS_PROXY=["http://u:p@gate.example:1"]
    )
    queue = rig.queue()
    cell = rig.runtime.cell("00")
    cell.levers._quarantine(NOW, "tried out")
    queue.push(rig.request("00", "a"))
    rig.advance(14400)
    assert queue.pop() is None
    assert len(queue) == 1
    assert queue.next_ready_at(rig.clock.time) > rig.clock.time
    assert rig.runtime.permits == {}


# Cells that have to wait


def test_parked_cell_goes_on_when_a_place_is_given_back(new_rig):
    """A full bulkhead holds its own cell only; a place given back wakes the engine."""
    rig = new_rig(CELLS_CONCURRENCY=1)
    queue = rig.queue()
    for n in range(2):
        queue.push(rig.request("00", f"a{n}"))
        queue.push(rig.request("01", f"b{n}"))
    out = popped(queue)
    assert keys(out) == ["a0", "b0"]
    assert queue.next_ready_at(NOW) == math.inf
    assert rig.timers == []
    before = rig.engine.woken
    permit = rig.runtime.permit_of(out[1])
    rig.mark_sent(permit)
    rig.runtime.left_wire(permit)
    assert rig.engine.woken == before + 1
    assert keys(popped(queue)) == ["b1"]


def test_cell_out_of_tokens_is_asked_again_by_one_timer(new_rig):
    """Nothing ready: one timer for the earliest cell, and it wakes the engine."""
    rig = new_rig(
        CELLS_RATE=1, CELLS_BURST=1, CELLS_OVERRIDES={"01": {"rate": 0.25, "burst": 1}}
    )
    queue = rig.queue()
    for n in range(2):
        queue.push(rig.request("01", f"b{n}"))
        queue.push(rig.request("00", f"a{n}"))
    assert len(popped(queue)) == 2
    assert rig.timers == [pytest.approx(1.0)]
    before = rig.engine.woken
    rig.advance(0.5)
    assert rig.engine.woken == before
    assert popped(queue) == []
    assert len(rig.timers) == 1
    rig.advance(0.5)
    assert rig.engine.woken == before + 1
    assert keys(popped(queue)) == ["a1"]
    assert rig.timers == [pytest.approx(3.0)]


def test_timer_moves_forward_for_what_is_due_earlier(new_rig):
    """A later wish leaves the timer alone, an earlier one takes its place."""
    rig = new_rig()
    rig.runtime.wake_at(NOW + 5)
    rig.runtime.wake_at(NOW + 9)
    rig.runtime.wake_at(math.inf)
    assert rig.timers == [5.0]
    rig.runtime.wake_at(NOW + 2)
    assert rig.timers == [2.0]


def test_closed_spider_is_not_woken(new_rig):
    """While the spider closes, a settlement asks the engine for nothing."""
    rig = new_rig(CELLS_CONCURRENCY=1)
    queue = rig.queue()
    for n in range(2):
        queue.push(rig.request("00", f"a{n}"))
    request = queue.pop()
    rig.engine._slot.closing = object()
    rig.end(request, Outcome.OK)
    assert rig.engine.woken == 0


def test_cell_that_opened_meanwhile_gives_out_nothing(new_rig):
    """What the heap believed is checked again when its turn comes."""
    rig = new_rig()
    queue = rig.queue()
    queue.push(rig.request("00", "a"))
    queue.push(rig.request("01", "b"))
    rig.runtime.cell("00").force_open(NOW + 60, NOW)
    assert keys(popped(queue)) == ["b"]
    assert queue.next_ready_at(NOW) == NOW + 60
    assert rig.timers == [60.0]


def test_cell_that_closed_early_is_asked_at_once(new_rig):
    """``touch`` finds a cell that is ready before the time it was entered for."""
    rig = new_rig()
    queue = rig.queue()
    cell = rig.runtime.cell("00")
    cell.force_open(NOW + 60, NOW)
    queue.push(rig.request("00", "a"))
    assert queue.pop() is None
    cell.probe_early(NOW)
    before = rig.engine.woken
    rig.runtime.changed(cell)
    assert rig.engine.woken == before + 1
    assert keys(popped(queue)) == ["a"]
    assert not queue.touch("00"), "an empty lane has nothing to wake for"
    assert not queue.touch("03"), "neither has one that was never used"


# Requests that have to wait


def test_delayed_requests_come_out_in_order_of_time(new_rig):
    """``not_before`` is kept, in whatever order and priority they were pushed."""
    rig = new_rig()
    queue = rig.queue()
    for seconds, priority in ((10, 9), (5, 0), (7, 5)):
        queue.push(delayed(rig, seconds, key=f"{seconds}", priority=priority))
    assert popped(queue) == []
    assert rig.timers == [5.0]
    rig.advance(6)
    assert keys(popped(queue)) == ["5"]
    rig.advance(10)
    out = popped(queue)
    assert keys(out) == ["7", "10"]
    assert all(NOT_BEFORE not in request.meta for request in out)


def test_delayed_request_holds_up_nobody_of_its_cell(new_rig):
    """Fresh requests of the same cell pass one that waits."""
    rig = new_rig()
    queue = rig.queue()
    queue.push(delayed(rig, 30, key="late"))
    queue.push(rig.request(key="fresh"))
    assert keys(popped(queue)) == ["fresh"]
    assert len(queue) == 1


def test_earlier_request_moves_its_cell_forward(new_rig):
    """A cell entered for a late retry is entered anew for an earlier one."""
    rig = new_rig()
    queue = rig.queue()
    queue.push(delayed(rig, 30, key="b"))
    assert queue.next_ready_at(NOW) == NOW + 30
    queue.push(delayed(rig, 3, key="a"))
    assert queue.next_ready_at(NOW) == NOW + 3


def test_due_retry_goes_before_fresh_requests(new_rig):
    """In a closed cell what waited its time is next."""
    rig = new_rig()
    queue = rig.queue()
    queue.push(delayed(rig, 3, key="retry"))
    rig.advance(3)
    queue.push(rig.request(key="fresh"))
    assert keys(popped(queue)) == ["retry", "fresh"]


def test_probe_prefers_fresh_requests(new_rig):
    """A cell is not probed with the retry that may always fail while others wait."""
    rig = new_rig()
    queue = rig.queue()
    rig.runtime.cell("00").force_open(NOW + 60, NOW)
    queue.push(delayed(rig, 3, key="retry"))
    queue.push(rig.request(key="fresh"))
    rig.advance(60)
    out = popped(queue)
    assert keys(out) == ["fresh"], "and half-open lets exactly one out"
    assert rig.runtime.permit_of(out[0]).is_probe
    rig.end(out[0], Outcome.OK)
    assert keys(popped(queue)) == ["retry"]


def test_probe_is_a_retry_where_there_is_nothing_else(new_rig):
    """A cell that holds only retries is not closed for ever."""
    rig = new_rig()
    queue = rig.queue()
    rig.runtime.cell("00").force_open(NOW + 60, NOW)
    queue.push(delayed(rig, 3, key="retry"))
    rig.advance(60)
    assert keys(popped(queue)) == ["retry"]


def test_queue_lets_those_go_first_who_wait_in_a_middleware(new_rig):
    """While a robots.txt or the like waits for a cell, its queue is parked."""
    rig = new_rig(CELLS_RATE=1, CELLS_BURST=1)
    queue = rig.queue()
    queue.push(rig.request("00", "a"))
    queue.push(rig.request("00", "b"))
    assert keys(popped(queue)) == ["a"]
    bypassing = rig.request("00", "c")
    waiting = rig.runtime.gate.acquire(bypassing)
    waiting.send(None)
    assert rig.runtime.gate.waiting("00")
    rig.advance(1)
    assert rig.runtime.permit_of(bypassing).bypass
    assert popped(queue) == []
    rig.advance(1)
    assert keys(popped(queue)) == ["b"]
    waiting.close()


# Other schemes


@pytest.mark.parametrize("url", ["file:///tmp/a", "data:,x", "s3://bucket/key"])
def test_foreign_schemes_pass_untouched(new_rig, url):
    """What is no http(s) needs no cell, and goes while all cells are closed."""
    rig = new_rig()
    queue = rig.queue()
    for cell in rig.runtime.running:
        rig.runtime.cell(cell).force_open(NOW + 60, NOW)
        queue.push(rig.request(cell, cell))
    queue.push(Request(url))
    assert len(queue) == 5
    assert queue.next_ready_at(NOW) == NOW
    request = queue.pop()
    assert (request.url, request.meta) == (url, {})
    assert queue.pop() is None
    assert len(queue) == 4


# Requests without a cell, or with one that is not here


def test_request_without_a_cell_is_routed(new_rig):
    """What reaches the scheduler on other ways than the spider's is not lost."""
    rig = new_rig()
    queue = rig.queue()
    queue.push(Request("http://shop.example/1", meta={"key": "K1"}))
    request = queue.pop()
    assert request.meta["cell"] == rig.runtime.router.route("K1")


def test_request_of_a_cell_that_does_not_run_here_goes_through_one_that_does(new_rig):
    """A redirect or an extension's download must run in this process."""
    rig = new_rig(CELLS_ONLY="02")
    queue = rig.queue()
    for n in range(8):
        queue.push(Request(f"http://shop.example/{n}", meta={"key": f"K{n}"}))
    assert {request.meta["cell"] for request in popped(queue)} == {"02"}


# Counting


def test_empty_lane_is_used_again(new_rig):
    """A cell keeps its one lane, with its open files, when it runs out of requests."""
    rig = new_rig()
    queue = rig.queue()
    for n in range(3):
        queue.push(rig.request("00", f"k{n}"))
        lane = queue._lanes["00"]
        assert len(popped(queue)) == 1
    assert queue._lanes == {"00": lane}
    queue.push(rig.request("00", "a"))
    assert queue._lanes["00"] is lane


def test_length_is_right_whatever_happens(new_rig):
    """Pushed is popped plus queued, at every step of a long random run."""
    rig = new_rig(CELLS_RATE=2, CELLS_BURST=3, CELLS_CONCURRENCY=2)
    queue = rig.queue()
    rng = random.Random(7)
    pushed = gone = 0
    out: list[Request] = []
    for n in range(1500):
        action = rng.random()
        if action < 0.4:
            request = rig.request(f"0{rng.randrange(4)}", f"k{n}")
            if rng.random() < 0.3:
                request.meta[NOT_BEFORE] = rig.clock.time + rng.uniform(-1, 5)
            if rng.random() < 0.05:
                request = Request("data:,x")
            queue.push(request)
            pushed += 1
        elif action < 0.7:
            if (request := queue.pop()) is not None:
                gone += 1
                if "cell" in request.meta:
                    out.append(request)
        elif action < 0.9 and out:
            rig.end(out.pop(rng.randrange(len(out))), rng.choice(list(Outcome)))
        else:
            rig.advance(rng.uniform(0, 1))
        assert len(queue) == pushed - gone
        assert sum(queue.backlogs().values()) <= len(queue)
    while len(queue):
        for request in popped(queue):
            gone += 1
            if "cell" in request.meta:
                out.append(request)
        for request in out:
            rig.end(request, Outcome.OK)
        out.clear()
        rig.advance(3600)
    assert pushed == gone
    assert rig.runtime.permits == {}


def test_peek_offers_nothing(new_rig):
    """What comes next depends on when it is asked for."""
    rig = new_rig()
    queue = rig.queue()
    queue.push(rig.request())
    assert queue.peek() is None
    assert len(queue) == 1


def test_drained_queue_is_empty(new_rig):
    """Everything comes out at the end, ready or not, and is counted out."""
    rig = new_rig()
    queue = rig.queue()
    queue.push(rig.request("00", "a"))
    queue.push(delayed(rig, 1e6, cell="01", key="b"))
    assert queue.backlogs() == {"00": 1, "01": 1}
    assert sorted(keys(queue.drain())) == ["a", "b"]
    assert len(queue) == 0
    assert queue.backlogs() == {}


# More than fits


def test_backlog_that_went_to_a_file_comes_out_in_order(new_rig, monkeypatch):
    """Start requests beyond what is kept in memory keep their order."""
    monkeypatch.setattr(lane_module, "_MOST_IN_MEMORY", 3)
    rig = new_rig()
    queue = rig.queue()
    start = {"is_start_request": True}
    for n in range(6):
        queue.push(rig.request("00", f"k{n}", meta=start))
    first = [queue.pop() for _ in range(2)]
    queue.push(rig.request("00", "k6", meta=start))
    assert len(queue) == 5
    assert keys([*first, *popped(queue)]) == [f"k{n}" for n in range(7)]
    assert len(queue) == 0
    rig.runtime.spill_folder.remove()


def test_what_cannot_be_written_stays_in_memory(new_rig, monkeypatch):
    """A request with a lambda is kept, whatever there is already."""
    monkeypatch.setattr(lane_module, "_MOST_IN_MEMORY", 1)
    rig = new_rig()
    queue = rig.queue()
    for n in range(3):
        queue.push(rig.request("00", f"k{n}", callback=lambda response: None))
    assert len(queue) == 3
    assert sorted(keys(popped(queue))) == ["k0", "k1", "k2"]
    rig.runtime.spill_folder.remove()


def test_folders_of_cells_are_safe_and_distinct():
    """Whatever a cell is called, its folder is its own and one level deep."""
    names = ["00", "a/b", "a_b", "..", "é", "ß", "x" * 60, "x" * 61, "~"]
    folders = [folder_of("base", name) for name in names]
    assert len(set(folders)) == len(names)
    assert folders[0] == "base/00"
    for folder in folders:
        assert folder.count("/") == 1
        assert folder.partition("/")[2] not in {".", ".."}
        assert folder.isascii()
    assert folder_of("", "a/b") == ""
