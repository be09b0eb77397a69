"""Google: the "sorry" page with any status, consent, and the page that holds no data.

Consent scripts also stand on served pages: only a short page is a wall.
"""

from __future__ import annotations

from scrapy_cells.detection.rule import (
    Stage,
    any_of,
    landed,
    loads,
    refreshes,
    says,
    short,
    signature,
    submits,
    tag,
    title,
)
from scrapy_cells.domain.outcome import Outcome

RULES = (
    signature(
        "google.sorry_address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        landed(r"(?:^|\.)(?:google|youtube)\.[a-z.]+/sorry(?:/|\?|$)"),
    ),
    signature(
        "google.consent_address",
        Outcome.SOFT_BLOCK,
        Stage.ADDRESS,
        landed(r"^consent\.(?:google|youtube)\."),
    ),
    signature(
        "google.enablejs_address",
        Outcome.SOFT_BLOCK,
        Stage.ADDRESS,
        landed(r"(?:^|\.)google\.[a-z.]+/httpservice/retry/enablejs"),
    ),
    signature(
        "google.captcha_form",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        tag("form", "id", "captcha-form"),
        any_of(
            loads("google.com/recaptcha"), says("unusual traffic"), submits("index")
        ),
    ),
    signature(
        "google.captcha_body",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        tag("body", "onload", "getelementbyid('captcha')"),
    ),
    signature(
        "google.enablejs",
        Outcome.SOFT_BLOCK,
        Stage.MARK,
        short(),
        refreshes("/httpservice/retry/enablejs"),
    ),
    signature(
        "google.consent",
        Outcome.SOFT_BLOCK,
        Stage.SENTENCE,
        short(),
        any_of(
            title("before you continue to google", "before you continue to youtube"),
            title("before you continue to google search", "before you continue"),
            says("before you continue to google", "before you continue to youtube"),
        ),
    ),
    signature(
        "google.unusual_traffic",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        says("our systems have detected unusual traffic from your computer network"),
    ),
    signature(
        "google.blank_video",
        Outcome.SOFT_BLOCK,
        Stage.SENTENCE,
        short(200),
        title("- youtube"),
    ),
)
