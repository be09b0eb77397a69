"""Vercel: the header decides, whatever the body is."""

from __future__ import annotations

from scrapy_cells.detection.rule import (
    Stage,
    header,
    loads,
    short,
    signature,
    title,
)
from scrapy_cells.domain.outcome import Outcome

RULES = (
    signature(
        "vercel.challenge_header",
        Outcome.CAPTCHA,
        Stage.HEADER,
        header("x-vercel-mitigated", "challenge"),
    ),
    signature(
        "vercel.deny_header",
        Outcome.BLOCKED,
        Stage.HEADER,
        header("x-vercel-mitigated", "deny"),
    ),
    signature(
        "vercel.checkpoint_script",
        Outcome.CAPTCHA,
        Stage.MARK,
        loads("/.well-known/vercel/security/"),
    ),
    signature(
        "vercel.checkpoint_title",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(),
        title("vercel security checkpoint"),
    ),
)
