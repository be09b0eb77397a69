"""Download handlers that keep the connections of sessions apart, and keep deadlines."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_cells import _scrapy_compat as compat
from scrapy_cells.crawl.runtime import runtime_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

_GRACE = 0.5
"""Seconds after a request's timeout: a handler's own deadline ends first."""

_trip: ContextVar[compat.Trip] = ContextVar("scrapy_cells_trip")

REUSED = "_cells_reused"
"""Meta key: the request failed on a connection that had been idle before."""


class CellDownloadHandler:
    """Wraps the handler that was configured for a scheme.

    The wrapped one is what ``DOWNLOAD_HANDLERS`` named before the add-on came
    (``CELLS_FALLBACK_<SCHEME>_HANDLER``), or else Scrapy's default.
    """

    lazy = True
    scheme = ""

    def __init__(self, crawler: Crawler) -> None:
        runtime = runtime_of(crawler)
        cls = fallback_handler(crawler, self.scheme)
        self._inner: Any = build_from_crawler(cls, crawler)
        compat.quote_slashes(self._inner)
        self._download = compat.download_function(self._inner, crawler)
        self._pools = compat.keep_sessions_apart(self._inner, _trip.get)
        if self._pools is not None:
            runtime.retired_sessions.append(self._pools.close_session)
        # Scrapy's HTTP/1.1 handler ends every request at its timeout, others only
        # watch the time between two reads
        self._deadline = (
            not isinstance(self._inner, HTTP11DownloadHandler)
            and is_asyncio_available()
        )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        trip = compat.Trip(str(request.meta.get("cell_session", "")))
        _trip.set(trip)
        try:
            if not self._deadline:
                return await self._download(request)
            timeout = float(request.meta.get("download_timeout") or 180.0)
            async with _deadline(request, timeout + _GRACE):
                return await self._download(request)
        except Exception:
            if trip.reused:
                request.meta[REUSED] = True
            raise

    async def close(self) -> None:
        result = self._inner.close() if hasattr(self._inner, "close") else None
        if result is not None:
            await result


class HttpCellDownloadHandler(CellDownloadHandler):
    """For ``http://``."""

    scheme = "http"


class HttpsCellDownloadHandler(CellDownloadHandler):
    """For ``https://``."""

    scheme = "https"


HANDLERS: dict[str, type[CellDownloadHandler]] = {
    "http": HttpCellDownloadHandler,
    "https": HttpsCellDownloadHandler,
}


def fallback_handler(crawler: Crawler, scheme: str) -> type[Any]:
    """Return the class of the handler that serves *scheme* in the end."""
    path = crawler.settings.get(f"CELLS_FALLBACK_{scheme.upper()}_HANDLER")
    cls: type[Any] = load_object(
        path or crawler.settings["DOWNLOAD_HANDLERS_BASE"][scheme]
    )
    return cls


@asynccontextmanager
async def _deadline(request: Request, seconds: float) -> AsyncIterator[None]:
    """Cancel what runs inside after *seconds*, as ``asyncio.timeout`` of 3.11 does."""
    task = asyncio.current_task()
    assert task is not None
    expired = False

    def expire() -> None:
        nonlocal expired
        expired = True
        task.cancel()

    timer = asyncio.get_running_loop().call_later(seconds, expire)
    try:
        yield
    except asyncio.CancelledError:
        if not expired:
            raise
        if hasattr(task, "uncancel"):
            task.uncancel()
        message = f"Getting {request.url} took longer than {seconds - _GRACE} seconds."
        raise compat.DownloadTimeoutError(message) from None
    finally:
        timer.cancel()
