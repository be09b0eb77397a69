"""When to try again, and how often at most."""

from __future__ import annotations

import math
import re
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from scrapy_cells.domain.checked import not_negative, share

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

_WEEK = 7 * 86400.0
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?")


def backoff(
    attempt: int,
    base: float,
    max_delay: float,
    rng: random.Random,
    retry_after: float | None = None,
) -> float:
    """Return the seconds to wait before the next try: full jitter above a floor.

    ``random(0, min(max_delay, base * 2 ** attempt))``, after "Exponential Backoff And
    Jitter", AWS Architecture Blog, 2015.

    :param attempt: tries that failed before this one
    :param retry_after: seconds the server asked for; never waits less
    """
    # beyond 60 doublings the maximum rules, and the power would only overflow
    delay = rng.uniform(0.0, min(max_delay, base * 2.0 ** min(attempt, 60)))
    return delay if retry_after is None else max(delay, retry_after)


def parse_retry_after(
    values: Sequence[bytes | str], date: bytes | str | None, now: float
) -> float | None:
    """Read ``Retry-After`` (RFC 9110, 10.2.3): seconds or a date.

    :param date: the ``Date`` header, to which a date is relative where there is one, so
        that a wrong clock here does no harm
    :param now: epoch seconds
    :return: seconds, at most a week; the longest of several headers; ``None`` for
        nothing that can be used: past, zero, negative or no time at all
    """
    origin = _read_date(date) if date is not None else None
    found = []
    for value in values:
        text = _text(value)
        if _SECONDS.fullmatch(text):
            seconds = float(text)
        else:
            moment = _read_date(text)
            if moment is None:
                continue
            seconds = moment - (now if origin is None else origin)
        if seconds > 0:
            found.append(min(seconds, _WEEK))
    return max(found, default=None)


class RetryBudget:
    """How many retries a cell may spend: a share of its first tries.

    Finagle's and the SRE book's guard against retry storms.

    :param share: of the first tries
    :param reserve: retries that are always allowed
    """

    def __init__(self, share_of_first: float = 0.2, reserve: int = 10) -> None:
        self._share = share("share_of_first", share_of_first)
        self._reserve = not_negative("reserve", reserve)
        self._first = 0
        self._spent = 0

    def first_attempt(self) -> None:
        self._first += 1

    def spend(self) -> bool:
        """Take one retry if there is one left."""
        if self._spent + 1 > max(self._reserve, self._share * self._first):
            return False
        self._spent += 1
        return True


def _text(value: bytes | str) -> str:
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    return value.strip()


def _read_date(value: bytes | str) -> float | None:
    try:
        moment = parsedate_to_datetime(_text(value))
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    try:
        epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
        seconds = (moment - epoch).total_seconds()
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) else None
