"""The same page for many keys, looked for without reading every page twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_cells.detection import RepeatedBody

if TYPE_CHECKING:
    from scrapy_cells.detection import Page

_ALIKE = 0.01
"""Share by which the length of one page differs from itself (tokens, times, ads)."""


class Repeats:
    """Compares title and text of pages whose neighbours were about as long."""

    def __init__(self) -> None:
        self._bodies = RepeatedBody()
        self._lengths: dict[str, int] = {}

    def note(self, cell: str, page: Page) -> bool:
        """Note a good answer; tell whether too many keys got the same one."""
        key = page.request.meta.get("cell_key")
        if key is None or page.status != 200:
            return False
        length = len(page.response.body)
        before = self._lengths.get(cell, 0)
        self._lengths[cell] = length
        if abs(length - before) > _ALIKE * before:
            self._bodies.forget(cell)
            return False
        return self._bodies.note(cell, key, page.fingerprint)
