"""All ``CELLS_*`` settings, read once and checked before anything starts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
)
from scrapy.utils.misc import load_object

from scrapy_cells.config import problems, reading
from scrapy_cells.config.cell import CellSettings, SecondsOrNone
from scrapy_cells.config.keys import KeyFunction, build_key
from scrapy_cells.config.reserved import ReservedSettings
from scrapy_cells.config.routers import new_router
from scrapy_cells.domain.options import CellOptions
from scrapy_cells.errors import CellsConfigError
from scrapy_cells.sources import (
    Agents,
    CallableSource,
    ListSource,
    NoProxySource,
    TemplateSource,
    expand_env,
    template_problem,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy.settings import BaseSettings

    from scrapy_cells.domain.cohort import SessionSource
    from scrapy_cells.domain.router import Router

_PREFIX = "CELLS_"
_OWN = "CELLS_FALLBACK_"
"""Settings that the add-on itself writes."""

_SHARD = re.compile(r"\s*([0-9]{1,9})\s*/\s*([0-9]{1,9})\s*")
_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")

CellCount = Annotated[
    int,
    BeforeValidator(
        reading.whole("a whole number from 1 to 100000", lambda n: 1 <= n <= 100_000)
    ),
]
SiteRate = Annotated[
    float,
    BeforeValidator(
        reading.number(
            "a number >= 0 (requests per second, over all cells); 0 for no ceiling",
            lambda n: n >= 0,
        )
    ),
]
Flag = Annotated[bool, BeforeValidator(reading.flag)]
Text = Annotated[str, BeforeValidator(reading.text)]
Texts = Annotated[tuple[str, ...], BeforeValidator(reading.texts)]
Entries = Annotated[tuple[Any, ...], BeforeValidator(reading.entries)]
Table = Annotated[dict[str, Any], BeforeValidator(reading.mapping)]
ItemField = Literal[
    "cell_id",
    "cell_session",
    "cell_generation",
    "cell_provisional",
    "cell_checked_at",
]


class CellsConfig(CellSettings, ReservedSettings):
    """The settings of a crawl; the field ``rate`` is the setting ``CELLS_RATE``.

    Times are seconds, rates requests a second. The README lists what each means.
    """

    enabled: Flag = True
    count: CellCount = 24
    key: Any = "url"
    router: Any = "hash"
    catalog: Text = ""
    only: Texts = ()
    shard: Text = ""
    proxy: Any = Field(default=None, repr=False)
    user_agents: tuple[str, ...] = ()
    site_rate: SiteRate = 5.0
    detection: Entries = ()
    ok_selector: Text = ""
    expect_items: Flag = False
    holes: Text = ""
    max_wait: SecondsOrNone = 600.0
    item_fields: Annotated[tuple[ItemField, ...], BeforeValidator(reading.texts)] = ()
    overrides: Table = Field(default_factory=dict)

    _router: Router | None = PrivateAttr(default=None)

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> CellsConfig:
        """Read and check all settings.

        :raises CellsConfigError: listing every problem
        """
        names = {f"{_PREFIX}{field.upper()}": field for field in cls.model_fields}
        found: list[str] = []
        given: dict[str, Any] = {}
        for name in map(str, settings):
            if name in names:
                value = settings.get(name)
                if value is not None:
                    given[names[name]] = value
            elif name.upper().startswith(_PREFIX) and not name.startswith(_OWN):
                found.append(problems.unknown_setting(name, names))
        setting_of = {field: name for name, field in names.items()}
        if "retry_times" not in given and (settings.getpriority("RETRY_TIMES") or 0):
            given["retry_times"] = settings.get("RETRY_TIMES")
            setting_of["retry_times"] = "RETRY_TIMES"
        wrong: dict[str, str] = {}
        try:
            config = cls(**given)
        except ValidationError as error:
            wrong = problems.wrong_fields(error)
            config = cls(**{n: v for n, v in given.items() if n not in wrong})
        for field, text in wrong.items():
            show = problems.shown_proxy if field == "proxy" else problems.shown
            found.append(f"{setting_of[field]}={show(given[field])}: {text}")
        found += problems.joint_problems(config, wrong)
        if found:
            raise CellsConfigError(found)
        return config

    @field_validator("key")
    @classmethod
    def _check_key(cls, value: Any) -> Any:
        if isinstance(value, str) and _IMPORT_PATH.fullmatch(value):
            value = _loaded(value)
        build_key(value)
        return value

    @field_validator("router")
    @classmethod
    def _check_router(cls, value: Any) -> Any:
        allowed = 'must be "hash", "catalog", "subtree", or a class'
        if isinstance(value, str):
            if value in {"hash", "catalog", "subtree"}:
                return value
            if not _IMPORT_PATH.fullmatch(value):
                raise ValueError(allowed)
            value = _loaded(value)
        if not callable(value):
            raise ValueError(f"{allowed} that can be called with the config")
        return value

    @field_validator("proxy")
    @classmethod
    def _check_proxy(cls, value: Any) -> Any:
        if isinstance(value, str) and _IMPORT_PATH.fullmatch(value):
            value = _loaded(value)
        if value is None or callable(value):
            return value
        if isinstance(value, str) and not value.strip().startswith("["):
            if not value.strip():
                raise ValueError(
                    "is empty; for a crawl without proxies leave the setting out"
                )
            if problem := template_problem(value.strip()):
                raise ValueError(problem)
            return value.strip()
        return tuple(expand_env(url) for url in reading.json_texts(value))

    @field_validator("user_agents", mode="before")
    @classmethod
    def _check_user_agents(cls, value: Any) -> Any:
        # user agents hold commas: a string is one of them, or JSON
        if isinstance(value, str) and not value.strip().startswith("["):
            value = (value,) if value else ()
        agents = reading.json_texts(value)
        if not all(agent.strip() and agent.isprintable() for agent in agents):
            raise ValueError("must be a list of user agents, one line each")
        return agents

    @field_validator("shard")
    @classmethod
    def _check_shard(cls, value: str) -> str:
        if value:
            _read_shard(value)
        return value

    # What it builds

    def build_key(self) -> KeyFunction:
        return build_key(self.key)

    def build_router(self) -> Router:
        """Return the router, built at the first call.

        :raises CellsConfigError: if the catalog cannot be read, or the class of
            ``CELLS_ROUTER`` does not give a router
        """
        if self._router is None:
            self._router = new_router(self)
        return self._router

    def running_cells(self, cells: Sequence[str]) -> tuple[str, ...]:
        """Return the cells that run in this process, in the router's order."""
        only = frozenset(self.only)
        running = [cell for cell in cells if not only or cell in only]
        if self.shard:
            part, parts = _read_shard(self.shard)
            places = {cell: n for n, cell in enumerate(cells)}
            running = [cell for cell in running if places[cell] % parts == part]
        return tuple(running)

    def build_source(self, cells: Sequence[str]) -> SessionSource:
        """Build where sessions come from, for all cells of the fleet."""
        agents = Agents(self.user_agents)
        if self.proxy is None:
            return NoProxySource(agents)
        if isinstance(self.proxy, str):
            return TemplateSource(self.proxy, agents)
        if callable(self.proxy):
            return CallableSource(self.proxy, agents)
        return ListSource(self.proxy, self.sessions_of(cells), agents)

    def options_for(
        self, cell: str, index: int, total: int, share: int | None = None
    ) -> CellOptions:
        """Return the options of one cell.

        :param index: the cell's place among all *total* cells of the fleet
        :param share: places of ``CONCURRENT_REQUESTS`` that are its own
        """
        own = self._override(cell)
        options = {
            name: own.get(name, getattr(self, name))
            for name in CellOptions.__dataclass_fields__
        }
        options["concurrency"] = self._bulkhead(cell)
        if share is not None:
            options["concurrency"] = min(options["concurrency"], share)
        if self.site_rate and self.site_rate / total < options["rate"]:
            options["rate"] = self.site_rate / total
            options["burst"] = 1.0
        return CellOptions(**options)

    def first_tokens(self, index: int, total: int, cell: str = "") -> float | None:
        """Return the tokens a cell starts with so that a start is no burst.

        Cell *n* of all gets its first whole token ``n / site_rate`` seconds after the
        start. ``None`` where the cell's own budget rules.

        :param cell: its id, for a rate of its own
        """
        rate = self._override(cell).get("rate", self.rate)
        if not self.site_rate or self.site_rate / total >= rate:
            return None
        return 1.0 - index / total

    def sum_of_bulkheads(self, cells: int) -> int:
        """Return how many requests so many running cells may have in flight."""
        usual = self._bulkhead("")
        own = (self._bulkhead(cell) for cell in self.overrides)
        return cells * usual + sum(max(0, places - usual) for places in own)

    def sessions_of(self, cells: Sequence[str]) -> dict[str, int]:
        """Return how many sessions each cell has."""
        own = {cell: self._override(cell).get("sessions") for cell in self.overrides}
        return {cell: own.get(cell) or self.sessions for cell in cells}

    def sample_proxies(self) -> list[str]:
        """Return proxy URLs of every kind in use, to check what can be reached."""
        if isinstance(self.proxy, str):
            draw = TemplateSource(self.proxy, Agents(())).draw("00", 0, "0", 0.0)
            return [draw.proxy] if draw is not None and draw.proxy else []
        return list(self.proxy) if isinstance(self.proxy, tuple) else []

    def rate_in_words(self, total: int) -> str:
        """Say how fast the crawl goes at most."""
        options = self.options_for("", 0, total)
        text = f"{_plain(options.rate)} requests/s a cell, burst {options.burst:g}"
        if options.rate < self.rate:
            text += f" (CELLS_SITE_RATE={self.site_rate:g} over {total} cells)"
        return text

    def _bulkhead(self, cell: str) -> int:
        own = self._override(cell)
        places = own.get("concurrency", self.concurrency)
        return int(places or own.get("sessions", self.sessions))

    def _override(self, cell: str) -> Mapping[str, Any]:
        own = self.overrides.get(cell)
        if not own:
            return {}
        checked = CellSettings(**own)
        return {name: getattr(checked, name) for name in own}


def _read_shard(value: str) -> tuple[int, int]:
    found = _SHARD.fullmatch(value)
    if found is None or int(found[1]) >= int(found[2]):
        raise ValueError('must be "2/8": part 2 of 8, counted from 0')
    return int(found[1]), int(found[2])


def _plain(number: float) -> str:
    """Return a number as people write it, with three digits where it is small."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _loaded(path: str) -> Any:
    try:
        return load_object(path)
    except Exception as error:
        # whatever the module raises while it is imported
        raise ValueError(f"cannot be imported: {error}") from error
