"""Settings as users write them, in files and on command lines, made into values."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any


def number(allowed: str, fits: Callable[[float], bool]) -> Callable[[Any], float]:
    """Return a reader of numbers, also written as text.

    It refuses booleans, NaN and infinity.

    :param allowed: what is allowed, in words that follow "must be"
    """

    def read(value: Any) -> float:
        found = _finite(value)
        if found is None or not fits(found):
            raise ValueError(f"must be {allowed}")
        return found

    return read


def whole(allowed: str, fits: Callable[[float], bool]) -> Callable[[Any], int]:
    """Return a reader of whole numbers, like :func:`number`."""
    read_number = number(allowed, lambda found: found.is_integer() and fits(found))
    return lambda value: int(read_number(value))


def or_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a reader to which ``None`` is fine too."""
    return lambda value: None if value is None else read(value)


def flag(value: Any) -> bool:
    """Read a yes or no, as Scrapy's ``getbool`` does.

    :raises ValueError: for anything else
    """
    if isinstance(value, str) and value.strip().lower() in {"true", "1"}:
        return True
    if isinstance(value, str) and value.strip().lower() in {"false", "0"}:
        return False
    if isinstance(value, (bool, int)) and value in {0, 1}:
        return bool(value)
    raise ValueError("must be True or False")


def text(value: Any) -> str:
    """Read a string; a path will do.

    :raises ValueError: for anything else
    """
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str):
        raise ValueError("must be a string")
    return found.strip()


def texts(value: Any) -> tuple[str, ...]:
    """Read a list of strings: a list, JSON, or separated by commas.

    :raises ValueError: for anything else
    """
    if isinstance(value, str) and not value.strip().startswith("["):
        value = [part.strip() for part in value.split(",") if part.strip()]
    return json_texts(value)


def json_texts(value: Any) -> tuple[str, ...]:
    """Read a list of strings that may hold commas: a list, or JSON.

    :raises ValueError: for anything else
    """
    if isinstance(value, str):
        value = _json(value, 'must be a list of strings; as text, JSON: ["a", "b"]')
    if isinstance(value, (set, frozenset)) and all(isinstance(v, str) for v in value):
        value = sorted(value)
    if not isinstance(value, Sequence) or not all(isinstance(v, str) for v in value):
        raise ValueError("must be a list of strings")
    return tuple(value)


def entries(value: Any) -> tuple[Any, ...]:
    """Read a list of objects or of their import paths.

    :raises ValueError: for anything else
    """
    if isinstance(value, str):
        return texts(value)
    if not isinstance(value, Sequence):
        raise ValueError("must be a list of rule classes or of their import paths")
    return tuple(value)


def mapping(value: Any) -> dict[str, Any]:
    """Read a dictionary, also as JSON.

    :raises ValueError: for anything else
    """
    if isinstance(value, str):
        value = _json(value or "{}", "must be a dictionary; as text, JSON")
    if not isinstance(value, Mapping):
        raise ValueError("must be a dictionary")
    return {str(key): entry for key, entry in value.items()}


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (str, Real)):
        return None
    try:
        found = float(value)
    except (OverflowError, ValueError):
        return None
    return found if math.isfinite(found) else None


def _json(value: str, allowed: str) -> Any:
    try:
        return json.loads(value)
    except (RecursionError, ValueError):
        # not the decoder's own words: they do not say what was wanted
        raise ValueError(allowed) from None
