"""Trying again later: the delay is kept in the scheduler, where it holds up nobody.

Takes the place of Scrapy's ``RetryMiddleware`` and keeps what its settings and meta
keys mean: ``RETRY_ENABLED``, ``RETRY_HTTP_CODES``, ``RETRY_EXCEPTIONS``,
``max_retry_times``, ``dont_retry``, ``priority_adjust`` and ``retry_times``.
"""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING

from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from scrapy_cells.crawl.bypass import AVOID_CELLS, is_robots_txt
from scrapy_cells.crawl.lane import NOT_BEFORE
from scrapy_cells.domain.outcome import Outcome
from scrapy_cells.domain.retry import backoff
from scrapy_cells.report.holes import LAST_OUTCOME

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_cells.crawl.runtime import Runtime
    from scrapy_cells.domain.outcome import Verdict
    from scrapy_cells.domain.permit import Permit

logger = logging.getLogger(__name__)

_TRIED_AFRESH = "_cells_tried_afresh"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_SAME_SESSION = frozenset({Outcome.SERVER_ERROR, Outcome.RATE_LIMITED, Outcome.EMPTY})
"""Outcomes that say nothing against the session: the retry keeps it."""


class DelayedRetry:
    """Makes the request that tries again, or says why there is none."""

    def __init__(self, runtime: Runtime) -> None:
        settings = runtime.crawler.settings
        self._runtime = runtime
        self._enabled = settings.getbool("RETRY_ENABLED")
        self.http_codes = (
            {int(code) for code in settings.getlist("RETRY_HTTP_CODES")}
            if self._enabled
            else set()
        )
        self._exceptions = tuple(
            load_object(cls) if isinstance(cls, str) else cls
            for cls in settings.getlist("RETRY_EXCEPTIONS")
        )
        adjusted = (settings.getpriority("RETRY_PRIORITY_ADJUST") or 0) > 0
        self._priority_adjust = (
            settings.getint("RETRY_PRIORITY_ADJUST") if adjusted else 0
        )
        self._rng = random.Random()

    def after_response(
        self,
        request: Request,
        permit: Permit,
        verdict: Verdict,
        response: Response,
        *,
        retry_after: float | None,
        free: bool,
    ) -> Request | None:
        """Try again after an answer that was no page.

        :param retry_after: seconds the server asked for
        :param free: whether the try costs none of the request's attempts
        """
        if (
            verdict.outcome is Outcome.SERVER_ERROR
            and response.status not in self.http_codes
        ):
            self._give_up(request, permit, verdict.outcome, str(verdict.outcome))
            return None
        return self._again(
            request,
            permit,
            verdict.outcome,
            reason=str(verdict.outcome),
            retry_after=retry_after,
            free=free,
        )

    def after_status(
        self, request: Request, permit: Permit, response: Response
    ) -> Request | None:
        """Try again after a status of ``RETRY_HTTP_CODES`` that is no failure to us."""
        return self._again(
            request, permit, Outcome.SERVER_ERROR, reason=str(response.status)
        )

    def after_exception(
        self,
        request: Request,
        permit: Permit,
        verdict: Verdict,
        exception: Exception,
        *,
        free: bool,
    ) -> Request | None:
        """Try again after a failure on the wire.

        A POST that may have arrived is sent again only if its ``max_retry_times`` says
        so.
        """
        if not isinstance(exception, self._exceptions):
            self._give_up(request, permit, verdict.outcome, str(verdict.outcome))
            return None
        if (
            request.method not in _SAFE_METHODS
            and verdict.outcome is not Outcome.PROXY_ERROR
            and request.meta.get("max_retry_times") is None
        ):
            self._give_up(request, permit, verdict.outcome, "not_idempotent")
            return None
        return self._again(
            request,
            permit,
            verdict.outcome,
            reason=global_object_name(type(exception)),
            free=free,
        )

    def on_new_connection(self, request: Request, permit: Permit) -> Request | None:
        """Try once more, at once, what failed on a connection that had been idle.

        Whoever kept it open closed it just then: that speaks against nobody.
        """
        meta = request.meta
        if (
            not self._enabled
            or request.method not in _SAFE_METHODS
            or meta.get("dont_retry")
            or meta.get(_TRIED_AFRESH)
        ):
            return None
        retry = request.copy()
        retry.dont_filter = True
        retry.meta[_TRIED_AFRESH] = True
        retry.meta.pop("is_start_request", None)  # before those that were not tried
        retry.meta.setdefault("retry_times", 0)
        retry.meta["cell_session"] = permit.session.id
        return retry

    def _again(
        self,
        request: Request,
        permit: Permit,
        outcome: Outcome,
        *,
        reason: str,
        retry_after: float | None = None,
        free: bool = False,
    ) -> Request | None:
        meta = request.meta
        cell = self._runtime.cell(permit.cell)
        if not self._enabled or meta.get("dont_retry"):
            self._give_up(request, permit, outcome, "dont_retry")
            return None
        attempt = int(meta.get("retry_times", 0)) + (0 if free else 1)
        most = meta.get("max_retry_times")
        if attempt > (cell.options.retry_times if most is None else int(most)):
            self._runtime.crawler.stats.inc_value("retry/max_reached")
            self._give_up(request, permit, outcome, str(outcome))
            return None
        if not free and not cell.retry_budget.spend():
            self._give_up(request, permit, outcome, "retry_budget")
            return None
        retry = self._copy(request, permit, outcome)
        retry.meta["retry_times"] = attempt
        delay = backoff(
            max(attempt - 1, 0),
            cell.options.retry_delay,
            cell.options.retry_max_delay,
            self._rng,
            retry_after=retry_after,
        )
        retry.meta[NOT_BEFORE] = self._runtime.clock.now() + delay
        self._note(request, reason, delay, attempt)
        return retry

    def _copy(self, request: Request, permit: Permit, outcome: Outcome) -> Request:
        retry = request.copy()
        retry.dont_filter = True
        retry.meta[LAST_OUTCOME] = str(outcome)
        retry.priority = request.priority + int(
            request.meta.get("priority_adjust", self._priority_adjust)
        )
        if is_robots_txt(request):
            tried = request.meta.get(AVOID_CELLS, ())
            retry.meta[AVOID_CELLS] = (*tried, permit.cell)
            retry.meta.pop("cell", None)
        if outcome in _SAME_SESSION:
            retry.meta["cell_session"] = permit.session.id
        else:
            avoid = request.meta.get("_cells_avoid", ())
            retry.meta["_cells_avoid"] = (*avoid, permit.session.id)[-8:]
            retry.meta.pop("cell_session", None)
        return retry

    def _note(self, request: Request, reason: str, delay: float, attempt: int) -> None:
        stats = self._runtime.crawler.stats
        stats.inc_value("retry/count")
        stats.inc_value(f"retry/reason_count/{reason}")
        stats.inc_value("cells/retry_count")
        logger.debug(
            "Retrying %(request)s in %(delay).1f s (failed %(attempt)d times): %(why)s",
            {"request": request, "delay": delay, "attempt": attempt, "why": reason},
            extra={"spider": self._runtime.crawler.spider},
        )

    def _give_up(
        self, request: Request, permit: Permit, outcome: Outcome, reason: str
    ) -> None:
        if not outcome.is_failure or is_robots_txt(request):
            return
        self._runtime.holes.given_up(request, permit.cell, reason, str(outcome))
        logger.debug(
            "Gave up %(request)s in cell %(cell)s: %(outcome)s (%(reason)s)",
            {
                "request": request,
                "cell": permit.cell,
                "outcome": outcome,
                "reason": reason,
            },
            extra={"spider": self._runtime.crawler.spider},
        )
