"""F5: the "Request Rejected" page, often a 200, and the TSPD and Shape checks.

"Enable JavaScript" alone is on one good page in ten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_cells.detection.rule import (
    Stage,
    any_of,
    loads,
    runs,
    says,
    short,
    signature,
    title,
)
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from scrapy_cells.detection.page import Page


def _asks_for_javascript(page: Page) -> str:
    wanted = "please enable javascript to view the page content"
    if wanted in page.unshown:
        return "noscript"
    return "text" if page.says(wanted) else ""


RULES = (
    signature(
        "f5.tspd",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        any_of(loads("/tspd/"), runs("bobcmn")),
        any_of(_asks_for_javascript, says("what code is in the image")),
    ),
    signature(
        "f5.shape",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(200),
        any_of(
            runs("istlwashere", r"istlwashere\s*="),
            runs("_imp_apg_r_"),
            loads("_imp_apg_r_"),
        ),
    ),
    signature(
        "f5.rejected",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        any_of(
            title("request rejected"),
            says("the requested url was rejected. please consult with your admin"),
        ),
        says("support id"),
    ),
)
