"""Which cell a request belongs to."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy_cells.domain.router import normalise_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request

    from scrapy_cells.crawl.runtime import Runtime

logger = logging.getLogger(__name__)

_PRIVATE = "_cells_"


class Routing:
    """Writes ``cell`` and ``cell_key`` into the meta of requests."""

    def __init__(self, runtime: Runtime) -> None:
        self._router = runtime.router
        self._key_of = runtime.config.build_key()
        self.index = {cell: n for n, cell in enumerate(runtime.all_cells)}
        self.running = frozenset(runtime.running)
        self._order = runtime.running
        self._warned: set[str] = set()

    def route(self, request: Request) -> str | None:
        """Route a request that has no parent.

        :return: its cell; ``None`` if that cell does not run in this process
        """
        meta = request.meta
        key = meta.get("cell_key") or self._key_of(request) or request.url
        meta["cell_key"] = key = normalise_key(str(key))
        cell = meta.get("cell")
        if not isinstance(cell, str) or cell not in self.index:
            if cell is not None:
                self._warn_unknown(cell)
            meta["cell"] = cell = self._router.route(key)
        return cell if cell in self.running else None

    def route_follow_up(
        self, request: Request, parent: Mapping[str, Any]
    ) -> str | None:
        """Route a request that a callback made.

        It keeps its parent's cell, key and session unless it has a key, or a cell, of
        its own. What a copy of the parent's meta carried along is not its own.
        """
        meta = request.meta
        parent_cell, parent_key = parent.get("cell"), parent.get("cell_key")
        if parent_cell is None:
            return self.route(request)
        if meta.get("cell", parent_cell) != parent_cell:
            return self.route(request)
        key = meta.get("cell_key", parent_key)
        if key == parent_key and self._key_of.explicit:
            key = self._key_of(request) or parent_key
        meta.pop("cell", None)
        meta["cell_key"] = key
        if key != parent_key:
            return self.route(request)
        meta["cell"] = parent_cell
        if "cell_session" in parent:
            meta["cell_session"] = parent["cell_session"]
        return str(parent_cell)

    def settle_on_running(self, request: Request) -> str:
        """Route a request that has to run here, whatever cell its key belongs to.

        For requests that were not made by the spider: a redirect out of a cell keeps
        it, and an extension's own download must not be lost.
        """
        cell = self.route(request)
        if cell is None:
            request.meta.pop("cell", None)
            spread = sum(request.meta["cell_key"].encode("utf-8", "replace"))
            cell = self._order[spread % len(self._order)]
            request.meta["cell"] = cell
        return cell

    def _warn_unknown(self, cell: object) -> None:
        if str(cell) not in self._warned and len(self._warned) < 100:
            self._warned.add(str(cell))
            logger.warning(
                "meta['cell'] = %(cell)r is no cell of this crawl; the request is"
                " routed by its key instead",
                {"cell": cell},
            )


def strip_private(
    meta: dict[str, Any], parent: Mapping[str, Any] | None = None
) -> None:
    """Remove what belongs to another request of which *meta* is a copy.

    :param parent: the meta that it may be a copy of; ``retry_times`` goes only when it
        is the parent's, since a request of ``get_retry_request`` counts one more
    """
    for name in [name for name in meta if name.startswith(_PRIVATE)]:
        del meta[name]
    meta.pop("cell_session", None)
    if str(meta.get("download_slot", "")).startswith("cell:"):
        del meta["download_slot"]
    times = meta.get("retry_times")
    if times is not None and parent is not None and times == parent.get("retry_times"):
        del meta["retry_times"]
