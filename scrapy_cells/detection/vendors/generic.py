"""Gates without a vendor: stock pages, home-made captchas, words that say it all.

Only texts of a few hundred characters count here, and no page of a login or contact
form: those carry captchas for their own sake.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy_cells.detection.rule import (
    Stage,
    any_of,
    body_is,
    json_keys,
    json_value,
    says,
    short,
    signature,
    title,
    title_has,
)
from scrapy_cells.detection.shortlist import needs
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from scrapy_cells.detection.page import Page

_GATE_BYTES = 8 * 1024
_MAX_GATE_FIELDS = 1
_FIELD = re.compile(rb"<(?:input|textarea|select)\b([^<>]{0,600})")
_UNTYPED = re.compile(rb"type\s*=\s*[\"']?\s*(?:hidden|submit|button|image|reset)")
_PICTURE = re.compile(
    rb"<img\b[^<>]{0,200}\bsrc\s*=\s*[\"']?[^\"'<>]{0,200}"
    rb"(?:captcha|challenge|verifycode|securimage)"
)
_SERVER = r"(?: (?:nginx|openresty|apache|cloudflare|microsoft-azure)[\w/.() -]{0,60})?"


def _fields(page: Page) -> list[bytes]:
    found = _FIELD.findall(page.head.lower())
    return [field for field in found if not _UNTYPED.search(field)]


@needs("<input", "<textarea", "<select")
def _home_made_gate(page: Page) -> str:
    """A picture to read, one field to fill, nothing else to do."""
    if not page.is_html or len(page.head) > _GATE_BYTES or len(page.text) > 600:
        return ""
    pictured = _PICTURE.search(page.head.lower())
    fields = _fields(page)
    return "form" if pictured and len(fields) == _MAX_GATE_FIELDS else ""


def _no_other_form(page: Page) -> str:
    """Whether the page has at most the one field of a check."""
    if len(page.head) > 256 * 1024 or not page.is_html:
        return "page"
    return "page" if len(_fields(page)) <= _MAX_GATE_FIELDS else ""


RULES = (
    signature(
        "generic.json_rate",
        Outcome.RATE_LIMITED,
        Stage.JSON,
        any_of(
            json_value("message", r"^(?:you are being rate limited|rate limit exceed)"),
            json_value("message", r"^too many requests\W*$"),
            json_value("error", r"^(?:too many requests|rate limit exceeded)\W*$"),
            json_value("code", r"^429$"),
        ),
        any_of(
            json_keys("retry_after"),
            lambda page: "json" if len(page.head) < 300 else "",
        ),
    ),
    signature(
        "generic.tiny_rate",
        Outcome.RATE_LIMITED,
        Stage.TINY,
        body_is(
            r"(?:429 |error 429:? )?too many requests\W*"
            + _SERVER
            + r"|rate (?:limit )?exceeded\W*|you are being rate limited\W*",
            "requests",
            "rate",
        ),
    ),
    signature(
        "generic.tiny_refused",
        Outcome.BLOCKED,
        Stage.TINY,
        body_is(
            r"(?:403 |error 403:? )?forbidden\W*"
            + _SERVER
            + r"|access (?:is )?denied\W*|(?:request )?blocked\W*",
            "forbidden",
            "denied",
            "blocked",
        ),
    ),
    signature(
        "generic.tiny_trouble",
        Outcome.SERVER_ERROR,
        Stage.TINY,
        body_is(
            r"(?:50[0234] )?(?:bad gateway|gateway time-?out|internal server error"
            r"|service (?:temporarily )?unavailable)\W*" + _SERVER,
            "gateway",
            "error",
            "unavailable",
        ),
    ),
    signature(
        "generic.ddos_gate",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(600),
        title_has("anti-ddos", "ddos protection", "ddos gateway", "ddos filter"),
        _no_other_form,
    ),
    signature(
        "generic.ddos_form",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        title_has("ddos"),
        short(600),
        lambda page: "form" if b"<form" in page.head.lower() else "",
        _no_other_form,
    ),
    signature(
        "generic.picture_gate",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        _home_made_gate,
    ),
    signature(
        "generic.captcha_title",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(400),
        title(
            "are you a robot?",
            "are you human?",
            "are you not a robot?",
            "bot verification",
            "captcha",
            "checking your browser",
            "checking your browser...",
            "human verification",
            "robot check",
            "security check",
            "security verification",
            "verify you are human",
        ),
        _no_other_form,
    ),
    signature(
        "generic.rate_title",
        Outcome.RATE_LIMITED,
        Stage.SENTENCE,
        short(600),
        title("429 too many requests", "too many requests", "rate limit exceeded"),
    ),
    signature(
        "generic.refused_title",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        short(400),
        title(
            "403 forbidden",
            "403 - forbidden",
            "access denied",
            "access forbidden",
            "attention required!",
            "blocked",
            "forbidden",
            "ip blocked",
            "request blocked",
            "you have been blocked",
        ),
    ),
    signature(
        "generic.refused_sentence",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        says(
            "you have been blocked",
            "you've been blocked",
            "your ip has been blocked",
            "your ip address has been blocked",
            "your ip has been banned",
            "your ip address has been banned",
            "your request has been blocked",
            "we have detected automated",
            "we have detected unusual activity from your",
            "access from automated",
            limit=400,
        ),
        _no_other_form,
    ),
    signature(
        "generic.rate_sentence",
        Outcome.RATE_LIMITED,
        Stage.SENTENCE,
        says(
            "too many requests from your",
            "you have sent too many requests",
            "you have exceeded the rate limit",
            "you are being rate limited",
            limit=300,
        ),
    ),
    signature(
        "generic.captcha_sentence",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        says(
            "checking your browser before accessing",
            "complete the security check to access",
            "complete the captcha to continue",
            "confirm you are human",
            "confirm that you are human",
            "confirm you are not a robot",
            "prove you are human",
            "prove that you are human",
            "unusual traffic from your computer network",
            "unusual traffic from your network",
            "verify that you are a human",
            "verify that you are human",
            "verify that you're not a robot",
            "verify you are a human",
            "verify you are human",
            "verify you are not a robot",
            "verifying you are human",
            limit=400,
        ),
        _no_other_form,
    ),
)
