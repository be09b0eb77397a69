"""Amazon: its own captcha, the throttling page with the dogs, "continue shopping".

The comment on automated access also stands on Amazon's ordinary 404 page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_cells.detection.rule import (
    Condition,
    Stage,
    any_of,
    comment,
    landed,
    runs,
    says,
    short,
    signature,
    status,
    submits,
    title,
    unless,
)
from scrapy_cells.detection.shortlist import names, needing
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from scrapy_cells.detection.page import Page


def _body(words: str) -> Condition:
    wanted = words.encode()

    def test(page: Page) -> str:
        return "body" if page.is_html and wanted in page.head else ""

    return needing(test, names([words]))


RULES = (
    signature(
        "amazon.captcha_address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        landed(r"(?:^|\.)amazon\.[a-z.]+/errors(?:_page)?/validatecaptcha"),
    ),
    signature(
        # before the captcha: the button is a form of the same address
        "amazon.continue_shopping",
        Outcome.SOFT_BLOCK,
        Stage.MARK,
        says("click the button below to continue shopping", limit=600),
    ),
    signature(
        "amazon.captcha_form",
        Outcome.CAPTCHA,
        Stage.MARK,
        submits("/errors/validatecaptcha", "/errors_page/validatecaptcha"),
    ),
    signature(
        "amazon.captcha_script",
        Outcome.CAPTCHA,
        Stage.MARK,
        runs("opfcaptcha.amazon", r"ue_sn\s*=\s*[\"']opfcaptcha\.amazon"),
    ),
    signature(
        "amazon.throttled",
        Outcome.BLOCKED,
        Stage.MARK,
        short(),
        comment("to discuss automated access to amazon data"),
        unless(status(404, 410)),
        any_of(comment("ref=rm_5_sv"), _body("cs_503")),
        unless(_body("cs_404")),
    ),
    signature(
        "amazon.dogs",
        Outcome.BLOCKED,
        Stage.MARK,
        short(),
        _body("/dogsofamazon/ref=cs_503"),
    ),
    signature(
        "amazon.captcha_title",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(),
        title("amazon captcha", "robot check"),
    ),
    signature(
        "amazon.captcha_sentence",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        says("we just need to make sure you're not a robot"),
        says("type the characters", "enter the characters", "cookies"),
    ),
)
