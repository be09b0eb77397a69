"""The same page for many keys, looked for without reading every page twice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy_cells.detection import RepeatedBody

if TYPE_CHECKING:
    from scrapy_cells.detection import Page

_TITLE = re.compile(rb"<title[^>]{0,200}>([^<]{1,300})", re.IGNORECASE)
_TITLE_WITHIN = 16 * 1024
"""Bytes of the head in which a title is looked for."""

_ALIKE = 0.01
"""Share by which the length of one page differs from itself (tokens, times, ads)."""


class Repeats:
    """Compares the text of pages that are about as long, and called the same."""

    def __init__(self) -> None:
        self._bodies = RepeatedBody()
        self._before: dict[str, tuple[int, bytes]] = {}

    def note(self, cell: str, page: Page) -> bool:
        """Note a good answer; tell whether too many keys got the same one."""
        key = page.request.meta.get("cell_key")
        if key is None or page.status != 200:
            return False
        body = page.response.body
        found = _TITLE.search(body, 0, _TITLE_WITHIN)
        length, title = len(body), found[1] if found else b""
        before, called = self._before.get(cell, (0, b""))
        self._before[cell] = length, title
        if title != called or abs(length - before) > _ALIKE * before:
            self._bodies.forget(cell)
            return False
        return self._bodies.note(cell, key, page.fingerprint)
