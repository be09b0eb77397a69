"""The settings that each cell may have of its own."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from scrapy_cells.config.reading import number, or_none, whole

_NO_LIMIT = "for no limit take a high number such as 1000"

Rate = Annotated[
    float,
    BeforeValidator(
        number(f"a number > 0 (requests per second); {_NO_LIMIT}", lambda n: n > 0)
    ),
]
Burst = Annotated[
    float,
    BeforeValidator(
        number(f"a number >= 1 (requests at once); {_NO_LIMIT}", lambda n: n >= 1)
    ),
]
Concurrency = Annotated[
    int | None,
    BeforeValidator(
        or_none(
            whole(
                "a whole number >= 1 (requests in flight), or None for as many as"
                " sessions",
                lambda n: n >= 1,
            )
        )
    ),
]
Seconds = Annotated[
    float, BeforeValidator(number("a number > 0 (seconds)", lambda n: n > 0))
]
SecondsOrNone = Annotated[
    float, BeforeValidator(number("a number >= 0 (seconds)", lambda n: n >= 0))
]
Rotation = Annotated[
    float,
    BeforeValidator(number("a number >= 0 (seconds); 0 for never", lambda n: n >= 0)),
]
Share = Annotated[
    float, BeforeValidator(number("a number from 0 to 1", lambda n: 0 <= n <= 1))
]
Floor = Annotated[
    float, BeforeValidator(number("a number > 0 and <= 1", lambda n: 0 < n <= 1))
]
Count = Annotated[int, BeforeValidator(whole("a whole number >= 1", lambda n: n >= 1))]
Sessions = Annotated[
    int,
    BeforeValidator(whole("a whole number from 1 to 1000", lambda n: 1 <= n <= 1000)),
]
Whole = Annotated[int, BeforeValidator(whole("a whole number >= 0", lambda n: n >= 0))]


class CellSettings(BaseModel):
    """What ``CELLS_OVERRIDES`` may say of a cell, and ``CELLS_*`` of all of them."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
    )

    rate: Rate = 0.5
    burst: Burst = 5.0
    concurrency: Concurrency = None
    timeout: Seconds = 20.0
    sessions: Sessions = 4
    session_rotation: Rotation = 86400.0
    breaker_threshold: Count = 8
    breaker_window: Seconds = 120.0
    breaker_cooldown: Seconds = 900.0
    breaker_max_cooldown: Seconds = 14400.0
    ramp: SecondsOrNone = 300.0
    warmup: SecondsOrNone = 300.0
    pacing_floor: Floor = 0.25
    captcha_penalty: Share = 0.25
    failure_penalty: Share = 0.10
    recovery: Share = 0.05
    retire_below: Share = 0.5
    fresh_window: SecondsOrNone = 600.0
    quarantine: Seconds = 14400.0
    max_quarantine: Seconds = 86400.0
    retry_times: Whole = 2
    retry_delay: SecondsOrNone = 1.0
    retry_max_delay: SecondsOrNone = 60.0
