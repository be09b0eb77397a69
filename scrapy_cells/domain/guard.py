"""Tells an outage of the target, or a change of the site, from cells being blocked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_cells.domain.events import (
    OutageEnded,
    OutageSuspected,
    SiteChangeSuspected,
)
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from scrapy_cells.domain.events import CellEvent

_WINDOW = 60.0
"""Seconds that a report counts."""

_SHARE = 0.5
_LEAST = 3
"""Cells that must fail at least, so that a small crawl is not taken for the site."""


_STREAK = 2
"""Failures in a row, without a fine answer between, that make a cell fail."""


class _Report:
    """What a cell said last."""

    __slots__ = ("at", "broken", "broken_at", "failed", "failed_at")

    def __init__(self) -> None:
        self.at = self.failed_at = self.broken_at = float("-inf")
        self.failed = 0
        self.broken = 0

    def fails(self, since: float) -> bool:
        # other news may be newer: a cell that meets captchas now is not down
        return self.failed >= _STREAK and self.failed_at > since

    def is_broken(self, since: float) -> bool:
        return self.broken >= _STREAK and self.broken_at > since


class OutageGuard:
    """Watches all cells for what no single cell can know.

    While :attr:`suspended`, no cell may give up sessions: the fault is not theirs. The
    same mistake is guarded against by Envoy's panic threshold.
    """

    def __init__(self) -> None:
        self._reports: dict[str, _Report] = {}
        self._outage_since: float | None = None
        self._change_since: float | None = None
        self._recovered = False
        # upper bounds, so that most outcomes need no look at all cells
        self._trouble = 0
        self._reporting = 0

    @property
    def suspended(self) -> bool:
        return self._outage_since is not None or self._change_since is not None

    @property
    def outage_since(self) -> float | None:
        """Epoch seconds of the start of an outage; ``None`` without one."""
        return self._outage_since

    def note(self, cell: str, outcome: Outcome, now: float) -> bool:
        """Hear of an outcome; tell whether it is time to :meth:`check`."""
        report = self._reports.get(cell)
        if report is None:
            report = self._reports[cell] = _Report()
            self._reporting += 1
        report.at = now
        if outcome is Outcome.OK:
            self._recovered = self._recovered or report.failed >= _STREAK
            report.failed = report.broken = 0
        elif outcome.is_outage:
            report.failed += 1
            report.failed_at = now
            self._trouble += report.failed == _STREAK
        elif outcome is Outcome.PARSE_FAILURE:
            report.broken += 1
            report.broken_at = now
            self._trouble += report.broken == _STREAK
        return not self.suspended and _most(self._trouble, self._reporting)

    def check(self, now: float) -> list[CellEvent]:
        """Look at all reports; return what changed."""
        since = now - _WINDOW
        reporting = [r for r in self._reports.values() if r.at > since]
        failing = sum(report.fails(since) for report in reporting)
        broken = sum(report.is_broken(since) for report in reporting)
        self._trouble, self._reporting = failing + broken, len(reporting)
        events: list[CellEvent] = []
        recovered, self._recovered = self._recovered, False
        if self._outage_since is None:
            if _most(failing, len(reporting)):
                self._outage_since = now
                events.append(OutageSuspected("", now, failing, len(reporting)))
        elif recovered or 2 * failing < len(reporting) or not reporting:
            events.append(OutageEnded("", now, now - self._outage_since))
            self._outage_since = None
            for report in self._reports.values():
                report.failed = 0
        if self._change_since is None:
            if _most(broken, len(reporting)):
                self._change_since = now
                events.append(SiteChangeSuspected("", now, broken, len(reporting)))
        elif not _most(broken, len(reporting)):
            self._change_since = None
        return events


def _most(cells: int, reporting: int) -> bool:
    return cells >= _LEAST and cells >= _SHARE * reporting
