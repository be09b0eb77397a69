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
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]

FAST = {
    "ADDONS": {"scrapy_cells.Addon": 900},
    "CELLS_KEY": "regex:/([^/?]+)(?:[?].*)?$",
    "CELLS_RATE": 1000,
    "CELLS_BURST": 1000,
    "CELLS_SITE_RATE": 0,
    "LOG_LEVEL": "INFO",
}
"""Settings of a crawl without rate limits."""


@dataclass
class Crawled:
    """What a crawl left behind."""

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

    def event_types(self, cell: str | None = None) -> list[str]:
        return [e["type"] for e in self.events if cell in {None, e["cell"]}]


def run_crawl(
    settings: dict[str, Any],
    spider: str = "tests.harness.spiders.KeySpider",
    *,
    reactor: str = "asyncio",
    timeout: float = 120,
    interrupt_when: Callable[[], bool] | None = None,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    **args: Any,
) -> Crawled:
    """Run a crawl to its end.

    :param interrupt_when: asked over and over; the crawl gets a SIGINT at the first yes
    """
    with tempfile.TemporaryDirectory() as folder:
        spec, result = Path(folder, "spec.json"), Path(folder, "result.json")
        log_path = Path(folder, "log.txt")
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
                [sys.executable, "-m", "tests.harness.runner", str(spec), str(result)],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=cwd or folder,
                env={**os.environ, **(env or {}), "PYTHONPATH": str(ROOT)},
            )
            started = time.monotonic()
            seconds = _wait(process, timeout, interrupt_when)
        crawled = Crawled(
            process.returncode, log_path.read_text(errors="replace"), seconds
        )
        if result.exists():
            for name, value in json.loads(result.read_text()).items():
                if name != "seconds":
                    setattr(crawled, name, value)
        crawled.started = crawled.started or started
        return crawled


def _wait(
    process: subprocess.Popen[bytes],
    timeout: float,
    interrupt_when: Callable[[], bool] | None,
) -> float:
    """Wait for the end; return the seconds since the start, or since the interrupt."""
    since = time.monotonic()
    deadline = since + timeout
    while True:
        try:
            process.wait(0.05)
            return time.monotonic() - since
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                return time.monotonic() - since
            if interrupt_when is not None and interrupt_when():
                interrupt_when = None
                since = time.monotonic()
                process.send_signal(signal.SIGINT)
