"""Where a cell's backlog goes when there is too much of it for memory."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

from scrapy.squeues import PickleFifoDiskQueue
from scrapy.utils.misc import build_from_crawler

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler


class SpillFolder:
    """A folder for one crawl, made when first needed and gone with the process."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def path(self) -> str:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="scrapy-cells-")
        return self._folder.name

    def remove(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


class Spill:
    """One lane's requests beyond what it keeps in memory, first in, first out.

    :param path: of the queue's files
    """

    def __init__(self, crawler: Crawler, path: str) -> None:
        self._queue: Any = build_from_crawler(PickleFifoDiskQueue, crawler, path)

    def __len__(self) -> int:
        return len(self._queue)

    def push(self, request: Request) -> bool:
        """Add a request; ``False`` if it cannot be written and must stay in memory."""
        try:
            self._queue.push(request)
        except ValueError:
            return False
        return True

    def pop(self) -> Request | None:
        request: Request | None = self._queue.pop()
        return request

    def close(self) -> None:
        self._queue.close()
