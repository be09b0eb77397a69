"""PerimeterX (HUMAN): press and hold, with or without a refusing status.

The sensor (``_pxAppId``, ``_px3``) and even the whole hidden captcha, with its
placeholder ``#px-captcha``, stand on served pages.
"""

from __future__ import annotations

from scrapy_cells.detection.rule import (
    Stage,
    any_of,
    element,
    header,
    json_keys,
    json_value,
    landed,
    loads,
    runs,
    says,
    short,
    signature,
    tag,
    title,
)
from scrapy_cells.domain.outcome import Outcome

RULES = (
    signature(
        "perimeterx.blocked_header",
        Outcome.CAPTCHA,
        Stage.HEADER,
        header("x-px-blocked"),
    ),
    signature(
        "perimeterx.blocked_address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        landed(r"(?:^|\.)walmart\.[a-z.]+/blocked(?:[?/]|$)"),
    ),
    signature(
        "perimeterx.json",
        Outcome.CAPTCHA,
        Stage.JSON,
        any_of(
            json_keys("appId", "jsClientSrc"),
            json_keys("appId", "blockScript"),
            json_keys("captchaRelativeURL"),
            json_value("redirectUrl", r"^/blocked\?url="),
        ),
    ),
    signature(
        "perimeterx.captcha_meta",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        tag("meta", "content", "px-captcha"),
    ),
    signature(
        "perimeterx.captcha_source",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        any_of(
            loads("captcha.px-cloud.net", "captcha.px-cdn.net", "/captcha.js?a=c"),
            runs("captcha.js?a=c", r"[=+(]\s*[\"'][^\"'\n]{0,200}captcha\.js\?a=c"),
        ),
    ),
    signature(
        "perimeterx.hold_box",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        element("id", "px-captcha"),
        element("class", "re-captcha", "px-captcha-container"),
    ),
    signature(
        "perimeterx.title",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(),
        title(
            "access to this page has been denied",
            "access to this page has been denied.",
            "robot or human?",
        ),
    ),
    signature(
        "perimeterx.sentence",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        says(
            "press & hold to confirm you are",
            "press and hold to confirm you are",
            "activate and hold the button to confirm that you",
            "denied because we believe you are using automation tools",
        ),
    ),
)
