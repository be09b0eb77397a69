"""What exceptions say, as every supported Scrapy and other handlers raise them."""

from __future__ import annotations

import asyncio
import ssl
import sys

import pytest
import scrapy.exceptions
from OpenSSL import SSL
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.exceptions import CloseSpider, IgnoreRequest, NotSupported, StopDownload
from twisted.internet import defer, error
from twisted.python.failure import Failure
from twisted.web.client import ResponseFailed, ResponseNeverReceived
from twisted.web.error import SchemeNotSupported

from scrapy_cells.detection import Detector
from scrapy_cells.errors import CellUnavailable

LATE = "Getting https://shop.example/ took longer than 20.0 seconds."


def outcome_of(exc: BaseException, proxied: bool = False) -> str:
    return str(Detector().classify_exception(exc, None, proxied).outcome)


# exception, outcome without a proxy, outcome through one
TWISTED = [
    (error.TimeoutError(LATE), "timeout", "timeout"),
    (error.TimeoutError(), "timeout", "proxy_error"),
    (error.TCPTimedOutError(), "timeout", "proxy_error"),
    (defer.TimeoutError(), "timeout", "timeout"),
    (error.ConnectionRefusedError(), "connection", "proxy_error"),
    (error.NoRouteError(), "connection", "proxy_error"),
    (error.ConnectError(), "connection", "proxy_error"),
    (error.DNSLookupError("no results"), "neutral", "proxy_error"),
    (error.UnknownHostError(), "neutral", "proxy_error"),
    (error.ConnectionLost(), "connection", "connection"),
    (error.ConnectionDone(), "connection", "connection"),
    (ResponseFailed([Failure(error.ConnectionLost())]), "connection", "connection"),
    (ResponseNeverReceived([Failure(error.ConnectionDone())]), "connection",
     "connection"),
    (SSL.Error(), "connection", "connection"),
    (ssl.SSLError("bad handshake"), "connection", "connection"),
    (TunnelError("Could not open CONNECT tunnel [{'status': 407}]"), "proxy_error",
     "proxy_error"),
    (ConnectionResetError(), "connection", "connection"),
    (asyncio.TimeoutError(), "timeout", "timeout"),
    (SchemeNotSupported("ftp"), "neutral", "neutral"),
    (defer.CancelledError(), "neutral", "neutral"),
]  # fmt: skip


@pytest.mark.parametrize(("exc", "direct", "proxied"), TWISTED)
def test_errors_of_twisted_and_python(
    exc: BaseException, direct: str, proxied: str
) -> None:
    """Scrapy 2.14 lets them through as they are."""
    assert (outcome_of(exc), outcome_of(exc, True)) == (direct, proxied)


def _wrapped(name: str, cause: BaseException | None = None) -> Exception:
    """An error as Scrapy 2.15 and later raise it, also where they are not installed."""
    cls = getattr(scrapy.exceptions, name, None)
    if cls is None:
        cls = type(name, (Exception,), {"__module__": "scrapy.exceptions"})
    exc: Exception = cls(LATE)
    exc.__cause__ = cause
    return exc


def _foreign(module: str, *names: str) -> Exception:
    """An error of a library that is not installed here; bases come first."""
    cls: type = Exception
    for name in names:
        cls = type(name, (cls,), {"__module__": module})
    made: Exception = cls("net")
    return made


WRAPPED = [
    (_wrapped("DownloadTimeoutError"), "timeout", "timeout"),
    (_wrapped("DownloadTimeoutError", error.TimeoutError()), "timeout", "proxy_error"),
    (_wrapped("DownloadTimeoutError",
              _foreign("httpx", "TimeoutException", "ConnectTimeout")),
     "timeout", "proxy_error"),
    (_wrapped("DownloadConnectionRefusedError"), "connection", "proxy_error"),
    (_wrapped("DownloadConnectionRefusedError", ssl.SSLError()), "connection",
     "connection"),
    (_wrapped("DownloadConnectionRefusedError", _foreign("httpx", "ProxyError")),
     "proxy_error", "proxy_error"),
    (_wrapped("DownloadFailedError"), "connection", "connection"),
    (_wrapped("DownloadFailedError",
              _foreign("aiohttp.client_exceptions", "ClientHttpProxyError")),
     "proxy_error", "proxy_error"),
    (_wrapped("ResponseDataLossError"), "connection", "connection"),
    (_wrapped("CannotResolveHostError"), "neutral", "proxy_error"),
    (_wrapped("UnsupportedURLSchemeError"), "neutral", "neutral"),
    (_wrapped("DownloadCancelledError"), "neutral", "neutral"),
]  # fmt: skip


@pytest.mark.parametrize(("exc", "direct", "proxied"), WRAPPED)
def test_errors_of_later_versions_and_other_handlers(
    exc: BaseException, direct: str, proxied: str
) -> None:
    """Scrapy's own errors say more through what caused them."""
    assert (outcome_of(exc), outcome_of(exc, True)) == (direct, proxied)


@pytest.mark.parametrize(
    ("text", "direct", "proxied"),
    [
        ("net::ERR_PROXY_CONNECTION_FAILED at https://x", "proxy_error", "proxy_error"),
        ("net::ERR_TUNNEL_CONNECTION_FAILED", "proxy_error", "proxy_error"),
        ("net::ERR_NAME_NOT_RESOLVED", "neutral", "proxy_error"),
        ("net::ERR_CONNECTION_RESET", "connection", "connection"),
        ("net::ERR_TIMED_OUT", "timeout", "timeout"),
        ("net::ERR_ABORTED; maybe frame was detached?", "neutral", "neutral"),
        ("Target page has been closed", "neutral", "neutral"),
    ],
)
def test_errors_of_a_browser(text: str, direct: str, proxied: str) -> None:
    """Playwright raises one type for everything; its text tells them apart."""
    cls = type("Error", (Exception,), {"__module__": "playwright._impl._errors"})
    assert (outcome_of(cls(text)), outcome_of(cls(text), True)) == (direct, proxied)
    late = type("TimeoutError", (cls,), {"__module__": "playwright._impl._errors"})
    assert outcome_of(late("Timeout 20000ms exceeded.")) == "timeout"


@pytest.mark.parametrize(
    "exc",
    [
        IgnoreRequest("filtered, too large, forbidden by robots.txt"),
        CellUnavailable("07", "open"),
        StopDownload(),
        CloseSpider(),
        NotSupported("Unsupported URL scheme"),
        ValueError("a bug"),
        KeyError("a bug"),
        FileNotFoundError("a bug"),
        type("TimeoutError", (Exception,), {"__module__": "shop.middlewares"})(),
        KeyboardInterrupt(),
    ],
)
def test_everything_else_is_neutral(exc: BaseException) -> None:
    """A bug in user code, or a decision, is no failure of the way out."""
    assert outcome_of(exc) == outcome_of(exc, True) == "neutral"


def test_the_verdict_names_the_error_and_never_its_text() -> None:
    """Texts of errors may hold proxy credentials."""
    exc = TunnelError("http://user:secret@proxy:1")
    verdict = Detector().classify_exception(exc, None, True)
    assert (verdict.rule, verdict.place) == ("exception.proxy_error", "TunnelError")
    assert "secret" not in repr(verdict)


def test_a_rule_for_exceptions_can_be_switched_off() -> None:
    """Switched off, such an error says nothing."""
    detector = Detector(disabled=["exception.timeout"])
    verdict = detector.classify_exception(error.TimeoutError(LATE), None, False)
    assert verdict.outcome == "neutral"


def test_odd_exceptions_do_not_raise() -> None:
    """An error may be caused by itself, and its text may raise."""
    loop = ValueError()
    loop.__cause__ = loop
    assert outcome_of(loop) == "neutral"

    class Error(Exception):
        __module__ = "playwright._impl._errors"

        def __str__(self) -> str:
            raise RuntimeError

    assert outcome_of(Error()) == "neutral"


def test_no_handler_has_to_be_installed() -> None:
    """The names of other libraries are enough to know their errors."""
    httpx = sys.modules.get("httpx")
    assert outcome_of(_foreign("httpx", "TimeoutException", "ReadTimeout")) == "timeout"
    assert sys.modules.get("httpx") is httpx
