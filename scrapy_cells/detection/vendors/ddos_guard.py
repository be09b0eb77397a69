"""DDoS-Guard: its server name is on good answers."""

from __future__ import annotations

from scrapy_cells.detection.rule import Stage, loads, short, signature, title
from scrapy_cells.domain.outcome import Outcome

RULES = (
    signature(
        "ddos_guard.script",
        Outcome.CAPTCHA,
        Stage.MARK,
        short(),
        loads("/.well-known/ddos-guard/js-challenge/", "check.ddos-guard.net/"),
    ),
    signature(
        "ddos_guard.title",
        Outcome.CAPTCHA,
        Stage.SENTENCE,
        short(),
        title("ddos-guard"),
    ),
)
