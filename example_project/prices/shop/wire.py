"""As much HTTP/1.1 as the shop and the gateway need."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_REASONS = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    407: "Proxy Authentication Required",
    429: "Too Many Requests",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Head:
    """A request line with its headers, names in lower case."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def length(self) -> int:
        value = self.headers.get("content-length", "")
        return int(value) if value.isdigit() else 0


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """Read a request's head; ``None`` at the end of the connection."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3:
        return None
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return Head(parts[0], parts[1], headers)


def response_bytes(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return a response as it goes on the wire."""
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection with RST, as a peer that crashed or forgot it does."""
    raw = writer.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):
            linger = struct.pack("ii", 1, 0)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def close(*writers: asyncio.StreamWriter) -> None:
    """Close connections, whatever state they are in."""
    # all at once: the wait may be cancelled
    for writer in writers:
        writer.close()
    for writer in writers:
        with contextlib.suppress(OSError):
            await writer.wait_closed()
