"""What a product is known by: ``CELLS_KEY``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from scrapy.utils.httpobj import urlparse_cached

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request


class KeyFunction:
    """Finds the key of a request.

    :ivar explicit: whether a key it finds is the request's own. By ``url`` and ``path``
        every address has another one, and a follow-up stays with its parent instead
    """

    def __init__(
        self, find: Callable[[Request], str | None], *, explicit: bool
    ) -> None:
        self._find = find
        self.explicit = explicit

    def __call__(self, request: Request) -> str | None:
        key = self._find(request)
        return None if key is None or key == "" else str(key)


def build_key(spec: Any) -> KeyFunction:
    """Build what ``CELLS_KEY`` says.

    :raises ValueError: saying what is allowed
    """
    if callable(spec):
        return KeyFunction(spec, explicit=True)
    if spec == "url":
        return KeyFunction(lambda request: request.url, explicit=False)
    if spec == "path":
        return KeyFunction(_path, explicit=False)
    kind, _, rest = str(spec).partition(":")
    if kind == "meta" and rest:
        return KeyFunction(lambda request: request.meta.get(rest), explicit=True)
    if kind == "regex" and rest:
        try:
            pattern = re.compile(rest)
        except re.error as error:
            raise ValueError(f"no regular expression: {error}") from error
        if not pattern.groups:
            raise ValueError("the regular expression needs a group, which is the key")
        return KeyFunction(lambda request: _group(pattern, request), explicit=True)
    raise ValueError(
        'must be "url", "path", "regex:..." with a group, "meta:name", or a callable'
    )


def _path(request: Request) -> str:
    return urlparse_cached(request).path


def _group(pattern: re.Pattern[str], request: Request) -> str | None:
    found = pattern.search(request.url)
    return found.group(1) if found else None
