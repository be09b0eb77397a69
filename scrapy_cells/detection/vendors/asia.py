"""Baidu, Alibaba's shops, Shopee and Weibo.

A captcha's words in a Shopee page are its translations, and ``recaptcha=1`` is only a
query key at Alibaba.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy_cells.detection.rule import (
    Stage,
    any_of,
    element,
    header,
    json_keys,
    json_value,
    landed,
    loads,
    runs,
    short,
    signature,
    title,
)
from scrapy_cells.detection.shortlist import needs
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from scrapy_cells.detection.page import Page

_PUNISH = "_____tmd_____/punish"
_REFUSED = re.compile(r"FAIL_SYS_USER_VALIDATE|RGV587_ERROR")


@needs("FAIL_SYS_USER_VALIDATE", "RGV587_ERROR")
def _refused_by_gateway(page: Page) -> str:
    found = page.json
    value = found.get("ret") if isinstance(found, dict) else None
    return "json" if value and _REFUSED.search(str(value)[:4096]) else ""


RULES = (
    signature(
        "baidu.address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        landed(r"^wappass\.baidu\.com/"),
    ),
    signature(
        "baidu.title",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(),
        title("百度安全验证"),
    ),
    signature(
        "alibaba.punish_header",
        Outcome.CAPTCHA,
        Stage.HEADER,
        header("bxpunish", "1"),
    ),
    signature(
        "alibaba.punish_address",
        Outcome.CAPTCHA,
        Stage.ADDRESS,
        landed(re.escape(_PUNISH)),
    ),
    signature(
        "alibaba.gateway",
        Outcome.CAPTCHA,
        Stage.JSON,
        any_of(
            _refused_by_gateway,
            json_value("url", _PUNISH),
            json_value("data", _PUNISH),
        ),
    ),
    signature(
        "alibaba.rgv587",
        Outcome.CAPTCHA,
        Stage.JSON,
        json_keys("rgv587_flag"),
    ),
    signature(
        "alibaba.punish",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        any_of(
            loads(_PUNISH, "sufei-punish"),
            runs(_PUNISH, r"[=:(,]\s*[\"'][^\"'\n]{0,300}_____tmd_____/punish"),
            runs("sufei-punish", r"[=:(,]\s*[\"'][^\"'\n]{0,300}sufei-punish"),
            runs("x5secdata", r"x5secdata\s*="),
            element("name", "x5secdata"),
        ),
    ),
    signature(
        "shopee.traffic_address",
        Outcome.SOFT_BLOCK,
        Stage.ADDRESS,
        landed(r"^[^/]*shopee\.[a-z.]+/verify/(?:traffic|captcha)"),
    ),
    signature(
        "weibo.visitor_address",
        Outcome.SOFT_BLOCK,
        Stage.ADDRESS,
        landed(r"^passport\.weibo\.(?:com|cn)/visitor/"),
    ),
    signature(
        "weibo.visitor",
        Outcome.SOFT_BLOCK,
        Stage.SENTENCE,
        short(),
        title("sina visitor system"),
    ),
)
