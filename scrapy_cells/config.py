"""All ``CELLS_*`` settings, read once and checked before anything starts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)
from scrapy.utils.misc import load_object

from scrapy_cells import reading
from scrapy_cells.domain.options import CellOptions
from scrapy_cells.domain.router import (
    CatalogRouter,
    HashRouter,
    Router,
    SubtreeRouter,
    read_catalog,
)
from scrapy_cells.errors import CellsConfigError
from scrapy_cells.keys import KeyFunction, build_key
from scrapy_cells.proxies import mask
from scrapy_cells.sources import (
    Agents,
    CallableSource,
    ListSource,
    NoProxySource,
    TemplateSource,
    list_problem,
    template_problem,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy.settings import BaseSettings

    from scrapy_cells.domain.cohort import SessionSource

_PREFIX = "CELLS_"
_OWN = "CELLS_FALLBACK_"
"""Settings that the add-on itself writes."""

Positive = Annotated[float, BeforeValidator(reading.number), Field(gt=0)]
NotNegative = Annotated[float, BeforeValidator(reading.number), Field(ge=0)]
Share = Annotated[float, BeforeValidator(reading.number), Field(ge=0, le=1)]
Count = Annotated[int, BeforeValidator(reading.whole), Field(ge=1)]
Whole = Annotated[int, BeforeValidator(reading.whole), Field(ge=0)]
Flag = Annotated[bool, BeforeValidator(reading.flag)]
Texts = Annotated[tuple[str, ...], BeforeValidator(reading.texts)]
Table = Annotated[dict[str, Any], BeforeValidator(reading.mapping)]
ItemField = Literal[
    "cell_id",
    "cell_session",
    "cell_generation",
    "cell_provisional",
    "cell_checked_at",
]


class CellsConfig(BaseModel):
    """The settings of a crawl; the field ``rate`` is the setting ``CELLS_RATE``.

    Times are seconds, rates requests a second. The README lists what each means.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
    )

    enabled: Flag = True
    count: Annotated[Count, Field(le=100_000)] = 24
    key: Any = "url"
    router: Any = "hash"
    catalog: str = ""
    only: Texts = ()
    shard: str = ""
    proxy: Any = None
    sessions: Annotated[Count, Field(le=1000)] = 4
    session_rotation: NotNegative = 86400.0
    user_agents: tuple[str, ...] = ()
    rate: Positive = 0.5
    burst: Annotated[Positive, Field(ge=1)] = 5.0
    concurrency: Count | None = None
    timeout: Positive = 20.0
    site_rate: NotNegative = 5.0
    breaker_threshold: Count = 8
    breaker_window: Positive = 120.0
    breaker_cooldown: Positive = 900.0
    breaker_max_cooldown: Positive = 14400.0
    ramp: NotNegative = 300.0
    warmup: NotNegative = 300.0
    pacing_floor: Annotated[Share, Field(gt=0)] = 0.25
    captcha_penalty: Share = 0.25
    failure_penalty: Share = 0.10
    recovery: Share = 0.05
    retire_below: Share = 0.5
    fresh_window: NotNegative = 600.0
    quarantine: Positive = 14400.0
    max_quarantine: Positive = 86400.0
    retry_times: Whole = 2
    retry_delay: NotNegative = 1.0
    retry_max_delay: NotNegative = 60.0
    detection: tuple[Any, ...] = ()
    ok_selector: str = ""
    expect_items: Flag = False
    holes: str = ""
    max_wait: NotNegative = 600.0
    item_fields: Annotated[tuple[ItemField, ...], BeforeValidator(reading.texts)] = ()
    overrides: Table = Field(default_factory=dict)

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> CellsConfig:
        """Read and check all settings.

        :raises CellsConfigError: listing every problem
        """
        given = {
            str(name)[len(_PREFIX) :].lower(): settings.get(name)
            for name in settings
            if str(name).startswith(_PREFIX) and not str(name).startswith(_OWN)
        }
        problems = [_unknown(name) for name in given if name not in cls.model_fields]
        known = {
            name: value
            for name, value in given.items()
            if name in cls.model_fields and (value is not None or name == "proxy")
        }
        if (settings.getpriority("RETRY_TIMES") or 0) > 0:
            known.setdefault("retry_times", settings.get("RETRY_TIMES"))
        try:
            config = cls(**known)
        except ValidationError as error:
            raise CellsConfigError([*problems, *_problems(error, known)]) from None
        problems += config._further_problems()
        if problems:
            raise CellsConfigError(problems)
        return config

    @field_validator("key")
    @classmethod
    def _check_key(cls, value: Any) -> Any:
        if isinstance(value, str) and "." in value and ":" not in value:
            value = _loaded(value)
        build_key(value)
        return value

    @field_validator("router")
    @classmethod
    def _check_router(cls, value: Any) -> Any:
        if value in {"hash", "catalog", "subtree"}:
            return value
        if isinstance(value, str):
            if "." not in value:
                raise ValueError('must be "hash", "catalog", "subtree", or a class')
            value = _loaded(value)
        if not callable(value):
            raise ValueError("must be a class that can be called with the config")
        return value

    @field_validator("proxy")
    @classmethod
    def _check_proxy(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value.strip().startswith("["):
                return reading.texts(value)
            if "://" not in value and "{" not in value and "." in value:
                return _loaded(value)
            if problem := template_problem(value):
                raise ValueError(problem)
            return value
        if value is None or callable(value):
            return value
        return reading.texts(value)

    @field_validator("user_agents", mode="before")
    @classmethod
    def _check_user_agents(cls, value: Any) -> Any:
        # user agents hold commas: a string is one of them, or JSON
        if isinstance(value, str) and not value.strip().startswith("["):
            return (value,) if value else ()
        return reading.texts(value)

    @field_validator("detection", mode="before")
    @classmethod
    def _check_detection(cls, value: Any) -> Any:
        return reading.texts(value) if isinstance(value, str) else tuple(value)

    @field_validator("shard")
    @classmethod
    def _check_shard(cls, value: str) -> str:
        if value:
            _read_shard(value)
        return value

    @model_validator(mode="after")
    def _check_together(self) -> CellsConfig:
        if self.router == "catalog" and not self.catalog:
            raise ValueError(
                "CELLS_ROUTER='catalog': set CELLS_CATALOG to a file of key,cell"
            )
        return self

    # What it builds

    def build_key(self) -> KeyFunction:
        return build_key(self.key)

    def build_router(self) -> Router:
        """Build the router.

        :raises CellsConfigError: if the catalog cannot be read
        """
        if self.router == "catalog":
            try:
                return CatalogRouter(read_catalog(_catalog_lines(self.catalog)))
            except (OSError, ValueError, ModuleNotFoundError) as error:
                raise CellsConfigError(
                    [f"CELLS_CATALOG={self.catalog!r}: {error}"]
                ) from error
        if self.router == "hash":
            return HashRouter(self.count)
        if self.router == "subtree":
            return SubtreeRouter(self.count)
        router: Router = self.router(self)
        return router

    def running_cells(self, cells: Sequence[str]) -> tuple[str, ...]:
        """Return the cells that run in this process, in the router's order."""
        running = [cell for cell in cells if not self.only or cell in self.only]
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
        return ListSource(self.proxy, self._sessions_of(cells), agents)

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
        if options["concurrency"] is None:
            options["concurrency"] = options["sessions"]
        if share is not None:
            options["concurrency"] = min(options["concurrency"], share)
        if self.site_rate and self.site_rate / total < options["rate"]:
            options["rate"] = self.site_rate / total
            options["burst"] = 1.0
        return CellOptions(**options)

    def first_tokens(self, index: int, total: int) -> float | None:
        """Return the tokens a cell starts with so that a start is no burst.

        Cell *n* of all gets its first whole token ``n / site_rate`` seconds after the
        start. ``None`` where the cell's own budget rules.
        """
        if not self.site_rate or self.site_rate / total >= self.rate:
            return None
        return 1.0 - index / total

    def sum_of_bulkheads(self, cells: int) -> int:
        """Return how many requests all running cells may have in flight."""
        usual = self.concurrency or self.sessions
        extra = 0
        for cell in self.overrides:
            own = self._override(cell)
            most = own.get("concurrency") or own.get("sessions") or usual
            extra += max(0, int(most) - usual)
        return cells * usual + extra

    def sample_proxies(self) -> list[str]:
        """Return proxy URLs of every kind in use, to check what can be reached."""
        if isinstance(self.proxy, str):
            draw = TemplateSource(self.proxy, Agents(())).draw("00", 0, "0", 0.0)
            return [draw.proxy] if draw is not None and draw.proxy else []
        return list(self.proxy) if isinstance(self.proxy, tuple) else []

    def rate_in_words(self, total: int) -> str:
        """Say how fast the crawl goes at most."""
        options = self.options_for("", 0, total)
        text = f"{options.rate:.3g} requests/s a cell, burst {options.burst:g}"
        if options.rate < self.rate:
            text += f" (CELLS_SITE_RATE={self.site_rate:g} over {total} cells)"
        return text

    # Checks that need more than one setting

    def _further_problems(self) -> list[str]:
        try:
            cells = tuple(self.build_router().cells)
        except CellsConfigError as error:
            return list(error.problems)
        problems = []
        if unknown := [cell for cell in self.only if cell not in cells]:
            problems.append(
                f"CELLS_ONLY={','.join(self.only)}: no cell {unknown[0]!r};"
                f" {_cells_in_words(cells)}"
            )
        elif not self.running_cells(cells):
            problems.append(
                f"CELLS_SHARD={self.shard!r}, CELLS_ONLY={','.join(self.only)!r}: no"
                " cell is left to run"
            )
        overrides = self._override_problems(cells)
        problems += overrides
        if isinstance(self.proxy, tuple) and not overrides:
            problem = list_problem(self.proxy, self._sessions_of(cells))
            if problem:
                problems.append(f"CELLS_PROXY: {problem}")
        return problems

    def _sessions_of(self, cells: Sequence[str]) -> dict[str, int]:
        return {
            cell: int(self._override(cell).get("sessions", self.sessions))
            for cell in cells
        }

    def _override(self, cell: str) -> Mapping[str, Any]:
        own: Any = self.overrides.get(cell)
        if not own:
            return {}
        checked = _Overridable(**own)
        return {name: getattr(checked, name) for name in own}

    def _override_problems(self, cells: Sequence[str]) -> list[str]:
        problems = []
        known = set(cells)
        for cell, own in self.overrides.items():
            where = f"CELLS_OVERRIDES[{cell!r}]"
            if cell not in known:
                near = difflib.get_close_matches(cell, list(cells)[:5000], n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                problems.append(
                    f"{where}: no such cell{hint}; {_cells_in_words(cells)}"
                )
            elif not isinstance(own, Mapping):
                problems.append(f"{where}={own!r}: must be a dictionary of options")
            else:
                problems += self._option_problems(where, own)
        return problems

    def _option_problems(self, where: str, own: Mapping[str, Any]) -> list[str]:
        problems = []
        allowed = list(_Overridable.model_fields)
        for name in own:
            if name not in allowed:
                near = difflib.get_close_matches(str(name), allowed, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"one of {allowed}"
                problems.append(f"{where}: no option {name!r}; {hint}")
        try:
            _Overridable(**{n: v for n, v in own.items() if n in allowed})
        except ValidationError as error:
            problems += [
                f"{where}: {loc}={own.get(loc)!r}: {text}"
                for loc, text in _messages(error)
            ]
        return problems


_Overridable: type[BaseModel] = create_model(
    "_Overridable",
    __config__=ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True),
    **{
        name: (CellsConfig.model_fields[name].rebuild_annotation(), field.default)
        for name in CellOptions.__dataclass_fields__
        for field in (CellsConfig.model_fields[name],)
    },  # type: ignore[call-overload]
)
"""The options that one cell may have of its own, checked as their settings are."""


def _read_shard(value: str) -> tuple[int, int]:
    part, slash, parts = value.partition("/")
    if slash and part.strip().isdigit() and parts.strip().isdigit():
        numbers = int(part), int(parts)
        if numbers[0] < numbers[1]:
            return numbers
    raise ValueError('must be "2/8": part 2 of 8, counted from 0')


def _catalog_lines(path: str) -> list[str]:
    if path.startswith("package:"):
        package, _, name = path.removeprefix("package:").partition("/")
        text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    else:
        text = Path(path).read_text(encoding="utf-8")
    return text.splitlines()


def _loaded(path: str) -> Any:
    try:
        return load_object(path)
    except (ImportError, NameError, ValueError) as error:
        raise ValueError(f"cannot be imported: {error}") from error


def _unknown(name: str) -> str:
    names = [f"{_PREFIX}{field.upper()}" for field in CellsConfig.model_fields]
    setting = f"{_PREFIX}{name.upper()}"
    near = difflib.get_close_matches(setting, names, n=1)
    hint = f"did you mean {near[0]}?" if near else "see the README for those there are"
    return f"{setting}: no such setting; {hint}"


def _problems(error: ValidationError, given: Mapping[str, Any]) -> list[str]:
    problems = []
    for name, text in _messages(error):
        if not name:
            problems.append(text)
            continue
        value = given.get(name)
        shown = "***" if name == "proxy" and not isinstance(value, str) else repr(value)
        problems.append(f"{_PREFIX}{name.upper()}={mask(shown)}: {text}")
    return problems


def _messages(error: ValidationError) -> list[tuple[str, str]]:
    """Return the field and what is wrong with it, once each."""
    found: dict[tuple[str, str], None] = {}
    for entry in error.errors(include_input=False, include_url=False):
        name = str(entry["loc"][0]) if entry["loc"] else ""
        text = entry["msg"].removeprefix("Value error, ")
        text = text.replace("Input should be", "must be")
        if text.startswith("could not convert string"):
            text = "must be a number"
        found.setdefault((name, text))
    return list(found)


def _cells_in_words(cells: Sequence[str]) -> str:
    if len(cells) <= 3:
        return f"there are {', '.join(cells)}"
    return f"there are {len(cells)}: {cells[0]}, {cells[1]} ... {cells[-1]}"
