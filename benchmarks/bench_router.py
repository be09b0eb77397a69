"""Keys a second that the hash router places, at different numbers of cells.

Run: ``python benchmarks/bench_router.py``
"""

from __future__ import annotations

import time

from scrapy_cells.domain.router import HashRouter

KEYS = 50_000
ROUNDS = 5


def measure(cells: int) -> float:
    """Return keys a second of CPU time, the best of several rounds."""
    route = HashRouter(cells).route
    keys = [f"https://shop.example/dp/B{number:09d}" for number in range(KEYS)]
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for key in keys:
            route(key)
        best = min(best, time.process_time() - start)
    return KEYS / best


def main() -> None:
    for cells in (24, 10_000):
        print(f"{cells:>6} cells: {measure(cells):>9,.0f} keys/s")


if __name__ == "__main__":
    main()
