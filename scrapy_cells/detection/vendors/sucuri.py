"""Sucuri: its id and its server name are on good answers."""

from __future__ import annotations

from scrapy_cells.detection.rule import (
    Stage,
    any_of,
    header,
    runs,
    says,
    short,
    signature,
    title,
)
from scrapy_cells.domain.outcome import Outcome

RULES = (
    signature(
        "sucuri.block_header",
        Outcome.BLOCKED,
        Stage.HEADER,
        header("x-sucuri-block"),
    ),
    signature(
        "sucuri.redirect_script",
        Outcome.CAPTCHA,
        Stage.MARK,
        runs("sucuri_cloudproxy_js", r"sucuri_cloudproxy_js\s*="),
    ),
    signature(
        "sucuri.denied",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        short(),
        any_of(
            title("sucuri website firewall - access denied"),
            says("access denied - sucuri website firewall"),
        ),
    ),
    signature(
        "sucuri.redirect_title",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(200),
        title("you are being redirected..."),
        lambda page: "noscript" if "javascript is required" in page.unshown else "",
    ),
)
