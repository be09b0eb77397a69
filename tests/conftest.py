"""What the crawl tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.world.crawl import CrawlResult, run_crawl
from tests.world.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def world() -> Iterator[World]:
    """A shop and its gateway on loopback, fresh for each test."""
    with World() as world:
        yield world


@pytest.fixture
def crawl(world: World) -> Callable[..., CrawlResult]:
    """Crawls the shop in cells: ``crawl(n=60, CELLS_COUNT=6)``.

    Names in capitals are settings, others are arguments of :func:`run_crawl` or of the
    spider. ``scheme="https"`` crawls through tunnels.
    """

    def run(*spider: str, scheme: str = "http", **options: Any) -> CrawlResult:
        settings = {name: options.pop(name) for name in list(options) if name.isupper()}
        options.setdefault("base", world.base(scheme))
        return run_crawl(world.settings(**settings), *spider, **options)

    return run
