"""Which cell a key belongs to."""

from __future__ import annotations

import csv
import hashlib
import json
import unicodedata
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_PERSON = b"scrapy-cells"


class Router(Protocol):
    """Key to cell. Must give the same answer in every process and for ever."""

    @property
    def cells(self) -> Sequence[str]:
        """All cells, in an order that does not change."""

    def route(self, key: str) -> str:
        """Return the cell of a key."""


def cell_ids(count: int) -> list[str]:
    """Return ``"00"``, ``"01"``...: an id never changes when their number grows."""
    return [f"{number:02d}" for number in range(count)]


def normalise_key(key: str) -> str:
    """Return the form in which keys are compared: Unicode NFC."""
    return key if key.isascii() else unicodedata.normalize("NFC", key)


def hash64(key: str) -> int:
    """Return 64 bits of a key that are the same in every process and version."""
    data = key.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(data, digest_size=8, person=_PERSON).digest()
    return int.from_bytes(digest, "big")


def jump_hash(key: int, buckets: int) -> int:
    """Return a bucket in [0, buckets); growing by one moves 1/(buckets + 1) of all.

    Jump consistent hash: Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash
    Algorithm", 2014.
    """
    # the paper's numbers stand here as literals: a global costs a look-up a round
    found, following = -1, 0
    while following < buckets:
        found = following
        key = (key * 2862933555777941757 + 1) & 0xFFFFFFFFFFFFFFFF
        following = int((found + 1) * (2147483648.0 / ((key >> 33) + 1)))
    return found


class HashRouter:
    """Spreads keys evenly over a number of cells.

    :param count: cells, at least 1
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"count={count!r}: must be at least 1")
        self.cells: Sequence[str] = cell_ids(count)

    def route(self, key: str) -> str:
        return self.cells[jump_hash(hash64(normalise_key(key)), len(self.cells))]


class CatalogRouter:
    """Knows the cell of every key; keys it does not know are spread over the cells.

    :param mapping: normalised key to cell
    """

    def __init__(self, mapping: Mapping[str, str]) -> None:
        if not mapping:
            raise ValueError("the catalog is empty")
        self._mapping = dict(mapping)
        self.cells: Sequence[str] = sorted(set(self._mapping.values()))

    def route(self, key: str) -> str:
        key = normalise_key(key)
        cell = self._mapping.get(key)
        if cell is None:
            cell = self.cells[jump_hash(hash64(key), len(self.cells))]
        return cell


class SubtreeRouter:
    """Keeps the keys of one part of the site together.

    :param count: cells
    :param depth: how many segments of the URL's path name the part, at least 1
    """

    def __init__(self, count: int, depth: int = 1) -> None:
        if depth < 1:
            raise ValueError(f"depth={depth!r}: must be at least 1")
        self._hash = HashRouter(count)
        self.depth = depth

    @property
    def cells(self) -> Sequence[str]:
        return self._hash.cells

    def route(self, key: str) -> str:
        key = normalise_key(key)
        try:
            parts = urlsplit(key)
        except ValueError:  # no URL: "http://[x" has half an IPv6 address
            return self._hash.route(key)
        segments = [segment for segment in parts.path.split("/") if segment]
        return self._hash.route("/".join([parts.netloc, *segments[: self.depth]]))


def read_catalog(lines: Iterable[str]) -> dict[str, str]:
    """Read a catalog: CSV or JSON lines of ``key,cell[,weight]``.

    :return: normalised key to cell
    :raises ValueError: naming the first line that is wrong
    """
    mapping: dict[str, str] = {}
    for number, raw_key, cell in _catalog_rows(lines):
        key = normalise_key(raw_key)
        if not key or not cell:
            raise ValueError(f"line {number}: needs a key and a cell")
        if mapping.setdefault(key, cell) != cell:
            raise ValueError(
                f"line {number}: key {key!r} stands in cell {mapping[key]!r} already"
            )
    return mapping


def _catalog_rows(lines: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(lines, 1):
        text = line.strip().lstrip("\ufeff")
        if not text:
            continue
        if text.startswith("{"):
            yield number, *_json_row(number, text)
            continue
        row = _csv_row(number, text)
        if number == 1 and [field.lower() for field in row[:2]] == ["key", "cell"]:
            continue
        if not 2 <= len(row) <= 3:
            raise ValueError(f"line {number}: must be key,cell[,weight]")
        yield number, row[0], row[1]


def _csv_row(number: int, text: str) -> list[str]:
    try:
        return [field.strip() for field in next(csv.reader([text]))]
    except csv.Error as error:
        raise ValueError(f"line {number}: {error}") from error


def _json_row(number: int, text: str) -> tuple[str, str]:
    try:
        row: Any = json.loads(text)
        key, cell = row["key"], row["cell"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"line {number}: must be a JSON object with key and cell ({error})"
        ) from error
    if not {type(key), type(cell)} <= {str, int}:
        raise ValueError(f"line {number}: key and cell must be text or whole numbers")
    return str(key), str(cell)
