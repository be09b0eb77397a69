"""Hosts and firewalls: SiteGround, Imunify360, Wordfence, CleanTalk, Radware, Fastly,
CloudFront and Azure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy_cells.detection.rule import (
    Condition,
    Stage,
    any_of,
    header,
    json_value,
    landed,
    loads,
    refreshes,
    says,
    short,
    signature,
    tag,
    title,
)
from scrapy_cells.detection.shortlist import needs
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from scrapy_cells.detection.page import Page

_CLOUDFRONT = title("error: the request could not be satisfied")


def _heading(pattern: str) -> Condition:
    match = re.compile(pattern).match
    return lambda page: "text" if match(page.text) else ""


@needs("blocked")
def _refused_by_front_door(page: Page) -> str:
    refused = page.says("the request is blocked.", limit=400)
    known = "x-azure-ref" in page.headers or page.text.startswith("the request is")
    return "text" if refused and known else ""


RULES = (
    signature("siteground.header", Outcome.CAPTCHA, Stage.HEADER, header("sg-captcha")),
    signature(
        "siteground.address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        landed(r"/\.well-known/(?:sg)?captcha/"),
    ),
    signature(
        "siteground.refresh",
        Outcome.CAPTCHA,
        Stage.MARK,
        refreshes("/.well-known/sgcaptcha/", "/.well-known/captcha/"),
    ),
    signature(
        "imunify360.json",
        Outcome.BLOCKED,
        Stage.JSON,
        json_value("message", r"imunify360"),
    ),
    signature(
        "imunify360.form",
        Outcome.CAPTCHA,
        Stage.MARK,
        tag("form", "id", "wsidchk-form"),
    ),
    signature(
        "imunify360.waiting",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        title("one moment, please..."),
        any_of(short(120), says("request is being verified")),
    ),
    signature(
        "imunify360.refused",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        says("access denied by imunify360", "imunify360 bot-protection"),
    ),
    signature(
        "wordfence.refused",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        says("wordfence", limit=2500),
        says(
            "your access to this site has been limited",
            "your access to this service has been limited",
            "you have been blocked",
            "access to this site has been blocked",
            limit=2500,
        ),
    ),
    signature(
        "cleantalk.refused",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        says("cleantalk"),
        says("spamfirewall", "anti-crawler", "anti-flood", "blocked", "forbidden"),
        any_of(says("denied", "blocked", "forbidden", "redirected", "blacklist")),
    ),
    signature(
        "radware.address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        landed(r"^(?:validate|captcha)\.perfdrive\.com/"),
    ),
    signature(
        "radware.captcha",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        any_of(loads("captcha.perfdrive.com"), title("radware captcha page")),
    ),
    signature(
        "radware.title",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(),
        title("radware bot manager captcha", "radware page"),
    ),
    signature(
        "fastly.challenge",
        Outcome.CAPTCHA,
        Stage.MARK,
        loads("/_fs-ch-"),
        any_of(title("client challenge"), short(200)),
    ),
    signature(
        "fastly.title",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(300),
        title("client challenge"),
    ),
    signature(
        "cloudfront.refused",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        _CLOUDFRONT,
        says(
            "request blocked.",
            "block access from your country",
            "403 error",
        ),
    ),
    signature(
        "cloudfront.origin",
        Outcome.SERVER_ERROR,
        Stage.SENTENCE,
        short(),
        _CLOUDFRONT,
        _heading(r"50\d error"),
    ),
    signature(
        "azure.refused",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        _refused_by_front_door,
    ),
    signature(
        "azure.challenge",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(),
        title("azure waf"),
    ),
)
