"""HTTP/1.1 as far as the world needs it: requests in, answers out, connections kept."""

from __future__ import annotations

import asyncio
from typing import Any

_REASONS = {
    200: "OK",
    302: "Found",
    403: "Forbidden",
    404: "Not Found",
    407: "Proxy Authentication Required",
    429: "Too Many Requests",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


def parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    """Return method, target and headers; header names in lower case."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return method, target, headers


def answer_head(status: int, headers: dict[str, str], length: int) -> bytes:
    """Return status line and headers up to and with the empty line."""
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Whatever')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {length}\r\n\r\n")
    return "\r\n".join(lines).encode("latin-1")


class RequestReader(asyncio.Protocol):
    """Cuts what arrives into requests and hands each to :meth:`handle`."""

    transport: Any = None

    def __init__(self, open_connections: set[Any]) -> None:
        self._buffer = b""
        self._open = open_connections

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._open.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self.transport)
        self.transport.close()  # Python 3.10 wants it said of a TLS connection

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        while (end := buffer.find(b"\r\n\r\n")) >= 0:
            method, target, headers = parse_head(buffer[:end])
            start = end + 4
            stop = start + int(headers.get("content-length", 0))
            if len(buffer) < stop:
                break
            body, buffer = buffer[start:stop], buffer[stop:]
            self.handle(method, target, headers, body)
        self._buffer = buffer

    def handle(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> None:
        raise NotImplementedError

    def rest(self) -> bytes:
        """Give out what arrived after the last whole request."""
        rest, self._buffer = self._buffer, b""
        return rest
