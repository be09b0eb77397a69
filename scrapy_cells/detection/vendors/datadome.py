"""DataDome: its object ``dd`` with a host under captcha-delivery.com.

``x-datadome``, the cookie and ``js.datadome.co/tags.js`` are on good pages. In the
object, ``t`` = ``bv`` is a ban without a captcha to pass.
"""

from __future__ import annotations

from scrapy_cells.detection.rule import (
    Stage,
    any_of,
    header,
    json_value,
    landed,
    loads,
    runs,
    says,
    signature,
    status,
)
from scrapy_cells.domain.outcome import Outcome

_REFUSED = status(401, 403, 405, 429)
_HOST = r"(?:^|[/.])captcha-delivery\.com"

RULES = (
    signature(
        "datadome.address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        landed(r"(?:^|\.)captcha-delivery\.com/"),
    ),
    signature(
        "datadome.json_ban",
        Outcome.BLOCKED,
        Stage.JSON,
        any_of(
            json_value("url", _HOST + r".{0,2000}[?&]t=bv"),
            json_value("captchaUrl", _HOST + r".{0,2000}[?&]t=bv"),
        ),
    ),
    signature(
        "datadome.json",
        Outcome.CAPTCHA,
        Stage.JSON,
        any_of(json_value("url", _HOST), json_value("captchaUrl", _HOST)),
    ),
    signature(
        "datadome.ban",
        Outcome.BLOCKED,
        Stage.MARK,
        runs("captcha-delivery.com", r"\bdd\s*=\s*\{[^{}]{0,2000}[\"']t[\"']:[\"']bv"),
    ),
    signature(
        "datadome.object",
        Outcome.CAPTCHA,
        Stage.MARK,
        runs("captcha-delivery.com", r"\bdd\s*=\s*\{"),
    ),
    signature(
        "datadome.frame",
        Outcome.CAPTCHA,
        Stage.MARK,
        loads(".captcha-delivery.com/", "//captcha-delivery.com/"),
    ),
    signature(
        # where the body shows the object, that tells a ban from a captcha
        "datadome.header",
        Outcome.CAPTCHA,
        Stage.HEADER,
        any_of(header("x-dd-b"), header("x-datadome-cid")),
        _REFUSED,
        lambda page: "" if b"captcha-delivery.com" in page.head else "page",
    ),
    signature(
        "datadome.sentence",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        says("please enable js and disable any ad blocker", limit=200),
    ),
)
