"""Soft blocks that only repetition shows: one page for many products."""

from __future__ import annotations

__all__ = ["RepeatedBody"]

DEFAULT_KEYS = 5


class RepeatedBody:
    """Notice when a cell gets one and the same page for different keys.

    Feed it good answers only. It keeps one fingerprint and a few keys for each cell.

    :param keys: how many different keys in a row make the page a soft block
    """

    def __init__(self, keys: int = DEFAULT_KEYS) -> None:
        if keys < 2:
            raise ValueError(f"keys={keys}: one key alone repeats nothing, at least 2")
        self._threshold = keys
        self._runs: dict[str, tuple[str, set[str]]] = {}

    def note(self, cell: str, key: str, fingerprint: str) -> bool:
        """Note a good answer.

        :param fingerprint: of title and visible text; ``""`` is not counted, so that
            answers which may well be alike (a 404, an image) neither trip nor reset
        :return: whether this answer is one of a row of equal ones for too many keys
        """
        if not fingerprint:
            return False
        seen, keys = self._runs.get(cell, ("", set()))
        if seen != fingerprint:
            keys = set()
            self._runs[cell] = (fingerprint, keys)
        if len(keys) < self._threshold:
            keys.add(key)
        return len(keys) >= self._threshold

    def forget(self, cell: str) -> None:
        """Start anew for *cell*, for example when its sessions were replaced."""
        self._runs.pop(cell, None)
