"""Checks of numbers at construction."""

from __future__ import annotations

import math


def positive(name: str, value: float) -> float:
    """Return *value* if it is a finite number above 0.

    :raises ValueError: naming it otherwise
    """
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name}={value!r}: must be a finite number above 0")
    return float(value)


def not_negative(name: str, value: float) -> float:
    """Return *value* if it is a finite number, 0 or above.

    :raises ValueError: naming it otherwise
    """
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{name}={value!r}: must be a finite number, 0 or above")
    return float(value)


def share(name: str, value: float) -> float:
    """Return *value* if it lies in [0, 1].

    :raises ValueError: naming it otherwise
    """
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name}={value!r}: must lie between 0 and 1")
    return float(value)
