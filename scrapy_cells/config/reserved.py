"""Settings whose names are fixed and whose features are not there yet.

Only the values that ask for nothing are taken, so that settings written for a later
version say what is missing instead of being ignored.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator

from scrapy_cells.config import reading
from scrapy_cells.config.cell import Seconds, SecondsOrNone, Share, Whole


def _only(value: Any) -> AfterValidator:
    """Refuse every value but one, with a message that says so."""

    def check(given: Any) -> Any:
        if given != value:
            raise ValueError(f"must be {value!r} in this version; leave it out")
        return given

    return AfterValidator(check)


class ReservedSettings(BaseModel):
    """State that outlives the process, the probe, monitoring and metrics."""

    state: Annotated[str, _only("memory")] = "memory"
    monitor: Annotated[bool, BeforeValidator(reading.flag), _only(False)] = False
    check_interval: Annotated[SecondsOrNone, _only(0.0)] = 0.0
    metrics_port: Annotated[Whole, _only(0)] = 0
    probe_urls: Annotated[
        tuple[str, ...], BeforeValidator(reading.texts), _only(())
    ] = ()
    probe_timeout: Seconds = 10.0
    probe_on_critical: Literal["open", "halt", "ignore"] = "open"
    min_reporting: Share = 0.9
    provisional_checks: Whole = 3
