"""Anubis: a proof of work in front of small sites; the title may be the site's own."""

from __future__ import annotations

from scrapy_cells.detection.rule import (
    Stage,
    any_of,
    landed,
    loads,
    says,
    short,
    signature,
    tag,
    title,
)
from scrapy_cells.domain.outcome import Outcome

RULES = (
    signature(
        "anubis.address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        landed(r"^[^/]*/\.within\.website(?:[/?]|$)"),
    ),
    signature(
        "anubis.script",
        Outcome.CAPTCHA,
        Stage.MARK,
        any_of(
            tag("script", "id", "anubis_challenge"),
            loads("/.within.website/x/cmd/anubis/"),
        ),
    ),
    signature(
        "anubis.title",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(),
        title("making sure you're not a bot!", "making sure you're not a bot"),
    ),
    signature(
        "anubis.denied",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        title("oh noes!"),
        says("access denied", "error code"),
    ),
)
