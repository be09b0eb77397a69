"""A web site on loopback, and a gateway before it, in a thread of their own.

The gateway speaks as forward proxies do (absolute-URI http, CONNECT with TLS inside)
and answers for the site itself: what arrives is recorded with the user and the
connection it came through. Requests that reach the site's own port came without a
proxy.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import re
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.harness.tls import server_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

_USER = re.compile(r"u-(?P<cell>[^-]+)-(?P<generation>\d+)-(?P<session>[^-]+)")


@dataclass(slots=True)
class Arrival:
    """A request as it arrived at the site."""

    at: float
    method: str
    path: str
    headers: dict[str, str]
    user: str
    connection: int
    scheme: str
    status: int = 0

    @property
    def key(self) -> str:
        return self.path.rpartition("/")[2].partition("?")[0]

    @property
    def cell(self) -> str:
        return _part(self.user, "cell")

    @property
    def generation(self) -> str:
        return _part(self.user, "generation")

    @property
    def session(self) -> str:
        return _part(self.user, "session")


def _part(user: str, name: str) -> str:
    found = _USER.fullmatch(user)
    return found.group(name) if found else ""


@dataclass(slots=True)
class Reply:
    """What the site answers; ``fault`` is hang, reset or drip."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    fault: str = ""


@dataclass(slots=True)
class Knock:
    """A request as it arrived at the gateway; ``kind`` is http or connect."""

    at: float
    user: str
    password: str
    kind: str
    target: str
    connection: int
    fault: str = ""


def product_page(key: str) -> bytes:
    """Return the page of a product; its price follows from its key."""
    rows = "".join(f"<li>detail {n} of {key}</li>" for n in range(20))
    return (
        f"<html><head><title>Product {key}</title></head><body><h1>{key}</h1>"
        f'<p class="price">{price_of(key)}</p><ul>{rows}</ul></body></html>'
    ).encode()


def price_of(key: str) -> int:
    return sum(key.encode()) * 7 % 9973


class Site:
    """The site and its gateway.

    :ivar respond: from an arrival to a reply; ``None`` for the usual page
    :ivar gate: from a knock at the gateway to a fault: hang, reset, 407, 502 or ``""``
    """

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.knocks: list[Knock] = []
        self.respond: Callable[[Arrival], Reply | None] = lambda arrival: None
        self.gate: Callable[[Knock], str] = lambda knock: ""
        self.robots = b"User-agent: *\nAllow: /\n"
        self.started = time.monotonic()
        self._connections = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self._servers: list[asyncio.Server] = []
        self._transports: set[Any] = set()
        self.port = self.tls_port = self.proxy_port = self.proxy6_port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._listen())
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._close())
        self._loop.close()

    async def _listen(self) -> None:
        self.port = await self._serve(lambda: Direct(self))
        self.tls_port = await self._serve(
            lambda: Direct(self, "https"), ssl=server_context()
        )
        self.proxy_port = await self._serve(lambda: Gateway(self))
        try:
            self.proxy6_port = await self._serve(lambda: Gateway(self), "::1")
        except OSError:
            self.proxy6_port = 0

    async def _serve(
        self,
        protocol: Callable[[], asyncio.Protocol],
        host: str = "127.0.0.1",
        **options: Any,
    ) -> int:
        server = await self._loop.create_server(protocol, host, 0, **options)
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for transport in list(self._transports):
            transport.abort()
        tasks = asyncio.all_tasks(self._loop) - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # what was aborted is closed in the next round

    def answer(self, arrival: Arrival) -> Reply:
        self.arrivals.append(arrival)
        reply = self.respond(arrival)
        if reply is None:
            reply = self.usual(arrival)
        arrival.status = reply.status
        return reply

    def usual(self, arrival: Arrival) -> Reply:
        if arrival.path.endswith("/robots.txt"):
            return Reply(body=self.robots, headers={"Content-Type": "text/plain"})
        if "/redirect/" in arrival.path:
            return Reply(302, headers={"Location": f"/p/{arrival.key}"})
        return Reply(
            body=product_page(arrival.key),
            headers={
                "Content-Type": "text/html; charset=utf-8",
                "Set-Cookie": f"visitor={quote(arrival.user) or 'nobody'}; Path=/",
            },
        )


class _Http(asyncio.Protocol):
    """Reads requests one after the other and writes what :meth:`handle` returns."""

    def __init__(self, site: Site, scheme: str = "http") -> None:
        self.site = site
        self.scheme = scheme
        self.user = ""
        self.connection = next(site._connections)
        self.transport: Any = None
        self._buffer = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.site._transports.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.site._transports.discard(self.transport)
        self.transport.close()  # or that of a tunnel is told unclosed by Python 3.10

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self.work()

    def work(self) -> None:
        # inside a tunnel the first data may be there before the transport is
        while self.transport is not None and b"\r\n\r\n" in self._buffer:
            head, _, rest = self._buffer.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            method, url, _ = lines[0].split(" ", 2)
            headers = {}
            for line in lines[1:]:
                name, _, value = line.partition(":")
                headers[name.strip().lower()] = value.strip()
            length = int(headers.get("content-length", 0))
            if len(rest) < length:
                return
            self._buffer = rest[length:]
            self.handle(method, url, headers)

    def handle(self, method: str, url: str, headers: dict[str, str]) -> None:
        raise NotImplementedError

    def serve(self, method: str, path: str, headers: dict[str, str]) -> None:
        arrival = Arrival(
            time.monotonic(),
            method,
            path,
            headers,
            self.user,
            self.connection,
            self.scheme,
        )
        reply = self.site.answer(arrival)
        if reply.delay:
            asyncio.get_running_loop().call_later(
                reply.delay, self.write, method, reply
            )
        else:
            self.write(method, reply)

    def write(self, method: str, reply: Reply) -> None:
        if reply.fault == "hang" or self.transport.is_closing():
            return
        if reply.fault == "reset":
            self.transport.abort()
            return
        body = b"" if method == "HEAD" else reply.body
        lines = [f"HTTP/1.1 {reply.status} Whatever"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        lines.append(f"Content-Length: {len(reply.body)}")
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        if reply.fault == "drip":
            self.transport.write(head)
            self._drip(body)
            return
        self.transport.write(head + body)

    def _drip(self, body: bytes) -> None:
        if body and not self.transport.is_closing():
            self.transport.write(body[:1])
            asyncio.get_running_loop().call_later(0.5, self._drip, body[1:])


class Direct(_Http):
    """The site's own port, and the inside of a tunnel."""

    def handle(self, method: str, url: str, headers: dict[str, str]) -> None:
        self.serve(method, url, headers)


class Gateway(_Http):
    """The proxy's port."""

    def handle(self, method: str, url: str, headers: dict[str, str]) -> None:
        user, password = _credentials(headers.pop("proxy-authorization", ""))
        self.user = user
        kind = "connect" if method == "CONNECT" else "http"
        knock = Knock(time.monotonic(), user, password, kind, url, self.connection)
        knock.fault = self.site.gate(knock)
        self.site.knocks.append(knock)
        if knock.fault == "hang":
            return
        if knock.fault == "reset":
            self.transport.abort()
        elif knock.fault == "close":
            self.transport.close()
        elif knock.fault == "407" or not user:
            headers = {"Proxy-Authenticate": "Basic realm=gateway"}
            self.write(method, Reply(407, b"who are you", headers))
        elif knock.fault == "502":
            headers = {
                "Via": "1.1 gateway (squid)",
                "X-Squid-Error": "ERR_CONNECT_FAIL 111",
            }
            self.write(method, Reply(502, b"<h1>no way</h1>", headers))
        elif kind == "connect":
            self._open_tunnel()
        else:
            self.serve(method, "/" + url.split("/", 3)[3], headers)

    def _open_tunnel(self) -> None:
        self.transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        inside = Direct(self.site, "https")
        inside.user, inside.connection = self.user, self.connection
        loop = asyncio.get_running_loop()

        async def secure() -> None:
            try:
                transport = await loop.start_tls(
                    self.transport, inside, server_context(), server_side=True
                )
            except (ssl.SSLError, OSError):
                return
            if transport is not None:
                inside.connection_made(transport)
                inside.work()

        self._task = loop.create_task(secure())


def _credentials(header: str) -> tuple[str, str]:
    if not header.startswith("Basic "):
        return "", ""
    user, _, password = base64.b64decode(header[6:]).decode("utf-8").partition(":")
    return user, password
