"""What a request wears of its cell and session, and what is left when it is off."""

from __future__ import annotations

import pytest
from scrapy import Request

from scrapy_cells.crawl.dress import dress, undress

AGENT = "Mozilla/5.0 (a kettle)"


@pytest.fixture
def permit(new_rig):
    """Return the permit of a cell whose sessions have a user agent."""
    rig = new_rig(CELLS_USER_AGENTS=[AGENT])
    return rig.admit(rig.request("02", "B07"))


def test_dressed_request_wears_its_cell_and_session(permit):
    """Slot and deadline of the cell, cookies and user agent of the session."""
    request = Request("http://shop.example/")
    dress(request, permit, 20.0)
    assert request.meta["download_slot"] == "cell:02"
    assert request.meta["cookiejar"] == permit.session.id
    assert request.meta["download_timeout"] == 20.0
    assert request.meta["autothrottle_dont_adjust_delay"] is True
    assert request.headers[b"User-Agent"] == AGENT.encode()


def test_undressed_request_is_as_before(permit):
    """Nothing of the session is left that a copy could carry along."""
    request = Request("http://shop.example/", meta={"page": 3})
    dress(request, permit, 20.0)
    undress(request)
    kept = {"page", "download_slot", "autothrottle_dont_adjust_delay"}
    assert set(request.meta) == kept, "the slot says where the request was sent"
    assert dict(request.headers) == {}
    undress(request)
    assert set(request.meta) == kept


def test_what_the_user_set_stays(permit):
    """A timeout, a user agent and AutoThrottle's word are the user's to say."""
    request = Request(
        "http://shop.example/",
        meta={"download_timeout": 3, "autothrottle_dont_adjust_delay": False},
        headers={"User-Agent": "mine"},
    )
    dress(request, permit, 20.0)
    assert request.meta["download_timeout"] == 3
    assert request.meta["autothrottle_dont_adjust_delay"] is False
    assert request.headers[b"User-Agent"] == b"mine"
    undress(request)
    assert request.meta["download_timeout"] == 3
    assert request.headers[b"User-Agent"] == b"mine"


@pytest.mark.parametrize("jar", ["basket", 0, 7])
def test_cookiejar_of_the_user_becomes_one_of_the_session(permit, jar):
    """Jars are kept apart by session too; the name comes back unchanged."""
    request = Request("http://shop.example/", meta={"cookiejar": jar})
    dress(request, permit, 20.0)
    assert request.meta["cookiejar"] == f"{permit.session.id}/{jar}"
    undress(request)
    assert request.meta["cookiejar"] == jar


def test_dressing_again_does_not_pile_up(permit):
    """A request that comes back dressed gets the clothes of its new permit only."""
    request = Request("http://shop.example/", meta={"cookiejar": "basket"})
    dress(request, permit, 20.0)
    dress(request, permit, 5.0)
    assert request.meta["cookiejar"] == f"{permit.session.id}/basket"
    assert request.meta["download_timeout"] == 5.0
    undress(request)
    assert request.meta["cookiejar"] == "basket"
    assert "download_timeout" not in request.meta


def test_undressing_leaves_others_alone():
    """A request that never wore anything keeps all of its own."""
    meta = {"cookiejar": "basket", "download_timeout": 3, "download_slot": "mine"}
    request = Request("http://shop.example/", meta=meta.copy())
    undress(request)
    assert request.meta == meta


def test_copy_can_be_undressed_too(permit):
    """A redirect copies what the first wore; the queue takes it off."""
    request = Request("http://shop.example/", meta={"cookiejar": "basket"})
    dress(request, permit, 20.0)
    copy = request.replace(url="http://shop.example/next")
    undress(copy)
    assert copy.meta["cookiejar"] == "basket"
    assert b"User-Agent" not in copy.headers
    assert request.meta["cookiejar"] == f"{permit.session.id}/basket"
