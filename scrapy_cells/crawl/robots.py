"""robots.txt for everybody who waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.robotstxt import RobotParser


class CellRobotsTxtMiddleware(RobotsTxtMiddleware):
    """Scrapy's, but with the rules for all requests that waited for the file.

    Scrapy up to 2.19 hands them to the first that waits for a host's robots.txt; the
    others, which many cells have at the start, would go out as if there were none.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._asking: dict[str, list[Deferred[None]]] = {}

    async def robot_parser(self, request: Request, *args: Any) -> RobotParser | None:
        host = urlparse_cached(request).netloc
        waiting = self._asking.get(host)
        if waiting is None:
            waiting = self._asking[host] = []
            try:
                return await super().robot_parser(request, *args)
            finally:
                del self._asking[host]
                for waiter in waiting:
                    waiter.callback(None)
        turn: Deferred[None] = Deferred()
        waiting.append(turn)
        await maybe_deferred_to_future(turn)
        return await super().robot_parser(request, *args)
