"""Projects that were written without cells in mind."""

from __future__ import annotations

import json
import re

from tests.crawl.common import (
    base_of,
    keys,
    new_project,
    proxy_of,
    right_keys,
    run_python,
    usual_settings,
)
from tests.harness.crawl import run_crawl
from tests.harness.target import Reply

QUOTES = """
import scrapy


class QuotesSpider(scrapy.Spider):
    name = "quotes"

    def __init__(self, base, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [f"{base}/quotes/1"]

    def parse(self, response):
        for quote in response.css("div.quote"):
            yield {
                "text": quote.css("span.text::text").get(),
                "author": quote.css("small.author::text").get(),
            }
            yield from response.follow_all(quote.css("a.about"), self.parse_author)
        next_page = response.css("li.next a::attr(href)").get()
        if next_page is not None:
            yield response.follow(next_page, callback=self.parse)

    def parse_author(self, response):
        yield {"name": response.css("h3::text").get()}
"""

OLD = """
import scrapy


class OldSpider(scrapy.Spider):
    name = "old"

    def __init__(self, base, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [f"{base}/p/old{n}" for n in range(12)]

    def parse(self, response):
        return {"key": response.css("h1::text").get()}
"""

MODERN = """
import scrapy

from shop.items import ShopItem


class ModernSpider(scrapy.Spider):
    name = "modern"

    def __init__(self, base, **kwargs):
        super().__init__(**kwargs)
        self.base = base

    async def start(self):
        for n in range(12):
            meta = {"number": n, "download_slot": "mine", "cookiejar": n % 2}
            url = f"{self.base}/p/new{n}"
            yield scrapy.Request(url, self.parse_page, meta=meta, priority=n)
            yield scrapy.Request(url, self.parse_page)

    async def parse_page(self, response):
        yield ShopItem(key=response.css("h1::text").get())
        data = {"number": str(response.meta["number"])}
        yield scrapy.FormRequest(
            response.urljoin("/search"), self.parse_search, formdata=data
        )

    def parse_search(self, response):
        yield ShopItem(key="found")
"""

ITEMS = """
import scrapy


class ShopItem(scrapy.Item):
    key = scrapy.Field()
"""

PAGES = 4


def bookish(site):
    """The pages of a site like that of Scrapy's tutorial."""

    def respond(arrival):
        if arrival.path.startswith("/quotes/"):
            number = int(arrival.key)
            quotes = "".join(
                f'<div class="quote"><span class="text">quote {number}.{n}</span>'
                f'<small class="author">author {n}</small>'
                f'<a class="about" href="/author/{n}">(about)</a></div>'
                for n in range(3)
            )
            following = f'<li class="next"><a href="/quotes/{number + 1}">Next</a></li>'
            page = quotes + (following if number < PAGES else "")
        elif arrival.path.startswith("/author/"):
            page = f"<h3>author {arrival.key}</h3>"
        else:
            return None
        body = f"<html><title>Quotes</title><body>{page}</body></html>".encode()
        return Reply(body=body, headers={"Content-Type": "text/html"})

    return respond


def rows_of(project, spider, site, reactor, *options):
    args = ["crawl", spider, "-a", f"base={base_of(site)}", "-O", "out.json", *options]
    done = run_python("-m", "scrapy", *args, cwd=project, reactor=reactor)
    assert done.returncode == 0, done.log
    assert " ERROR: " not in done.log, done.log
    assert "'finish_reason': 'finished'" in done.log
    return json.loads((project / "out.json").read_text(encoding="utf-8")), done.log


def test_spiders_of_a_new_project_run_unchanged(site, reactor, tmp_path):
    """One line in the settings of ``scrapy startproject`` is enough, and a proxy."""
    site.respond = bookish(site)
    settings = {
        "ADDONS": {"scrapy_cells.Addon": 900},
        "CELLS_PROXY": proxy_of(site),
        "CELLS_SITE_RATE": 200,
        "CELLS_RATE": 200,
    }
    project = new_project(tmp_path, settings, quotes=QUOTES, old=OLD, modern=MODERN)
    (project / "shop" / "items.py").write_text(ITEMS, encoding="utf-8")

    rows, _ = rows_of(project, "quotes", site, reactor)
    texts = sorted(row["text"] for row in rows if "text" in row)
    assert texts == [f"quote {p}.{n}" for p in range(1, PAGES + 1) for n in range(3)]
    names = sorted(row["name"] for row in rows if "name" in row)
    assert names == ["author 0", "author 1", "author 2"]

    rows, _ = rows_of(project, "old", site, reactor)
    assert sorted(row["key"] for row in rows) == sorted(f"old{n}" for n in range(12))

    rows, log = rows_of(project, "modern", site, reactor)
    assert sorted(row["key"] for row in rows) == sorted(
        ["found"] * 12 + [f"new{n}" for n in range(12)]
    )
    assert "'dupefilter/filtered': 12" in log
    searches = [a for a in site.arrivals if a.path == "/search"]
    users = {a.key: a.user for a in site.arrivals}
    assert {a.user for a in searches} <= set(users.values())
    assert all(a.user for a in site.arrivals)
    assert "/robots.txt" in {a.path for a in site.arrivals}


def test_crawl_with_cells_off_is_the_crawl_without_the_add_on(site, reactor):
    """The same stats, the same components, and the same requests at the site."""
    tries = {}

    def respond(arrival):
        tries[arrival.key] = tries.get(arrival.key, 0) + 1
        return Reply(503, b"down") if arrival.key == "k00005" else None

    site.respond = respond
    seen = []
    off = usual_settings(site, CELLS_ENABLED=False, COOKIES_ENABLED=False)
    without = {name: value for name, value in off.items() if "CELLS" not in name}
    without["ADDONS"] = {}
    for settings in (off, without):
        crawled = run_crawl(settings, base=base_of(site), n=16, reactor=reactor)
        assert crawled.returncode == 0, crawled.log
        assert right_keys(crawled) == [k for k in keys(16) if k != "k00005"]
        headers = {
            (a.path, *sorted(a.headers.items() - {("host", a.headers["host"])}))
            for a in site.arrivals
        }
        counts = {
            name: value
            for name, value in crawled.stats.items()
            if isinstance(value, int) and "memusage" not in name
        }
        components = re.findall(r"Enabled [^\]]+\]", crawled.log)
        seen.append((sorted(crawled.stats), counts, headers, components))
        assert dict(tries) == {key: 3 if key == "k00005" else 1 for key in keys(16)}
        assert {a.user for a in site.arrivals} == {""}
        site.arrivals.clear()
        tries.clear()
    assert seen[0] == seen[1]
