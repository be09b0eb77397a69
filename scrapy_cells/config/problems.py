"""What is wrong with the settings: the setting, its value, and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from scrapy_cells.config.cell import CellSettings
from scrapy_cells.errors import CellsConfigError
from scrapy_cells.proxies import mask, mask_url
from scrapy_cells.sources import list_problem, too_few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from scrapy_cells.config.model import CellsConfig

_LONGEST = 160
"""Characters shown of a value."""


def unknown_setting(name: str, known: Iterable[str]) -> str:
    """Say that there is no such setting, and which one may be meant."""
    # without what they all start with, which makes any two look alike
    prefix = "CELLS_"
    near = nearest(name[len(prefix) :], [n.removeprefix(prefix) for n in known])
    hint = "see the README for those there are"
    if near is not None:
        hint = f"did you mean {prefix}{near}?"
    return f"{name}: no such setting; {hint}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a mistyped one may stand for."""
    # the first thousands will do: the search is slow, and ids are much alike
    names = list(known)[:5000]
    near = difflib.get_close_matches(name.upper(), [n.upper() for n in names], n=1)
    return next((n for n in names if near and n.upper() == near[0]), None)


def wrong_fields(error: ValidationError) -> dict[str, str]:
    """Return what is wrong with each field of a model."""
    found: dict[str, str] = {}
    for entry in error.errors(include_input=False, include_url=False):
        text = entry["msg"].removeprefix("Value error, ")
        found.setdefault(
            str(entry["loc"][0]), text.replace("Input should be", "must be", 1)
        )
    return found


def shown(value: Any) -> str:
    """Return a value as it may stand in a message."""
    try:
        text = mask(repr(value))
    except ValueError:  # Python writes no number of thousands of digits
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def shown_proxy(value: Any) -> str:
    """Return of a value for ``CELLS_PROXY`` what holds no secret."""
    if isinstance(value, str):
        return "[...]" if value.strip().startswith("[") else repr(mask_url(value))
    if isinstance(value, Sequence):
        return f"<{len(value)} entries>"
    return f"<{type(value).__name__}>"


def joint_problems(config: CellsConfig, wrong: Collection[str]) -> list[str]:
    """Return what is wrong with settings that are fine one by one.

    :param wrong: fields that were not fine, and have their defaults here
    """
    problems: list[str] = []
    cells: Sequence[str] | None = None
    if not {"count", "router", "catalog"} & set(wrong):
        try:
            cells = tuple(config.build_router().cells)
        except CellsConfigError as error:
            problems += error.problems
    overrides = _override_problems(config.overrides, cells)
    problems += overrides
    if isinstance(config.proxy, tuple):
        problem = list_problem(config.proxy)
        sizes_known = not ({"sessions", "overrides"} & set(wrong) or overrides)
        if problem is None and cells is not None and sizes_known:
            problem = too_few(config.proxy, config.sessions_of(cells))
        if problem:
            problems.append(f"CELLS_PROXY: {problem}")
    if cells is not None:
        problems += _running_problems(config, cells)
    return problems


def _running_problems(config: CellsConfig, cells: Sequence[str]) -> list[str]:
    known = set(cells)
    problems = [
        f"CELLS_ONLY={','.join(config.only)}: {_no_cell(cell, cells)}"
        for cell in config.only
        if cell not in known
    ]
    if not problems and not config.running_cells(cells):
        problems.append(
            f"CELLS_SHARD={config.shard!r}, CELLS_ONLY={','.join(config.only)!r}: no"
            f" cell is left to run; {_cells_in_words(cells)}"
        )
    return problems


def _override_problems(
    overrides: Mapping[str, Any], cells: Sequence[str] | None
) -> list[str]:
    problems = []
    known = set(cells or ())
    for cell, own in overrides.items():
        where = f"CELLS_OVERRIDES[{cell!r}]"
        if cells is not None and cell not in known:
            problems.append(f"{where}: {_no_cell(cell, cells)}")
        if isinstance(own, Mapping):
            problems += _option_problems(where, own)
        else:
            problems.append(f"{where}={shown(own)}: must be a dictionary of options")
    return problems


def _option_problems(where: str, own: Mapping[Any, Any]) -> list[str]:
    problems = []
    allowed = CellSettings.model_fields
    for name in own:
        if name not in allowed:
            near = nearest(str(name), allowed)
            hint = f"did you mean {near!r}?" if near else f"one of {', '.join(allowed)}"
            problems.append(f"{where}: no option {name!r}; {hint}")
    try:
        CellSettings(**{name: own[name] for name in own if name in allowed})
    except ValidationError as error:
        problems += [
            f"{where}: {name}={shown(own[name])}: {text}"
            for name, text in wrong_fields(error).items()
        ]
    return problems


def _no_cell(cell: str, cells: Sequence[str]) -> str:
    padded = cell.strip().zfill(2)
    near = padded if padded in cells else nearest(cell, cells)
    hint = f" did you mean {near!r}?" if near else ""
    return f"no cell {cell!r};{hint} {_cells_in_words(cells)}"


def _cells_in_words(cells: Sequence[str]) -> str:
    if len(cells) == 1:
        return f"there is only {cells[0]}"
    if len(cells) <= 3:
        return f"there are {', '.join(cells)}"
    return f"there are {len(cells)}: {cells[0]}, {cells[1]} ... {cells[-1]}"
