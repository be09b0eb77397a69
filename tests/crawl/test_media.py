"""Files of media pipelines: they go the way of the page they were found on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crawl.common import HTML, OLD_SCRAPY, crawl, keys, pages, right_keys
from tests.harness.target import Reply


@pytest.fixture
def files_settings(tmp_path):
    return {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path),
        "CELLS_KEY": r"regex:/p/(\w+)",
    }


def file_of(arrival):
    return Reply(body=b"file of " + arrival.key.encode())


def test_files_go_through_the_cell_and_session_of_their_page(
    site, reactor, files_settings, tmp_path
):
    """None goes out directly, a failed one is tried again, and all cost a token."""
    failed = set()

    def respond(arrival):
        if "/files/" not in arrival.path:
            return None
        if arrival.key[5] in "02468" and arrival.key not in failed:
            failed.add(arrival.key)
            return Reply(503, b"down")
        return file_of(arrival)

    site.respond = respond
    crawled = crawl(site, files_settings, "FilesSpider", n=20, reactor=reactor)
    assert right_keys(crawled) == keys(20)
    users = {a.key: a.user for a in site.arrivals if "/p/" in a.path}
    files = [a for a in site.arrivals if "/files/" in a.path]
    assert len(failed) == 10
    assert len(files) == 30
    assert [a for a in files if a.user != users[a.key.partition(".")[0]]] == []
    for item in crawled.items:
        [file] = item["files"]
        stored = Path(tmp_path, file["path"]).read_text()
        assert stored == f"file of {item['key']}.bin"
    assert crawled.stats["cells/request_count"] == 50
    assert crawled.stats["cells/outcome_count/server_error"] == 10


def test_block_page_is_not_stored_as_a_file(site, reactor, files_settings):
    """It is recognised as it would be for a page, and the item goes on without."""

    def respond(arrival):
        if "/files/" not in arrival.path:
            return None
        if arrival.key.startswith("k00003"):
            return Reply(403, b"<html><body>no</body></html>", HTML)
        return file_of(arrival)

    site.respond = respond
    crawled = crawl(
        site,
        files_settings,
        "FilesSpider",
        n=8,
        reactor=reactor,
        errors=int(OLD_SCRAPY),
    )
    assert right_keys(crawled) == keys(8)
    without = [item["key"] for item in crawled.items if not item["files"]]
    assert without == ["k00003"]
    assert all(a.user for a in pages(site.arrivals))
    assert crawled.stats["cells/outcome_count/blocked"] == 3
