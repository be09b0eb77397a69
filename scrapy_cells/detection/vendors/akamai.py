"""Akamai: refusals with a reference number, the interstitial, the behavioural check.

Cookies (``_abck``, ``bm_sz``), sensor scripts and ``Server: AkamaiGHost`` are on good
pages; ``bm-verify=`` in an ordinary link is one that somebody copied.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy_cells.detection.rule import (
    Stage,
    any_of,
    element,
    header_has,
    json_keys,
    landed,
    loads,
    refreshes,
    runs,
    says,
    short,
    signature,
    status,
    title,
)
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from scrapy_cells.detection.page import Page

_REFERENCE = re.compile(r"reference #\d{1,3}\.[0-9a-f]")


def _reference(page: Page) -> str:
    return "text" if page.is_short and _REFERENCE.search(page.text) else ""


RULES = (
    signature(
        "akamai.verify_address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        short(),
        landed(r"[?&]bm-verify="),
    ),
    signature(
        "akamai.json_challenge",
        Outcome.CAPTCHA,
        Stage.JSON,
        json_keys("sec-cp-challenge"),
    ),
    signature(
        "akamai.verify_refresh",
        Outcome.CAPTCHA,
        Stage.MARK,
        refreshes("bm-verify="),
    ),
    signature(
        "akamai.interstitial_script",
        Outcome.CAPTCHA,
        Stage.MARK,
        any_of(
            runs(
                "triggerinterstitialchallenge",
                r"triggerinterstitialchallenge\s*(?:\(|=)",
            ),
            runs(
                "/_sec/verify",
                r"open\(\s*[\"']post[\"']\s*,\s*[\"']/_sec/verify\?provider=interst",
            ),
        ),
    ),
    signature(
        "akamai.behavioural",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        any_of(
            element("id", "sec-if-cpt-container", "sec-cpt-if"),
            element("class", "scf-akamai-protected-by"),
            loads("/_sec/cp_challenge/"),
        ),
    ),
    signature(
        "akamai.access_denied",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        title("access denied"),
        any_of(_reference, says("errors.edgesuite.net")),
    ),
    signature(
        "akamai.error_link",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        says("https://errors.edgesuite.net/", limit=600),
        _reference,
    ),
    signature(
        "akamai.denied_status",
        Outcome.BLOCKED,
        Stage.STATUS,
        status(403),
        any_of(
            header_has("server", "akamaighost", "akamainetstorage"),
            header_has("x-cache", "tcp_denied"),
        ),
    ),
)
