"""A gateway on loopback: one address, many sessions told apart by user name.

Speaks as forward proxies do: requests with absolute URIs for http, ``CONNECT`` for
https. Whatever host is asked for, it leads to the target and never off the machine.
Each connection of a client has one connection of its own to the target.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.world.server import THROUGH
from tests.world.users import part
from tests.world.wire import RequestReader, answer_head

if TYPE_CHECKING:
    from collections.abc import Callable

_HOP_BY_HOP = ("proxy-authorization", "proxy-connection")


@dataclass(slots=True)
class Knock:
    """A request as it arrived at the gateway.

    :ivar kind: ``http`` or ``connect``
    :ivar target: the URL or the ``host:port`` asked for
    :ivar connection: number of the client's connection
    :ivar fault: what the gateway did instead of its work
    """

    at: float
    user: str
    password: str
    kind: str
    target: str
    connection: int
    fault: str = ""

    @property
    def cell(self) -> str:
        return part(self.user, "cell")

    @property
    def generation(self) -> str:
        return part(self.user, "generation")

    @property
    def session(self) -> str:
        return part(self.user, "session")


class Proxy:
    """The gateway.

    :ivar gate: from a knock to a fault or ``""``: ``hang``, ``silent`` (opens the
        tunnel and lets nothing through), ``reset``, ``close``, ``407``, ``502``,
        ``slow:<seconds>``
    :ivar password: the one it lets in; ``None`` for any
    """

    def __init__(
        self, tunnels: dict[int, tuple[str, int]], password: str | None
    ) -> None:
        self.knocks: list[Knock] = []
        self.gate: Callable[[Knock], str] = lambda knock: ""
        self.password = password
        self.http_address: tuple[str, int] = ("", 0)
        self.https_address: tuple[str, int] = ("", 0)
        self.tunnels = tunnels
        self.connections = itertools.count(1)
        self.open: set[Any] = set()
        self.tasks: set[asyncio.Task[None]] = set()

    def note(self, knock: Knock) -> str:
        """Record a knock and return what goes wrong with it."""
        self.knocks.append(knock)
        if not knock.user or self.password not in {None, knock.password}:
            knock.fault = "407"
        else:
            knock.fault = self.gate(knock)
        return knock.fault

    def address_for(self, target: str) -> tuple[str, int]:
        """Return where a tunnel to ``host:port`` really leads."""
        plain = target.rpartition(":")[2] == str(self.http_address[1])
        return self.http_address if plain else self.https_address


class ProxyConnection(RequestReader):
    """One connection of a client."""

    def __init__(self, proxy: Proxy) -> None:
        super().__init__(proxy.open)
        self._proxy = proxy
        self._number = next(proxy.connections)
        self._upstream: _Upstream | None = None
        self._tunnel_of: str | None = None
        self._silent = False
        self._pending = b""

    def data_received(self, data: bytes) -> None:
        if self._silent:
            return
        if self._tunnel_of is not None:
            self._send(data)
        else:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._upstream is not None and self._upstream.transport is not None:
            self._upstream.transport.abort()

    def handle(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> None:
        kind = "connect" if method == "CONNECT" else "http"
        user, password = _credentials(headers.get("proxy-authorization", ""))
        now = time.monotonic()
        knock = Knock(now, user, password, kind, target, self._number)
        fault, _, seconds = self._proxy.note(knock).partition(":")
        if fault and fault != "slow":
            self._fail(fault)
            return
        work = (
            partial(self._open_tunnel, user, target)
            if kind == "connect"
            else partial(self._forward, user, _rewritten(method, target, headers, body))
        )
        if fault:
            asyncio.get_running_loop().call_later(float(seconds), work)
        else:
            work()

    def _fail(self, fault: str) -> None:
        if fault == "reset":
            self.transport.abort()
        elif fault == "close":
            self.transport.close()
        elif fault == "silent":
            self._silent = True
            self.transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        elif fault == "407":
            self._say(407, {"Proxy-Authenticate": 'Basic realm="gateway"'})
        elif fault == "502":
            self._say(
                502, {"Via": "1.1 gateway (squid)", "X-Squid-Error": "ERR_DNS_FAIL 0"}
            )
        elif fault != "hang":
            raise ValueError(f"no such fault of a gateway: {fault}")

    def _say(self, status: int, headers: dict[str, str]) -> None:
        body = b"<h1>The gateway says no</h1>"
        head = answer_head(status, {**headers, "Content-Type": "text/html"}, len(body))
        self.transport.write(head + body)

    def _forward(self, user: str, request: tuple[bytes, bytes]) -> None:
        first, rest = request
        through = f"{THROUGH}: {user} {self._number}\r\n".encode("latin-1", "replace")
        self._send(first + through + rest)

    def _send(self, data: bytes) -> None:
        upstream = self._upstream
        if upstream is not None and upstream.transport is not None:
            upstream.transport.write(data)
            return
        self._pending += data
        if upstream is None:
            self._connect(self._proxy.http_address)

    def _open_tunnel(self, user: str, target: str) -> None:
        self._tunnel_of = user
        self._connect(self._proxy.address_for(target))

    def _connect(self, address: tuple[str, int]) -> None:
        self._upstream = _Upstream(self._proxy, self)
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._reach(self._upstream, address))
        self._proxy.tasks.add(task)
        task.add_done_callback(self._proxy.tasks.discard)

    async def _reach(self, upstream: _Upstream, address: tuple[str, int]) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: upstream, *address)
        except OSError:
            self._fail("502")

    def reached(self, upstream: Any) -> None:
        """Send on what had to wait for the connection to the target."""
        if self.transport.is_closing():
            upstream.abort()
            return
        if self._tunnel_of is not None:
            port = upstream.get_extra_info("sockname")[1]
            self._proxy.tunnels[port] = (self._tunnel_of, self._number)
            self.transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self._pending += self.rest()
        if self._pending:
            upstream.write(self._pending)
            self._pending = b""


class _Upstream(asyncio.Protocol):
    """The connection to the target that belongs to one client's."""

    transport: Any = None

    def __init__(self, proxy: Proxy, client: ProxyConnection) -> None:
        self._proxy = proxy
        self._client = client

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._port = transport.get_extra_info("sockname")[1]
        self._proxy.open.add(transport)
        self._client.reached(transport)

    def data_received(self, data: bytes) -> None:
        self._client.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._proxy.open.discard(self.transport)
        self._proxy.tunnels.pop(self._port, None)
        if exc is not None:
            self._client.transport.abort()
        else:
            self._client.transport.close()


def _rewritten(
    method: str, url: str, headers: dict[str, str], body: bytes
) -> tuple[bytes, bytes]:
    """Return a request as the target gets it: up to its first header, and the rest."""
    path = url.partition("://")[2].partition("/")[2]
    lines = [
        f"{name}: {value}" for name, value in headers.items() if name not in _HOP_BY_HOP
    ]
    first = f"{method} /{path} HTTP/1.1\r\n".encode("latin-1")
    return first, "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def _credentials(header: str) -> tuple[str, str]:
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    user, _, password = base64.b64decode(token).decode("utf-8").partition(":")
    return user, password
