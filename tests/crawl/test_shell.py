"""Scrapy's commands in a project with the add-on."""

from __future__ import annotations

import pytest

from tests.crawl.common import OLD_SCRAPY, base_of, new_project, proxy_of, run_python

SPIDER = '''
import scrapy


class PriceSpider(scrapy.Spider):
    name = "price"

    def parse(self, response):
        """One row a page.

        @url {base}/p/contract
        @returns items 1 1
        @scrapes key
        """
        yield {{"key": response.css("h1::text").get()}}
'''


@pytest.fixture
def project(site, tmp_path):
    settings = {
        "ADDONS": {"scrapy_cells.Addon": 900},
        "CELLS_PROXY": proxy_of(site),
        "CELLS_RATE": 100,
        "CELLS_SITE_RATE": 0,
    }
    return new_project(tmp_path, settings, price=SPIDER.format(base=base_of(site)))


def test_commands_that_download_go_through_a_cell_and_end(site, reactor, project):
    """fetch, parse, check and shell, with exit code 0."""
    url = f"{base_of(site)}/p/k1"

    def scrapy(*args):
        done = run_python("-m", "scrapy", *args, cwd=project, reactor=reactor)
        assert done.returncode == 0, done.log
        assert " ERROR: " not in done.log, done.log
        assert site.arrivals
        assert all(a.user for a in site.arrivals)
        site.arrivals.clear()
        return done

    assert "<h1>k1</h1>" in scrapy("fetch", "--nolog", url).out
    assert "{'key': 'k1'}" in scrapy("parse", "--spider=price", url).out
    assert "OK" in scrapy("check", "price").log
    if reactor != "none":  # where the shell of Scrapy does not work
        assert "k1" in scrapy("shell", url, "-c", "response.css('h1::text').get()").out


def test_commands_without_a_crawl(project, site):
    """list and settings work, and start nothing."""
    done = run_python("-m", "scrapy", "list", cwd=project)
    assert done.returncode == 0
    assert done.out.split() == ["price"]
    assert site.arrivals == []


def test_wrong_setting_ends_with_exit_code_1(project, site):
    """And with a message that names it, before anything is sent."""
    args = ["crawl", "price", "-s", "CELLS_RATE=-1", "-s", "CELLS_CUONT=3"]
    done = run_python("-m", "scrapy", *args, cwd=project)
    assert done.returncode == (0 if OLD_SCRAPY else 1)
    assert "CELLS_RATE='-1'" in done.log
    assert "CELLS_CUONT" in done.log
    assert site.knocks == site.arrivals == []
