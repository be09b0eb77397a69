"""Reddit: its rate limit, its refusals and its checks, the latter with status 200."""

from __future__ import annotations

from scrapy_cells.detection.rule import (
    Stage,
    any_of,
    json_value,
    landed,
    says,
    short,
    signature,
    title,
)
from scrapy_cells.domain.outcome import Outcome

RULES = (
    signature(
        "reddit.challenge_address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        short(),
        landed(r"(?:^|\.)reddit\.com/.*[?&](?:js_challenge|jsc_token|captcha)="),
    ),
    signature(
        "reddit.json_rate",
        Outcome.RATE_LIMITED,
        Stage.JSON,
        json_value("error", r"^429$"),
        json_value("message", r"^too many requests"),
    ),
    signature(
        "reddit.humanity",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(),
        any_of(
            title("reddit - prove your humanity"),
            title("reddit - please wait for verification"),
            title("please wait for verification"),
            says("please wait for verification", limit=300),
        ),
    ),
    signature(
        "reddit.humanity_sentence",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        says("prove your humanity"),
        says("reddit", "committed to safety and security"),
    ),
    signature(
        "reddit.refused",
        Outcome.BLOCKED,
        Stage.SENTENCE,
        says(
            "you've been blocked by network security",
            "you have been blocked by network security",
            "your request has been blocked due to a network policy",
        ),
    ),
    signature(
        "reddit.slow_down",
        Outcome.RATE_LIMITED,
        Stage.SENTENCE,
        says("whoa there, pardner!"),
        says("too many requests", "wait", "bot"),
    ),
)
