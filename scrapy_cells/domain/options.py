"""The numbers a cell lives by."""

from __future__ import annotations

from dataclasses import dataclass, fields

from scrapy_cells.domain.checked import not_negative, positive, share

_SHARES = frozenset(
    {
        "captcha_penalty",
        "failure_penalty",
        "recovery",
        "retire_below",
    }
)
_MAY_BE_ZERO = frozenset(
    {
        "rate",
        "session_rotation",
        "ramp",
        "warmup",
        "fresh_window",
        "retry_times",
        "retry_delay",
        "retry_max_delay",
    }
)


@dataclass(frozen=True, slots=True)
class CellOptions:
    """Options of one cell; times in seconds, rate in requests a second.

    :raises ValueError: naming the field, for what cannot work
    """

    rate: float = 0.5
    burst: float = 5.0
    concurrency: int = 4
    timeout: float = 20.0
    sessions: int = 4
    session_rotation: float = 86400.0
    breaker_threshold: int = 8
    breaker_window: float = 120.0
    breaker_cooldown: float = 900.0
    breaker_max_cooldown: float = 14400.0
    ramp: float = 300.0
    warmup: float = 300.0
    pacing_floor: float = 0.25
    captcha_penalty: float = 0.25
    failure_penalty: float = 0.10
    recovery: float = 0.05
    retire_below: float = 0.5
    fresh_window: float = 600.0
    quarantine: float = 14400.0
    max_quarantine: float = 86400.0
    retry_times: int = 2
    retry_delay: float = 1.0
    retry_max_delay: float = 60.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "pacing_floor":
                # at 0 a cell would never get its second chance
                positive(field.name, share(field.name, value))
                continue
            if field.name in _SHARES:
                share(field.name, value)
            elif field.name in _MAY_BE_ZERO:
                not_negative(field.name, value)
            else:
                positive(field.name, value)
