"""Proxy addresses: read, told apart, and masked."""

from __future__ import annotations

import base64
import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import unquote

_DEFAULT_PORTS = {"http": 80, "https": 443, "socks4": 1080, "socks5": 1080}
_USERINFO = re.compile(r"(?<=://)\S*@")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HIDDEN = "***"
_FORM = "proxies are written http://user:password@host:port"


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
        return b"Basic " + base64.b64encode(text.encode("utf-8", "surrogateescape"))

    @property
    def masked(self) -> str:
        """The URL as it may be shown."""
        if self.username is None:
            return self.address
        return self.address.replace("://", f"://{_HIDDEN}@", 1)


def parse_proxy(url: str) -> ProxyUrl:
    """Read a proxy URL; credentials may hold any character, encoded or not.

    :raises ValueError: with the masked URL, if it cannot be a proxy's
    """
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        scheme, rest = "http", url.strip()
    scheme = scheme.lower()
    if scheme not in _DEFAULT_PORTS:
        known = ", ".join(_DEFAULT_PORTS)
        raise ValueError(f"{mask_url(url)!r}: proxies are reached by {known}")
    # credentials end at the last @: everything before may be part of a password
    credentials, at, address = rest.rpartition("@")
    try:
        host, port = _split_address(re.split(r"[/?#]", address, maxsplit=1)[0])
        username, password = _split_credentials(credentials) if at else (None, None)
    except ValueError as error:
        raise ValueError(f"{mask_url(url)!r}: {error}") from None
    return ProxyUrl(scheme, host, port or _DEFAULT_PORTS[scheme], username, password)


def mask(text: str) -> str:
    """Return *text* with the credentials of every URL in it replaced by ``***``.

    Hides too much rather than too little: a password may hold ``/`` and ``@``.
    """
    return _USERINFO.sub(f"{_HIDDEN}@", text)


def mask_url(url: str) -> str:
    """Return what may be shown of a proxy URL, also of one that cannot be read.

    Of what could be credentials in the wrong place (``host:port:user:password``)
    nothing is left.
    """
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        scheme, rest = "", url.strip()
    _, at, address = rest.rpartition("@")
    address = re.split(r"[/?#]", address, maxsplit=1)[0]
    bracket = address.rfind("]") + 1 if address.startswith("[") else 0
    host, *more = address[bracket:].split(":")
    shown = address[:bracket] + host
    if more and more[0]:
        shown += f":{more[0]}" if more[0].isdigit() else f":{_HIDDEN}"
    if len(more) > 1:
        shown += f":{_HIDDEN}"
    return f"{scheme}{separator}{_HIDDEN + '@' if at else ''}{shown}"


def _split_credentials(text: str) -> tuple[str, str]:
    username, _, password = text.partition(":")
    # bytes that are no UTF-8 reach the proxy as they are
    username = unquote(username, errors="surrogateescape")
    if ":" in username:
        raise ValueError("a user name with a colon cannot be sent to a proxy")
    return username, unquote(password, errors="surrogateescape")


def _split_address(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, _, tail = text[1:].partition("]")
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            raise ValueError("no IPv6 host in brackets") from None
        if tail and not tail.startswith(":"):
            raise ValueError(f"only a port may follow the brackets; {_FORM}")
        return host, _port(tail[1:])
    host, _, tail = text.partition(":")
    if not _HOST.fullmatch(host):
        raise ValueError(
            f"no host that could be a proxy's; {_FORM}, an IPv6 host in brackets"
        )
    return host, _port(tail)


def _port(text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise ValueError(f"the port must be a number from 1 to 65535; {_FORM}")
    return int(text)
