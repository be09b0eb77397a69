"""eBay: checks of its own; a Radware sensor is on its ordinary pages."""

from __future__ import annotations

from scrapy_cells.detection.rule import (
    Stage,
    any_of,
    landed,
    runs,
    says,
    short,
    signature,
    submits,
    title,
)
from scrapy_cells.domain.outcome import Outcome

RULES = (
    signature(
        "ebay.check_address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        landed(r"(?:^|\.)ebay\.[a-z.]+/splashui/(?:challenge|captcha)"),
    ),
    signature(
        "ebay.check_form",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        submits("/splashui/challenge", "/splashui/captcha"),
    ),
    signature(
        "ebay.check_script",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        runs("challengeget", r"pagename[\"']?\s*[:=]\s*[\"']challengeget"),
    ),
    signature(
        "ebay.checking",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        says("checking your browser before you access ebay"),
    ),
    signature(
        "ebay.security_measure",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(),
        any_of(title("security measure"), title("security measure | ebay")),
    ),
)
