"""The target: a shop on loopback that records what arrives and answers as scripted."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.world.users import part
from tests.world.wire import RequestReader, answer_head

if TYPE_CHECKING:
    from collections.abc import Callable

THROUGH = "x-world-through"
"""Header by which the proxy tells the target whom a request came from."""

HTML = {"Content-Type": "text/html; charset=utf-8"}

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
_DRIP = 0.5
"""Seconds between two bytes of a dripping answer."""


@dataclass(slots=True)
class Arrival:
    """A request as it arrived at the target.

    :ivar at: ``time.monotonic()`` of the arrival
    :ivar done: when its answer was written or its connection ended, ``inf`` until then
    :ivar user: name of the proxy session it came through, ``""`` if none
    :ivar connection: number of the connection to the target
    :ivar client: number of the crawl's connection to the proxy, 0 if none
    """

    at: float
    method: str
    path: str
    headers: dict[str, str]
    user: str
    connection: int
    scheme: str
    body: bytes = b""
    peer: tuple[str, int] = ("", 0)
    client: int = 0
    status: int = 0
    done: float = math.inf

    @property
    def key(self) -> str:
        return self.path.rpartition("/")[2].partition("?")[0]

    @property
    def cell(self) -> str:
        return part(self.user, "cell")

    @property
    def generation(self) -> str:
        return part(self.user, "generation")

    @property
    def session(self) -> str:
        return part(self.user, "session")


@dataclass(slots=True)
class Reply:
    """What the target answers.

    :ivar delay: seconds to wait before the answer
    :ivar fault: ``hang`` (no answer), ``reset`` (RST), ``close`` (no answer, FIN),
        ``cut`` (half of the body, then FIN) or ``drip`` (a byte each half second)
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    fault: str = ""


def price_of(key: str) -> int:
    """Return the price of a product: no two keys of a test share one by accident."""
    return zlib.crc32(key.encode()) % 9_999_991


def product_page(key: str) -> bytes:
    """Return the page of a product."""
    rows = "".join(f"<li>detail {n} of {key}</li>" for n in range(20))
    return (
        f"<html><head><title>Product {key}</title></head><body><h1>{key}</h1>"
        f'<p class="price">{price_of(key)}</p><img src="/img/{key}.png">'
        f"<ul>{rows}</ul></body></html>"
    ).encode()


class Target:
    """The shop: answers by :attr:`respond`, else as a shop does.

    ``/p/<key>`` is a product page (as is any other path, named by its last segment),
    ``/robots.txt`` what :attr:`robots` holds, ``/redirect/<n>/<path>`` leads to
    ``/<path>`` in n steps, ``/cookie`` says what cookies came, ``/img/<name>`` is a
    picture and ``/missing/<name>`` a 404. Every page sets the cookie ``visitor`` to the
    name of the session that asked.

    :ivar respond: from an arrival to a reply, or ``None`` for the usual one
    """

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.respond: Callable[[Arrival], Reply | None] = lambda arrival: None
        self.robots = b"User-agent: *\nAllow: /\n"
        self.tunnels: dict[int, tuple[str, int]] = {}
        self.connections = itertools.count(1)
        self.open: set[Any] = set()

    def answer(self, arrival: Arrival) -> Reply:
        self.arrivals.append(arrival)
        reply = self.respond(arrival) or self.usual(arrival)
        arrival.status = reply.status
        return reply

    def usual(self, arrival: Arrival) -> Reply:
        path = arrival.path
        if path == "/robots.txt":
            return Reply(200, self.robots, {"Content-Type": "text/plain"})
        if path.startswith("/redirect/"):
            return _redirect(path)
        if path.startswith("/img/"):
            return Reply(200, PIXEL, {"Content-Type": "image/png"})
        if path.startswith("/missing/"):
            return Reply(404, b"<h1>no such product</h1>", HTML)
        cookie = {"Set-Cookie": f"visitor={arrival.user or 'nobody'}; Path=/"}
        if path.startswith("/cookie"):
            seen = arrival.headers.get("cookie", "").encode()
            return Reply(200, seen, {"Content-Type": "text/plain", **cookie})
        return Reply(200, product_page(arrival.key), {**HTML, **cookie})


def _redirect(path: str) -> Reply:
    count, _, rest = path.removeprefix("/redirect/").partition("/")
    if not count.isdigit():
        return Reply(302, headers={"Location": f"/p/{count}"})
    left = int(count) - 1
    return Reply(
        302,
        headers={"Location": f"/redirect/{left}/{rest}" if left > 0 else f"/{rest}"},
    )


class TargetConnection(RequestReader):
    """One connection to the target."""

    def __init__(self, target: Target, scheme: str) -> None:
        super().__init__(target.open)
        self._target = target
        self._scheme = scheme
        self._number = next(target.connections)
        self._peer = ("", 0)
        self._tunnel: tuple[str, int] | None = None
        self._waiting: list[Arrival] = []

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._peer = transport.get_extra_info("peername")[:2]

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for arrival in self._waiting:
            arrival.done = time.monotonic()

    def handle(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> None:
        if self._tunnel is None:
            self._tunnel = self._target.tunnels.get(self._peer[1], ("", 0))
        user, client = self._tunnel
        if (through := headers.pop(THROUGH, None)) is not None:
            user, _, number = through.partition(" ")
            client = int(number)
        arrival = Arrival(
            time.monotonic(),
            method,
            target,
            headers,
            user,
            self._number,
            self._scheme,
            body,
            self._peer,
            client,
        )
        self._waiting.append(arrival)
        reply = self._target.answer(arrival)
        if reply.delay:
            loop = asyncio.get_running_loop()
            loop.call_later(reply.delay, self._write, arrival, reply)
        else:
            self._write(arrival, reply)

    def _write(self, arrival: Arrival, reply: Reply) -> None:
        transport = self.transport
        if reply.fault == "hang" or transport.is_closing():
            return
        if reply.fault == "reset":
            transport.abort()
            return
        if reply.fault == "close":
            transport.close()
            return
        head = answer_head(reply.status, reply.headers, len(reply.body))
        body = b"" if arrival.method == "HEAD" else reply.body
        if reply.fault == "drip":
            transport.write(head)
            self._drip(arrival, body)
            return
        if reply.fault == "cut":
            transport.write(head + body[: len(body) // 2])
            transport.close()
            return
        transport.write(head + body)
        self._answered(arrival)

    def _drip(self, arrival: Arrival, body: bytes) -> None:
        if self.transport.is_closing():
            return
        if not body:
            self._answered(arrival)
            return
        self.transport.write(body[:1])
        loop = asyncio.get_running_loop()
        loop.call_later(_DRIP, self._drip, arrival, body[1:])

    def _answered(self, arrival: Arrival) -> None:
        arrival.done = time.monotonic()
        self._waiting.remove(arrival)
        if arrival.headers.get("connection", "").lower() == "close":
            self.transport.close()
