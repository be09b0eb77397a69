"""Where an item came from, written on the item."""

from __future__ import annotations

import logging
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter, is_item

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_cells.crawl.runtime import Runtime

logger = logging.getLogger(__name__)


class Stamp:
    """Writes ``CELLS_ITEM_FIELDS`` on items that can hold them.

    dict, dataclass, attrs, pydantic and :class:`scrapy.Item` all do; a class without
    the field keeps its item as it is, with one warning a class.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._fields = runtime.config.item_fields
        self._warned: set[tuple[type, str]] = set()

    def put(self, item: Any, request: Request) -> Any:
        """Return *item*, stamped; a field that has a value already keeps it."""
        if not self._fields or not is_item(item):
            return item
        adapter = ItemAdapter(item)
        for field in self._fields:
            if adapter.get(field) is None:
                self._put_field(adapter, field, self._value(field, request))
        return item

    def _put_field(self, adapter: ItemAdapter, field: str, value: Any) -> None:
        try:
            adapter[field] = value
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            item_class = type(adapter.item)
            if (item_class, field) not in self._warned:
                self._warned.add((item_class, field))
                logger.warning(
                    "CELLS_ITEM_FIELDS: %(cls)s cannot hold %(field)s (%(error)s); its"
                    " items go on without it",
                    {"cls": item_class.__name__, "field": field, "error": error},
                )

    def _value(self, field: str, request: Request) -> Any:
        meta = request.meta
        if field == "cell_id":
            return meta.get("cell")
        if field == "cell_session":
            return meta.get("cell_session")
        if field == "cell_checked_at":
            now = self._runtime.clock.now()
            return datetime.fromtimestamp(now, timezone.utc).isoformat()
        if field == "cell_generation":
            cell = self._runtime.cell(meta["cell"]) if "cell" in meta else None
            session = meta.get("cell_session")
            live = cell.cohort.get(session) if cell and session else None
            return live.generation if live else _generation_of(session)
        return False  # cell_provisional: no key has moved without a store


def _generation_of(session: str | None) -> int | None:
    """Read the generation out of the id of a session that is gone ("07g1s2r1")."""
    if not session or "g" not in session:
        return None
    digits = session.rpartition("g")[2].partition("s")[0]
    return int(digits) if digits.isdigit() else None
