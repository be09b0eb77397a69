"""The spider middleware: requests get their cell, callbacks settle outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import CloseSpider
from scrapy.spidermiddlewares.httperror import HttpError

from scrapy_cells.crawl.bypass import PARENT
from scrapy_cells.crawl.intake import Intake
from scrapy_cells.crawl.routing import strip_private
from scrapy_cells.crawl.runtime import runtime_of
from scrapy_cells.crawl.stamp import Stamp
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from scrapy_cells.crawl.runtime import Runtime
    from scrapy_cells.domain.permit import Permit


class CellSpiderMiddleware:
    """Routes what the spider yields and says what its callbacks made of the answers."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._stats = runtime.crawler.stats
        self._stamp = Stamp(runtime)
        self._intake = Intake(runtime)
        self._expect_items = runtime.config.expect_items
        runtime.registered.add("spider middleware")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(runtime_of(crawler))

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        intake = self._intake
        try:
            async for found in start:
                if not isinstance(found, Request):
                    yield found
                    continue
                strip_private(found.meta)
                if self._runtime.governs(found):
                    if self._runtime.routing.route(found) is None:
                        self._stats.inc_value("cells/skipped_count")
                        continue
                    if intake.noting:
                        self._runtime.defer(found)
                        await intake.breathe()
                        continue
                    intake.count(found)
                yield found
                await intake.room()
        finally:
            intake.ended()

    def process_spider_input(self, response: Response) -> None:
        request = response.request
        if request is not None and "cell" in request.meta:
            # media pipelines and downloads of the callback's own find their cell here
            PARENT.set(_routing_meta(request))

    def process_spider_output(
        self, response: Response, result: Iterable[Any]
    ) -> Iterator[Any]:
        watch = _Callback(self, response)
        try:
            for found in result:
                if (kept := watch.processed(found)) is not None:
                    yield kept
        except Exception as error:
            watch.failed(error)
            raise
        except GeneratorExit:
            watch.interrupted()
            raise
        watch.done()

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        watch = _Callback(self, response)
        try:
            async for found in result:
                if (kept := watch.processed(found)) is not None:
                    yield kept
        except Exception as error:
            watch.failed(error)
            raise
        except GeneratorExit:
            watch.interrupted()
            raise
        watch.done()

    def process_spider_exception(
        self, response: Response, exception: Exception
    ) -> None:
        _Callback(self, response).failed(exception)


class _Callback:
    """One response on its way through the spider."""

    def __init__(self, owner: CellSpiderMiddleware, response: Response) -> None:
        self._owner = owner
        self._runtime = owner._runtime  # noqa: SLF001 - the middleware's own helper
        self._request = response.request
        self._items = 0
        self._requests = 0

    @property
    def _permit(self) -> Permit | None:
        if self._request is None:
            return None
        return self._runtime.permit_of(self._request)

    def processed(self, found: Any) -> Any:
        """Return what goes on of one thing the callback yielded."""
        owner = self._owner
        parent = self._request
        if not isinstance(found, Request):
            self._items += 1
            return found if parent is None else owner._stamp.put(found, parent)  # noqa: SLF001
        self._requests += 1
        meta = found.meta
        strip_private(meta, None if parent is None else parent.meta)
        if not self._runtime.governs(found):
            return found
        routing = self._runtime.routing
        parent_meta = {} if parent is None else _routing_meta(parent)
        if routing.route_follow_up(found, parent_meta) is None:
            owner._stats.inc_value("cells/skipped_count")  # noqa: SLF001
            return None
        return found

    def done(self) -> None:
        permit = self._permit
        if permit is None:
            return
        if self._owner._expect_items and not (self._items or self._requests):  # noqa: SLF001
            self._parse_failure(permit, "no item")
        else:
            self._runtime.settle(permit, Outcome.OK)

    def failed(self, error: Exception) -> None:
        permit = self._permit
        if permit is None:
            return
        if isinstance(error, (HttpError, CloseSpider)):
            self._runtime.settle(permit, Outcome.OK)
        else:
            self._parse_failure(permit, type(error).__name__)

    def interrupted(self) -> None:
        permit = self._permit
        if permit is not None:
            self._runtime.settle(permit, Outcome.NEUTRAL)

    def _parse_failure(self, permit: Permit, why: str) -> None:
        assert self._request is not None
        self._runtime.settle(permit, Outcome.PARSE_FAILURE)
        self._runtime.holes.given_up(
            self._request, permit.cell, why, str(Outcome.PARSE_FAILURE)
        )


def _routing_meta(request: Request) -> dict[str, Any]:
    names = ("cell", "cell_key", "cell_session", "retry_times")
    return {name: request.meta[name] for name in names if name in request.meta}
