"""Crawls of the tests: each in a process of its own, as a user's would be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).parents[2]

KEY_SPIDER = "tests.world.spiders.KeySpider"

FAST: dict[str, Any] = {
    "ADDONS": {"scrapy_cells.Addon": 900},
    "CELLS_KEY": "regex:/([^/?]+)(?:[?].*)?$",
    "CELLS_RATE": 1000,
    "CELLS_BURST": 1000,
    "CELLS_SITE_RATE": 0,
    "LOG_LEVEL": "INFO",
}
"""Settings of a crawl without rate limits."""


@dataclass
class CrawlResult:
    """What a crawl left behind.

    :ivar log: what it wrote to its outputs
    :ivar seconds: from its start, or from the first signal, to the end of its process
    :ivar events: of ``cell_event``: their fields, type, text and mono, which is the
        ``time.monotonic()`` of the event
    :ivar failures: of errbacks: url, error (name of its class), text
    :ivar reason: finish reason
    :ivar started: ``time.monotonic()`` when the crawl was started
    :ivar killed: whether it did not end in time
    """

    returncode: int
    log: str
    seconds: float
    items: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    started: float = 0.0
    max_rss_mb: float = 0.0
    cpu_seconds: float = 0.0
    outstanding: int = 0
    killed: bool = False

    def event_types(self, cell: str | None = None) -> list[str]:
        return [e["type"] for e in self.events if cell in {None, e["cell"]}]

    def events_of(self, kind: str, cell: str | None = None) -> list[dict[str, Any]]:
        """Return the events of one type, and of one cell if it is named."""
        return [
            e for e in self.events if e["type"] == kind and cell in {None, e["cell"]}
        ]

    def failed_with(self) -> dict[str, int]:
        """Return how many errbacks met each class of error."""
        counts: dict[str, int] = {}
        for failure in self.failures:
            counts[failure["error"]] = counts.get(failure["error"], 0) + 1
        return counts


Crawled = CrawlResult


def run_crawl(
    settings: Mapping[str, Any],
    spider: str = KEY_SPIDER,
    *,
    reactor: str = "asyncio",
    timeout: float = 120,
    signal_after: float | None = None,
    interrupt_when: Callable[[], bool] | None = None,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    **args: Any,
) -> CrawlResult:
    """Run a crawl to its end.

    :param spider: path of a spider class, or the source of a module with one
    :param reactor: ``asyncio``, or ``none`` to crawl without a Twisted reactor
    :param timeout: seconds until it is killed
    :param signal_after: seconds until it gets a SIGINT, as from Ctrl-C
    :param interrupt_when: asked over and over; the crawl gets a SIGINT at the first yes
    :param args: arguments of the spider
    """
    with tempfile.TemporaryDirectory() as folder:
        spec, result = Path(folder, "spec.json"), Path(folder, "result.json")
        log_path = Path(folder, "log.txt")
        if "\n" in spider:
            Path(folder, "given_spider.py").write_text(spider, encoding="utf-8")
            spider = "given_spider"
        spec.write_text(
            json.dumps(
                {
                    "settings": {**settings},
                    "spider": spider,
                    "reactor": reactor,
                    "args": {k: str(v) for k, v in args.items()},
                }
            )
        )
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.world.runner", str(spec), str(result)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=cwd or folder,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join([str(ROOT), folder]),
                    **(env or {}),
                },
            )
            started = time.monotonic()
            if signal_after is not None:
                interrupt_when = _at(started + signal_after)
            seconds, killed = _wait(process, timeout, interrupt_when)
        crawled = CrawlResult(
            process.returncode,
            log_path.read_text(errors="replace"),
            seconds,
            killed=killed,
        )
        if result.exists():
            for name, value in json.loads(result.read_text()).items():
                setattr(crawled, name, value)
        crawled.started = crawled.started or started
        return crawled


def _at(when: float) -> Callable[[], bool]:
    return lambda: time.monotonic() >= when


def _wait(
    process: subprocess.Popen[bytes],
    timeout: float,
    interrupt_when: Callable[[], bool] | None,
) -> tuple[float, bool]:
    """Wait for the end.

    :return: the seconds since the start or the interrupt; whether it was killed
    """
    since = time.monotonic()
    deadline = since + timeout
    while True:
        try:
            process.wait(0.05)
            return time.monotonic() - since, False
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                return time.monotonic() - since, True
            if interrupt_when is not None and interrupt_when():
                interrupt_when = None
                since = time.monotonic()
                process.send_signal(signal.SIGINT)
