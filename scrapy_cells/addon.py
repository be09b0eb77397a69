"""The add-on: all the settings that a crawl in cells needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from scrapy_cells.config import CellsConfig
from scrapy_cells.crawl import checks
from scrapy_cells.crawl.handler import HANDLERS, CellDownloadHandler
from scrapy_cells.crawl.robots import CellRobotsTxtMiddleware
from scrapy_cells.errors import CellsConfigError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


class Addon:
    """Cuts the crawl into cells: ``ADDONS = {"scrapy_cells.Addon": 900}``.

    What the project, the spider or the command line set stays as it is; where that
    would leave the crawl half-equipped, it does not start. The settings it touches:
    ``SCHEDULER_PRIORITY_QUEUE``, ``SPIDER_MIDDLEWARES``, ``DOWNLOADER_MIDDLEWARES``,
    ``EXTENSIONS``, ``DOWNLOAD_HANDLERS`` (http and https) and ``CONCURRENT_REQUESTS``.

    :raises CellsConfigError: if the settings cannot work
    """

    def update_settings(self, settings: BaseSettings) -> None:
        if not _enabled(settings):
            # without a message Scrapy skips the add-on without a word
            raise NotConfigured
        config = CellsConfig.from_settings(settings)
        self._claim_queue(settings)
        for name, components in checks.COMPONENTS.items():
            for path, order in components.items():
                settings.setdefault_in_component_priority_dict(
                    name, load_object(path), order
                )
        self._turn_off(settings, RetryMiddleware)
        self._replace_robots_txt(settings)
        self._wrap_handlers(settings)
        if settings.getpriority("CONCURRENT_REQUESTS") == 0:
            cells = len(config.running_cells(tuple(config.build_router().cells)))
            settings.set(
                "CONCURRENT_REQUESTS",
                max(config.sum_of_bulkheads(cells), settings["CONCURRENT_REQUESTS"]),
                "addon",
            )

    def _claim_queue(self, settings: BaseSettings) -> None:
        name = "SCHEDULER_PRIORITY_QUEUE"
        claimed = settings.copy()
        if settings.getpriority(name) == 0:
            claimed.set(name, load_object(checks.QUEUE), "addon")
        if problems := checks.queue_problems(claimed):
            raise CellsConfigError(problems)
        if settings.getpriority(name) == 0:
            settings.set(name, load_object(checks.QUEUE), "addon")

    def _turn_off(self, settings: BaseSettings, component: type) -> None:
        """Turn a built-in downloader middleware off, whoever moved it where.

        By its path, as Scrapy names it: before 2.19 the class is another key.
        """
        name = "DOWNLOADER_MIDDLEWARES"
        components = {
            key: number
            for key, number in settings.getdict(name).items()
            if load_object(key) is not component
        }
        components[global_object_name(component)] = None
        settings.set(name, components, settings.getpriority(name) or 0)

    def _replace_robots_txt(self, settings: BaseSettings) -> None:
        """Put our robots.txt middleware where Scrapy's is, unless that was moved."""
        name = "DOWNLOADER_MIDDLEWARES"
        if not any(load_object(c) is RobotsTxtMiddleware for c in settings[name]):
            self._turn_off(settings, RobotsTxtMiddleware)
            settings.setdefault_in_component_priority_dict(
                name, CellRobotsTxtMiddleware, 100
            )

    def _wrap_handlers(self, settings: BaseSettings) -> None:
        name = "DOWNLOAD_HANDLERS"
        handlers: dict[str, Any] = dict(settings.getdict(name))
        for scheme, ours in HANDLERS.items():
            before = handlers.get(scheme)
            if scheme in handlers and before is None:
                continue  # the user turned the scheme off
            if before is not None:
                if issubclass(load_object(before), CellDownloadHandler):
                    continue
                fallback = f"CELLS_FALLBACK_{scheme.upper()}_HANDLER"
                if settings.get(fallback) is None:
                    settings.set(fallback, before, "addon")
            handlers[scheme] = ours
        priority = settings.getpriority(name) or 0
        if not settings.getbool("TWISTED_REACTOR_ENABLED", True):
            # Scrapy then names its own handlers afterwards, at project level
            priority = max(priority, SETTINGS_PRIORITIES["project"])
        settings.set(name, handlers, priority)


def _enabled(settings: BaseSettings) -> bool:
    try:
        return settings.getbool("CELLS_ENABLED", True)
    except ValueError as error:
        value = settings.get("CELLS_ENABLED")
        raise CellsConfigError(
            [f"CELLS_ENABLED={value!r}: must be True or False"]
        ) from error
