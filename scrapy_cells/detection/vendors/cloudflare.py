"""Cloudflare: challenges of all ages, refusals, its rate limit and its 5xx pages.

``cf-ray``, ``__cf_bm``, Turnstile widgets, the ``jsd`` beacon and the e-mail protection
are on good pages and say nothing. Titles are often localised or the site's own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy_cells.detection.rule import (
    Condition,
    Stage,
    any_of,
    body_is,
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
    submits,
    title,
    title_has,
)
from scrapy_cells.detection.shortlist import needs
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from scrapy_cells.detection.page import Page

_REFUSALS = r"(?:100[5-9]|101[0-3]|1020|1106)"
_ORIGIN = re.compile(r"\| 5\d\d: ")
_TK = r"__cf_chl_(?:\w{1,12}_)?tk="


@needs("cf-error-details", "cloudflare")
def _error_page(page: Page) -> str:
    if page.title.endswith("used cloudflare to restrict access"):
        return "title"
    found = page.has("id", "cf-error-details") or page.has("class", "cf-error-details")
    return "id" if found else ""


@needs("/orchestrate/")
def _loads_orchestrator(page: Page) -> str:
    for source in page.sources:
        if "/cdn-cgi/challenge-platform/h/" in source and "/orchestrate/" in source:
            return "src"
    return ""


def _origin_trouble(page: Page) -> str:
    return "title" if _ORIGIN.search(page.title) else ""


def _code(pattern: str) -> Condition:
    search = re.compile(rf"\berror (?:code:? )?{pattern}\b").search
    return lambda page: "text" if search(page.text) else ""


RULES = (
    signature(
        "cloudflare.mitigated",
        Outcome.CAPTCHA,
        Stage.HEADER,
        header("cf-mitigated", "challenge"),
    ),
    signature(
        "cloudflare.challenge_address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        landed(r"/cdn-cgi/l/chk_(?:jschl|captcha)"),
    ),
    signature(
        "cloudflare.challenge_token",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        short(),
        landed(r"[?&]" + _TK),
    ),
    signature(
        "cloudflare.json_rate",
        Outcome.RATE_LIMITED,
        Stage.JSON,
        json_keys("cloudflare_error"),
        json_value("error_code", r"^1015$"),
    ),
    signature(
        "cloudflare.json_refused",
        Outcome.BLOCKED,
        Stage.JSON,
        json_keys("cloudflare_error"),
        json_value("error_code", rf"^{_REFUSALS}$"),
    ),
    signature(
        "cloudflare.tiny_rate",
        Outcome.RATE_LIMITED,
        Stage.TINY,
        body_is(r"error code: 1015", "error"),
    ),
    signature(
        "cloudflare.tiny_refused",
        Outcome.BLOCKED,
        Stage.TINY,
        body_is(rf"error code: {_REFUSALS}", "error"),
    ),
    signature(
        "cloudflare.tiny_origin",
        Outcome.SERVER_ERROR,
        Stage.TINY,
        body_is(r"error code: (?:5\d\d|1000|1001|1016|1033)", "error"),
    ),
    signature(
        "cloudflare.challenge_script",
        Outcome.CAPTCHA,
        Stage.MARK,
        runs("_cf_chl_opt", r"_cf_chl_opt\s*(?:=[^=]|\.\w{1,30}\s*=[^=])"),
    ),
    signature(
        "cloudflare.orchestrate",
        Outcome.CAPTCHA,
        Stage.MARK,
        any_of(
            runs(
                "/orchestrate/",
                r"src\s*=\s*[\"']/cdn-cgi/challenge-platform/h/\w{1,4}/orchestrate/",
            ),
            _loads_orchestrator,
        ),
    ),
    signature(
        "cloudflare.challenge_form",
        Outcome.CAPTCHA,
        Stage.MARK,
        submits("__cf_chl_", "/cdn-cgi/l/chk_"),
    ),
    signature(
        "cloudflare.challenge_element",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        any_of(
            element(
                "id",
                "challenge-error-text",
                "challenge-error-title",
                "cf-please-wait",
                "cf-challenge-running",
            ),
            element("name", "jschl_vc", "jschl_answer", "cf_captcha_kind"),
            element("class", "cf-captcha-container", "cf-browser-verification"),
        ),
    ),
    signature(
        "cloudflare.old_challenge_script",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        loads("/cdn-cgi/scripts/cf.challenge.js"),
    ),
    signature(
        "cloudflare.origin_page",
        Outcome.SERVER_ERROR,
        Stage.MARK,
        short(),
        _error_page,
        any_of(_origin_trouble, _code(r"(?:5[23]\d|1000|1001|1016|1033)")),
    ),
    signature(
        "cloudflare.rate_page",
        Outcome.RATE_LIMITED,
        Stage.MARK,
        says("you are being rate limited", "has banned you temporarily", "error 1015"),
        _error_page,
    ),
    signature(
        "cloudflare.refused_page",
        Outcome.BLOCKED,
        Stage.MARK,
        short(),
        _error_page,
        any_of(
            says("sorry, you have been blocked", "you are unable to access"),
            _code(_REFUSALS),
            title_has("used cloudflare to restrict access"),
        ),
    ),
    signature(
        "cloudflare.waiting_title",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(),
        title("just a moment...", "please wait... | cloudflare"),
    ),
    signature(
        "cloudflare.attention_title",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        short(),
        title("attention required! | cloudflare"),
    ),
    signature(
        "cloudflare.checking_sentence",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        says(
            "checking your browser before accessing",
            "checking if the site connection is secure",
            "needs to review the security of your connection before proceeding",
            "verifying you are human. this may take a few seconds",
        ),
        says("cloudflare", "ray id"),
    ),
)
