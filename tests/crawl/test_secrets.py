"""Where the proxies' credentials are not."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.crawl.common import HTML, HURT, PASSWORD, crawl, keys, keys_by_cell
from tests.harness.target import Reply


def encoded(text: str) -> set[bytes]:
    """The text in base64 at each of three offsets, without the ends that vary."""
    found = set()
    for offset in range(3):
        code = base64.b64encode(b"x" * offset + text.encode())
        found.add(code[4 if offset else 0 : -4])
    return found


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_password_reaches_the_proxy_and_nothing_else(site, reactor, tmp_path, scheme):
    """Not the log, the HTTP cache, the JOBDIR, feeds or holes, plain or in base64."""
    site.respond = lambda a: Reply(403, b"no", HTML) if a.cell == HURT else None
    site.gate = lambda k: {"u-01-0-1": "407", "u-01-0-2": "reset"}.get(k.user, "")
    settings = {
        "LOG_LEVEL": "DEBUG",
        "COOKIES_DEBUG": True,
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path / "cache"),
        "JOBDIR": str(tmp_path / "job"),
        "CELLS_HOLES": str(tmp_path / "holes.jsonl"),
        "CELLS_TIMEOUT": 1,
        "CELLS_ITEM_FIELDS": "cell_id,cell_session",
        "FEEDS": {str(tmp_path / "out.json"): {"format": "json"}},
    }
    crawled = crawl(site, settings, scheme=scheme, n=40, reactor=reactor)
    assert {k.password for k in site.knocks} == {PASSWORD}
    good = {k for cell, ks in keys_by_cell(40).items() if cell != HURT for k in ks}
    rows = {item["key"] for item in crawled.items}
    assert good - rows <= set(keys(40))
    assert rows <= good
    texts = {p.name: p.read_bytes() for p in Path(tmp_path).rglob("*") if p.is_file()}
    assert {"holes.jsonl", "out.json", "requests.seen"} <= texts.keys()
    texts["log"] = crawled.log.encode()
    texts["stats"] = repr(crawled.stats).encode()
    texts["events"] = repr((crawled.events, crawled.failures, crawled.items)).encode()
    texts["site"] = repr([a.headers for a in site.arrivals]).encode()
    needles = {PASSWORD.encode(), *encoded(PASSWORD)}
    needles |= {base64.b64encode(f"{k.user}:".encode())[:-4] for k in site.knocks}
    tells = {name for name, text in texts.items() if any(n in text for n in needles)}
    assert tells == set()
