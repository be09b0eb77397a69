"""The download handlers: what they wrap, and the deadline they keep."""

from __future__ import annotations

import asyncio

import pytest
from scrapy import Request
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.http import Response
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred, succeed

from scrapy_cells import _scrapy_compat as compat
from scrapy_cells.crawl.handler import (
    REUSED,
    HttpCellDownloadHandler,
    HttpsCellDownloadHandler,
    _deadline,
    _trip,
    fallback_handler,
)

URL = "http://shop.example/"


class Handler:
    """A handler of somebody's; how it answers is up to the test."""

    lazy = True

    def __init__(self) -> None:
        self.closed = False

    @classmethod
    def from_crawler(cls, crawler):
        return cls()

    async def download_request(self, request: Request) -> Response:
        return Response(request.url, body=b"somebody's")

    async def close(self) -> None:
        self.closed = True


class StuckHandler(Handler):
    async def download_request(self, request: Request) -> Response:
        await asyncio.get_running_loop().create_future()
        raise AssertionError


class StaleHandler(Handler):
    async def download_request(self, request: Request) -> Response:
        _trip.get().reused = request.url.endswith("reused")
        raise ConnectionResetError


class OldHandler(Handler):
    """Of the interface before coroutines: with the spider, and a deferred."""

    def download_request(self, request: Request, spider) -> Deferred[Response]:
        return succeed(Response(request.url, body=spider.name.encode()))

    def close(self) -> None:
        self.closed = True


class BareHandler:
    """With nothing that could be closed."""

    lazy = True

    def download_request(self, request: Request) -> Deferred[Response]:
        return succeed(Response(request.url))


def wrapping(new_rig, cls, scheme: str = "http"):
    rig = new_rig(DOWNLOAD_HANDLERS={"http": cls, "https": cls})
    handlers = {"http": HttpCellDownloadHandler, "https": HttpsCellDownloadHandler}
    return handlers[scheme].from_crawler(rig.crawler)


# What is wrapped


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_handler_of_the_project_does_the_downloading(new_rig, run, scheme):
    """What DOWNLOAD_HANDLERS named before is asked for the pages."""
    handler = wrapping(new_rig, Handler, scheme)
    response = run(handler.download_request(Request(f"{scheme}://shop.example/")))
    assert response.body == b"somebody's"
    run(handler.close())
    assert handler._inner.closed


def test_without_a_project_handler_it_is_the_default_of_scrapy(new_rig, run):
    """Nothing set: Scrapy's HTTP/1.1 handler, with a pool for each session."""
    rig = new_rig()
    default = load_object(rig.crawler.settings["DOWNLOAD_HANDLERS_BASE"]["https"])
    assert fallback_handler(rig.crawler, "https") is default
    handler = HttpsCellDownloadHandler.from_crawler(rig.crawler)
    assert isinstance(handler._inner, HTTP11DownloadHandler)
    assert isinstance(handler._inner._pool, compat.SessionPools)
    assert not handler._deadline, "it keeps deadlines itself"
    assert rig.runtime.retired_sessions == [handler._inner._pool.close_session]


def test_handler_of_the_old_interface_is_understood(new_rig, run):
    """One that takes the spider and returns a deferred works as well."""
    handler = wrapping(new_rig, OldHandler)
    assert run(handler.download_request(Request(URL))).body == b"default"
    run(handler.close())
    assert handler._inner.closed


def test_handler_without_close_can_be_closed(new_rig, run):
    """``close`` is not in everybody's interface."""
    handler = wrapping(new_rig, BareHandler)
    assert run(handler.download_request(Request(URL))).status == 200
    run(handler.close())


def test_failure_on_a_used_connection_is_marked(new_rig, run):
    """Whether the connection had been idle before decides about a free second try."""
    handler = wrapping(new_rig, StaleHandler)
    for path, marked in (("reused", True), ("new", False)):
        request = Request(URL + path)
        with pytest.raises(ConnectionResetError):
            run(handler.download_request(request))
        assert (REUSED in request.meta) is marked


# The deadline


def test_what_takes_too_long_is_a_download_timeout(new_rig, run, monkeypatch):
    """A handler without a deadline of its own cannot hang for ever."""
    monkeypatch.setattr("scrapy_cells.crawl.handler._GRACE", 0.0)
    handler = wrapping(new_rig, StuckHandler)
    request = Request(URL, meta={"download_timeout": 0.01})
    with pytest.raises(compat.DownloadTimeoutError, match=r"took longer than 0\.01"):
        run(handler.download_request(request))


def test_deadline_that_is_kept_changes_nothing(run):
    """The timer is gone with the block."""

    async def download():
        async with _deadline(Request(URL), 0.0):
            pass
        for _ in range(5):  # rounds of the loop, in which the timer would go off
            await asyncio.sleep(0)
        return "done"

    assert run(download()) == "done"


def test_cancellation_from_outside_stays_one(run):
    """A crawl that ends meanwhile is no timeout."""

    async def download():
        async with _deadline(Request(URL), 60.0):
            await asyncio.get_running_loop().create_future()

    async def cancelled():
        task = asyncio.ensure_future(download())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert run(cancelled()) is True


def test_errors_inside_come_out_as_they_are(run):
    """The deadline says nothing about other failures."""

    async def download():
        async with _deadline(Request(URL), 60.0):
            raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError, match="gone"):
        run(download())


def test_task_can_go_on_after_its_deadline(run):
    """The cancellation is used up by the deadline, and not left for what follows."""

    async def download():
        try:
            async with _deadline(Request(URL), 0.001):
                await asyncio.get_running_loop().create_future()
        except compat.DownloadTimeoutError:
            await asyncio.sleep(0)
            return "went on"

    assert run(download()) == "went on"


def test_new_connection_is_not_taken_for_an_idle_one():
    """Only one that is there at once, and waits for nothing, was used before."""
    from twisted.internet.defer import Deferred, succeed

    endpoint: Deferred[object] = Deferred()
    chained = succeed(None).addCallback(lambda _: endpoint)
    found = [succeed(object()), chained, Deferred()]

    class Pool:
        persistent = True

        def getConnection(self, key, endpoint):
            return found.pop(0)

    trips = [compat.Trip(), compat.Trip(), compat.Trip()]
    pools = compat.SessionPools(Pool(), iter(trips).__next__)
    for _ in range(3):
        pools.getConnection((b"http", b"host", 80), object())
    assert [trip.reused for trip in trips] == [True, False, False]
