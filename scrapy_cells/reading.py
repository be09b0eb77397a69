"""Settings as users write them, in files and on command lines, made into values."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any


def number(value: Any) -> float:
    """Read a number.

    :raises ValueError: for anything else, booleans, NaN and infinity among it
    """
    if isinstance(value, str):
        value = float(value.strip())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("must be a number")
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return float(value)


def whole(value: Any) -> int:
    """Read a whole number.

    :raises ValueError: for anything else
    """
    found = number(value)
    if found != int(found):
        raise ValueError("must be a whole number")
    return int(found)


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


def texts(value: Any) -> tuple[str, ...]:
    """Read a list of strings: a list, JSON, or separated by commas.

    :raises ValueError: for anything else
    """
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            value = json.loads(text)
        else:
            value = [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    if not isinstance(value, Sequence) or not all(isinstance(v, str) for v in value):
        raise ValueError("must be a list of strings")
    return tuple(value)


def mapping(value: Any) -> dict[str, Any]:
    """Read a dictionary, also as JSON.

    :raises ValueError: for anything else
    """
    if isinstance(value, str):
        value = json.loads(value or "{}")
    if not isinstance(value, Mapping):
        raise ValueError("must be a dictionary")
    return {str(key): entry for key, entry in value.items()}
