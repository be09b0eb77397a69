"""What became of a request."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(str, Enum):
    """The kinds of end a request can come to."""

    OK = "ok"
    CAPTCHA = "captcha"
    RATE_LIMITED = "rate_limited"
    BLOCKED = "blocked"
    SOFT_BLOCK = "soft_block"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    PROXY_ERROR = "proxy_error"
    EMPTY = "empty"
    PARSE_FAILURE = "parse_failure"
    NEUTRAL = "neutral"

    def __str__(self) -> str:
        return self.value

    @property
    def is_block(self) -> bool:
        """Whether the site refused this visitor."""
        return self in _BLOCKS

    @property
    def is_failure(self) -> bool:
        """Whether it speaks against the way out."""
        return self not in _NO_FAILURES

    @property
    def is_outage(self) -> bool:
        """Whether the target or the gateway may be down for everybody."""
        return self in _OUTAGES

    @property
    def strikes_session(self) -> bool:
        """Whether it counts against the session that was used."""
        return self in _STRIKES


_BLOCKS = frozenset({Outcome.CAPTCHA, Outcome.BLOCKED, Outcome.SOFT_BLOCK})
_NO_FAILURES = frozenset({Outcome.OK, Outcome.NEUTRAL})
_OUTAGES = frozenset(
    {
        Outcome.SERVER_ERROR,
        Outcome.TIMEOUT,
        Outcome.CONNECTION,
        Outcome.PROXY_ERROR,
    }
)
_STRIKES = _BLOCKS | {Outcome.PROXY_ERROR, Outcome.TIMEOUT, Outcome.CONNECTION}


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, and what it was recognised by.

    :param vendor: who blocks ("cloudflare"), ``""`` where nobody can be named
    :param rule: name of the rule, by which it can be switched off
    :param place: where the rule found it ("title", "header", "status"...)
    """

    outcome: Outcome
    vendor: str = ""
    rule: str = ""
    place: str = ""
