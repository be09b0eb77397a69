"""Time to push a request and to pop it, at different numbers of cells.

Run: ``python benchmarks/bench_queue.py``
"""

from __future__ import annotations

import time

from scrapy import Request, Spider
from scrapy.squeues import FifoMemoryQueue
from scrapy.utils.test import get_crawler

from scrapy_cells.crawl.queue import CellPriorityQueue
from scrapy_cells.crawl.runtime import runtime_of
from scrapy_cells.domain.outcome import Outcome


class _Downloader:
    def __init__(self) -> None:
        self.per_slot_settings: dict[str, object] = {}


class _Engine:
    _slot = None

    def __init__(self) -> None:
        self.downloader = _Downloader()


def measure(cells: int, requests: int = 40_000) -> tuple[float, float, float]:
    """Return microseconds a push, a pop, and a settlement."""
    settings = {
        "ADDONS": {"scrapy_cells.Addon": 900},
        "CELLS_COUNT": cells,
        "CELLS_RATE": 1e6,
        "CELLS_BURST": 1e6,
        "CELLS_CONCURRENCY": 100_000,
        "CELLS_SITE_RATE": 0,
        "LOG_LEVEL": "ERROR",
    }
    crawler = get_crawler(Spider, settings_dict=settings)
    crawler.engine = _Engine()
    runtime = runtime_of(crawler)
    queue = CellPriorityQueue.from_crawler(
        crawler, FifoMemoryQueue, "", start_queue_cls=FifoMemoryQueue
    )
    made = [Request(f"http://127.0.0.1/p/{n}") for n in range(requests)]
    for request in made:
        runtime.routing.route(request)
    for cell in runtime.running:  # cells are made once, before the clock runs
        runtime.cell(cell)
    start = time.perf_counter()
    for request in made:
        queue.push(request)
    pushed = time.perf_counter()
    out = [queue.pop() for _ in made]
    popped = time.perf_counter()
    for request in out:
        permit = runtime.permit_of(request)
        cell = runtime.cell(permit.cell)
        cell.mark_sent(permit, runtime.clock.now(), 20.0)
        runtime.left_wire(permit)
        runtime.settle(permit, Outcome.OK)
    settled = time.perf_counter()
    scale = 1e6 / requests
    return (
        (pushed - start) * scale,
        (popped - pushed) * scale,
        (settled - popped) * scale,
    )


if __name__ == "__main__":
    for count in (10, 100, 1000, 10_000):
        push, pop, settle = measure(count)
        print(
            f"{count:6d} cells: push {push:5.1f} us, pop {pop:5.1f} us,"
            f" send and settle {settle:5.1f} us"
        )
