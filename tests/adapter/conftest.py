"""Fixtures of the adapter tests."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.utils.reactor import install_reactor

from tests.adapter.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator


@pytest.fixture(scope="session", autouse=True)
def _reactor() -> None:
    """Install the reactor Scrapy uses by default; nothing here runs it."""
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")


@pytest.fixture
def new_rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Rig]]:
    """Return what makes a crawler with a clock and timers that stand still."""

    rigs = []

    def make(spider: type[Any] | None = None, **settings: Any) -> Rig:
        rig = Rig(spider, **settings)
        rigs.append(rig)
        monkeypatch.setattr("scrapy_cells.crawl.runtime.call_later", rig.call_later)
        return rig

    yield make
    for rig in rigs:
        for queue in list(rig.runtime.queues):
            with contextlib.suppress(FileNotFoundError):  # the test removed it
                queue.close()
        rig.runtime.spill_folder.remove()


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Return what runs a coroutine on the reactor's event loop."""
    from twisted.internet import reactor

    return reactor._asyncioEventloop.run_until_complete
