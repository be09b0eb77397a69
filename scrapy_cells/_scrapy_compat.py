"""Every touch of Scrapy that is private, or differs between supported versions.

Nothing else in this package may name an underscore attribute of Scrapy. Each function
says why it is needed; ``tests/adapter/test_scrapy_compat.py`` fails loudly when Scrapy
changes under one of them.
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.utils.conf import build_component_list
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.web.client import HTTPConnectionPool

try:
    from scrapy.exceptions import DownloadTimeoutError
except ImportError:  # Scrapy < 2.15 raised Twisted's own
    from twisted.internet.error import (  # type: ignore[assignment]
        TimeoutError as DownloadTimeoutError,
    )

_T = TypeVar("_T")

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from scrapy.core.downloader import Downloader
    from scrapy.core.engine import ExecutionEngine
    from scrapy.core.scheduler import BaseScheduler
    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response
    from scrapy.settings import BaseSettings

__all__ = [
    "DownloadTimeoutError",
    "close_on_open_is_honoured",
    "components_of",
    "download_function",
    "engine_is_quiet",
    "give_slot",
    "is_closing",
    "keep_sessions_apart",
    "outside_concurrency",
    "quote_slashes",
    "scheduler_of",
    "shared",
    "wake_engine",
]


def shared(crawler: Crawler, name: str, build: Callable[[], _T]) -> _T:
    """Return what a crawler's components share under *name*, built when first asked.

    Kept on the crawler itself: whatever else held it, even weakly keyed by the crawler
    it refers to, would keep both for as long as the process lives.
    """
    attribute = f"_scrapy_cells_{name}"
    if attribute not in vars(crawler):
        setattr(crawler, attribute, build())
    found: _T = getattr(crawler, attribute)
    return found


def wake_engine(engine: ExecutionEngine) -> None:
    """Let the engine ask the scheduler again now.

    Without it a queue that answered "not yet" is asked again only by the engine's 5 s
    heartbeat. There is no public call for it (Scrapy issue 6931 would bring one).
    """
    slot = engine._slot
    if slot is not None and slot.closing is None:
        slot.nextcall.schedule()


def is_closing(engine: ExecutionEngine) -> bool:
    """Tell whether the spider is on its way out.

    ``spider_closed`` comes only after everything in progress has ended, too late for
    those who have to stop waiting so that it can end.
    """
    slot = engine._slot
    return slot is None or slot.closing is not None


def scheduler_of(engine: ExecutionEngine) -> BaseScheduler | None:
    """Return the scheduler in use; public as ``engine.scheduler`` from 2.19 on."""
    return engine._slot.scheduler if engine._slot is not None else None


def engine_is_quiet(engine: ExecutionEngine) -> bool:
    """Tell whether nothing is being downloaded, parsed or stored right now."""
    scraper_slot = engine.scraper.slot
    return not engine.downloader.active and (
        scraper_slot is None or scraper_slot.is_idle()
    )


def give_slot(downloader: Downloader, key: str, concurrency: int) -> None:
    """Give the download slot *key* its own concurrency and no delay.

    ``DOWNLOAD_SLOTS`` says the same in settings, but would have to name every cell
    before the router is built.
    """
    downloader.per_slot_settings.setdefault(
        key, {"concurrency": concurrency, "delay": 0.0}
    )


@contextmanager
def outside_concurrency(downloader: Downloader) -> Iterator[None]:
    """Do not count one request against ``CONCURRENT_REQUESTS`` while it waits.

    A request that bypassed the scheduler can wait for its cell only inside a
    downloader middleware, where it already holds one of the places that all cells
    share; this gives that place back to them for the while.
    """
    limited = downloader.total_concurrency > 0
    if limited:
        downloader.total_concurrency += 1
    try:
        yield
    finally:
        if limited:
            downloader.total_concurrency -= 1


def components_of(settings: BaseSettings, name: str) -> list[Any]:
    """Return the enabled components of a setting, built-in ones among them.

    The getter of 2.19 knows that one component can be named as a class and as a path.
    """
    getter = getattr(settings, "get_component_priority_dict_with_base", None)
    components = (getter or settings.getwithbase)(name)
    return list(build_component_list(components))


def close_on_open_is_honoured() -> bool:
    """Tell whether ``CloseSpider`` raised in ``spider_opened`` closes the spider."""
    from scrapy import version_info

    return tuple(version_info[:2]) >= (2, 18)


def download_function(
    handler: Any, crawler: Crawler
) -> Callable[[Request], Awaitable[Response]]:
    """Return how to download with *handler*, of the interface of now or before."""
    if inspect.iscoroutinefunction(handler.download_request):
        function: Callable[[Request], Awaitable[Response]] = handler.download_request
        return function
    takes_spider = "spider" in inspect.signature(handler.download_request).parameters

    def download(request: Request) -> Awaitable[Response]:
        spider = (crawler.spider,) if takes_spider else ()
        result = handler.download_request(request, *spider)
        if isinstance(result, Deferred):
            result = maybe_deferred_to_future(result)
        awaitable: Awaitable[Response] = result
        return awaitable

    return download


def quote_slashes(handler: Any) -> None:
    """Let proxy passwords hold a slash in handlers that put them into a URL.

    Scrapy's aiohttp and httpx handlers quote all characters there but that one, and
    a URL cut off at the slash reaches no proxy.
    """
    extract = getattr(handler, "_extract_proxy_url_with_creds", None)
    if extract is None:
        return

    def quoted(request: Request) -> str | None:
        scheme, around, rest = (extract(request) or "").partition("://")
        credentials, at, address = rest.rpartition("@")
        credentials = credentials.replace("/", "%2F")
        return f"{scheme}{around}{credentials}{at}{address}" or None

    handler._extract_proxy_url_with_creds = quoted


def keep_sessions_apart(
    handler: Any, trip_of_request: Callable[[], Trip]
) -> SessionPools | None:
    """Give Scrapy's HTTP/1.1 handler one connection pool a session.

    For ``http://`` targets that handler shares a proxy's connections between all its
    users. Returns ``None`` for handlers that keep them apart themselves: httpx and
    aiohttp pool by proxy address with credentials.
    """
    if not isinstance(handler, HTTP11DownloadHandler):
        return None
    pools = SessionPools(handler._pool, trip_of_request)
    handler._pool = pools  # type: ignore[assignment]
    return pools


_IDLE_CONNECTIONS = 8
"""Idle connections that a session may keep at least."""


@dataclass(slots=True)
class Trip:
    """One request on its way through a download handler.

    :ivar reused: whether it got a connection that had served before
    """

    session: str = ""
    reused: bool = False


class SessionPools:
    """Connection pools of one handler, one for each session.

    Stands in for Twisted's :class:`~twisted.web.client.HTTPConnectionPool`.
    """

    def __init__(
        self, default: HTTPConnectionPool, trip_of_request: Callable[[], Trip]
    ) -> None:
        self._default = default
        self._trip_of_request = trip_of_request
        self._pools: dict[str, HTTPConnectionPool] = {}

    @property
    def persistent(self) -> bool:
        # read by Twisted's agents to decide on "Connection: close"
        return bool(self._default.persistent)

    def getConnection(self, key: Any, endpoint: Any) -> Deferred[Any]:  # noqa: N802
        trip = self._trip_of_request()
        pool = self._pools.get(trip.session) if trip.session else self._default
        if pool is None:
            pool = self._pools[trip.session] = self._new_pool()
        connection = pool.getConnection(key, _by_address(key, endpoint))
        # one from the pool is there at once; a new one only waits for its endpoint
        trip.reused = bool(connection.called and not connection.paused)
        return connection

    def close_session(self, session: str) -> None:
        """Close the idle connections of a session that will not be used again."""
        pool = self._pools.pop(session, None)
        if pool is not None:
            pool.closeCachedConnections().addErrback(lambda _: None)

    def closeCachedConnections(self) -> Deferred[Any]:  # noqa: N802
        pools = [self._default, *self._pools.values()]
        self._pools.clear()
        return DeferredList(
            [p.closeCachedConnections() for p in pools], consumeErrors=True
        )

    def _new_pool(self) -> HTTPConnectionPool:
        pool = HTTPConnectionPool(self._default._reactor, persistent=self.persistent)
        # CONCURRENT_REQUESTS_PER_DOMAIN, which is 1 in a new project, limits neither
        # a cell nor the connections of one of its sessions
        pool.maxPersistentPerHost = max(
            self._default.maxPersistentPerHost, _IDLE_CONNECTIONS
        )
        # a second try on a new connection is ours to make: it has to cost a token
        pool.retryAutomatically = False
        pool._factory = self._default._factory
        return pool


def _by_address(key: Any, endpoint: Any) -> Any:
    """Replace the endpoint of a proxy that is named by its address: none to look up.

    For IPv6 it is needed, as Scrapy's resolver only knows IPv4 (Scrapy issue 6674); for
    IPv4 it halves the work of connecting, of which there is more with a connection for
    every session. A local address to bind to stands at the end of the key, from that
    Scrapy on which knows of it.
    """
    if key[0] != b"http-proxy":
        return endpoint
    host = key[1].strip(b"[]").decode("ascii", "replace")
    if isIPv6Address(host):
        return TCP6ClientEndpoint(_reactor(), host, key[2])
    if isIPAddress(host) and len(key) > 3 and not any(key[3:]):
        return TCP4ClientEndpoint(_reactor(), host, key[2])
    return endpoint


def _reactor() -> Any:
    from twisted.internet import reactor

    return reactor
