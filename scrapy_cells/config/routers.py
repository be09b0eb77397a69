"""The router that ``CELLS_ROUTER`` asks for."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_cells.config.problems import shown
from scrapy_cells.domain.router import (
    CatalogRouter,
    HashRouter,
    Router,
    SubtreeRouter,
    read_catalog,
)
from scrapy_cells.errors import CellsConfigError

if TYPE_CHECKING:
    from scrapy_cells.config.model import CellsConfig


def new_router(config: CellsConfig) -> Router:
    """Build a router.

    :raises CellsConfigError: if the catalog cannot be read, or the class of
        ``CELLS_ROUTER`` does not give a router
    """
    if config.router == "catalog":
        return _catalog_router(config.catalog)
    if config.router == "hash":
        return HashRouter(config.count)
    if config.router == "subtree":
        return SubtreeRouter(config.count)
    try:
        router: Router = config.router(config)
        problem = _problem(router)
    except Exception as error:  # noqa: BLE001 - whatever a user's class raises
        problem = str(error) or type(error).__name__
    if problem:
        text = "must give an object with cells and route(key)"
        raise CellsConfigError(
            [f"CELLS_ROUTER={shown(config.router)}: {text}; {problem}"]
        )
    return router


def _problem(router: Router) -> str | None:
    cells = tuple(router.cells)
    if not callable(router.route):
        return "its route cannot be called"
    if not cells or not all(isinstance(cell, str) and cell for cell in cells):
        return "its cells must be strings, at least one"
    if len(set(cells)) < len(cells):
        return "its cells must all be different"
    return None


def _catalog_router(path: str) -> CatalogRouter:
    if not path:
        text = "must be a file of key,cell[,weight], since CELLS_ROUTER='catalog'"
        raise CellsConfigError([f"CELLS_CATALOG='': {text}"])
    try:
        return CatalogRouter(read_catalog(_catalog_lines(path)))
    except (OSError, ValueError, ImportError, KeyError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise CellsConfigError([f"CELLS_CATALOG={path!r}: {why or error}"]) from error


def _catalog_lines(path: str) -> list[str]:
    if path.startswith("package:"):
        # also out of an egg or a zip file, where there is no path to open
        package, _, name = path.removeprefix("package:").partition("/")
        text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    else:
        text = Path(path).read_text(encoding="utf-8")
    # not splitlines(): a key may hold what only Unicode takes for the end of a line
    return text.split("\n")
