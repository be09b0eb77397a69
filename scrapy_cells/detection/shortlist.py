"""Which rules a page can match at all, told from the words that stand in it.

Most answers are good and most rules are about words that do not stand in them, so
rules are first picked by what each needs. A needed word is looked for in the
raw bytes, in lower case and without regard to where it stands; the rule itself then
looks only where it acts.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from scrapy_cells.detection.page import Page
    from scrapy_cells.detection.rule import Rule

_LARGE = 16 * 1024
"""Bytes from which asking every rule costs less than looking for every word."""

_PART = 4
"""Characters that the words of a group share at least."""

_LONGEST_PART = 12

_WORD = re.compile(r"[a-z0-9_]+")
_FOREIGN = b"\0foreign"
_JSON = b"\0json"
_LANDED = b"\0landed"
_UNUSUAL = b"\0unusual"
_EMPTY = b"\0empty"
_REDIRECTED = b"\0redirected"

_Condition = TypeVar("_Condition", bound="Callable[[Page], str]")
Needs = frozenset[bytes]


def needing(condition: _Condition, needs: Iterable[bytes]) -> _Condition:
    """Say of a condition that it holds only where one of *needs* stands."""
    condition.needs = frozenset(needs)  # type: ignore[attr-defined]
    return condition


def needs_of(condition: object) -> Needs | None:
    """Return what a condition needs, ``None`` if that cannot be told."""
    needs: Needs | None = getattr(condition, "needs", None)
    return needs


def words(texts: Iterable[str]) -> set[bytes]:
    """Return the longest word of each text: it stands in the raw page in one piece."""
    found = set()
    for text in texts:
        longest = max(_WORD.findall(text.lower()), key=len, default="")
        found.add(longest.encode() if len(longest) > 2 else _FOREIGN)
    return found


def names(texts: Iterable[str]) -> set[bytes]:
    """Return names that stand in the raw page as they are."""
    return {text.lower().encode() for text in texts}


def met_only(where: Needs) -> Callable[[_Condition], _Condition]:
    """Say of a function that it holds only for such answers."""
    return lambda condition: needing(condition, where)


def needs(*texts: str) -> Callable[[_Condition], _Condition]:
    """Say the same of a function: one of *texts* stands in the page or around it."""
    return lambda condition: needing(condition, names(texts))


def headers(keys: Iterable[str]) -> set[bytes]:
    return {b"\0header %s" % name.lower().encode() for name in keys}


def statuses(codes: Iterable[int]) -> set[bytes]:
    return {b"\0status %d" % code for code in codes}


JSON: Needs = frozenset({_JSON})
LANDED: Needs = frozenset({_LANDED})
UNUSUAL: Needs = frozenset({_UNUSUAL})
"""A status that is not 2xx."""
EMPTY: Needs = frozenset({_EMPTY})
REDIRECTED: Needs = frozenset({_REDIRECTED})


class Shortlist:
    """Picks the rules worth asking.

    :param rules: in the order in which they are asked
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._always: list[int] = []
        self._by_need: dict[bytes, list[int]] = {}
        for number, rule in enumerate(rules):
            needs = _needs_of_rule(rule)
            if needs is None:
                self._always.append(number)
            for need in needs or ():
                self._by_need.setdefault(need, []).append(number)
        self._words = _by_part(
            tuple(need for need in self._by_need if not need.startswith(b"\0"))
        )
        self._landed = re.compile(
            "|".join(
                f"(?:{condition.landed})"
                for rule in rules
                for condition in getattr(rule, "conditions", ())
                if hasattr(condition, "landed")
            )
            or "(?!)"
        )

    def of(self, page: Page) -> Sequence[Rule]:
        """Return the rules that can match *page*, in their order."""
        if len(page.head) > _LARGE:
            return self._rules
        text = self._haystack(page)
        found = [
            need
            for part, words in self._words
            if part in text
            for word, need in words
            if word in text
        ]
        found += statuses([page.status])
        found += [b"\0header %s" % name.encode() for name in page.headers]
        if page.kind == "json":
            found.append(_JSON)
        elif page.kind == "empty":
            found.append(_EMPTY)
        if page.status // 100 != 2:
            found.append(_UNUSUAL)
        if page.redirected:
            found.append(_REDIRECTED)
        if not text.isascii():
            found.append(_FOREIGN)
        if self._landed.search(page.landed):
            found.append(_LANDED)
        numbers = set(self._always)
        for need in found:
            numbers.update(self._by_need.get(need, ()))
        return [self._rules[number] for number in sorted(numbers)]

    def _haystack(self, page: Page) -> str:
        text = page.head.lower()
        if b"&" in text:
            text += html.unescape(text.decode("utf-8", "replace")).encode()
        return text.decode("latin-1") + "\n" + "\n".join(page.headers)


@lru_cache(maxsize=8)
def _by_part(needs: tuple[bytes, ...]) -> list[tuple[str, list[tuple[str, bytes]]]]:
    """Group words by a part they share, so that fewer have to be looked for.

    As text, one character a byte: Python finds in texts what takes it three times as
    long in bytes.
    """
    having: dict[str, set[bytes]] = {}
    for need in needs:
        word = need.decode("latin-1")
        for start in range(len(word)):
            for end in range(start + _PART, min(len(word), start + _LONGEST_PART) + 1):
                having.setdefault(word[start:end], set()).add(need)
    left = set(needs)
    groups = []
    while left:
        part = max(
            having, key=lambda part: (len(having[part] & left), part), default=""
        )
        if len(shared := having.get(part, set()) & left) < 2:
            break
        groups.append((part, shared))
        left -= shared
    groups += [(need.decode("latin-1"), {need}) for need in left]
    return [
        (part, sorted((need.decode("latin-1"), need) for need in shared))
        for part, shared in groups
    ]


def _needs_of_rule(rule: Rule) -> Needs | None:
    """Return the needs of the condition that is met least often."""
    known = [
        needs
        for condition in getattr(rule, "conditions", ())
        if (needs := needs_of(condition)) is not None
    ]
    return min(known, key=len) if known else None
