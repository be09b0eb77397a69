"""The outermost downloader middleware: nothing goes further without a permit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_cells.crawl.bypass import is_robots_txt
from scrapy_cells.crawl.dress import dress, undress
from scrapy_cells.crawl.runtime import runtime_of
from scrapy_cells.crawl.session import has_own_proxy
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from scrapy_cells.crawl.runtime import Runtime

_ROBOTS_TIMEOUT = 5.0
"""Seconds for a robots.txt, for which all pages wait; another cell tries then."""


class AdmissionMiddleware:
    """Takes the permit a request came with, or waits for one of its own.

    Being the first to see a request and the last to see what became of it, it also
    settles every permit that nobody else did: requests that a middleware answered,
    dropped or failed before they were sent.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        runtime.registered.add("admission")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(runtime_of(crawler))

    async def process_request(self, request: Request) -> None:
        runtime = self._runtime
        if not runtime.governs(request):
            return
        permit = runtime.permit_of(request)
        if permit is None or permit.sent:
            # none yet, or one that a copied meta brought along from another request
            undress(request)
            permit = await runtime.gate.acquire(request)
        if has_own_proxy(request):
            request.meta["_cells_own_proxy"] = True
        timeout = runtime.cell(permit.cell).options.timeout
        if is_robots_txt(request):
            timeout = min(timeout, _ROBOTS_TIMEOUT)
        dress(request, permit, timeout)

    def process_response(self, request: Request, response: Response) -> Response:
        permit = self._runtime.permit_of(request)
        if permit is not None and (permit.bypass or not permit.sent):
            # no callback will follow in which it could be settled
            outcome = Outcome.OK if permit.sent else Outcome.NEUTRAL
            self._runtime.settle(permit, outcome)
        undress(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        permit = self._runtime.permit_of(request)
        if permit is not None:
            self._runtime.settle(permit, Outcome.NEUTRAL)
        if self._runtime.governs(request) and not is_robots_txt(request):
            self._runtime.holes.dropped(request, exception)
        undress(request)
