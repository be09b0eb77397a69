"""Errors that users may meet.

::

    CellsError
    ├── CellsConfigError (also ValueError)   a setting is wrong: raised before the crawl
    ├── CellBlocked (also IgnoreRequest)     the answer was a block page
    └── CellUnavailable (also IgnoreRequest) the cell could not send the request
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy.http import Response

    from scrapy_cells.domain.outcome import Verdict


class CellsError(Exception):
    """Root of all errors of this package."""


class CellsConfigError(CellsError, ValueError):
    """The settings cannot work; lists every problem found, not just the first.

    :param problems: one sentence each, naming the setting and what is allowed
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  - {problem}" for problem in self.problems)
        super().__init__(f"scrapy-cells cannot start this crawl:\n{lines}")


class CellBlocked(CellsError, IgnoreRequest):
    """The answer was not the page that was asked for, and retries are used up.

    :param response: the answer, for an errback that wants to look at it
    :param verdict: what it was taken for: outcome, vendor, rule and place
    """

    def __init__(self, response: Response, verdict: Verdict) -> None:
        self.response = response
        self.verdict = verdict
        vendor = f" by {verdict.vendor}" if verdict.vendor else ""
        super().__init__(
            f"{response.url} answered {response.status}: {verdict.outcome}{vendor}"
            f" (rule {verdict.rule} on {verdict.place})"
        )


class CellUnavailable(CellsError, IgnoreRequest):
    """The cell could not send the request, and it was not worth waiting.

    :param cell: id of the cell
    :param reason: why, in words
    """

    def __init__(self, cell: str, reason: str) -> None:
        self.cell = cell
        self.reason = reason
        super().__init__(f"cell {cell} is unavailable: {reason}")
