"""Proxy addresses: read, told apart, and masked."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from urllib.parse import unquote

_DEFAULT_PORTS = {"http": 80, "https": 443, "socks4": 1080, "socks5": 1080}
_USERINFO = re.compile(r"(?<=://)[^\s/'\"]*@")
_LAX_USERINFO = re.compile(r"(?<=://)\S*@")
_HOST = re.compile(r"[A-Za-z0-9._-]+")
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.%]+\]")


@dataclass(frozen=True, slots=True)
class ProxyUrl:
    """A proxy's address and, apart from it, its credentials.

    :param host: without brackets
    """

    scheme: str
    host: str
    port: int
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """The URL without credentials."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def authorization(self) -> bytes | None:
        """What to send as ``Proxy-Authorization``; ``None`` without a user."""
        if self.username is None:
            return None
        text = f"{self.username}:{self.password or ''}"
        return b"Basic " + base64.b64encode(text.encode("utf-8"))

    @property
    def masked(self) -> str:
        """The URL as it may be shown."""
        if self.username is None:
            return self.address
        return self.address.replace("://", "://***@", 1)


def parse_proxy(url: str) -> ProxyUrl:
    """Read a proxy URL; credentials may hold any character, encoded or not.

    :raises ValueError: with the masked URL, if it cannot be a proxy's
    """
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        scheme, rest = "http", url.strip()
    scheme = scheme.lower()
    if scheme not in _DEFAULT_PORTS:
        raise ValueError(
            f"{mask(url)!r}: proxies are reached by {', '.join(_DEFAULT_PORTS)}"
        )
    # credentials end at the last @: everything before may be part of a password
    credentials, at, address = rest.rpartition("@")
    address = address.partition("/")[0].partition("?")[0].partition("#")[0]
    host, port = _split_address(address, url)
    if not at:
        return ProxyUrl(scheme, host, port or _DEFAULT_PORTS[scheme])
    username, _, password = credentials.partition(":")
    return ProxyUrl(
        scheme,
        host,
        port or _DEFAULT_PORTS[scheme],
        unquote(username),
        unquote(password),
    )


def mask(text: str) -> str:
    """Return *text* with the credentials of every URL in it replaced by ``***``."""
    masked = _USERINFO.sub("***@", text)
    # an unencoded password may hold what ends a URL for anybody else
    return masked if "://***@" in masked else _LAX_USERINFO.sub("***@", masked)


def _split_address(address: str, url: str) -> tuple[str, int | None]:
    if address.startswith("["):
        host, _, tail = address.partition("]")
        host += "]"
        if not _IPV6.fullmatch(host) or (tail and not tail.startswith(":")):
            raise ValueError(f"{mask(url)!r}: no IPv6 host in brackets")
        return host[1:-1], _port(tail[1:], url)
    host, _, tail = address.partition(":")
    if not _HOST.fullmatch(host):
        raise ValueError(f"{mask(url)!r}: no host that could be a proxy's")
    return host, _port(tail, url)


def _port(text: str, url: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise ValueError(f"{mask(url)!r}: the port must be a number below 65536")
    return int(text)
