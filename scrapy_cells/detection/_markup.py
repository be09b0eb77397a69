"""One linear pass over an HTML page: what acts, what is shown, nothing else.

A full parser would take longer than the whole budget of a page, and a search over the
raw body finds vendor names in articles, JSON-LD and links. This pass only separates
executable scripts, the few tags that act (iframe, form, meta refresh, ...) and the
regions a reader sees. Every step moves forward, so no input can make it run away.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

__all__ = ["Markup", "Tag", "acts_in", "in_attribute", "scan", "strip_tags"]

# two letters turn most tags away faster than the names do
_TOKEN = re.compile(
    rb"<(?=!--|/n|sc|st|te|ti|no|if|fo|fr|me|ht|bo)(?:(!--)|(/noscript)\b"
    rb"|(script|style|textarea|title|template)(?=[\s/>])"
    rb"|(noscript|iframe|form|meta|html|body|frame)(?=[\s/>]))"
)
_COMMENT, _END_NOSCRIPT, _RAW, _TAG = 1, 2, 3, 4
_TAG_END = re.compile(rb"[^>\"']*(?:\"[^\"]*\"[^>\"']*|'[^']*'[^>\"']*)*>")
_ATTRIBUTE = re.compile(
    rb"([a-z][a-z0-9_:.-]*)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))"
)
_TYPE = re.compile(rb"\btype\s*=\s*[\"']?\s*([^\"'\s>]+)")
_ANY_TAG = re.compile(rb"<[^<>]*>")
# strings and comments of JavaScript; what starts inside one of them does not act
_INERT = re.compile(
    rb"\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?|`(?:[^`\\]|\\.)*`?"
    rb"|//[^\n]*|/\*(?:.*?\*/|.*)",
    re.DOTALL,
)

_BEFORE_WORD = (b'"', b"'", b"=", b" ", b"\t", b"\r", b"\n")
_EXECUTABLE = (b"javascript", b"ecmascript", b"module")
_TAG_WINDOW = 8192
_MAX_TOKENS = 3000
_MAX_TAGS = 1000
_MAX_QUOTE_FAILURES = 32
_SCRIPT_BYTES = 32 * 1024
_ALL_SCRIPT_BYTES = 256 * 1024
_COMMENT_BYTES = 600
_MAX_COMMENTS = 50


@dataclass(frozen=True, slots=True)
class Tag:
    """A start tag; attribute names and values are lower case."""

    name: str
    attributes: dict[str, str]

    def get(self, name: str) -> str:
        return self.attributes.get(name, "")


@dataclass(slots=True)
class Markup:
    """What one pass found; ``low`` and ``head`` have the same offsets."""

    head: bytes
    low: bytes
    title: bytes = b""
    scripts: list[bytes] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    comments: list[bytes] = field(default_factory=list)
    starts: list[tuple[bytes, bytes]] = field(default_factory=list)
    shown: list[tuple[int, int]] = field(default_factory=list)
    unshown: list[tuple[int, int]] = field(default_factory=list)

    def tags(self) -> list[Tag]:
        return [Tag(name.decode(), _attributes(raw)) for name, raw in self.starts]


def scan(head: bytes) -> Markup:
    """Walk over *head* once and sort its parts."""
    return _Scanner(head).run()


class _Scanner:
    def __init__(self, head: bytes) -> None:
        self._low = head.lower()
        self._found = Markup(head, self._low)
        self._quote_failures = 0
        self._script_room = _ALL_SCRIPT_BYTES
        self._in_noscript = False
        self._titled = False

    def run(self) -> Markup:
        position = 0
        for _ in range(_MAX_TOKENS):
            token = _TOKEN.search(self._low, position)
            if token is None:
                self._region(position, len(self._low))
                break
            self._region(position, token.start())
            position = self._consume(token)
        return self._found

    def _region(self, start: int, end: int) -> None:
        if end > start:
            found = self._found
            (found.unshown if self._in_noscript else found.shown).append((start, end))

    def _consume(self, token: re.Match[bytes]) -> int:
        kind = token.lastindex
        if kind == _COMMENT:
            return self._comment(token.start())
        end = self._tag_end(token.end())
        if kind == _END_NOSCRIPT:
            self._in_noscript = False
            return end
        name = token.group(kind or 0)
        if kind == _TAG:
            self._in_noscript = self._in_noscript or name == b"noscript"
            self._tag(name, token.end(), end)
            return end
        return self._raw(name, token.end(), end)

    def _tag(self, name: bytes, start: int, end: int) -> None:
        starts = self._found.starts
        if end - start > 1 and len(starts) < _MAX_TAGS:
            starts.append((name, self._low[start:end]))

    def _comment(self, start: int) -> int:
        # "<!-->" is a whole comment, so the end may share dashes with the beginning
        end = self._low.find(b"-->", start + 2)
        if len(self._found.comments) < _MAX_COMMENTS:
            stop = start + _COMMENT_BYTES
            stop = stop if end < 0 else min(end, stop)
            self._found.comments.append(self._low[start + 4 : stop])
        return len(self._low) if end < 0 else end + 3

    def _tag_end(self, start: int) -> int:
        if self._low.startswith(b">", start):
            return start + 1
        if self._quote_failures < _MAX_QUOTE_FAILURES:
            match = _TAG_END.match(self._low, start, start + _TAG_WINDOW)
            if match:
                return match.end()
            self._quote_failures += 1
        end = self._low.find(b">", start)
        return len(self._low) if end < 0 else end + 1

    def _raw(self, name: bytes, attributes: int, start: int) -> int:
        if name == b"title" and self._titled:
            return start
        end = self._low.find(b"</" + name, start)
        if name == b"title":
            self._titled = True
            stop = start + 300 if end < 0 else min(end, start + 1000)
            self._found.title = self._found.head[start:stop]
            return stop if end < 0 else self._tag_end(end)
        stop = len(self._low) if end < 0 else end
        if name == b"script":
            self._tag(name, attributes, start)
            self._script(self._low[attributes:start], start, stop)
        return stop if end < 0 else self._tag_end(end)

    def _script(self, attributes: bytes, start: int, stop: int) -> None:
        if start == stop:
            return
        kind = _TYPE.search(attributes)
        declared = kind.group(1) if kind else b""
        if declared == b"application/ld+json":
            self._found.data.append(self._found.head[start:stop])
        elif not declared or declared.endswith(_EXECUTABLE):
            size = min(stop - start, _SCRIPT_BYTES, self._script_room)
            if size > 0:
                self._script_room -= size
                self._found.scripts.append(self._low[start : start + size])


def _attributes(raw: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(raw):
        value = (double or single or bare).decode("utf-8", "replace")
        if "&" in value:
            value = html.unescape(value).lower()
        found.setdefault(name.decode(), value.strip())
    return found


def acts_in(script: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Tell whether *pattern* starts outside the strings and comments of *script*.

    An article that shows a challenge's code does so inside a string.
    """
    inert = _INERT.finditer(script)
    quiet = next(inert, None)
    for match in pattern.finditer(script):
        while quiet is not None and quiet.end() <= match.start():
            quiet = next(inert, None)
        if quiet is None or match.start() <= quiet.start():
            return True
    return False


def in_attribute(markup: bytes, attribute: str, value: bytes) -> bool:
    """Tell whether a real tag has *value* as a word of *attribute*."""
    before = re.compile(
        rb"<[a-z][^<>]*\s" + attribute.encode() + rb"\s*=\s*(?:\"[^\"]*|'[^']*|)$"
    )
    position = -1
    for _ in range(50):
        position = markup.find(value, position + 1)
        if position < 0:
            return False
        ends = markup[position + len(value) : position + len(value) + 1]
        whole = not ends or ends in b"\"' \t\r\n>/"
        begins = markup[position - 1 : position] in _BEFORE_WORD
        if whole and begins:
            opening = markup.rfind(b"<", max(0, position - 2000), position)
            if opening >= 0 and before.match(markup[opening:position]):
                return True
    return False


def strip_tags(chunk: bytes) -> bytes:
    """Replace every tag in *chunk* by a space."""
    return _ANY_TAG.sub(b" ", chunk)
