"""Every private touch of Scrapy and Twisted, against those that are installed."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.core.scheduler import Scheduler
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.exceptions import CloseSpider
from scrapy.settings import Settings
from scrapy.utils.misc import load_object
from scrapy.utils.spider import DefaultSpider
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.web.client import HTTPConnectionPool

from scrapy_cells import _scrapy_compat as compat
from scrapy_cells.crawl.queue import CellPriorityQueue
from scrapy_cells.crawl.runtime import runtime_of
from scrapy_cells.detection import Detector
from scrapy_cells.domain.outcome import Outcome
from tests.adapter.rig import ADDONS

if TYPE_CHECKING:
    from collections.abc import Callable

_ROUNDS = 200
"""Rounds of the event loop, at most, until something that is due has happened."""


async def rounds(until: Callable[[], object]) -> None:
    for _ in range(_ROUNDS):
        if until():
            return
        await asyncio.sleep(0)


class Crawl:
    """A crawl of one data URL on the test's own loop."""

    def __init__(self, **settings: Any) -> None:
        crawl = self

        class Spider(DefaultSpider):
            async def start(self):
                await crawl.started(self.crawler)
                yield Request("data:,x")

            def parse(self, response):
                crawl.parsing(self.crawler)

            def closed(self, reason):
                crawl.closed(self.crawler, reason)

        from scrapy.crawler import AsyncCrawlerRunner

        runner = AsyncCrawlerRunner({"TELNETCONSOLE_ENABLED": False, **settings})
        self.crawler = runner.create_crawler(Spider)
        self.seen: dict[str, Any] = {}

    async def started(self, crawler) -> None:
        """Look at the crawl as it begins."""

    def parsing(self, crawler) -> None:
        """Look at it from a callback."""

    def closed(self, crawler, reason: str) -> None:
        """Look at it when it closes."""
        self.seen["reason"] = reason


# The engine


def test_slot_says_what_the_engine_is_doing(run):
    """Slot, scheduler, closing and idleness are where they are looked for."""

    class Looking(Crawl):
        async def started(self, crawler):
            engine = crawler.engine
            self.seen["slot"] = engine._slot is not None
            self.seen["closing"] = [compat.is_closing(engine)]
            self.seen["scheduler"] = compat.scheduler_of(engine)
            self.seen["quiet"] = [compat.engine_is_quiet(engine)]

        def parsing(self, crawler):
            self.seen["quiet"].append(compat.engine_is_quiet(crawler.engine))

        def closed(self, crawler, reason):
            super().closed(crawler, reason)
            self.seen["closing"].append(compat.is_closing(crawler.engine))

    crawl = Looking(ADDONS=ADDONS)
    run(crawl.crawler.crawl_async())
    assert crawl.seen["slot"]
    assert crawl.seen["closing"] == [False, True]
    assert crawl.seen["quiet"] == [True, False]
    assert isinstance(crawl.seen["scheduler"], Scheduler)
    assert isinstance(crawl.seen["scheduler"].mqs, CellPriorityQueue)
    assert crawl.seen["reason"] == "finished"
    engine = crawl.crawler.engine
    assert engine._slot is None
    assert compat.is_closing(engine)
    assert compat.scheduler_of(engine) is None
    compat.wake_engine(engine)  # nobody there to be woken: no error


def test_woken_engine_asks_the_scheduler(run):
    """``nextcall`` is what makes the engine look into the queue at once."""

    class Waking(Crawl):
        async def started(self, crawler):
            await rounds(lambda: False)
            scheduler = compat.scheduler_of(crawler.engine)
            asked, next_request = [], scheduler.next_request

            def counting():
                asked.append(1)
                return next_request()

            scheduler.next_request = counting
            await rounds(lambda: asked)
            self.seen["before"] = len(asked)
            compat.wake_engine(crawler.engine)
            await rounds(lambda: asked)
            self.seen["after"] = len(asked)
            scheduler.next_request = next_request

    crawl = Waking()
    run(crawl.crawler.crawl_async())
    assert crawl.seen["before"] == 0
    assert crawl.seen["after"] > 0


def test_runtime_is_there_before_the_engine_has_its_name(run):
    """Nothing that is built with the engine asks for ``crawler.engine`` too early."""
    crawl = Crawl(ADDONS=ADDONS)
    run(crawl.crawler.crawl_async())
    assert crawl.crawler.stats.get_value("log_count/ERROR") is None
    assert runtime_of(crawl.crawler).registered == {
        "queue",
        "admission",
        "outcome",
        "session",
        "spider middleware",
    }


def test_close_on_open_is_honoured_where_we_say_so(run):
    """``CloseSpider`` in ``spider_opened`` closes with our reason, or is logged."""

    class Receiver:
        def spider_opened(self, spider):
            raise CloseSpider("not today")

    crawl = Crawl()
    receiver = Receiver()
    crawl.crawler.signals.connect(receiver.spider_opened, signals.spider_opened)
    run(crawl.crawler.crawl_async())
    reason = crawl.crawler.stats.get_value("finish_reason")
    assert (reason == "not today") is compat.close_on_open_is_honoured()


# The downloader


@pytest.fixture
def downloader() -> Downloader:
    """Return a downloader of a new project: one request a second and host."""
    crawler = get_crawler(
        DefaultSpider,
        {
            "CONCURRENT_REQUESTS": 2,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
            "DOWNLOAD_DELAY": 1,
            "DOWNLOAD_SLOTS": {"cell:01": {"concurrency": 3, "delay": 7}},
        },
    )
    crawler.spider = DefaultSpider.from_crawler(crawler)
    downloader = Downloader(crawler)
    yield downloader
    downloader.close()


def slot_of(downloader: Downloader, key: str):
    request = Request("http://shop.example/", meta={"download_slot": key})
    return downloader._get_slot(request)[1]


def test_slot_of_a_cell_has_its_concurrency_and_no_delay(downloader):
    """Read by the downloader when the slot is first used."""
    compat.give_slot(downloader, "cell:00", 4)
    slot = slot_of(downloader, "cell:00")
    assert (slot.concurrency, slot.delay) == (4, 0.0)
    assert slot.download_delay() == 0.0


def test_slot_the_user_configured_stays(downloader):
    """``DOWNLOAD_SLOTS`` has the last word."""
    compat.give_slot(downloader, "cell:01", 4)
    slot = slot_of(downloader, "cell:01")
    assert (slot.concurrency, slot.delay) == (3, 7)


def test_waiting_request_takes_no_place_of_others(downloader):
    """While it waits the downloader has room for one more, and not afterwards."""
    for n in range(2):
        downloader.active.add(Request(f"http://shop.example/{n}"))
    assert downloader.needs_backout()
    with compat.outside_concurrency(downloader):
        assert not downloader.needs_backout()
        downloader.active.add(Request("http://shop.example/2"))
        assert downloader.needs_backout()
    assert downloader.total_concurrency == 2
    with pytest.raises(KeyError), compat.outside_concurrency(downloader):
        raise KeyError
    assert downloader.total_concurrency == 2


def test_no_limit_stays_none(downloader):
    """0 is no limit, and 1 would be one."""
    downloader.total_concurrency = 0
    with compat.outside_concurrency(downloader):
        assert downloader.total_concurrency == 0


# Components


@pytest.mark.parametrize(
    "disabled",
    [
        {},
        {"scrapy.downloadermiddlewares.retry.RetryMiddleware": None},
        {"scrapy.downloadermiddlewares.retry.RetryMiddleware": 7},
    ],
)
def test_components_are_those_scrapy_builds(disabled):
    """Built-in ones among them, without what was turned off, in order."""
    settings = Settings({"DOWNLOADER_MIDDLEWARES": disabled})
    found = compat.components_of(settings, "DOWNLOADER_MIDDLEWARES")
    classes = list(map(load_object, found))
    assert (RetryMiddleware in classes) is (None not in disabled.values())
    assert len(classes) > 5
    if 7 in disabled.values():
        assert classes[0] is RetryMiddleware


# The HTTP/1.1 handler and its pools


@pytest.fixture
def handler() -> HTTP11DownloadHandler:
    crawler = get_crawler(DefaultSpider, {"CONCURRENT_REQUESTS_PER_DOMAIN": 1})
    return HTTP11DownloadHandler.from_crawler(crawler)


def test_handler_of_scrapy_downloads_in_a_coroutine(handler):
    """No adaptor is needed for it."""
    assert inspect.iscoroutinefunction(handler.download_request)
    function = compat.download_function(handler, None)
    assert function == handler.download_request


@pytest.mark.parametrize(
    ("url", "proxy", "kind"),
    [
        ("http://shop.example/", None, b"http"),
        ("http://shop.example/", "http://gate.example:8080", b"http-proxy"),
        ("https://shop.example/", "http://gate.example:8080", b"https"),
    ],
)
def test_every_request_asks_our_pool_for_its_connection(
    handler, run, monkeypatch, url, proxy, kind
):
    """Direct, through a proxy, and through a tunnel."""
    asked = []

    def get_connection(self, key, endpoint):
        asked.append((key, endpoint))
        return fail(ConnectionRefusedError("no network in tests"))

    monkeypatch.setattr(HTTPConnectionPool, "getConnection", get_connection)
    pools = compat.keep_sessions_apart(handler, lambda: compat.Trip("00g0s1"))
    assert handler._pool is pools
    meta = {} if proxy is None else {"proxy": proxy}
    with pytest.raises(Exception, match=r"no network in tests|ConnectionRefused"):
        run(handler.download_request(Request(url, meta=meta)))
    ((key, _),) = asked
    assert kind in str(key[0]).encode()
    assert list(pools._pools) == ["00g0s1"]


def test_sessions_have_pools_of_their_own(handler):
    """With the handler's way of making connections, and no second try of its own."""
    default = handler._pool
    trip = compat.Trip("00g0s1")
    pools = compat.keep_sessions_apart(handler, lambda: trip)
    first = pools._new_pool()
    assert pools.persistent is default.persistent is True
    assert first._factory is default._factory
    assert first._reactor is default._reactor
    assert first.persistent
    assert first.maxPersistentPerHost > default.maxPersistentPerHost == 1
    assert default.retryAutomatically
    assert not first.retryAutomatically


class Endpoint:
    """Connects never."""

    def connect(self, factory) -> Deferred[Any]:
        return Deferred()


class Connection:
    """A connection that was kept for another request."""

    state = "QUIESCENT"

    def __init__(self) -> None:
        self.closed = False

    def abort(self) -> Deferred[None]:
        self.closed = True
        return succeed(None)


KEY = (b"http", b"shop.example", 80)


def test_kept_connection_serves_its_session_only(handler):
    """Another session gets a new one, and the trip says which it was."""
    trip = compat.Trip("00g0s1")
    pools = compat.keep_sessions_apart(handler, lambda: trip)
    pools.getConnection(KEY, Endpoint())
    assert not trip.reused
    kept = Connection()
    pools._pools["00g0s1"]._putConnection(KEY, kept)
    trip = compat.Trip("00g0s2")
    assert not pools.getConnection(KEY, Endpoint()).called
    assert not trip.reused
    trip = compat.Trip("00g0s1")
    got = []
    pools.getConnection(KEY, Endpoint()).addCallback(got.append)
    assert got == [kept]
    assert trip.reused


def test_connections_of_a_retired_session_are_closed(handler):
    """At once, so that nobody goes out with a burnt address by mistake."""
    trip = compat.Trip("00g0s1")
    pools = compat.keep_sessions_apart(handler, lambda: trip)
    pools.getConnection(KEY, Endpoint())
    kept = Connection()
    pools._pools["00g0s1"]._putConnection(KEY, kept)
    pools.close_session("00g0s1")
    pools.close_session("never seen")
    assert kept.closed
    assert pools._pools == {}


def test_request_without_a_session_uses_the_handlers_pool(handler):
    """Foreign requests neither share a session's connections nor leave a pool."""
    default = handler._pool
    pools = compat.keep_sessions_apart(handler, compat.Trip)
    kept = Connection()
    default._putConnection(KEY, kept)
    got = []
    connection = pools.getConnection(KEY, Endpoint())
    connection.addCallback(got.append)
    assert len(got) == 1
    assert pools._pools == {}


def test_other_handlers_are_left_alone():
    """Those that keep users apart by themselves have no such pool."""
    assert compat.keep_sessions_apart(object(), compat.Trip) is None


def test_proxy_named_by_its_address_is_reached_without_a_look_up():
    """Names, other targets and a local address to bind to stay with Twisted's way."""
    endpoint = Endpoint()
    for key in (KEY, (b"http-proxy", b"gate.example", 80)):
        assert compat._by_address(key, endpoint) is endpoint
    six = compat._by_address((b"http-proxy", b"[::1]", 8080), endpoint)
    assert isinstance(six, TCP6ClientEndpoint)
    assert (six._host, six._port) == ("::1", 8080)
    four = compat._by_address((b"http-proxy", b"192.0.2.1", 8080, None), endpoint)
    assert isinstance(four, TCP4ClientEndpoint)
    assert (four._host, four._port) == ("192.0.2.1", 8080)
    bound = (b"http-proxy", b"192.0.2.1", 8080, ("192.0.2.9", 0))
    assert compat._by_address(bound, endpoint) is endpoint


def test_timeout_of_ours_is_taken_for_one():
    """The error that a missed deadline raises is a timeout to the detector."""
    error = compat.DownloadTimeoutError("Getting it took longer than 5 seconds.")
    verdict = Detector().classify_exception(error, None, proxied=True)
    assert verdict.outcome is Outcome.TIMEOUT
    exceptions = Settings().getlist("RETRY_EXCEPTIONS")
    assert isinstance(error, tuple(map(load_object, exceptions)))
