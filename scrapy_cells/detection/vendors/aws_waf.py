"""AWS WAF: its challenge is a 202, which Scrapy takes for an answer.

The token cookie and the integration script are on good pages.
"""

from __future__ import annotations

from scrapy_cells.detection.rule import (
    Stage,
    any_of,
    header,
    loads,
    runs,
    short,
    signature,
    status,
    title,
)
from scrapy_cells.domain.outcome import Outcome

RULES = (
    signature(
        "aws_waf.challenge_header",
        Outcome.CAPTCHA,
        Stage.HEADER,
        header("x-amzn-waf-action", "challenge"),
        status(202),
    ),
    signature(
        "aws_waf.captcha_header",
        Outcome.CAPTCHA,
        Stage.HEADER,
        header("x-amzn-waf-action", "captcha"),
        status(405),
    ),
    signature(
        "aws_waf.script",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        any_of(
            runs("gokuprops", r"gokuprops\s*="),
            runs("awswafcookiedomainlist", r"awswafcookiedomainlist\s*="),
        ),
    ),
    signature(
        "aws_waf.verification",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        title("human verification"),
        loads(".awswaf.com/"),
    ),
)
