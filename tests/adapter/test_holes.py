"""Holes: what was not checked, counted and written."""

from __future__ import annotations

import json

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from scrapy_cells import CellUnavailable, Hole, read_holes
from scrapy_cells.report.holes import HoleBook


def request(key: str = "B07") -> Request:
    return Request("http://shop.example/caf\u00e9", meta={"cell_key": key})


def test_holes_are_counted_and_read_again(tmp_path):
    """What a run wrote is what a later run reads, in order."""
    path = tmp_path / "deep" / "holes.jsonl"
    book = HoleBook(str(path))
    book.given_up(request("B07"), "00", "captcha", "captcha")
    book.given_up(request("caf\u00e9"), "01", "retry_budget", "timeout")
    book.given_up(Request("http://shop.example/x"), "01", "deferred")
    book.close()
    assert book.by_reason == {"captcha": 1, "retry_budget": 1, "deferred": 1}
    assert book.by_cell == {"00": 1, "01": 2}
    url = "http://shop.example/caf%C3%A9"
    assert list(read_holes(path)) == [
        Hole("B07", "00", url, "captcha", "captcha"),
        Hole("caf\u00e9", "01", url, "retry_budget", "timeout"),
        Hole("http://shop.example/x", "01", "http://shop.example/x", "deferred", ""),
    ]
    assert "caf\u00e9" in path.read_text(encoding="utf-8"), "readable for people"


def test_request_is_one_hole_however_often_it_is_given_up():
    """An errback's failure after a give-up does not count twice."""
    book = HoleBook()
    once = request()
    book.given_up(once, "00", "captcha", "captcha")
    book.dropped(once, IgnoreRequest())
    book.given_up(once, "00", "shutdown")
    assert book.by_reason == {"captcha": 1}


def test_dropped_request_of_a_key_is_a_hole():
    """A key that a middleware ignored was not checked; anything else is no key's."""
    book = HoleBook()
    book.dropped(request(), IgnoreRequest("robots.txt says no"))
    book.dropped(request(), CellUnavailable("00", "closed"))
    book.dropped(Request("http://shop.example/robots.txt"), IgnoreRequest())
    book.dropped(request(), ValueError("a bug, told of by Scrapy itself"))
    assert book.by_reason == {"ignored": 2}


def test_run_without_a_hole_leaves_no_old_file(tmp_path):
    """What an earlier run wrote is not taken for this run's."""
    path = tmp_path / "holes.jsonl"
    path.write_text(json.dumps({"old": 1}))
    HoleBook(str(path)).close()
    assert path.read_text() == ""
    assert list(read_holes(path)) == []


def test_run_without_a_hole_leaves_a_file_in_a_new_folder(tmp_path):
    """The folder need not be there, with holes or without."""
    path = tmp_path / "deep" / "holes.jsonl"
    HoleBook(str(path)).close()
    assert list(read_holes(path)) == []


def test_run_with_holes_replaces_an_old_file(tmp_path):
    """A file is one run's."""
    path = tmp_path / "holes.jsonl"
    for key in ("a", "b"):
        book = HoleBook(str(path))
        book.given_up(request(key), "00", "deferred")
        book.close()
    assert [hole.key for hole in read_holes(path)] == ["b"]


def test_no_path_only_counts(tmp_path, monkeypatch):
    """Without CELLS_HOLES nothing is written anywhere."""
    monkeypatch.chdir(tmp_path)
    book = HoleBook()
    book.given_up(request(), "00", "deferred")
    book.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("line", ["{", "5", '{"key": "a"}', '{"key": "a", "more": 1}'])
def test_line_that_is_no_hole_is_named(tmp_path, line):
    """A file of something else is not read as if it were empty."""
    path = tmp_path / "holes.jsonl"
    good = '{"key": "a", "cell": "00", "url": "u", "reason": "deferred"}'
    path.write_text(f"{good}\n\n{line}\n")
    holes = read_holes(path)
    assert next(holes) == Hole("a", "00", "u", "deferred", "")
    with pytest.raises(ValueError, match=r"holes\.jsonl, line 3: no hole"):
        next(holes)
