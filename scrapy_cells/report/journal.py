"""What happens to cells, told in stats, log lines and the ``cell_event`` signal."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy_cells.signals import cell_event

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_cells.domain.events import CellEvent
    from scrapy_cells.domain.outcome import Outcome, Verdict
    from scrapy_cells.domain.permit import Permit

logger = logging.getLogger(__name__)


class Journal:
    """Writes for one crawler; the names of all stats are documented in the README."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    def publish(self, event: CellEvent) -> None:
        """Tell of a transition: one INFO line, a count, a signal."""
        crawler = self._crawler
        logger.info("%(what)s", {"what": event.describe()}, extra=self._extra())
        crawler.stats.inc_value("cells/event_count")
        crawler.stats.inc_value(f"cells/event_count/{type(event).__name__}")
        crawler.signals.send_catch_log(cell_event, event=event)

    def count_outcome(self, outcome: Outcome) -> None:
        self._crawler.stats.inc_value(f"cells/outcome_count/{outcome}")

    def verdict(
        self,
        request: Request,
        permit: Permit,
        verdict: Verdict,
        response: Response | None,
    ) -> None:
        """Tell what an answer or a failure was taken for."""
        if verdict.rule:
            self._crawler.stats.inc_value(f"cells/verdict_count/{verdict.rule}")
        logger.debug(
            "%(request)s in cell %(cell)s, session %(session)s, status %(status)s:"
            " %(outcome)s%(vendor)s (rule %(rule)s on %(place)s)",
            {
                "request": request,
                "cell": permit.cell,
                "session": permit.session.id,
                "status": "-" if response is None else response.status,
                "outcome": verdict.outcome,
                "vendor": f" by {verdict.vendor}" if verdict.vendor else "",
                "rule": verdict.rule or "-",
                "place": verdict.place or "-",
            },
            extra=self._extra(),
        )

    def _extra(self) -> dict[str, object]:
        return {"spider": self._crawler.spider}
