"""Rooms import one way, and only one module touches what is private in Scrapy."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "scrapy_cells"
MODULES = sorted(PACKAGE.rglob("*.py"))

ALLOWED: dict[str, set[str]] = {
    "domain": {"domain"},
    "detection": {"detection", "domain"},
    "report": {"report", "domain", "signals", "errors"},
    "config": {"config", "domain", "errors", "proxies", "sources"},
    "crawl": {
        "crawl",
        "config",
        "detection",
        "domain",
        "report",
        "_scrapy_compat",
        "clock",
        "errors",
        "proxies",
        "signals",
        "sources",
    },
    "_scrapy_compat": set(),
    "clock": set(),
    "errors": {"domain"},
    "proxies": set(),
    "signals": set(),
    "sources": {"domain", "proxies"},
    "addon": {"config", "crawl", "errors"},
    "__init__": {"addon", "domain", "errors", "report"},
}
"""What each room, and each module beside them, may import of this package."""

IMPURE = frozenset(
    {
        "aiohttp",
        "asyncio",
        "logging",
        "pydantic",
        "scrapy",
        "socket",
        "sqlite3",
        "subprocess",
        "threading",
        "time",
        "twisted",
    }
)


def name_of(path: Path) -> str:
    return ".".join(["scrapy_cells", *path.relative_to(PACKAGE).with_suffix("").parts])


def room_of(module: str) -> str:
    """Return the room or module directly below the package."""
    return module.partition(".")[2].partition(".")[0]


def imports_of(tree: ast.AST, module: str) -> set[str]:
    """Return every module that is imported, wherever in the file."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")[: -node.level]
                base = ".".join([*above, base]).rstrip(".")
            if base == "scrapy_cells":
                found.update(f"{base}.{alias.name}" for alias in node.names)
            else:
                found.add(base)
    return found


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def foreign_privates(tree: ast.AST) -> set[str]:
    """Return underscore attributes of anything but ``self``, ``cls``, ``super()``.

    Those that some class of the same file has for itself are its own affair.
    """
    own = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and is_own(node.value)
    }
    own |= {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not is_own(node.value)
        and node.attr not in own
    }


def is_own(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in {"self", "cls"}
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "super"
    )


def global_randoms(tree: ast.AST) -> set[str]:
    """Return functions of the module ``random`` that are used: only classes may be."""
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "random"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "random":
            used.update(alias.name for alias in node.names)
    return used - {"Random"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_rooms_import_one_way(path):
    """Domain below detection and report, those below crawl, that below the add-on."""
    module = name_of(path)
    imported = imports_of(parsed(path), module)
    rooms = {room_of(name) for name in imported if name.startswith("scrapy_cells")}
    assert rooms <= ALLOWED[room_of(module)]


@pytest.mark.parametrize(
    "path", [p for p in MODULES if room_of(name_of(p)) == "domain"], ids=name_of
)
def test_domain_is_pure(path):
    """No Scrapy, no clock, no log, no files, no randomness but what it is given."""
    tree = parsed(path)
    tops = {name.partition(".")[0] for name in imports_of(tree, name_of(path))}
    assert not tops & IMPURE
    assert tops <= set(sys.stdlib_module_names) | {"scrapy_cells", "typing_extensions"}
    assert not global_randoms(tree)
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"open", "print", "input"}
    attributes = {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }
    assert not attributes & {"utcnow", "today", "monotonic", "perf_counter"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_private_attributes_of_others_are_touched_in_one_place(path):
    """What Scrapy may change any day is in ``_scrapy_compat.py``, and nowhere else."""
    found = foreign_privates(parsed(path))
    if name_of(path) == "scrapy_cells._scrapy_compat":
        assert found
    elif name_of(path) == "scrapy_cells.crawl.spidermw":
        assert found <= {"_runtime", "_stamp", "_stats", "_expect_items"}
    else:
        assert not found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_clock_is_read_in_one_place(path):
    """Everybody else is told the time."""
    module = name_of(path)
    tops = {name.partition(".")[0] for name in imports_of(parsed(path), module)}
    assert ("time" in tops) == (module == "scrapy_cells.clock")


@pytest.mark.parametrize(
    ("code", "private"),
    [
        ("engine._slot.nextcall", {"_slot"}),
        ("pool = handler._pool", {"_pool"}),
        ("self._slot = 1\nengine._slot", set()),
        ("self._a.b\ncls._c\nsuper()._d\nx.__class__", set()),
        ("self._runtime._cells", {"_cells"}),
        ("crawler.engine._sched.a", {"_sched"}),
    ],
)
def test_rule_finds_foreign_private_attributes(code, private):
    """The rule above is no rule if it sees nothing."""
    assert foreign_privates(ast.parse(code)) == private


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import scrapy.utils.misc as m", {"scrapy.utils.misc"}),
        ("def f():\n    from twisted.internet import defer", {"twisted.internet"}),
        ("from . import lane", {"scrapy_cells.crawl"}),
        ("from ..domain import cell", {"scrapy_cells.domain"}),
        ("from scrapy_cells import signals", {"scrapy_cells.signals"}),
    ],
)
def test_rule_finds_imports_wherever_they_stand(code, names):
    """Also those in functions, and relative ones."""
    assert imports_of(ast.parse(code), "scrapy_cells.crawl.queue") == names


def test_rule_finds_global_randomness():
    """A generator that was handed in is fine, the module's own is not."""
    code = "import random\nrandom.random()\nrandom.Random(1)\nrng.choice([1])"
    assert global_randoms(ast.parse(code)) == {"random"}
    assert global_randoms(ast.parse("from random import choice")) == {"choice"}
