"""Single sites: LinkedIn, DuckDuckGo, Bing, Yandex, Federal Register, and CCBot."""

from __future__ import annotations

from scrapy_cells.detection.rule import (
    Stage,
    any_of,
    element,
    landed,
    loads,
    runs,
    says,
    short,
    signature,
    status,
    submits,
    tag,
    title,
)
from scrapy_cells.domain.outcome import Outcome

RULES = (
    signature(
        "linkedin.wall_address",
        Outcome.BLOCKED,
        Stage.ADDRESS,
        landed(r"(?:^|\.)linkedin\.com/(?:authwall|checkpoint/challenge)"),
    ),
    signature(
        "linkedin.wall_script",
        Outcome.BLOCKED,
        Stage.MARK,
        short(100),
        runs("/authwall?trk=", r"location\.href\s*=[^;\n]{0,80}/authwall\?trk="),
    ),
    signature(
        "linkedin.refused",
        Outcome.BLOCKED,
        Stage.STATUS,
        landed(r"(?:^|\.)linkedin\.com/"),
        status(999),
    ),
    signature(
        "duckduckgo.anomaly",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        any_of(
            element("class", "anomaly-modal__mask", "anomaly-modal__modal"),
            element("data-testid", "anomaly-modal"),
            submits("duckduckgo.com/anomaly.js"),
        ),
    ),
    signature(
        "duckduckgo.anomaly_script",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        loads("/anomaly.js?"),
    ),
    signature(
        "bing.captcha",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        any_of(
            element("class", "captcha_header"),
            element("id", "captcha_header"),
            submits("/challenge/verify"),
            loads("/challenge/verify"),
        ),
    ),
    signature(
        "federal_register.request_access",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(),
        any_of(
            title("federal register :: request access"),
            says("due to aggressive automated scraping of"),
        ),
    ),
    signature(
        "ccbot.refused",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        says("ccbot", limit=600),
        says(
            "not allowed",
            "not permitted",
            "not welcome",
            "does not allow",
            "do not allow",
            "denied",
            "blocked",
            "forbidden",
            "refused",
            limit=600,
        ),
    ),
    signature(
        "yandex.captcha_address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        landed(r"^[^/]*(?:yandex|ya)\.[a-z.]+/showcaptcha"),
    ),
    signature(
        "yandex.captcha",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        any_of(tag("form", "id", "checkbox-captcha-form"), submits("/checkcaptcha")),
    ),
)
