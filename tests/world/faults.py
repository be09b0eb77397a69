"""What can go wrong for some sessions, and for how long."""

from __future__ import annotations

import time
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING

from tests.world.server import HTML, Reply

if TYPE_CHECKING:
    from tests.world.proxy import Knock
    from tests.world.server import Arrival, Target

ROBOT_CHECK = b"""<!doctype html><html><head><title>Robot Check</title></head><body>
<h4>Type the characters you see in this image</h4>
<form method="get" action="/errors/validateCaptcha">
<input type="hidden" name="amzn" value="x"><img src="/captcha/a.jpg">
<input type="text" name="field-keywords" autocomplete="off">
<button type="submit">Continue shopping</button></form></body></html>"""

_DENIED = b"<html><head><title>403 Forbidden</title></head><body>No.</body></html>"
_DOWN = b"<html><head><title>503</title></head><body>Back soon.</body></html>"

AT_TARGET = {
    "hang": Reply(fault="hang"),
    "reset": Reply(fault="reset"),
    "close": Reply(fault="close"),
    "captcha_200": Reply(200, ROBOT_CHECK, HTML),
    "captcha_503": Reply(503, ROBOT_CHECK, HTML),
    "429": Reply(429, b"slow down"),
    "403": Reply(403, _DENIED, HTML),
    "503": Reply(503, _DOWN, HTML),
}
"""Faults of the target with a fixed answer.

``slow``, ``drip`` and ``cut`` spoil the usual one.
"""

AT_PROXY = {
    "hang_proxy": ("hang", "any"),
    "hang_connect": ("hang", "connect"),
    "silent_tunnel": ("silent", "connect"),
    "reset_proxy": ("reset", "any"),
    "refuse": ("close", "any"),
    "407": ("407", "any"),
    "407_connect": ("407", "connect"),
    "502_proxy": ("502", "any"),
    "slow_proxy": ("slow", "any"),
}
"""Faults of the gateway: what it does, and for which kind of requests."""


@dataclass
class Hurt:
    """A fault for the sessions that the fields name; empty fields fit all.

    :ivar seconds: how long it lasts from its first hit, 0 for until :meth:`heal`
    :ivar delay: seconds of ``slow`` and ``slow_proxy``
    :ivar retry_after: seconds, sent along with a 429 or 503
    :ivar as_date: send ``Retry-After`` as a date
    :ivar hits: requests that met it so far
    """

    fault: str
    cell: str = ""
    generation: str = ""
    session: str = ""
    seconds: float = 0.0
    delay: float = 10.0
    retry_after: float | None = None
    as_date: bool = False
    hits: int = 0
    first_hit: float = 0.0
    healed: bool = False

    def __post_init__(self) -> None:
        known = {*AT_TARGET, *AT_PROXY, "slow", "drip", "cut"}
        if self.fault not in known:
            raise ValueError(f"no such fault: {self.fault}; there are {sorted(known)}")

    def heal(self) -> None:
        self.healed = True

    def for_arrival(self, arrival: Arrival, target: Target) -> Reply | None:
        """Return what the target answers instead, ``None`` if nothing is wrong."""
        if self.fault in AT_PROXY or not self._meets(arrival):
            return None
        if self.fault in AT_TARGET:
            reply = AT_TARGET[self.fault]
            if self.retry_after is None:
                return reply
            headers = {**reply.headers, "Retry-After": self._retry_after()}
            return Reply(reply.status, reply.body, headers)
        reply = target.usual(arrival)
        if self.fault == "slow":
            reply.delay = self.delay
        else:
            reply.fault = self.fault
        return reply

    def for_knock(self, knock: Knock) -> str:
        """Return what the gateway does instead, ``""`` if nothing is wrong."""
        action, kind = AT_PROXY.get(self.fault, ("", ""))
        if not action or kind not in {"any", knock.kind} or not self._meets(knock):
            return ""
        return f"slow:{self.delay}" if action == "slow" else action

    def _meets(self, what: Arrival | Knock) -> bool:
        if (
            self.healed
            or (self.cell and what.cell != self.cell)
            or (self.generation and what.generation != self.generation)
            or (self.session and what.session != self.session)
        ):
            return False
        self.first_hit = self.first_hit or what.at
        if self.seconds and what.at - self.first_hit >= self.seconds:
            return False
        self.hits += 1
        return True

    def _retry_after(self) -> str:
        assert self.retry_after is not None
        if self.as_date:
            return formatdate(time.time() + self.retry_after, usegmt=True)
        return f"{self.retry_after:g}"
