"""Runs shop and gateway beside a crawl, in a thread and a loop of their own."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from prices.shop.catalogue import Catalogue
from prices.shop.desk import Desk
from prices.shop.gateway import TEMPLATE, Gateway
from prices.shop.server import ShopServer
from prices.shop.story import SCRIPT, Story, StoryClock, read_story
from prices.shop.truth import Ledger, Report, in_words
from prices.shop.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import Self


class Host:
    """A shop that is open, with its gateway: ``with Host() as host: ...``.

    :param story: what happens; by default :data:`~prices.shop.story.SCRIPT`
    """

    def __init__(
        self, clock: StoryClock | None = None, story: Story | None = None
    ) -> None:
        self.clock = clock or StoryClock(1.0)
        self.story = read_story(SCRIPT) if story is None else story
        self.catalogue = Catalogue()
        self.ledger = Ledger()
        self.watch = Watch()
        self.desk = Desk(
            self.catalogue, self.story, self.watch, self.ledger, self.clock
        )
        self.shop = ShopServer(self.desk)
        self.gateway = Gateway(self.shop)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="shop", daemon=True)
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where the shop is."""
        return f"https://localhost:{self.shop.tls_port}"

    @property
    def plain_url(self) -> str:
        return f"http://localhost:{self.shop.port}"

    @property
    def proxy_template(self) -> str:
        """What to set ``CELLS_PROXY`` to."""
        return TEMPLATE % self.gateway.port

    def start(self) -> None:
        """Open; returns when all ports are there."""
        self._thread.start()
        if not self._ready.wait(30):
            raise RuntimeError("the shop did not open")

    def stop(self) -> None:
        """Close; nothing is left open."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(30)

    def check(
        self,
        rows: Iterable[Mapping[str, Any]],
        cells: Mapping[str, str],
        reasons: Mapping[str, str] | None = None,
    ) -> Report:
        """Compare a crawl's rows with the truth.

        :param cells: the cell of every key that was asked for
        :param reasons: why a key has no row
        """
        report = self.ledger.check(
            rows, self.catalogue, cells, planned=self.story.cells, reasons=reasons
        )
        report.suspicions = [
            in_words(flag.at, flag.exit, flag.why)
            for flag in self.watch.flags
            if flag.why != "story"
        ]
        return report

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._open())
            self._ready.set()
            loop.run_forever()
            loop.run_until_complete(self._close())
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    async def _open(self) -> None:
        await self.shop.start()
        await self.gateway.start()

    async def _close(self) -> None:
        self.gateway.stop()
        self.shop.stop()
        await asyncio.sleep(0)  # who was let in a moment ago gets a task to cancel
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.05)  # let the transports close
