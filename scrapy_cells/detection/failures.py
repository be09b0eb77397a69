"""What an exception says about the way out.

Scrapy up to 2.14 lets Twisted's errors through, later versions wrap them in their own,
and other download handlers bring a third family; all of them are told apart by type
name here, so that no handler has to be installed. What is unknown is neutral: a bug in
user code is no failure of a proxy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_cells.domain.outcome import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["RULE_NAMES", "classify_exception"]

_MAX_CAUSES = 12

_TUNNEL = frozenset(
    {
        "ClientHttpProxyError",
        "ClientProxyConnectionError",
        "ProxyConnectionError",
        "ProxyError",
        "ProxyTimeoutError",
        "SOCKSError",
        "TunnelError",
    }
)
_REFUSED = frozenset(
    {"ConnectError", "ConnectionRefusedError", "DownloadConnectionRefusedError"}
)
_UNREACHED = frozenset({"ConnectTimeout", "ConnectionTimeoutError", "TCPTimedOutError"})
_RESOLVING = frozenset(
    {"CannotResolveHostError", "DNSLookupError", "UnknownHostError", "gaierror"}
)
_TIMEOUTS = frozenset(
    {
        "DownloadTimeoutError",
        "PoolTimeout",
        "ReadTimeout",
        "ServerTimeoutError",
        "TimeoutError",
        "WriteTimeout",
    }
)
_CONNECTION = frozenset(
    {
        "BrokenPipeError",
        "ConnectionAbortedError",
        "ConnectionClosed",
        "ConnectionDone",
        "ConnectionLost",
        "ConnectionResetError",
        "DownloadFailedError",
        "IncompleteRead",
        "InvalidNegotiatedProtocol",
        "RemoteTerminatedConnection",
        "RequestTransmissionFailed",
        "ResponseDataLossError",
        "ResponseFailed",
        "ResponseNeverReceived",
        "SSLError",
        "VerificationError",
    }
)
_NEUTRAL = frozenset(
    {
        "CancelledError",
        "CloseSpider",
        "ConnectBindError",
        "DownloadCancelledError",
        "IgnoreRequest",
        "NotSupported",
        "SchemeNotSupported",
        "StopDownload",
        "UnsupportedURLSchemeError",
    }
)
_TLS = frozenset({"SSLError", "SSLCertVerificationError", "CertificateError"})
#: Networks whose errors count; a ``TimeoutError`` of somebody's class does not.
_LIBRARIES = (
    "OpenSSL",
    "aiohttp",
    "asyncio",
    "builtins",
    "concurrent",
    "h2",
    "httpcore",
    "httpx",
    "playwright",
    "python_socks",
    "scrapy",
    "service_identity",
    "socket",
    "ssl",
    "twisted",
    "txsocksx",
)
_BROWSER = (
    ("ERR_PROXY", Outcome.PROXY_ERROR),
    ("ERR_TUNNEL", Outcome.PROXY_ERROR),
    ("ERR_SOCKS", Outcome.PROXY_ERROR),
    ("NS_ERROR_PROXY", Outcome.PROXY_ERROR),
    ("ERR_NAME_NOT_RESOLVED", Outcome.NEUTRAL),
    ("ERR_ABORTED", Outcome.NEUTRAL),
    ("ERR_TIMED_OUT", Outcome.TIMEOUT),
    ("ERR_CONNECTION_TIMED_OUT", Outcome.TIMEOUT),
    ("NS_ERROR_NET_TIMEOUT", Outcome.TIMEOUT),
    ("ERR_CONNECTION", Outcome.CONNECTION),
    ("ERR_EMPTY_RESPONSE", Outcome.CONNECTION),
    ("ERR_SSL", Outcome.CONNECTION),
    ("ERR_HTTP2", Outcome.CONNECTION),
    ("NS_ERROR_NET", Outcome.CONNECTION),
)

#: Names under which these verdicts can be switched off.
RULE_NAMES = frozenset(
    f"exception.{outcome}"
    for outcome in (Outcome.PROXY_ERROR, Outcome.TIMEOUT, Outcome.CONNECTION)
)


def classify_exception(exc: BaseException, proxied: bool) -> Verdict:
    """Say what *exc*, raised instead of an answer, says about the way out.

    :param proxied: whether the request went through a proxy: then whoever refused the
        connection, or could not be found, was the proxy
    """
    outcome = _outcome(exc, proxied)
    if outcome is Outcome.NEUTRAL:
        return Verdict(outcome, place=type(exc).__name__)
    return Verdict(outcome, rule=f"exception.{outcome}", place=type(exc).__name__)


def _outcome(exc: BaseException, proxied: bool) -> Outcome:
    causes = list(_causes(exc))
    own = _names(causes[0])
    every = frozenset[str]().union(*map(_names, causes))
    if own & _NEUTRAL:
        return Outcome.NEUTRAL
    if own & {"Error", "TimeoutError"} and _module(exc).startswith("playwright"):
        return _browser_outcome(exc, proxied)
    if every & _TUNNEL:
        return Outcome.PROXY_ERROR
    if own & _RESOLVING:
        return Outcome.PROXY_ERROR if proxied else Outcome.NEUTRAL
    if own & (_TIMEOUTS | _UNREACHED):
        met_nobody = proxied and _timed_out_connecting(causes)
        return Outcome.PROXY_ERROR if met_nobody else Outcome.TIMEOUT
    if own & _REFUSED:
        refused_by_proxy = proxied and not every & _TLS
        return Outcome.PROXY_ERROR if refused_by_proxy else Outcome.CONNECTION
    if own & _CONNECTION or _module(exc).startswith("OpenSSL"):
        return Outcome.CONNECTION
    return Outcome.NEUTRAL


def _browser_outcome(exc: BaseException, proxied: bool) -> Outcome:
    text = str(exc)[:2000]
    for word, outcome in _BROWSER:
        if word in text:
            named = word == "ERR_NAME_NOT_RESOLVED"
            return Outcome.PROXY_ERROR if named and proxied else outcome
    timed_out = type(exc).__name__ == "TimeoutError"
    return Outcome.TIMEOUT if timed_out else Outcome.NEUTRAL


def _timed_out_connecting(causes: list[BaseException]) -> bool:
    """Tell a connection that never came about from an answer that took too long.

    Scrapy's own timer says how long it took; the connector's only that it gave up.
    """
    names = frozenset[str]().union(*map(_names, causes))
    if names & _UNREACHED:
        return True
    twisted = [each for each in causes if _module(each) == "twisted.internet.error"]
    return any("took longer than" not in str(each)[:2000] for each in twisted)


def _causes(exc: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    current: BaseException | None = getattr(exc, "value", None)
    current = current if isinstance(current, BaseException) else exc
    while current is not None and len(seen) < _MAX_CAUSES and current not in seen:
        seen.append(current)
        yield current
        current = current.__cause__


def _names(exc: BaseException) -> frozenset[str]:
    """Names of the classes of *exc* that a known library brought."""
    return frozenset(
        cls.__name__
        for cls in type(exc).__mro__
        if cls.__module__.partition(".")[0] in _LIBRARIES or _is_ours(cls)
    )


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("scrapy_cells.")


def _module(exc: BaseException) -> str:
    return type(exc).__module__
