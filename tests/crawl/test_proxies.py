"""Proxies of all kinds, and what they are told."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from tests.crawl.common import HURT, PASSWORD, crawl, keys, right_keys

if TYPE_CHECKING:
    from tests.harness.target import Arrival

CREDENTIALS = [
    ("user:p%40ss", "user", "p@ss"),
    ("us%40er:p@ss", "us@er", "p@ss"),
    ("a:b:c", "a", "b:c"),
    ("slash:a/b", "slash", "a/b"),
    ("hash:a#b?c", "hash", "a#b?c"),
    ("percent:50%zz", "percent", "50%zz"),
    ("кот:пароль", "кот", "пароль"),
    ("lonely", "lonely", ""),
]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_proxy_hears_the_user_and_password_that_were_meant(site, reactor, scheme):
    """Of a list, whatever characters they hold, each for the keys of one session."""
    proxies = [f"http://{c}@127.0.0.1:{site.proxy_port}" for c, _, _ in CREDENTIALS]
    settings = {"CELLS_PROXY": proxies, "CELLS_SESSIONS": 2}
    crawled = crawl(site, settings, "AgainSpider", scheme=scheme, n=40, reactor=reactor)
    assert right_keys(crawled) == sorted(keys(40) * 2)
    assert {(k.user, k.password) for k in site.knocks} == {
        (user, password) for _, user, password in CREDENTIALS
    }
    by_key = sorted({(a.key, a.user) for a in site.arrivals})
    assert [key for key, _ in by_key] == keys(40)
    assert [a for a in site.arrivals if "proxy-authorization" in a.headers] == []
    kinds = {"http": {"http"}, "https": {"connect"}}
    assert {k.kind for k in site.knocks} == kinds[scheme]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_proxy_at_an_ipv6_address(site, reactor, scheme):
    """Works for plain and for tunnelled targets."""
    if not site.proxy6_port:
        pytest.skip("no ::1 here")
    proxy = f"http://u-{{cell}}-{{generation}}-{{session}}:x@[::1]:{site.proxy6_port}"
    crawled = crawl(site, {"CELLS_PROXY": proxy}, scheme=scheme, n=16, reactor=reactor)
    assert right_keys(crawled) == keys(16)
    assert all(a.user for a in site.arrivals)
    assert crawled.stats["cells/outcome_count/ok"] == 16


@pytest.mark.parametrize("fault", ["502", "407"])
def test_answer_of_the_proxy_itself_is_no_page(site, reactor, fault):
    """It counts as a proxy error, and another session of the cell is tried."""
    site.gate = lambda k: fault if k.user == f"u-{HURT}-0-1" else ""
    crawled = crawl(site, n=40, reactor=reactor)
    assert right_keys(crawled) == keys(40)
    failed = sum(bool(k.fault) for k in site.knocks)
    assert failed > 0
    assert crawled.stats["cells/outcome_count/proxy_error"] == failed
    assert crawled.stats[f"cells/by_cell/{HURT}/outcome_count/proxy_error"] == failed


def test_retry_through_another_session_uses_its_credentials_only(site, reactor):
    """Every request at the proxy has the user and password of one session."""
    shown = itertools.count()
    site.gate = lambda k: "407" if next(shown) % 7 == 3 else ""
    settings = {"CELLS_RETRY_TIMES": 6}
    crawled = crawl(site, settings, scheme="https", n=24, reactor=reactor)
    assert right_keys(crawled) == keys(24)
    assert {k.password for k in site.knocks} == {PASSWORD}
    assert all(k.user.startswith("u-") for k in site.knocks)
    assert not any(map(_tells_secret, site.arrivals))


def _tells_secret(arrival: Arrival) -> bool:
    return PASSWORD in repr(arrival.headers) or "proxy-authorization" in arrival.headers
