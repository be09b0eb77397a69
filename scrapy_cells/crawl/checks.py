"""Is everything in place? Asked of the final settings, and of the open spider."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.core.scheduler import Scheduler
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from scrapy_cells import _scrapy_compat as compat
from scrapy_cells.crawl import jobdir
from scrapy_cells.errors import CellsConfigError
from scrapy_cells.proxies import parse_proxy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy.settings import BaseSettings

    from scrapy_cells.config import CellsConfig

logger = logging.getLogger(__name__)

QUEUE = "scrapy_cells.crawl.queue.CellPriorityQueue"

COMPONENTS = {
    "SPIDER_MIDDLEWARES": {"scrapy_cells.crawl.spidermw.CellSpiderMiddleware": 40},
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy_cells.crawl.admission.AdmissionMiddleware": 10,
        "scrapy_cells.crawl.outcomes.OutcomeMiddleware": 585,
        "scrapy_cells.crawl.session.SessionMiddleware": 950,
    },
    "EXTENSIONS": {"scrapy_cells.crawl.extension.CellExtension": 100},
}
"""Every component and its place, by setting."""

PARTS = frozenset({"queue", "admission", "outcome", "session", "spider middleware"})
"""What reports to the runtime when it was built."""


_MISSING = (
    "%(name)s: %(path)s is missing (set to None, or the setting was replaced whole"
    " after the add-on ran). Cells work only together: put it back, or turn them off"
    " with CELLS_ENABLED=False"
)


def check_settings(settings: BaseSettings) -> None:
    """Check that the crawl as configured in the end goes through the cells.

    :raises CellsConfigError: listing all that is in the way, with the ways out
    """
    problems = [*queue_problems(settings), *_component_problems(settings)]
    if problems:
        raise CellsConfigError(problems)
    jobdir.check_jobdir(settings)


def queue_problems(settings: BaseSettings) -> list[str]:
    """Return what replaces the queue or the scheduler."""
    problems = []
    queue = _loaded(settings["SCHEDULER_PRIORITY_QUEUE"])
    if queue is not load_object(QUEUE):
        problems.append(
            f"SCHEDULER_PRIORITY_QUEUE={global_object_name(queue)} (set at"
            f" {level_of(settings, 'SCHEDULER_PRIORITY_QUEUE')} level) takes the place"
            f" of the queue that keeps cells apart. Remove that line, or set it to"
            f" {QUEUE!r}; if another add-on sets it, give scrapy_cells.Addon the higher"
            " number in ADDONS; or turn cells off with CELLS_ENABLED=False"
        )
    scheduler = _loaded(settings["SCHEDULER"])
    if not (isinstance(scheduler, type) and issubclass(scheduler, Scheduler)):
        problems.append(
            f"SCHEDULER={global_object_name(scheduler)} (set at"
            f" {level_of(settings, 'SCHEDULER')} level) never asks"
            " SCHEDULER_PRIORITY_QUEUE. Use Scrapy's own scheduler or a subclass of it,"
            " or turn cells off with CELLS_ENABLED=False"
        )
    return problems


def _component_problems(settings: BaseSettings) -> list[str]:
    problems = []
    for name, components in COMPONENTS.items():
        enabled = {
            global_object_name(_loaded(c)) for c in compat.components_of(settings, name)
        }
        problems += [
            _MISSING % {"name": name, "path": path}
            for path in components
            if path not in enabled
        ]
    return problems


def check_proxies(config: CellsConfig, settings: BaseSettings) -> None:
    """Check that the download handlers can use proxies of the given schemes.

    :raises CellsConfigError: naming the scheme and what can be done
    """
    if callable(config.proxy):
        source = config.build_source(())
        cells = config.running_cells(tuple(config.build_router().cells))
        if source.draw(cells[0], 0, "0", 0.0) is None:
            problem = (
                f"CELLS_PROXY: gave no proxy for session 0 of cell {cells[0]},"
                " generation 0. It has to return one for every session of every cell"
            )
            raise CellsConfigError([problem])
    handler = settings.get("CELLS_FALLBACK_HTTPS_HANDLER") or settings[
        "DOWNLOAD_HANDLERS_BASE"
    ].get("https")
    if not settings.getbool("TWISTED_REACTOR_ENABLED", True) or handler is None:
        return
    if not issubclass(load_object(handler), HTTP11DownloadHandler):
        return
    schemes = {parse_proxy(url).scheme for url in config.sample_proxies()}
    if bad := sorted(schemes - {"http"}):
        problem = (
            f"CELLS_PROXY: Scrapy's HTTP/1.1 download handler cannot tunnel through"
            f" {', '.join(bad)}:// proxies. Use the proxy's http:// address, or a"
            " download handler that can (DOWNLOAD_HANDLERS)"
        )
        raise CellsConfigError([problem])


def share_of_concurrency(
    settings: BaseSettings, cells: int, config: CellsConfig
) -> int | None:
    """Return how many requests a cell may have in flight if the user said less.

    :return: ``None`` if ``CONCURRENT_REQUESTS`` is ours, or high enough
    :raises CellsConfigError: if it is lower than the number of cells
    """
    total = settings.getint("CONCURRENT_REQUESTS")
    needed = config.sum_of_bulkheads(cells)
    if total == 0 or total >= needed:
        return None
    if total < cells:
        problem = (
            f"CONCURRENT_REQUESTS={total}: must be at least the number of cells"
            f" ({cells}), better the sum of what they may have in flight ({needed})."
            " Raise or remove it, or lower CELLS_COUNT"
        )
        raise CellsConfigError([problem])
    share = total // cells
    logger.warning(
        "CONCURRENT_REQUESTS=%(total)d is less than the %(needed)d requests that"
        " %(cells)d cells may have in flight: every cell gets its equal share,"
        " %(share)d. Remove the setting to give them all",
        {"total": total, "needed": needed, "cells": cells, "share": share},
    )
    return share


def missing_parts(registered: Iterable[str]) -> list[str]:
    """Return the parts that were configured but never built."""
    return sorted(PARTS - set(registered))


def level_of(settings: BaseSettings, name: str) -> str:
    """Return where a setting was set, in words: "project", "spider"..."""
    priority = settings.getpriority(name)
    for level, number in SETTINGS_PRIORITIES.items():
        if number == priority:
            return level
    return f"priority {priority}"


def _loaded(value: Any) -> Any:
    return load_object(value) if isinstance(value, str) else value
