"""Rules, the stages they are asked in, and the conditions they are made of."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from scrapy_cells.detection.shortlist import (
    JSON,
    LANDED,
    headers,
    names,
    needing,
    needs_of,
    statuses,
    words,
)
from scrapy_cells.domain.outcome import Outcome, Verdict

if TYPE_CHECKING:
    from scrapy_cells.detection.page import Page

__all__ = ["Condition", "Rule", "Signature", "Stage"]


class Stage(IntEnum):
    """When a rule is asked: certain and cheap signals first, general ones last."""

    OWN = 0
    PROXY = 10
    HEADER = 20
    ADDRESS = 30
    JSON = 40
    TINY = 50
    MARK = 60
    SENTENCE = 70
    STATUS = 80
    SOFT = 90


class Rule(ABC):
    """Base of rules of your own.

    ::

        class SoldOutShell(Rule):
            name = "shop.empty_shell"
            outcome = Outcome.SOFT_BLOCK

            def match(self, page):
                return page.is_html and page.title == "shop" and not page.text

    :cvar name: by which it is reported and switched off; a built-in rule of the same
        name is replaced
    :cvar stage: rules of your own are asked first unless they say otherwise
    """

    name: str = ""
    vendor: str = ""
    outcome: Outcome = Outcome.BLOCKED
    stage: Stage = Stage.OWN

    @abstractmethod
    def match(self, page: Page) -> Verdict | Outcome | str | bool | None:
        """Say what *page* is.

        :return: ``None``, ``False`` or ``""`` for no opinion; ``True`` or the place
            where it was recognised for this rule's outcome; an outcome or a whole
            verdict for another one. :attr:`Outcome.OK` ends the search as well.
        """


#: Looks at a page; returns the place it recognised something at, or ``""``.
Condition = Callable[["Page"], str]


@dataclass(frozen=True, slots=True)
class Signature(Rule):
    """A built-in rule: all its conditions must hold.

    They are asked in order, cheap ones first; the first that saw more than the page as
    a whole names the place.
    """

    name: str
    outcome: Outcome
    stage: Stage
    conditions: tuple[Condition, ...] = ()
    vendor: str = ""

    def match(self, page: Page) -> str:
        place = ""
        for condition in self.conditions:
            found = condition(page)
            if not found:
                return ""
            if place in ("", "page"):
                place = found
        return place


_NO_VENDORS = frozenset({"generic", "proxy", "soft", "status"})


def signature(
    name: str, outcome: Outcome, stage: Stage, *conditions: Condition
) -> Signature:
    prefix = name.partition(".")[0]
    vendor = "" if prefix in _NO_VENDORS else prefix
    return Signature(name, outcome, stage, conditions, vendor)


def any_of(*conditions: Condition) -> Condition:
    def test(page: Page) -> str:
        for condition in conditions:
            place = condition(page)
            if place:
                return place
        return ""

    needs = [needs_of(condition) for condition in conditions]
    if None in needs:
        return test
    return needing(test, {word for each in needs for word in each or ()})


def unless(condition: Condition) -> Condition:
    return lambda page: "" if condition(page) else "page"


def header(name: str, *values: str) -> Condition:
    """*name* is there, with one of *values* if any are given."""

    def test(page: Page) -> str:
        value = page.headers.get(name)
        if value is None or (values and value.strip().lower() not in values):
            return ""
        return f"header {name}"

    return needing(test, headers([name]))


def header_has(name: str, *parts: str) -> Condition:
    def test(page: Page) -> str:
        value = page.header(name)
        return f"header {name}" if any(part in value for part in parts) else ""

    return needing(test, headers([name]))


def status(*codes: int) -> Condition:
    wanted = frozenset(codes)
    return needing(
        lambda page: f"status {page.status}" if page.status in wanted else "",
        statuses(codes),
    )


def landed(pattern: str) -> Condition:
    """The landed ``host/path?query`` (lower case) holds *pattern*."""
    search = re.compile(pattern).search

    def test(page: Page) -> str:
        return "address" if search(page.landed) else ""

    test.landed = pattern  # type: ignore[attr-defined]
    return needing(test, LANDED)


def json_keys(*keys: str) -> Condition:
    def test(page: Page) -> str:
        found = page.json
        return "json" if isinstance(found, dict) and found.keys() >= {*keys} else ""

    return needing(test, JSON)


def json_value(key: str, pattern: str) -> Condition:
    search = re.compile(pattern, re.IGNORECASE).search

    def test(page: Page) -> str:
        found = page.json
        value = found.get(key) if isinstance(found, dict) else None
        return "json" if value is not None and search(str(value)[:4096]) else ""

    return needing(test, JSON)


def body_is(pattern: str, *parts: str) -> Condition:
    """The whole visible body, at most 200 characters, matches *pattern*.

    :param parts: of which one stands in all that *pattern* matches
    """
    match = re.compile(pattern).fullmatch

    def test(page: Page) -> str:
        return "body" if len(page.text) <= 200 and match(page.text) else ""

    return needing(test, names(parts)) if parts else test


def title(*titles: str) -> Condition:
    wanted = frozenset(titles)
    return needing(lambda page: "title" if page.title in wanted else "", words(titles))


def title_has(*parts: str) -> Condition:
    def test(page: Page) -> str:
        return "title" if any(part in page.title for part in parts) else ""

    return needing(test, words(parts))


def runs(name: str, pattern: str = "") -> Condition:
    """An inline script executes *name* (in the form of *pattern*, if given)."""
    compiled = re.compile(pattern.encode()) if pattern else None
    return needing(
        lambda page: "script" if page.runs(name, compiled) else "", names([name])
    )


def loads(*parts: str) -> Condition:
    """A script or frame is loaded from an address with one of *names*."""

    def test(page: Page) -> str:
        for source in page.sources:
            if any(part in source for part in parts):
                return "src"
        return ""

    return needing(test, names(parts))


def submits(*parts: str) -> Condition:
    """A form is sent to an address with one of *names*."""

    def test(page: Page) -> str:
        for action in page.actions:
            if any(part in action for part in parts):
                return "action"
        return ""

    return needing(test, names(parts))


def refreshes(*parts: str) -> Condition:
    def test(page: Page) -> str:
        target = page.refresh
        return "refresh" if any(part in target for part in parts) else ""

    return needing(test, names(parts))


def element(attribute: str, *values: str) -> Condition:
    def test(page: Page) -> str:
        return attribute if any(page.has(attribute, each) for each in values) else ""

    return needing(test, names(values))


def tag(name: str, attribute: str, *parts: str) -> Condition:
    """A tag *name* has one of *parts* somewhere in *attribute*."""

    def test(page: Page) -> str:
        for each in page.tags.get(name, ()):
            value = each.get(attribute)
            if value and any(part in value for part in parts):
                return f"{name} {attribute}"
        return ""

    return needing(test, names(parts))


def says(*sentences: str, limit: int = 0) -> Condition:
    """A short text holds one of *sentences*; several conditions make it "and"."""

    def test(page: Page) -> str:
        if limit:
            return "text" if page.says(*sentences, limit=limit) else ""
        return "text" if page.says(*sentences) else ""

    return needing(test, words(sentences))


def comment(text: str) -> Condition:
    wanted = text.encode()

    def test(page: Page) -> str:
        return "comment" if any(wanted in each for each in page.comments) else ""

    return needing(test, words([text]))


def short(limit: int = 0) -> Condition:
    """Little is shown: *limit* characters, or what :attr:`Page.is_short` allows."""

    def test(page: Page) -> str:
        few = len(page.text) <= limit if limit else page.is_short
        return "page" if few else ""

    return test
