"""What a rule sees of an answer: every part prepared once, when first asked for."""

from __future__ import annotations

import html
import json
import re
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from w3lib.encoding import (
    html_body_declared_encoding,
    http_content_type_encoding,
    read_bom,
)

from scrapy_cells.detection._markup import (
    Markup,
    Tag,
    acts_in,
    in_attribute,
    scan,
    strip_tags,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Request, Response

__all__ = ["HEAD_BYTES", "SHORT_TEXT", "Page"]

#: How much of a body is looked at.
HEAD_BYTES = 512 * 1024
#: Up to this many visible characters a text is short enough for sentences to count:
#: nine of ten block pages have under 719, articles about blocking have far more.
SHORT_TEXT = 1200

_TEXT_CAP = 4000
_JSON_BYTES = 64 * 1024
_SLICE = 16 * 1024
_HTML_STARTS = re.compile(
    rb"<(?:!--|(?:!doctype html|html|head|body|title|script|meta|noscript|iframe|form"
    rb"|h[1-6]|p|div|center|style|link|br|b|table|span|img|a|font|pre|main|section"
    rb"|header|ul)(?=[\s/>]|$))"
)
_SERVED = re.compile(
    rb"\"@type\"\s*:\s*\[?\s*\"(?:product|productgroup|offer|recipe|article|newsarticle"
    rb"|blogposting|event|jobposting|book|movie)\""
)
_BINARY_TYPES = (
    "image/",
    "audio/",
    "video/",
    "font/",
    "application/pdf",
    "application/zip",
    "application/gzip",
    "application/octet-stream",
    "application/vnd.",
    "application/msword",
)
_BINARY_STARTS = (b"%PDF", b"PK\x03\x04", b"\x1f\x8b", b"\x89PNG", b"GIF8", b"\xff\xd8")


class Page:
    """An answer as rules see it. Attributes are computed when first read.

    Names are compared in lower case. At most :data:`HEAD_BYTES` of the body count.

    :ivar status: HTTP status
    :ivar url: the address that answered, after redirects
    :ivar asked: the address that was asked for before any redirect
    :ivar headers: lower-case names to their values, joined by commas
    :ivar kind: ``"html"``, ``"json"``, ``"xml"``, ``"text"``, ``"binary"``, ``"empty"``
    """

    def __init__(self, request: Request, response: Response) -> None:
        self.request = request
        self.response = response
        self.status: int = response.status
        self.method: str = request.method.upper()
        self.url: str = response.url
        chain = request.meta.get("redirect_urls")
        self.redirected = bool(chain) or request.url != response.url
        self.asked: str = str(chain[0]) if chain else request.url

    @cached_property
    def headers(self) -> dict[str, str]:
        # past the getters of Scrapy's class, which copy every list
        items = dict.items(self.response.headers)
        return {
            name.decode("latin-1").lower(): b",".join(filter(None, values)).decode(
                "latin-1"
            )
            for name, values in items
        }

    def header(self, name: str) -> str:
        """Return a header's value in lower case, ``""`` when it is missing."""
        return self.headers.get(name, "").lower()

    @cached_property
    def landed(self) -> str:
        """Where the answer comes from, or sends to: ``host/path?query``, lower case."""
        target = self.headers.get("location", "") if self.status // 100 == 3 else ""
        return _short_address(self.url, target.strip())

    @cached_property
    def head(self) -> bytes:
        head = self.response.body[:HEAD_BYTES]
        encoding, mark = read_bom(head)
        if encoding and mark and encoding.startswith(("utf-16", "utf-32")):
            return head[len(mark) :].decode(encoding, "replace").encode()
        return head[len(mark) :] if encoding and mark else head

    @cached_property
    def kind(self) -> str:
        start = self.head[:1024].lstrip().lower()
        declared = self.header("content-type")
        if not start and not self.head.strip():
            return "empty"
        if _HTML_STARTS.match(start):
            return "html"
        if start[:1] in (b"{", b"[") and b"\0" not in start:
            return "json"
        if b"\0" in start or self.head.startswith(_BINARY_STARTS):
            return "binary"
        if start.startswith(b"<?xml"):
            return "html" if b"<html" in start else "xml"
        if declared.startswith(_BINARY_TYPES):
            return "binary"
        if start.startswith(b"<"):
            return "xml" if "xml" in declared or "html" not in declared else "html"
        return "html" if "html" in declared and b"<" in start else "text"

    @property
    def is_html(self) -> bool:
        return self.kind == "html"

    @cached_property
    def encoding(self) -> str:
        declared = self.headers.get("content-type", "")
        encoding, mark = read_bom(self.response.body[:4])
        if encoding and mark:
            return "utf-8"
        return (
            http_content_type_encoding(declared)
            or html_body_declared_encoding(self.head[:4096])
            or "utf-8"
        )

    @cached_property
    def _markup(self) -> Markup:
        return scan(self.head if self.is_html else b"")

    @cached_property
    def _elements(self) -> bytes:
        found = self._markup
        return b"".join(
            found.low[start:end] for start, end in sorted(found.shown + found.unshown)
        )

    @cached_property
    def title(self) -> str:
        """The title in lower case, blanks collapsed, entities decoded."""
        return self._clean(self._markup.title).lower()

    @cached_property
    def tags(self) -> dict[str, list[Tag]]:
        """Start tags by name: script, iframe, frame, form, meta, html, body."""
        found: dict[str, list[Tag]] = {}
        for tag in self._markup.tags():
            found.setdefault(tag.name, []).append(tag)
        return found

    @cached_property
    def _words(self) -> frozenset[tuple[str, str]]:
        """Every word of the attributes by which :attr:`tags` are told apart."""
        return frozenset(
            (attribute, word)
            for tags in self.tags.values()
            for tag in tags
            for attribute in ("id", "class", "name")
            for word in tag.get(attribute).split()
        )

    @cached_property
    def sources(self) -> list[str]:
        """Addresses that scripts, iframes and frames are loaded from."""
        names = ("script", "iframe", "frame")
        return [
            tag.get("src")
            for name in names
            for tag in self.tags.get(name, ())
            if tag.get("src")
        ]

    @cached_property
    def actions(self) -> list[str]:
        """Addresses that forms are sent to."""
        return [tag.get("action") for tag in self.tags.get("form", ())]

    @cached_property
    def refresh(self) -> str:
        """The target of a meta refresh, ``""`` without one."""
        for tag in self.tags.get("meta", ()):
            if tag.get("http-equiv") == "refresh":
                return tag.get("content")
        return ""

    @property
    def comments(self) -> list[bytes]:
        return self._markup.comments

    @cached_property
    def _scripts(self) -> bytes:
        return b"\n".join(self._markup.scripts)

    def runs(self, name: str, pattern: re.Pattern[bytes] | None = None) -> bool:
        """Tell whether an inline script executes *name*; a mention in a string is none.

        :param name: what to look for, lower case
        :param pattern: a narrower form of it, on lower-case bytes
        """
        literal = name.encode()
        if literal not in self._scripts:
            return False
        wanted = pattern or re.compile(re.escape(literal))
        return any(
            acts_in(script, wanted)
            for script in self._markup.scripts
            if literal in script
        )

    def has(self, attribute: str, value: str) -> bool:
        """Tell whether a tag has *value* as a word of *attribute*."""
        wanted = value.encode()
        return (attribute, value) in self._words or (
            wanted in self._elements and in_attribute(self._elements, attribute, wanted)
        )

    @cached_property
    def text(self) -> str:
        """The first 4,000 visible characters, lower case, blanks collapsed."""
        if self.kind in ("text", "json"):
            return self._clean(self.head[: 2 * _TEXT_CAP]).lower()[:_TEXT_CAP]
        parts: list[str] = []
        room = _TEXT_CAP
        for chunk in self._shown_chunks():
            part = self._clean(strip_tags(chunk))
            if part:
                parts.append(part)
                room -= len(part) + 1
            if room <= 0:
                break
        return " ".join(parts)[:_TEXT_CAP].lower()

    def _shown_chunks(self) -> Iterator[bytes]:
        """Yield what is shown in pieces, so that nobody has to clean all of it."""
        found = self._markup
        pending: list[bytes] = []
        size = 0
        for start, end in found.shown:
            position = start
            while position < end:
                # cut only where a tag begins, or half a tag would pass for text
                cut = found.low.find(b"<", position + _SLICE, end)
                stop = end if cut < 0 else cut
                pending.append(found.head[position:stop])
                size += stop - position
                position = stop
                if size >= _SLICE:
                    yield b" ".join(pending)
                    pending, size = [], 0
        yield b" ".join(pending)

    @cached_property
    def has_data(self) -> bool:
        """Whether JSON-LD of a product, recipe or article says that it was served."""
        return any(_SERVED.search(block.lower()) for block in self._markup.data)

    @cached_property
    def unshown(self) -> str:
        """What stands in ``noscript``, up to 4,000 characters."""
        regions = self._markup.unshown
        raw = b" ".join(self._markup.head[start:end] for start, end in regions)
        return self._clean(strip_tags(raw[: 4 * _TEXT_CAP]))[:_TEXT_CAP].lower()

    @property
    def is_short(self) -> bool:
        """Whether so little is shown that a sentence in it is the whole message."""
        return len(self.text) <= SHORT_TEXT

    def says(self, *sentences: str, limit: int = SHORT_TEXT) -> bool:
        """Tell whether at most *limit* characters are shown, one of *sentences* too."""
        text = self.text
        return len(text) <= limit and any(each in text for each in sentences)

    @cached_property
    def json(self) -> Any:
        """The decoded body of a JSON answer up to 64 KB, otherwise ``None``."""
        if self.kind != "json" or len(self.head) > _JSON_BYTES:
            return None
        try:
            return json.loads(self.head)
        except (ValueError, RecursionError):
            return None

    @cached_property
    def fingerprint(self) -> str:
        """A hash of title and visible text, for :class:`RepeatedBody`.

        JSON-LD counts as well: a page may show nothing and carry all its data there.
        Empty for everything but good HTML and JSON answers, which says "do not count".
        """
        if not 200 <= self.status < 300 or self.kind not in ("html", "json"):
            return ""
        digest = blake2b(digest_size=16)
        if self.kind == "json":
            digest.update(self.head)
            return digest.hexdigest()
        found = self._markup
        digest.update(b" ".join(found.title.split()))
        for start, end in found.shown:
            digest.update(b" ".join(strip_tags(found.head[start:end]).split()))
        for block in found.data:
            digest.update(block)
        return digest.hexdigest()

    def _clean(self, raw: bytes) -> str:
        try:
            text = raw.decode(self.encoding, "replace")
        except LookupError:
            text = raw.decode("utf-8", "replace")
        if "&" in text:
            text = html.unescape(text)
        return " ".join(text.split())


def _short_address(address: str, target: str) -> str:
    try:
        parts = urlsplit(urljoin(address, target) if target else address)
        host = parts.hostname or ""
    except ValueError:
        return ""
    query = f"?{parts.query}" if parts.query else ""
    return f"{host}{parts.path or '/'}{query}".lower()
