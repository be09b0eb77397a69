"""Keys to cells: stable, even, and moving no more than they must."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_cells.domain.router import (
    CatalogRouter,
    HashRouter,
    SubtreeRouter,
    cell_ids,
    hash64,
    jump_hash,
    normalise_key,
    read_catalog,
)

KEYS = [f"B{number:09d}" for number in range(20_000)]
COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


# Ids


def test_ids_are_padded_to_two_digits():
    """Ids are "00" to "99" and then grow a digit."""
    assert cell_ids(3) == ["00", "01", "02"]
    assert cell_ids(101)[-2:] == ["99", "100"]


@given(st.integers(0, 300), st.integers(0, 300))
def test_id_never_changes_when_the_number_grows(one, other):
    """The ids of fewer cells are the first ids of more cells."""
    few, many = sorted((one, other))
    assert cell_ids(many)[:few] == cell_ids(few)
    assert len(set(cell_ids(many))) == many


# Hash


@pytest.mark.parametrize(
    ("key", "digest", "of_24", "of_10000"),
    [
        ("", 0xDFDA4969514954A7, "15", "6719"),
        ("B000000001", 0xD01DC35DA7B412D2, "02", "7080"),
        (COMPOSED, 0x892275BEC81642F5, "18", "5154"),
    ],
)
def test_known_keys_stay_where_they_are(key, digest, of_24, of_10000):
    """A release that moved these keys would move everybody's: they are fixed."""
    assert hash64(key) == digest
    assert HashRouter(24).route(key) == of_24
    assert HashRouter(10_000).route(key) == of_10000


def reference_jump(key: int, buckets: int) -> int:
    """Follow the paper's description step by step."""
    here, there = -1, 0
    while there < buckets:
        here = there
        key = (key * 2862933555777941757 + 1) % 2**64
        there = math.floor((here + 1) * (2**31 / ((key // 2**33) + 1)))
    return here


@given(st.integers(0, 2**64 - 1), st.integers(1, 20_000))
def test_jump_hash_is_the_papers(key, buckets):
    """The fast form gives what the plain one gives."""
    assert jump_hash(key, buckets) == reference_jump(key, buckets)


@given(st.integers(2**17, 2**20), st.integers(1, 20_000))
def test_jump_hash_is_the_papers_where_a_jump_is_long(divisor, buckets):
    """Keys whose first jump is long are rare, so they are worked out backwards."""
    key = ((divisor << 33) - 1) * pow(2862933555777941757, -1, 2**64) % 2**64
    assert jump_hash(key, buckets) == reference_jump(key, buckets)


@given(st.integers(0, 2**64 - 1), st.integers(1, 12_000))
def test_growth_by_one_moves_a_key_only_to_the_new_cell(key, buckets):
    """With one cell more, a key stays or goes to the new one, never elsewhere."""
    before, after = jump_hash(key, buckets), jump_hash(key, buckets + 1)
    assert 0 <= before < buckets
    assert after in {before, buckets}


@pytest.mark.parametrize("count", [1, 3, 24, 99, 240])
def test_growth_moves_its_share_of_the_keys(count):
    """N to N + 1 cells moves 1 / (N + 1) of the keys, within three sigma."""
    old, new = HashRouter(count), HashRouter(count + 1)
    moved = [key for key in KEYS if old.route(key) != new.route(key)]
    share = 1 / (count + 1)
    sigma = math.sqrt(len(KEYS) * share * (1 - share))
    assert abs(len(moved) - len(KEYS) * share) <= 3 * sigma
    assert {new.route(key) for key in moved} == {new.cells[-1]}


def test_loads_are_even():
    """At 400 keys a cell the loads differ by chance only: sigma is about 20."""
    loads = Counter(map(HashRouter(50).route, KEYS))
    assert len(loads) == 50
    sigma = math.sqrt(sum((load - 400) ** 2 for load in loads.values()) / 50)
    assert 14 <= sigma <= 26
    assert all(abs(load - 400) <= 100 for load in loads.values())


def test_route_is_the_same_in_every_process():
    """Python's own hash seed has no part in it."""
    code = (
        "from scrapy_cells.domain.router import HashRouter;"
        "print(*map(HashRouter(24).route, ['a', 'B01', '/x/y']))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "4242"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert found == list(map(HashRouter(24).route, ["a", "B01", "/x/y"]))


@given(st.text(), st.integers(1, 300))
def test_any_text_has_a_cell(key, count):
    """No key is refused, half a surrogate pair and NUL included."""
    router = HashRouter(count)
    assert router.route(key) in router.cells
    assert router.route(key + "\ud800\0") in router.cells


@given(st.text())
def test_keys_are_compared_as_normalised(key):
    """A key and its normal form are one key, and normalising twice changes nothing."""
    normal = normalise_key(key)
    assert normalise_key(normal) == normal
    assert HashRouter(99).route(key) == HashRouter(99).route(normal)


def test_two_spellings_of_one_letter_are_one_key():
    """A letter with an accent and the letter plus the accent go to one cell."""
    assert COMPOSED != DECOMPOSED
    assert normalise_key(DECOMPOSED) == COMPOSED
    assert HashRouter(10_000).route(DECOMPOSED) == HashRouter(10_000).route(COMPOSED)


@pytest.mark.parametrize("count", [0, -1])
def test_router_needs_a_cell(count):
    """Without a cell there is nowhere to route to."""
    with pytest.raises(ValueError, match="count"):
        HashRouter(count)


# Catalog


def test_catalog_wins_over_the_hash():
    """A key that the catalog knows is in the cell it names."""
    mapping = {key: f"c{n % 3}" for n, key in enumerate(KEYS[:300])}
    router = CatalogRouter(mapping)
    assert list(router.cells) == ["c0", "c1", "c2"]
    assert {key: router.route(key) for key in mapping} == mapping


def test_catalog_knows_a_key_in_both_spellings():
    """Keys of a catalog are compared in their normal form."""
    router = CatalogRouter(read_catalog([f"{DECOMPOSED},07", "x,08"]))
    assert router.route(COMPOSED) == router.route(DECOMPOSED) == "07"


def test_keys_a_catalog_does_not_know_are_spread_over_its_cells():
    """An unknown key has a cell of the catalog, always the same one."""
    router = CatalogRouter({"a": "07", "b": "11", "c": "12"})
    again = CatalogRouter({"c": "12", "b": "11", "a": "07"})
    found = [router.route(key) for key in KEYS[:300]]
    assert set(found) == {"07", "11", "12"}
    assert found == [again.route(key) for key in KEYS[:300]]


def test_catalog_is_not_changed_from_outside():
    """A mapping that is changed later does not move keys."""
    mapping = {"a": "07", "b": "08"}
    router = CatalogRouter(mapping)
    mapping["a"] = "08"
    assert router.route("a") == "07"


def test_empty_catalog_is_refused():
    """A catalog without a key has no cell."""
    with pytest.raises(ValueError, match="empty"):
        CatalogRouter({})


@pytest.mark.parametrize(
    "lines",
    [
        ["a,01", "b,02"],
        ["key,cell", "a,01", "b,02"],
        ["key,cell,weight", "a,01,3", "b,02,1.5"],
        ["Key , Cell", " a , 01 ", "", "b,02", "\n"],
        ["\ufeffkey,cell", "a,01", "b,02"],
        ["\ufeffa,01", "b,02"],
        ["a,01", "b,02", "a,01"],
        ['{"key": "a", "cell": "01"}', '{"key": "b", "cell": "02", "weight": 2}'],
    ],
)
def test_catalog_forms(lines):
    """CSV with and without a header or weights, and JSON lines, say the same."""
    assert read_catalog(lines) == {"a": "01", "b": "02"}


def test_quoted_key_may_hold_a_comma():
    """CSV quotes are understood."""
    assert read_catalog(['"a,b ""c""",01']) == {'a,b "c"': "01"}


def test_numbers_in_json_are_keys_too():
    """A key or a cell that is a whole number in JSON is its digits."""
    assert read_catalog(['{"key": 17, "cell": 3}']) == {"17": "3"}


@pytest.mark.parametrize(
    "line",
    [
        "b",
        "b,02,1,extra",
        ",02",
        "b,",
        '{"key": "b"}',
        '{"key": "b", "cell": null}',
        '{"key": null, "cell": "02"}',
        '{"key": 1.5, "cell": "02"}',
        '{"key": true, "cell": "02"}',
        '{"key": ["b"], "cell": "02"}',
        '{"key": "b", "cell": ""}',
        '{"key": ',
        "a,02",
        "x" * 200_000 + ",02",
    ],
    ids=lambda line: line[:30],
)
def test_wrong_line_is_named(line):
    """What cannot be read, or moves a key, is an error with the number of its line."""
    with pytest.raises(ValueError, match=r"^line 3: "):
        read_catalog(["a,01", "", line])


def test_key_in_two_cells_is_told_in_full():
    """The error says which key stands where."""
    with pytest.raises(ValueError, match="line 2: key 'a' stands in cell '01' already"):
        read_catalog(["a,01", "a,02"])


@given(st.lists(st.text(max_size=30), max_size=5))
def test_no_catalog_fails_without_a_line(lines):
    """Any text is a catalog or a ValueError that names a line."""
    try:
        mapping, message = read_catalog(lines), "line "
    except ValueError as error:
        mapping, message = {}, str(error)
    assert message.startswith("line ")
    assert "" not in {*mapping, *mapping.values()}


# Subtree


def test_subtree_keeps_a_part_together():
    """All keys under one first segment share a cell, parts are spread."""
    router = SubtreeRouter(24)
    assert list(router.cells) == cell_ids(24)
    one = {router.route(f"https://shop.example/tea/{n}") for n in range(50)}
    many = {router.route(f"https://shop.example/part{n}/1") for n in range(50)}
    assert len(one) == 1
    assert len(many) > 10


def test_depth_says_how_much_names_a_part():
    """With depth 2 the second segment decides as well."""
    url = "https://shop.example/tea/{}/7"
    assert len({SubtreeRouter(24).route(url.format(n)) for n in range(50)}) == 1
    assert len({SubtreeRouter(24, 2).route(url.format(n)) for n in range(50)}) > 10


@pytest.mark.parametrize(
    "key", ["/tea/1", "tea/2", "//tea/3", "/tea/", "/tea//4?x=/y#/z"]
)
def test_path_is_a_key_too(key):
    """Slashes, query and fragment make no other part."""
    router = SubtreeRouter(10_000)
    if key == "//tea/3":  # a host without a scheme, as browsers read it
        assert router.route(key) == router.route("https://tea/3")
    else:
        assert router.route(key) == router.route("/tea/0")


@given(st.text(), st.integers(1, 4))
def test_subtree_takes_any_text(key, depth):
    """A key that is no URL still has a cell."""
    router = SubtreeRouter(24, depth)
    assert router.route(key) in router.cells
    assert router.route("http://[" + key) in router.cells


@pytest.mark.parametrize("depth", [0, -1])
def test_subtree_needs_a_segment(depth):
    """Without a segment every key would be in one cell."""
    with pytest.raises(ValueError, match="depth"):
        SubtreeRouter(24, depth)


# Moves
