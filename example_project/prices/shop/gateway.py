"""A forward proxy that reads sticky sessions from user names, as the big providers' do.

``http://customer-07-g0-s2:secret@gateway``: the same name always leaves by the same
exit address. Plain requests come with an absolute URI, https through CONNECT.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prices.shop import wire
from prices.shop.server import EXIT_HEADER
from prices.shop.story import Exit

if TYPE_CHECKING:
    from prices.shop.server import ShopServer

PASSWORD = "secret"
TEMPLATE = "http://customer-{cell}-g{generation}-s{session}:secret@127.0.0.1:%d"
"""``CELLS_PROXY``, with a place for the gateway's port."""

_USER = re.compile(
    r"customer-(?P<cell>[^-]+)-g(?P<generation>\d+)-s(?P<session>\d+(?:r\d+)?)"
)
_OWN = frozenset({"proxy-authorization", "proxy-connection", EXIT_HEADER.lower()})
_CHUNK = 65536


class Gateway:
    """Lets its customers out to the shop, and nowhere else.

    :ivar port: where it listens
    """

    def __init__(self, shop: ShopServer) -> None:
        self._shop = shop
        self._server: asyncio.Server | None = None
        self._networks: dict[tuple[str, str], int] = {}
        self._exits: dict[str, Exit] = {}
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    def exit_of(self, user: str) -> Exit | None:
        """Return the exit of a user name, always the same; ``None`` for no customer.

        The sessions of one cell and generation are neighbours: a provider's addresses
        often are, and shops know.
        """
        found = _USER.fullmatch(user)
        if found is None:
            return None
        exit_ = self._exits.get(user)
        if exit_ is None:
            cell, generation, session = found.group("cell", "generation", "session")
            place = (cell, generation)
            network = self._networks.setdefault(place, len(self._networks))
            host = 1 + sum(
                (e.cell, str(e.generation)) == place for e in self._exits.values()
            )
            address = f"10.{network >> 8}.{network & 255}.{host}"
            exit_ = Exit(address, cell, int(generation), session)
            self._exits[user] = exit_
            self._shop.know(exit_)
        return exit_

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        line = _Line(reader, writer)
        try:
            while (head := await wire.read_head(reader)) is not None:
                exit_ = self._authenticated(head)
                if exit_ is None:
                    await self._refuse(line, head, 407)
                elif not self._may_reach(head):
                    await self._refuse(line, head, 403)
                elif head.method == "CONNECT":
                    await self._tunnel(line, exit_)
                    break
                else:
                    await self._forward(line, head, exit_)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # one of the two went away, or the gateway closes
        finally:
            if line.source:
                self._shop.forget(line.source)
            await line.close()

    def _authenticated(self, head: wire.Head) -> Exit | None:
        scheme, _, encoded = head.headers.get("proxy-authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            text = base64.b64decode(encoded, validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            return None
        user, _, password = text.partition(":")
        return self.exit_of(user) if password == PASSWORD else None

    def _may_reach(self, head: wire.Head) -> bool:
        shop = self._shop
        if head.method == "CONNECT":
            return head.target == f"localhost:{shop.tls_port}"
        return head.target.startswith(f"http://localhost:{shop.port}/")

    async def _refuse(self, line: _Line, head: wire.Head, status: int) -> None:
        await line.reader.readexactly(head.length)
        headers = {"Content-Type": "text/plain"}
        if status == 407:
            headers["Proxy-Authenticate"] = 'Basic realm="gateway"'
        body = f"gateway: {status}".encode()
        line.writer.write(wire.response_bytes(status, headers, body))
        await line.writer.drain()

    async def _tunnel(self, line: _Line, exit_: Exit) -> None:
        await line.open(self._shop.tls_port)
        self._shop.expect(line.source, exit_)
        line.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        line.start_answers()
        while data := await line.reader.read(_CHUNK):
            await line.send(data)

    async def _forward(self, line: _Line, head: wire.Head, exit_: Exit) -> None:
        if not line.source:
            await line.open(self._shop.port)
            self._shop.expect(line.source, None)
            line.start_answers()
        url = urlsplit(head.target)
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        lines = [f"{head.method} {path} HTTP/1.1"]
        lines += [f"{k}: {v}" for k, v in head.headers.items() if k not in _OWN]
        lines.append(f"{EXIT_HEADER}: {exit_.address}")
        body = await line.reader.readexactly(head.length)
        await line.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)


class _Line:
    """A customer's connection and the one to the shop that belongs to it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.source = 0
        self._up: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._answers: asyncio.Task[None] | None = None

    async def open(self, port: int) -> None:
        """Connect to the shop; :attr:`source` is then the port on this side."""
        self._up = await asyncio.open_connection("127.0.0.1", port)
        self.source = self._up[1].get_extra_info("sockname")[1]

    async def send(self, data: bytes) -> None:
        assert self._up is not None
        self._up[1].write(data)
        await self._up[1].drain()

    def start_answers(self) -> None:
        """Pass on what the shop says, from now on; also that it hung up, and how."""
        self._answers = asyncio.ensure_future(self._pass_answers())

    async def _pass_answers(self) -> None:
        assert self._up is not None
        try:
            while data := await self._up[0].read(_CHUNK):
                self.writer.write(data)
                await self.writer.drain()
            self.writer.close()
        except OSError:
            wire.reset(self.writer)

    async def close(self) -> None:
        if self._answers is not None:
            self._answers.cancel()
        upward = [self._up[1]] if self._up is not None else []
        await wire.close(self.writer, *upward)
