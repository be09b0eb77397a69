"""Soft blocks that only repetition shows."""

from __future__ import annotations

import pytest

from scrapy_cells.detection import Page, RepeatedBody
from tests.detection.answers import LONG, answer, page


def fingerprint(body: str, status: int = 200) -> str:
    return Page(*answer(body, status)).fingerprint


def test_one_page_for_many_keys_is_a_soft_block() -> None:
    """The fifth different key in a row trips it, and so does every further one."""
    repeated = RepeatedBody()
    noted = [repeated.note("07", f"key{n}", "shell") for n in range(7)]
    assert noted == [False] * 4 + [True] * 3


def test_the_same_key_repeats_nothing() -> None:
    """A monitor asks for one product again and again."""
    repeated = RepeatedBody()
    assert not any(repeated.note("07", "key", "page") for _ in range(50))


def test_another_page_in_between_starts_anew() -> None:
    """A cell that still gets good pages is not walled off."""
    repeated = RepeatedBody()
    for n in range(50):
        print_of = "good" if n % 4 == 3 else "sold out"
        assert not repeated.note("07", f"key{n}", print_of)


def test_cells_do_not_share_their_rows() -> None:
    """Each cell has its own row, and forgets it alone."""
    repeated = RepeatedBody(keys=2)
    assert not repeated.note("07", "a", "shell")
    assert not repeated.note("08", "b", "shell")
    assert repeated.note("07", "c", "shell")
    repeated.forget("07")
    assert not repeated.note("07", "d", "shell")
    assert repeated.note("08", "e", "shell")


def test_answers_that_may_be_alike_are_not_counted() -> None:
    """Missing and sold-out pages with an error status neither trip nor reset."""
    gone = fingerprint(page("", "Out of stock", "Shop"), 404)
    repeated = RepeatedBody()
    assert gone == ""
    assert not any(repeated.note("07", f"key{n}", gone) for n in range(50))


def test_memory_does_not_grow_with_keys() -> None:
    """A cell keeps one fingerprint and a handful of keys."""
    repeated = RepeatedBody()
    for n in range(1000):
        repeated.note("07", f"key{n}", "shell")
    assert len(repeated._runs["07"][1]) == 5


def test_a_row_of_one_is_refused() -> None:
    """One key alone repeats nothing."""
    with pytest.raises(ValueError, match="at least 2"):
        RepeatedBody(keys=1)


def test_scripts_and_styles_do_not_change_a_fingerprint() -> None:
    """Shells differ in tokens of their scripts, and in nothing a reader sees."""
    first = page("<script>var nonce='1'</script>", "<p class=a>Shop</p>", "Shop")
    second = page("<style>p{}</style>", "<p class=b>Shop</p> ", "Shop")
    assert fingerprint(first) == fingerprint(second) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (page("", "Kettle", "A"), page("", "Kettle", "B")),
        (page("", "Kettle", "A"), page("", "Toaster", "A")),
        (page("", LONG * 3 + "Kettle", "A"), page("", LONG * 3 + "Toaster", "A")),
        (
            page('<script type="application/ld+json">{"name":"Kettle"}</script>'),
            page('<script type="application/ld+json">{"name":"Toaster"}</script>'),
        ),
        ('{"price": 1}', '{"price": 2}'),
    ],
)
def test_pages_with_other_data_have_other_fingerprints(one: str, other: str) -> None:
    """Title, all visible text, JSON-LD and JSON bodies are data."""
    assert fingerprint(one) != fingerprint(other)


def test_binary_answers_have_no_fingerprint() -> None:
    """One placeholder picture for many products is no wall."""
    assert Page(*answer(b"\x89PNG\0\0")).fingerprint == ""
    assert Page(*answer(b"")).fingerprint == ""
