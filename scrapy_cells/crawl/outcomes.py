"""What became of a request: classified, settled, then on, back or given up."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy_cells import _scrapy_compat as compat
from scrapy_cells.crawl.handler import REUSED
from scrapy_cells.crawl.repeats import Repeats
from scrapy_cells.crawl.retry import DelayedRetry
from scrapy_cells.crawl.runtime import runtime_of
from scrapy_cells.detection import Detector, Page
from scrapy_cells.domain.outcome import Outcome, Verdict
from scrapy_cells.domain.retry import parse_retry_after
from scrapy_cells.errors import CellBlocked, CellsConfigError

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from scrapy_cells.config import CellsConfig
    from scrapy_cells.crawl.runtime import Runtime
    from scrapy_cells.domain.permit import Permit

logger = logging.getLogger(__name__)

_GARBAGE = frozenset(
    {
        Outcome.CAPTCHA,
        Outcome.BLOCKED,
        Outcome.SOFT_BLOCK,
        Outcome.RATE_LIMITED,
        Outcome.EMPTY,
        Outcome.PROXY_ERROR,
    }
)
"""Outcomes whose response must not be parsed; a 5xx is left to HttpErrorMiddleware."""


def judge_of(crawler: Crawler) -> Judge:
    """Return the crawler's one judge."""
    return compat.shared(crawler, "judge", lambda: Judge(runtime_of(crawler)))


class Judge:
    """Classifies answers and failures, and decides what is done about them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._detector = build_detector(runtime.config)
        self._repeats = Repeats()
        self._retry = DelayedRetry(runtime)
        self._warned_classify = False

    def response(self, request: Request, response: Response) -> Request | Response:
        """Judge an answer that came over the wire.

        :return: the response to go on with, or a request to try again later
        :raises CellBlocked: if it is a block page and is given up
        """
        runtime = self._runtime
        permit = runtime.permit_of(request)
        if permit is None:
            return response
        if not permit.sent:
            return self._answered_by_others(request, response, permit)
        page = Page(request, response)
        verdict = self.classify(page)
        if not verdict.outcome.is_failure:
            return self._fine(page, permit, verdict)
        return self._failed(request, response, permit, verdict)

    def failure(self, request: Request, exception: Exception) -> Request | None:
        """Judge a failure on the wire; return a request to try again later, if any."""
        runtime = self._runtime
        permit = runtime.permit_of(request)
        if permit is None or not permit.sent:
            return None
        proxied = permit.session.draw.proxy is not None
        verdict = self._detector.classify_exception(exception, request, proxied=proxied)
        stale = request.meta.pop(REUSED, False)
        if stale and verdict.outcome is Outcome.CONNECTION:
            retry = self._retry.on_new_connection(request, permit)
            if retry is not None:
                runtime.settle(permit, Outcome.NEUTRAL)
                return retry
        free = permit.is_probe
        runtime.settle(permit, verdict.outcome)
        if verdict.outcome.is_failure:
            runtime.journal.verdict(request, permit, verdict, None)
        return self._retry.after_exception(
            request, permit, verdict, exception, free=free
        )

    def classify(self, page: Page) -> Verdict:
        """Ask the spider's ``classify`` first, then the rules."""
        spider = self._runtime.crawler.spider
        own = getattr(spider, "classify", None)
        if own is not None:
            try:
                verdict = as_verdict(own(page.request, page.response))
            except Exception:
                if not self._warned_classify:
                    self._warned_classify = True
                    logger.exception(
                        "The spider's classify() failed and is taken for no opinion;"
                        " further failures are not logged"
                    )
            else:
                if verdict is not None:
                    return verdict
        return self._detector.classify_page(page)

    def _answered_by_others(
        self, request: Request, response: Response, permit: Permit
    ) -> Request | Response:
        """Let through what a cache or a middleware answered, but no block page."""
        self._runtime.settle(permit, Outcome.NEUTRAL)
        if "cached" in response.flags and not request.meta.get("dont_cache"):
            verdict = self.classify(Page(request, response))
            if verdict.outcome in _GARBAGE:
                fresh = request.copy()
                fresh.dont_filter = True
                fresh.meta["dont_cache"] = True
                return fresh
        return response

    def _fine(self, page: Page, permit: Permit, verdict: Verdict) -> Request | Response:
        runtime = self._runtime
        request, response = page.request, page.response
        if response.status in self._retry.http_codes:
            runtime.settle(permit, verdict.outcome)
            return self._retry.after_status(request, permit, response) or response
        if not permit.bypass and self._repeats.note(permit.cell, page):
            soft = Verdict(Outcome.SOFT_BLOCK, "", "repeated_body", "body")
            return self._failed(request, response, permit, soft)
        if verdict.outcome is Outcome.NEUTRAL or not 200 <= response.status < 300:
            runtime.settle(permit, verdict.outcome)
        return response  # settled after the callback

    def _failed(
        self, request: Request, response: Response, permit: Permit, verdict: Verdict
    ) -> Request | Response:
        runtime = self._runtime
        retry_after = parse_retry_after(
            response.headers.getlist(b"Retry-After"),
            response.headers.get(b"Date"),
            runtime.clock.now(),
        )
        free = permit.is_probe or (
            verdict.outcome is Outcome.RATE_LIMITED and retry_after is not None
        )
        runtime.settle(permit, verdict.outcome, retry_after=retry_after)
        runtime.journal.verdict(request, permit, verdict, response)
        retry = self._retry.after_response(
            request, permit, verdict, response, retry_after=retry_after, free=free
        )
        if retry is not None:
            return retry
        if verdict.outcome not in _GARBAGE:
            return response
        if request.meta.get("cells_pass_blocked"):
            # past Scrapy's own filter of statuses, too
            passed = request.meta.get("handle_httpstatus_list", ())
            request.meta["handle_httpstatus_list"] = [*passed, response.status]
            return response
        raise CellBlocked(response, verdict)


class OutcomeMiddleware:
    """Judges what comes back, inside of redirects by meta refresh and of callbacks."""

    def __init__(self, runtime: Runtime, judge: Judge) -> None:
        self._runtime = runtime
        self._judge = judge
        runtime.registered.add("outcome")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(runtime_of(crawler), judge_of(crawler))

    def process_response(
        self, request: Request, response: Response
    ) -> Request | Response:
        return self._judge.response(request, response)

    def process_exception(
        self, request: Request, exception: Exception
    ) -> Request | None:
        return self._judge.failure(request, exception)


def build_detector(config: CellsConfig) -> Detector:
    """Build the rules that the settings ask for.

    :raises CellsConfigError: naming what in ``CELLS_DETECTION`` or
        ``CELLS_OK_SELECTOR`` cannot be used
    """
    problems = []
    for name, rules, selector in (
        ("CELLS_DETECTION", config.detection, None),
        ("CELLS_OK_SELECTOR", (), config.ok_selector or None),
    ):
        try:
            Detector.from_setting(rules, selector)
        except ValueError as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise CellsConfigError(problems)
    return Detector.from_setting(config.detection, config.ok_selector or None)


def as_verdict(answer: Any) -> Verdict | None:
    """Read what a spider's ``classify`` said: a verdict, an outcome, its name, or None.

    :raises ValueError: if it is none of these
    """
    if answer is None or isinstance(answer, Verdict):
        return answer
    return Verdict(Outcome(answer), "", "spider.classify", "spider")
