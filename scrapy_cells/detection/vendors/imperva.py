"""Imperva (Incapsula), and Distil, which it bought.

The loader script ``/_Incapsula_Resource?SWJIYLWA=`` is on good pages, also tiny ones:
only a frame of it, or the loader alone on an empty page, is a wall.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy_cells.detection.rule import (
    Condition,
    Stage,
    any_of,
    element,
    landed,
    loads,
    refreshes,
    runs,
    says,
    short,
    signature,
    submits,
    tag,
    title,
)
from scrapy_cells.detection.shortlist import names, needing
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from scrapy_cells.detection.page import Page

_STUB_BYTES = 1500


def _frame(pattern: str) -> Condition:
    search = re.compile(pattern).search

    def test(page: Page) -> str:
        for frame in page.tags.get("iframe", ()):
            source = frame.get("src")
            if "_incapsula_resource" in source:
                return "iframe src" if search(source) else ""
        return ""

    return needing(test, names(["_incapsula_resource"]))


def _loader_alone(page: Page) -> str:
    if len(page.head) > _STUB_BYTES or page.text or page.title:
        return ""
    low = page.head.lower()
    fields = b"<form" in low or b"<input" in low or b"<frame" in low
    return "src" if low.count(b"<script") == 1 and not fields else ""


RULES = (
    signature(
        "imperva.frame_captcha",
        Outcome.CAPTCHA,
        Stage.MARK,
        _frame(r"[?&]edet=12(?:&|$)"),
    ),
    signature(
        "imperva.frame",
        Outcome.BLOCKED,
        Stage.MARK,
        _frame(r"[?&](?:swudnsai|cwudnsai)="),
    ),
    signature(
        "imperva.loader_alone",
        Outcome.CAPTCHA,
        Stage.MARK,
        loads("_incapsula_resource?"),
        _loader_alone,
    ),
    signature(
        "imperva.interruption",
        Outcome.CAPTCHA,
        Stage.MARK,
        any_of(short(), title("pardon our interruption")),
        any_of(
            runs("reeseskipexpirationcheck"),
            runs("onprotectioninitialized", r"onprotectioninitialized\s*[=(]"),
            element("id", "interstitial-inprogress"),
            element("class", "interstitial-inprogress"),
            element("name", "x-spa-interstitial"),
        ),
    ),
    signature(
        "imperva.incident",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        says("request unsuccessful. incapsula incident id"),
    ),
    signature(
        "imperva.interruption_title",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(),
        title("pardon our interruption", "pardon our interruption..."),
    ),
    signature(
        "distil.captcha_address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        landed(r"/distil_r_(?:captcha|blocked|drop)"),
    ),
    signature(
        "distil.captcha",
        Outcome.CAPTCHA,
        Stage.MARK,
        any_of(
            submits("/distil_r_captcha"),
            tag("form", "id", "distilcaptchaform"),
            refreshes("/distil_r_"),
            loads("/distil_r_captcha"),
        ),
    ),
    signature(
        "distil.sentence",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        says("pardon our interruption"),
        says("made us think you were a bot", "made us think you might be a bot"),
    ),
)
