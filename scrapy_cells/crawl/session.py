"""The innermost downloader middleware: a request leaves through its session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_cells.crawl.runtime import runtime_of
from scrapy_cells.errors import CellUnavailable
from scrapy_cells.proxies import parse_proxy

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from scrapy_cells.crawl.outcomes import Judge
    from scrapy_cells.crawl.runtime import Runtime
    from scrapy_cells.domain.permit import Permit
    from scrapy_cells.proxies import ProxyUrl

_AUTHORIZATION = b"Proxy-Authorization"


class SessionMiddleware:
    """Puts the session's proxy on at the last moment, and takes it off at the first.

    Nobody further out, the HTTP cache and the logs among them, ever sees the
    credentials. A proxy that the spider set in ``meta["proxy"]`` stays.
    """

    def __init__(self, runtime: Runtime, judge: Judge) -> None:
        self._runtime = runtime
        self._judge = judge
        self._proxied = runtime.config.proxy is not None
        self._proxies: dict[str, ProxyUrl] = {}
        runtime.registered.add("session")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        from scrapy_cells.crawl.outcomes import judge_of

        return cls(runtime_of(crawler), judge_of(crawler))

    def process_request(self, request: Request) -> Request | None:
        runtime = self._runtime
        if not runtime.governs(request):
            return None
        permit = runtime.permit_of(request)
        if permit is None:
            # it was held up for so long that its permit was taken back: never out
            # without one, but once more through the scheduler
            return request.replace(dont_filter=True)
        if not request.meta.get("_cells_own_proxy"):
            self._put_on(request, permit)
        cell = runtime.cell(permit.cell)
        timeout = float(request.meta.get("download_timeout") or cell.options.timeout)
        cell.mark_sent(permit, runtime.clock.now(), timeout)
        if "retry_times" not in request.meta:
            cell.retry_budget.first_attempt()
        return None

    def process_response(
        self, request: Request, response: Response
    ) -> Request | Response:
        permit = self._back(request)
        if permit is not None:
            # whatever becomes of it now, it was no timeout
            self._runtime.cell(permit.cell).mark_received(permit)
        if 300 <= response.status < 400:
            # judged before it is followed: a redirect to a wall is the end of the way
            return self._judge.response(request, response)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        self._back(request)

    def _put_on(self, request: Request, permit: Permit) -> None:
        if self._proxied and request.meta.get("playwright"):
            # its browser knows nothing of meta["proxy"], and would go out without
            raise CellUnavailable(
                permit.cell, "requests of scrapy-playwright have no session's proxy yet"
            )
        url = permit.session.draw.proxy
        if url is None:
            if self._proxied:
                raise CellUnavailable(permit.cell, "its session has no proxy")
            return
        proxy = self._proxies.get(url)
        if proxy is None:
            proxy = self._proxies[url] = parse_proxy(url)
        request.meta["proxy"] = proxy.address
        if proxy.authorization is not None:
            request.headers[_AUTHORIZATION] = proxy.authorization
        else:
            request.headers.pop(_AUTHORIZATION, None)

    def _back(self, request: Request) -> Permit | None:
        permit = self._runtime.permit_of(request)
        if permit is not None:
            self._runtime.left_wire(permit)
        if self._proxied and not request.meta.get("_cells_own_proxy"):
            request.meta.pop("proxy", None)
            request.headers.pop(_AUTHORIZATION, None)
        return permit


def has_own_proxy(request: Request) -> bool:
    """Tell whether the spider chose the proxy: then no session's takes its place."""
    return request.meta.get("proxy") is not None
