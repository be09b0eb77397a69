"""Kasada: a refusing status with its headers, or its object and ``ips.js`` together.

The same headers and ``p.js`` are on passed pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_cells.detection.rule import Stage, loads, runs, short, signature, status
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from scrapy_cells.detection.page import Page


def _any_header(page: Page) -> str:
    for name in page.headers:
        if name.startswith("x-kpsdk-"):
            return f"header {name}"
    return ""


RULES = (
    signature(
        "kasada.header",
        Outcome.CAPTCHA,
        Stage.HEADER,
        _any_header,
        status(403, 429),
    ),
    signature(
        "kasada.script",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        runs("kpsdk", r"kpsdk\s*=\s*\{"),
        loads("/ips.js"),
    ),
)
