"""What the add-on does to the settings, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import scrapy
from scrapy.core.scheduler import Scheduler
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import CloseSpider
from scrapy.pqueues import DownloaderAwarePriorityQueue, ScrapyPriorityQueue
from scrapy.settings import Settings
from scrapy.utils.misc import load_object
from scrapy.utils.spider import DefaultSpider
from scrapy.utils.test import get_crawler

from scrapy_cells import Addon, CellsConfigError
from scrapy_cells import _scrapy_compat as compat
from scrapy_cells.crawl import checks
from scrapy_cells.crawl.admission import AdmissionMiddleware
from scrapy_cells.crawl.extension import CellExtension
from scrapy_cells.crawl.handler import (
    HttpCellDownloadHandler,
    HttpsCellDownloadHandler,
)
from scrapy_cells.crawl.outcomes import OutcomeMiddleware
from scrapy_cells.crawl.queue import CellPriorityQueue
from scrapy_cells.crawl.robots import CellRobotsTxtMiddleware
from scrapy_cells.crawl.runtime import runtime_of
from scrapy_cells.crawl.session import SessionMiddleware
from scrapy_cells.crawl.spidermw import CellSpiderMiddleware
from tests.adapter.rig import ADDONS


class OtherHandler:
    """Another one."""


OURS = "scrapy_cells.crawl.queue.CellPriorityQueue"
STOCK = "scrapy.pqueues.DownloaderAwarePriorityQueue"


class RivalAddon:
    """Another add-on that wants the queue for itself."""

    def update_settings(self, settings):
        settings.set("SCHEDULER_PRIORITY_QUEUE", ScrapyPriorityQueue, "addon")


class ReplacingAddon:
    """Another add-on that sets a component dictionary as a whole."""

    def update_settings(self, settings):
        settings.set("DOWNLOADER_MIDDLEWARES", {MyRetry: 77}, "addon")


class OtherScheduler:
    """A scheduler that never asks SCHEDULER_PRIORITY_QUEUE."""


class OwnScheduler(Scheduler):
    """One that does."""


class MyRetry(RetryMiddleware):
    """A project's own retry middleware."""


class Handler:
    """A project's own download handler."""


def crawler_with(settings=None, spider=None, addons=ADDONS):
    return get_crawler(spider or DefaultSpider, {"ADDONS": addons, **(settings or {})})


def refused(settings=None, spider=None, addons=ADDONS) -> str:
    """Return why a crawl does not start, before or after its settings are final."""
    with pytest.raises(CellsConfigError) as caught:
        runtime_of(crawler_with(settings, spider, addons))
    return str(caught.value)


def spider_with(**settings):
    class Spider(DefaultSpider):
        custom_settings = settings

    return Spider


def middlewares_of(settings) -> list[type]:
    """Return the downloader middlewares that would be built."""
    enabled = compat.components_of(settings, "DOWNLOADER_MIDDLEWARES")
    return list(map(load_object, enabled))


def number_of(settings, name: str, component) -> int | None:
    return {load_object(c): n for c, n in settings[name].items()}.get(component, -1)


# A clean project


def test_clean_project_gets_all_components():
    """One line in ADDONS is all that is required."""
    settings = crawler_with().settings
    assert settings["SCHEDULER_PRIORITY_QUEUE"] is CellPriorityQueue
    for name, component, number in (
        ("SPIDER_MIDDLEWARES", CellSpiderMiddleware, 40),
        ("DOWNLOADER_MIDDLEWARES", AdmissionMiddleware, 10),
        ("DOWNLOADER_MIDDLEWARES", OutcomeMiddleware, 585),
        ("DOWNLOADER_MIDDLEWARES", SessionMiddleware, 950),
        ("DOWNLOADER_MIDDLEWARES", CellRobotsTxtMiddleware, 100),
        ("EXTENSIONS", CellExtension, 100),
    ):
        assert number_of(settings, name, component) == number
    handlers = settings["DOWNLOAD_HANDLERS"]
    assert handlers["http"] is HttpCellDownloadHandler
    assert handlers["https"] is HttpsCellDownloadHandler


def test_clean_project_passes_its_own_checks():
    """What the add-on sets up is what the runtime asks for, without a warning."""
    crawler = crawler_with()
    checks.check_settings(crawler.settings)
    assert runtime_of(crawler) is runtime_of(crawler)
    assert runtime_of(crawler).share is None


def test_nothing_but_the_documented_settings_is_touched():
    """The list in the add-on's docstring is complete."""
    plain = get_crawler(DefaultSpider).settings.copy_to_dict()
    ours = crawler_with().settings.copy_to_dict()
    changed = {name for name in ours if ours[name] != plain.get(name)}
    assert changed - {"ADDONS"} == {
        "SCHEDULER_PRIORITY_QUEUE",
        "SPIDER_MIDDLEWARES",
        "DOWNLOADER_MIDDLEWARES",
        "EXTENSIONS",
        "DOWNLOAD_HANDLERS",
        "CONCURRENT_REQUESTS",
    }


def test_nothing_is_written_above_the_level_of_an_addon():
    """A spider and the command line can still say otherwise."""
    settings = crawler_with().settings
    assert settings.getpriority("SCHEDULER_PRIORITY_QUEUE") == 15
    assert settings.getpriority("CONCURRENT_REQUESTS") == 15
    for name in (*checks.COMPONENTS, "DOWNLOAD_HANDLERS"):
        assert settings.getpriority(name) <= 15


def test_retry_middleware_is_off():
    """Ours takes its place; two would multiply the tries."""
    settings = crawler_with().settings
    assert number_of(settings, "DOWNLOADER_MIDDLEWARES", RetryMiddleware) is None
    assert RetryMiddleware not in middlewares_of(settings)


@pytest.mark.parametrize(
    "key", [RetryMiddleware, "scrapy.downloadermiddlewares.retry.RetryMiddleware"]
)
def test_retry_middleware_that_a_project_moved_is_off_too(key):
    """Also where the project gave it another number."""
    settings = crawler_with({"DOWNLOADER_MIDDLEWARES": {key: 560}}).settings
    assert RetryMiddleware not in middlewares_of(settings)
    assert AdmissionMiddleware in middlewares_of(settings)


# The queue


def test_queue_that_the_user_set_to_ours_is_fine():
    """As a path and as a class, at any level."""
    for value in (OURS, CellPriorityQueue):
        runtime_of(crawler_with({"SCHEDULER_PRIORITY_QUEUE": value}))
        runtime_of(crawler_with(spider=spider_with(SCHEDULER_PRIORITY_QUEUE=value)))


@pytest.mark.parametrize("value", [STOCK, DownloaderAwarePriorityQueue])
def test_queue_pinned_by_the_project_is_refused_with_the_ways_out(value):
    """Even the default, pinned: it would win without a word."""
    text = refused({"SCHEDULER_PRIORITY_QUEUE": value})
    for part in (STOCK, "project level", "Remove", OURS, "CELLS_ENABLED=False"):
        assert part in text


def test_queue_pinned_by_the_spider_is_refused():
    """``custom_settings`` come in before the add-on runs."""
    text = refused(spider=spider_with(SCHEDULER_PRIORITY_QUEUE=STOCK))
    assert "spider level" in text


def test_rival_addon_before_ours_is_refused():
    """It has the queue already, and would lose without knowing."""
    text = refused(addons={RivalAddon: 100, **ADDONS})
    assert "scrapy.pqueues.ScrapyPriorityQueue" in text
    assert "addon level" in text


def test_rival_addon_after_ours_is_refused_by_the_runtime():
    """The add-on cannot see what comes after it; every component's runtime does."""
    text = refused(addons={**ADDONS, RivalAddon: 950})
    assert "scrapy.pqueues.ScrapyPriorityQueue" in text
    assert "higher number in ADDONS" in text


@pytest.mark.parametrize(
    "scheduler", [OtherScheduler, f"{__name__}.OtherScheduler", "builtins.dict"]
)
def test_custom_scheduler_is_refused(scheduler):
    """One that is not Scrapy's never asks for the queue."""
    text = refused({"SCHEDULER": scheduler})
    assert "never asks SCHEDULER_PRIORITY_QUEUE" in text
    assert "project level" in text


def test_subclass_of_the_scheduler_is_fine():
    """Scrapy's own scheduler with a change is still one that asks for the queue."""
    runtime_of(crawler_with({"SCHEDULER": OwnScheduler}))


def test_all_problems_are_told_at_once():
    """Queue and scheduler in one error, not one after the other."""
    text = refused({"SCHEDULER": OtherScheduler, "SCHEDULER_PRIORITY_QUEUE": STOCK})
    assert text.count("  - ") == 2


# Components


@pytest.mark.parametrize(
    ("name", "path"),
    [(name, path) for name, parts in checks.COMPONENTS.items() for path in parts],
)
@pytest.mark.parametrize("as_class", [False, True])
def test_component_set_to_none_stops_the_crawl(name, path, as_class):
    """Half-equipped is worse than not at all; the add-on does not put it back."""
    key = load_object(path) if as_class else path
    assert f"{name}: {path} is missing" in refused({name: {key: None}})


def test_component_dictionary_replaced_by_a_later_addon_stops_the_crawl():
    """Three components are gone, and all three are named."""
    text = refused(addons={**ADDONS, ReplacingAddon: 950})
    assert text.count("is missing") == 3


def test_number_the_user_gave_a_component_stays():
    """Who knows better may say where it goes."""
    path = "scrapy_cells.crawl.session.SessionMiddleware"
    crawler = crawler_with({"DOWNLOADER_MIDDLEWARES": {path: 940}})
    settings = crawler.settings
    assert number_of(settings, "DOWNLOADER_MIDDLEWARES", SessionMiddleware) == 940
    runtime_of(crawler)


def test_components_of_project_and_spider_stay():
    """Ours are added to what is there, at the level at which it is."""
    mine = {"tests.adapter.test_addon.MyRetry": 77}
    for crawler in (
        crawler_with({"DOWNLOADER_MIDDLEWARES": mine}),
        crawler_with(spider=spider_with(DOWNLOADER_MIDDLEWARES=mine)),
    ):
        classes = middlewares_of(crawler.settings)
        assert MyRetry in classes
        assert AdmissionMiddleware in classes
        runtime_of(crawler)


# robots.txt


def test_stock_robots_middleware_is_replaced():
    """Where Scrapy's stands, ours stands."""
    settings = crawler_with().settings
    classes = middlewares_of(settings)
    assert RobotsTxtMiddleware not in classes
    assert CellRobotsTxtMiddleware in classes


@pytest.mark.parametrize("number", [None, 5])
def test_robots_middleware_that_was_moved_or_turned_off_stays_so(number):
    """The project has said what it wants of it."""
    path = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
    settings = crawler_with({"DOWNLOADER_MIDDLEWARES": {path: number}}).settings
    name = "DOWNLOADER_MIDDLEWARES"
    assert number_of(settings, name, RobotsTxtMiddleware) == number
    assert number_of(settings, name, CellRobotsTxtMiddleware) == -1


# Download handlers


@pytest.mark.parametrize("value", [Handler, f"{__name__}.Handler"])
def test_handlers_of_the_project_are_wrapped(value):
    """What was there is kept as the fallback, for each scheme its own."""
    settings = crawler_with(
        {"DOWNLOAD_HANDLERS": {"https": value, "s3": None}}
    ).settings
    assert settings["DOWNLOAD_HANDLERS"]["https"] is HttpsCellDownloadHandler
    assert settings["DOWNLOAD_HANDLERS"]["http"] is HttpCellDownloadHandler
    assert settings["DOWNLOAD_HANDLERS"]["s3"] is None
    assert load_object(settings["CELLS_FALLBACK_HTTPS_HANDLER"]) is Handler
    assert settings.get("CELLS_FALLBACK_HTTP_HANDLER") is None


def test_handlers_of_the_spider_are_wrapped_too():
    """``DOWNLOAD_HANDLERS`` in custom_settings would win over the add-on's level."""
    spider = spider_with(DOWNLOAD_HANDLERS={"http": Handler})
    settings = crawler_with(spider=spider).settings
    assert settings["DOWNLOAD_HANDLERS"]["http"] is HttpCellDownloadHandler
    assert settings["CELLS_FALLBACK_HTTP_HANDLER"] is Handler
    assert spider.custom_settings == {"DOWNLOAD_HANDLERS": {"http": Handler}}


def test_handlers_given_on_a_command_line_are_wrapped_too():
    """A JSON string is read as Scrapy reads it."""
    value = f'{{"http": "{__name__}.Handler"}}'
    settings = crawler_with({"DOWNLOAD_HANDLERS": value}).settings
    handlers = settings.getdict("DOWNLOAD_HANDLERS")
    assert handlers["http"] is HttpCellDownloadHandler
    assert load_object(settings["CELLS_FALLBACK_HTTP_HANDLER"]) is Handler


def test_scheme_the_user_turned_off_stays_off():
    """``None`` is no handler to be wrapped."""
    settings = crawler_with({"DOWNLOAD_HANDLERS": {"http": None}}).settings
    assert settings["DOWNLOAD_HANDLERS"]["http"] is None
    assert settings["DOWNLOAD_HANDLERS"]["https"] is HttpsCellDownloadHandler


def test_fallback_the_user_named_wins():
    """The setting can be set by hand, and ours is not wrapped by ours."""
    settings = crawler_with(
        {
            "DOWNLOAD_HANDLERS": {"http": HttpCellDownloadHandler, "https": Handler},
            "CELLS_FALLBACK_HTTP_HANDLER": Handler,
            "CELLS_FALLBACK_HTTPS_HANDLER": OtherHandler,
        }
    ).settings
    assert settings["DOWNLOAD_HANDLERS"]["http"] is HttpCellDownloadHandler
    assert settings["CELLS_FALLBACK_HTTP_HANDLER"] is Handler
    assert settings["CELLS_FALLBACK_HTTPS_HANDLER"] is OtherHandler


# Off


@pytest.mark.parametrize("value", [False, "False", "0", 0])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"SCHEDULER_PRIORITY_QUEUE": STOCK, "CELLS_COUNT": -5, "CELLS_NONSENSE": 1},
        {"DOWNLOAD_HANDLERS": {"http": Handler}},
    ],
)
def test_disabled_addon_leaves_the_settings_as_they_are(value, more):
    """``CELLS_ENABLED=False``: the crawl is the one without the package."""
    given = {"CELLS_ENABLED": value, **more}
    without = get_crawler(DefaultSpider, {"ADDONS": {}, **given}).settings
    settings = crawler_with(given).settings
    before, after = without.copy_to_dict(), settings.copy_to_dict()
    del before["ADDONS"], after["ADDONS"]
    assert after == before
    names = [name for name in before if name != "ADDONS"]
    assert [settings.getpriority(n) for n in names] == [
        without.getpriority(n) for n in names
    ]


def test_switch_that_is_neither_is_refused():
    """Neither on nor off by accident."""
    assert "CELLS_ENABLED='perhaps'" in refused({"CELLS_ENABLED": "perhaps"})


def test_refused_settings_are_left_as_they_were():
    """Everything is checked before anything is changed."""
    for bad in (
        {"CELLS_COUNT": 0},
        {"SCHEDULER_PRIORITY_QUEUE": STOCK},
        {"SCHEDULER": OtherScheduler},
    ):
        settings = Settings(bad)
        before = settings.copy_to_dict()
        with pytest.raises(CellsConfigError):
            Addon().update_settings(settings)
        assert settings.copy_to_dict() == before


# CONCURRENT_REQUESTS


@pytest.mark.parametrize(
    ("given", "total"),
    [
        ({}, 96),
        ({"CELLS_COUNT": 2}, 16),
        ({"CELLS_CONCURRENCY": 3}, 72),
        ({"CELLS_SESSIONS": 6}, 144),
        ({"CELLS_ONLY": "00,01,02,03,04"}, 20),
        ({"CELLS_SHARD": "0/2"}, 48),
        ({"CELLS_OVERRIDES": {"00": {"concurrency": 10}}}, 102),
        ({"CELLS_OVERRIDES": {"00": {"concurrency": 1}}}, 96),
    ],
)
def test_concurrency_is_raised_to_the_sum_of_bulkheads(given, total):
    """No cell waits for a place of another; never less than Scrapy's default."""
    crawler = crawler_with(given)
    assert crawler.settings.getint("CONCURRENT_REQUESTS") == total
    assert runtime_of(crawler).share is None


def test_concurrency_of_the_user_stays_and_shrinks_every_bulkhead(caplog):
    """An equal share for each, said once."""
    crawler = crawler_with({"CONCURRENT_REQUESTS": 50})
    assert crawler.settings.getint("CONCURRENT_REQUESTS") == 50
    runtime = runtime_of(crawler)
    assert runtime.share == 2
    for _ in range(2):
        assert runtime_of(crawler) is runtime
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    (warning,) = [text for text in warnings if "CONCURRENT_REQUESTS=50" in text]
    assert "96" in warning
    index, total = 0, len(runtime.all_cells)
    options = runtime.config.options_for("00", index, total, runtime.share)
    assert options.concurrency == 2


@pytest.mark.parametrize("value", [96, 1000, "96", 0])
def test_concurrency_of_the_user_that_is_enough_changes_nothing(caplog, value):
    """No warning where there is room for all; 0 is no limit."""
    assert runtime_of(crawler_with({"CONCURRENT_REQUESTS": value})).share is None
    assert "CONCURRENT_REQUESTS" not in caplog.text


def test_concurrency_below_the_number_of_cells_is_refused():
    """Some cells would have no place at all."""
    text = refused({"CONCURRENT_REQUESTS": 23})
    for part in ("CONCURRENT_REQUESTS=23", "(24)", "(96)", "CELLS_COUNT"):
        assert part in text
    runtime_of(crawler_with({"CONCURRENT_REQUESTS": 24}))


def test_concurrency_of_the_spider_counts_as_the_users():
    """``custom_settings`` are the user's word too."""
    crawler = crawler_with(spider=spider_with(CONCURRENT_REQUESTS=48))
    assert runtime_of(crawler).share == 2


# In the end


def test_missing_part_closes_the_spider_before_it_starts(new_rig, run, caplog):
    """What was replaced unseen is found when the spider opens."""
    rig = new_rig()
    closed = []

    async def close_spider_async(*, reason):
        closed.append(reason)

    rig.engine.close_spider_async = close_spider_async
    rig.engine._slot.scheduler = object()
    extension = CellExtension.from_crawler(rig.crawler)
    AdmissionMiddleware.from_crawler(rig.crawler)
    if compat.close_on_open_is_honoured():
        with pytest.raises(CloseSpider) as caught:
            run(extension.spider_opened(rig.crawler.spider))
        assert caught.value.reason == "cells_misconfigured"
    else:
        run(extension.spider_opened(rig.crawler.spider))
        assert closed == ["cells_misconfigured"]
    for part in ("outcome", "queue", "session", "spider middleware"):
        assert part in caplog.text


SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "it"
    custom_settings = {
        "ADDONS": {"scrapy_cells.Addon": 900},
        %s
    }

    async def start(self):
        print("it started")
        yield scrapy.Request("data:,x")
"""


@pytest.mark.parametrize(
    "line",
    [
        '"CELLS_COUNT": 0',
        '"EXTENSIONS": {"scrapy_cells.crawl.extension.CellExtension": None}',
    ],
    ids=["bad setting", "missing part"],
)
def test_refused_crawl_ends_with_exit_code_1(tmp_path, line):
    """A scheduler that looks at exit codes sees that nothing was crawled."""
    path = tmp_path / "it.py"
    path.write_text(SPIDER % line)
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "runspider", str(path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if scrapy.version_info[:2] >= (2, 19):  # 2.14 ends with 0 whatever an add-on raises
        assert done.returncode == 1, done.stderr
    assert "CellsConfigError: scrapy-cells cannot start this crawl" in done.stderr
    assert "it started" not in done.stdout
