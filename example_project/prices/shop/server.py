"""The shop's two ports, http and https."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from prices.shop import wire
from prices.shop.story import Exit
from prices.shop.tls import server_context

if TYPE_CHECKING:
    from prices.shop.desk import Desk

EXIT_HEADER = "X-Exit-Address"
"""Tells the shop the exit of a request, on connections of the gateway only."""

DIRECT = Exit("127.0.0.1")
"""Whoever comes without the gateway."""


class ShopServer:
    """Serves what the desk answers.

    The gateway runs in the same process and writes down here whose connections its own
    are, before it lets the first byte through: to the shop, that is the exit address.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._servers: list[asyncio.Server] = []
        self._exits: dict[str, Exit] = {}
        self._sources: dict[int, Exit | None] = {}
        self.port = 0
        self.tls_port = 0

    def expect(self, source: int, exit_: Exit | None) -> None:
        """Take note of a connection of the gateway.

        :param source: its port
        :param exit_: ``None`` if each request names its exit in :data:`EXIT_HEADER`
        """
        self._sources[source] = exit_

    def forget(self, source: int) -> None:
        self._sources.pop(source, None)

    def know(self, exit_: Exit) -> None:
        """Take note of an exit that requests may name."""
        self._exits[exit_.address] = exit_

    async def start(self) -> None:
        """Open both ports, :attr:`port` and :attr:`tls_port`."""
        plain = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        secure = await asyncio.start_server(
            self._serve, "127.0.0.1", 0, ssl=server_context()
        )
        self._servers = [plain, secure]
        self.port = plain.sockets[0].getsockname()[1]
        self.tls_port = secure.sockets[0].getsockname()[1]

    def stop(self) -> None:
        for server in self._servers:
            server.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        source = writer.get_extra_info("peername")[1]
        try:
            while (head := await wire.read_head(reader)) is not None:
                await reader.readexactly(head.length)
                cookie = head.headers.get("cookie", "")
                exit_ = self._exit_of(source, head)
                reply = self._desk.answer(exit_, head.target, cookie)
                if reply.fault == "hang":
                    await reader.read()  # until the other side has had enough
                    break
                if reply.fault == "reset":
                    wire.reset(writer)
                    break
                headers = {"Server": "shop", **reply.headers}
                writer.write(wire.response_bytes(reply.status, headers, reply.body))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # they went away, or the shop closes
        finally:
            await wire.close(writer)

    def _exit_of(self, source: int, head: wire.Head) -> Exit:
        exit_ = self._sources.get(source, DIRECT)
        if exit_ is None:
            named = head.headers.get(EXIT_HEADER.lower(), "")
            return self._exits.get(named, DIRECT)
        return exit_
