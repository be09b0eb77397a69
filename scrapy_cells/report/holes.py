"""Holes: the keys that a run did not check, each with its reason."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from scrapy.exceptions import IgnoreRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request

LAST_OUTCOME = "_cells_outcome"
"""Meta key: what the last try came to."""

_NOTED = "_cells_hole"


@dataclass(frozen=True, slots=True)
class Hole:
    """A key that was not checked.

    :param reason: ``deferred``, ``retry_budget``, ``dont_retry``, ``not_idempotent``,
        ``ignored``, an outcome (``captcha``...), or the close reason of the crawl
    :param outcome: the last outcome, ``""`` if it never came to one
    """

    key: str
    cell: str
    url: str
    reason: str
    outcome: str = ""


def read_holes(path: str | Path) -> Iterator[Hole]:
    """Read what a run wrote to ``CELLS_HOLES``, for a later run to start with.

    :raises ValueError: naming the line that is none
    """
    with Path(path).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield Hole(**json.loads(line))
            except (TypeError, ValueError) as error:
                raise ValueError(f"{path}, line {number}: no hole: {error}") from error


class HoleBook:
    """Counts holes, and writes them as JSON lines.

    :param path: where to; ``""`` only counts
    """

    def __init__(self, path: str = "") -> None:
        self._path = path
        self._file: TextIO | None = None
        self.by_reason: Counter[str] = Counter()
        self.by_cell: Counter[str] = Counter()

    def given_up(
        self, request: Request, cell: str, reason: str, outcome: str = ""
    ) -> None:
        """Note a request that is not tried again."""
        if request.meta.get(_NOTED):
            return
        request.meta[_NOTED] = True
        hole = Hole(
            str(request.meta.get("cell_key", request.url)),
            cell,
            request.url,
            reason,
            outcome or str(request.meta.get(LAST_OUTCOME, "")),
        )
        self.by_reason[reason] += 1
        self.by_cell[cell] += 1
        if self._path:
            if self._file is None:
                self._file = self._open()
            self._file.write(json.dumps(asdict(hole), ensure_ascii=False) + "\n")

    def dropped(self, request: Request, exception: Exception) -> None:
        """Note a request of a key that a middleware dropped."""
        if isinstance(exception, IgnoreRequest) and "cell_key" in request.meta:
            self.given_up(request, str(request.meta.get("cell", "")), "ignored")

    def close(self) -> None:
        """Write out; a run without a hole leaves an empty file, not an old one."""
        if self._path and self._file is None:
            self._file = self._open()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> TextIO:
        path = Path(self._path)
        path.parent.mkdir(parents=True, exist_ok=True)
        # what is no character becomes an escape, which JSON reads back
        return path.open("w", encoding="utf-8", errors="backslashreplace")
