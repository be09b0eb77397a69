"""A live view of all cells in the terminal: ``EXTENSIONS = {LiveView: 500}``."""

from __future__ import annotations

import logging
import sys
from collections import deque
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call

from scrapy_cells.crawl.runtime import runtime_of
from scrapy_cells.report.live import MOST_ROWS, picture, summary
from scrapy_cells.signals import cell_event

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import AsyncioLoopingCall
    from twisted.internet.task import LoopingCall
    from typing_extensions import Self

    from scrapy_cells.crawl.runtime import Runtime
    from scrapy_cells.domain.events import CellEvent

logger = logging.getLogger(__name__)

_REDRAW = 0.25
"""Seconds between two pictures."""

_PLAIN = 10.0
"""Seconds between two lines where there is no terminal."""

_NEWS = 5
_BESIDES = _NEWS + 6
"""Lines of the picture that are no cells: head, rules, sums and news."""


class LiveView:
    """Shows every cell as it lives, and the last things that happened.

    Needs the extra ``live`` (rich) and a terminal on stdout. Anywhere else it writes a
    line to the log every ten seconds. Nothing in it is on the way of a request.

    :param console: where to draw, ``None`` for the log
    """

    def __init__(self, runtime: Runtime, console: Console | None) -> None:
        self._runtime = runtime
        self._console = console
        self._live: Live | None = None
        self._call: AsyncioLoopingCall | LoopingCall | None = None
        self._last: dict[str, str] = {}
        self._news: deque[str] = deque(maxlen=_NEWS)
        self._borrowed: list[tuple[logging.StreamHandler[Any], Any]] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build the view.

        :raises NotConfigured: if stdout is a terminal and rich is not installed
        """
        view = cls(runtime_of(crawler), _console() if sys.stdout.isatty() else None)
        crawler.signals.connect(view.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(view.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(view.cell_event, signal=cell_event)
        return view

    def spider_opened(self) -> None:
        if self._console is None:
            self._call = create_looping_call(self._write_line)
            self._call.start(_PLAIN, now=False)
            return
        from rich.live import Live

        self._live = Live(
            self._picture(), console=self._console, auto_refresh=False, transient=True
        )
        stderr = sys.stderr
        self._live.start()
        self._borrow_handlers(stderr)
        self._call = create_looping_call(self._redraw)
        self._call.start(_REDRAW, now=False)

    def spider_closed(self) -> None:
        if self._call is not None and self._call.running:
            self._call.stop()
        if self._live is not None:
            self._live.stop()
            self._live = None
        for handler, stream in self._borrowed:
            handler.setStream(stream)
        self._borrowed.clear()

    def cell_event(self, event: CellEvent) -> None:
        """Remember what happened."""
        text = event.describe()
        self._news.append(text)
        if event.cell:
            self._last[event.cell] = text.removeprefix(f"cell {event.cell}").strip()

    def _borrow_handlers(self, stderr: Any) -> None:
        """Let log lines appear above the picture instead of through it.

        rich takes over ``sys.stderr``, but the handlers keep the one they began with.
        """
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is stderr:
                self._borrowed.append((handler, stderr))
                handler.setStream(sys.stderr)

    def _redraw(self) -> None:
        if self._live is not None:
            self._live.update(self._picture(), refresh=True)

    def _picture(self) -> RenderableType:
        rows = MOST_ROWS
        if self._console is not None:
            rows = max(1, min(rows, self._console.height - _BESIDES))
        runtime = self._runtime
        return picture(
            runtime.snapshots(), runtime.clock.now(), self._last, self._news, rows
        )

    def _write_line(self) -> None:
        logger.info(
            "Cells: %(line)s",
            {"line": summary(self._runtime.snapshots())},
            extra={"spider": self._runtime.crawler.spider},
        )


def _console() -> Console:
    try:
        from rich.console import Console
    except ImportError as error:
        raise NotConfigured(
            "the live view needs rich: pip install 'scrapy-cells[live]', or take"
            " LiveView out of EXTENSIONS"
        ) from error
    return Console(file=sys.stdout)
