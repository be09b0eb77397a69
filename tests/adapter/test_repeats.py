"""The same page for many keys."""

from __future__ import annotations

from scrapy import Request
from scrapy.http import HtmlResponse

from scrapy_cells.crawl.repeats import Repeats
from scrapy_cells.detection import Page


def page(key, title="Shop", text="Please come back later", status=200):
    url = f"http://shop.example/{key}"
    body = f"<html><title>{title}</title><p>{text}</p></html>".encode()
    request = Request(url, meta={"cell_key": key})
    return Page(request, HtmlResponse(url, status=status, body=body))


def test_same_page_for_many_keys_is_told():
    """One page sets the measure, and the fifth equal one after it is too many."""
    repeats = Repeats()
    told = [repeats.note("00", page(f"k{n}")) for n in range(7)]
    assert told == [False] * 5 + [True] * 2


def test_pages_of_different_products_are_not_told():
    """Titles that differ, or texts that do, make different pages of the same length."""
    repeats = Repeats()
    titles = [repeats.note("00", page(f"k{n}", title=f"Shop {n}")) for n in range(9)]
    texts = [repeats.note("00", page(f"k{n}", text=f"Price {n}")) for n in range(9)]
    assert not any(titles + texts)


def test_cells_are_looked_at_apart():
    """What one cell gets says nothing about another."""
    repeats = Repeats()
    told = [repeats.note(f"{n:02}", page(f"k{n}")) for n in range(20)]
    assert not any(told)


def test_one_key_over_and_over_is_not_told():
    """A page that is asked for again may well be the same."""
    repeats = Repeats()
    assert not any(repeats.note("00", page("k")) for _ in range(20))
