"""A shop and a gateway on loopback, and what can be asked about a crawl of theirs."""

from __future__ import annotations

import asyncio
import collections
import math
import threading
import time
from typing import TYPE_CHECKING, Any

from tests.world.crawl import FAST
from tests.world.faults import Hurt
from tests.world.proxy import Knock, Proxy, ProxyConnection
from tests.world.server import Arrival, Reply, Target, TargetConnection, price_of
from tests.world.tls import server_context
from tests.world.users import TEMPLATE, User, read_user

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Self

__all__ = ["Arrival", "Hurt", "Knock", "Reply", "World", "over_budget", "price_of"]

PASSWORD = "S3CR3T-x9"


class World:
    """A target and a gateway in a thread with a loop of its own.

    Times are ``time.monotonic()``, which all processes of the machine share.

    :param password: the one the gateway wants, ``None`` for any
    """

    def __init__(self, password: str | None = PASSWORD) -> None:
        self.target = Target()
        self.proxy = Proxy(self.target.tunnels, password)
        self.hurts: list[Hurt] = []
        self.respond: Callable[[Arrival], Reply | None] = lambda arrival: None
        self.gate: Callable[[Knock], str] = lambda knock: ""
        self.started = time.monotonic()
        self.port = self.tls_port = self.proxy_port = self.proxy6_port = 0
        self.target.respond = self._respond
        self.proxy.gate = self._gate
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    # Life

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(20):
            raise RuntimeError("the world did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._loop.close()

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        servers = await self._listen()
        self._ready.set()
        await self._stop.wait()
        for server in servers:
            server.close()
        for task in list(self.proxy.tasks):
            task.cancel()
        while transports := self.target.open | self.proxy.open:
            for transport in transports:
                transport.abort()
            await asyncio.sleep(0)

    async def _listen(self) -> list[asyncio.Server]:
        loop, here = self._loop, "127.0.0.1"
        context = server_context()
        plain = await loop.create_server(
            lambda: TargetConnection(self.target, "http"), here, 0, backlog=1000
        )
        secure = await loop.create_server(
            lambda: TargetConnection(self.target, "https"),
            here,
            0,
            ssl=context,
            backlog=1000,
        )
        gateway = await loop.create_server(
            lambda: ProxyConnection(self.proxy), here, 0, backlog=1000
        )
        servers = [plain, secure, gateway]
        self.port, self.tls_port, self.proxy_port = (
            server.sockets[0].getsockname()[1] for server in servers
        )
        self.proxy.http_address = (here, self.port)
        self.proxy.https_address = (here, self.tls_port)
        try:
            gateway6 = await loop.create_server(
                lambda: ProxyConnection(self.proxy), "::1", 0
            )
        except OSError:  # a machine without IPv6
            return servers
        self.proxy6_port = gateway6.sockets[0].getsockname()[1]
        return [*servers, gateway6]

    # Addresses

    def base(self, scheme: str = "http") -> str:
        """Return the address of the shop without a slash at its end."""
        port = self.port if scheme == "http" else self.tls_port
        return f"{scheme}://127.0.0.1:{port}"

    def proxy_url(self, user: str = TEMPLATE) -> str:
        """Return the URL of a session at the gateway, of all cells' by default."""
        password = self.proxy.password or PASSWORD
        return f"http://{user}:{password}@127.0.0.1:{self.proxy_port}"

    def settings(self, **more: Any) -> dict[str, Any]:
        """Return settings of a crawl in cells without rate limits."""
        return {**FAST, "CELLS_PROXY": self.proxy_url(), **more}

    # Trouble

    def hurt(self, fault: str, **fields: Any) -> Hurt:
        """Let something go wrong from now on; see :class:`Hurt` for the fields."""
        hurt = Hurt(fault, **fields)
        self.hurts.append(hurt)
        return hurt

    def heal(self) -> None:
        """End all that :meth:`hurt` began."""
        for hurt in self.hurts:
            hurt.heal()

    def usual(self, arrival: Arrival) -> Reply:
        """Return what the shop answers when nothing is wrong."""
        return self.target.usual(arrival)

    @property
    def robots(self) -> bytes:
        return self.target.robots

    @robots.setter
    def robots(self, text: bytes) -> None:
        self.target.robots = text

    def _respond(self, arrival: Arrival) -> Reply | None:
        reply = self.respond(arrival)
        if reply is not None:
            return reply
        for hurt in self.hurts:
            reply = hurt.for_arrival(arrival, self.target)
            if reply is not None:
                return reply
        return None

    def _gate(self, knock: Knock) -> str:
        fault = self.gate(knock)
        for hurt in self.hurts:
            fault = fault or hurt.for_knock(knock)
        return fault

    # What was seen

    @property
    def arrivals(self) -> list[Arrival]:
        """Every request that reached the shop."""
        return self.target.arrivals

    @property
    def knocks(self) -> list[Knock]:
        """Every request that reached the gateway."""
        return self.proxy.knocks

    @staticmethod
    def cell(user: str) -> User:
        """Take the name of a session apart."""
        return read_user(user)

    def of_cell(self, cell: str, generation: str | None = None) -> list[Arrival]:
        """Return what arrived at the shop from one cell."""
        return [
            arrival
            for arrival in self.arrivals
            if arrival.cell == cell and generation in {None, arrival.generation}
        ]

    def by_cell(self) -> dict[str, list[Arrival]]:
        """Return what arrived at the shop through the gateway, cell by cell."""
        cells: dict[str, list[Arrival]] = collections.defaultdict(list)
        for arrival in self.arrivals:
            if arrival.user:
                cells[arrival.cell].append(arrival)
        return dict(cells)

    def spent_on(self, cell: str) -> int:
        """Return how many requests a cell made, also those the gateway stopped."""
        stopped = sum(
            bool(knock.fault) and not knock.fault.startswith("slow")
            for knock in self.knocks
            if knock.cell == cell
        )
        return stopped + len(self.of_cell(cell))

    def peak_concurrency(self, cell: str | None = None) -> int:
        """Return the largest number of requests unanswered at one time."""
        steps = []
        for arrival in self.arrivals:
            if cell in {None, arrival.cell}:
                steps += [(arrival.at, 1), (arrival.done, -1)]
        peak = level = 0
        for _, step in sorted(steps):
            level += step
            peak = max(peak, level)
        return peak

    def keys_on_two_sessions(self) -> dict[str, set[str]]:
        """Return the products that more than one session asked for."""
        users: dict[str, set[str]] = collections.defaultdict(set)
        for arrival in self.arrivals:
            if arrival.path.startswith("/p/"):
                users[arrival.key].add(arrival.user)
        return {key: names for key, names in users.items() if len(names) > 1}

    def connections_with_two_users(self) -> dict[int, set[str]]:
        """Return the connections to the gateway that carried more than one session."""
        users: dict[int, set[str]] = collections.defaultdict(set)
        for knock in self.knocks:
            users[knock.connection].add(knock.user)
        return {number: names for number, names in users.items() if len(names) > 1}

    def foreign_cookies(self) -> list[Arrival]:
        """Return the requests that brought a cookie which another session was given."""
        return [
            arrival
            for arrival in self.arrivals
            if "cookie" in arrival.headers
            and arrival.headers["cookie"] != f"visitor={arrival.user or 'nobody'}"
        ]

    def requests_without_session(self) -> list[Arrival]:
        """Return the requests that reached the shop past the gateway."""
        return [arrival for arrival in self.arrivals if not arrival.user]

    def credentials_at_target(self) -> list[Arrival]:
        """Return the requests that showed the gateway's password to the shop."""
        return [
            arrival
            for arrival in self.arrivals
            if "proxy-authorization" in arrival.headers
            or (self.proxy.password or PASSWORD) in str(arrival.headers)
        ]

    def unauthorized(self) -> list[Knock]:
        """Return the knocks that named no session or a wrong password."""
        return [
            knock
            for knock in self.knocks
            if not knock.user or self.proxy.password not in {None, knock.password}
        ]


def over_budget(times: Iterable[float], burst: float, rate: float) -> float:
    """Return by how many requests the worst window exceeds ``burst + rate * seconds``.

    Windows begin and end with a request, so that no other can be worse.
    """
    worst, low = -math.inf, math.inf
    for number, at in enumerate(sorted(times)):
        low = min(low, number - rate * at)
        worst = max(worst, number + 1 - rate * at - low - burst)
    return worst
