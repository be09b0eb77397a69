"""What README.md says is what the code does."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import inspect
import re
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.http import HtmlResponse, Request
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name
from twisted.python.failure import Failure

import scrapy_cells
from scrapy_cells import Addon, CellBlocked, Outcome, Verdict
from scrapy_cells.config import CellsConfig
from scrapy_cells.detection import Detector, Page
from scrapy_cells.domain import events
from scrapy_cells.domain.options import CellOptions
from scrapy_cells.errors import CellsError
from scrapy_cells.sources import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = ["README.md", "CHANGELOG.md", "docs/design.md", "docs/contributing.md"]
SOURCES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "scrapy_cells").rglob("*.py"))
}
LINES = re.MULTILINE


def section(title: str) -> str:
    """Return the text under a heading, up to the next of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*)\Z", README, LINES | re.DOTALL)
    assert found, f"README has no heading {title!r}"
    text = re.sub(r"^(```\w*\n.*?^```)$", _hidden, found[2], flags=LINES | re.DOTALL)
    return re.split(rf"^#{{1,{len(found[1])}}} ", text, maxsplit=1, flags=LINES)[0]


def _hidden(block: re.Match[str]) -> str:
    """Keep what looks like a heading in a block of code from ending a section."""
    return re.sub(r"^#", " #", block[0], flags=re.MULTILINE)


def rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of table rows, without heads and rules."""
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        for line in table.splitlines()[2:]:
            yield [cell.strip() for cell in line.strip("|").split("|")]


def names_in_first_column(text: str) -> set[str]:
    return {row[0].strip("`") for row in rows(text)}


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def block_with(text: str) -> types.SimpleNamespace:
    """Run the one block of Python that has *text* in it."""
    (block,) = (each for each in code_blocks("python") if text in each)
    space: dict[str, Any] = {"__name__": "readme"}
    exec(compile(block, "README.md", "exec"), space)
    return types.SimpleNamespace(**space)


# Settings


def documented_settings() -> dict[str, Any]:
    found = {}
    for name, default, _ in rows(section("Settings")):
        assert name.startswith("`CELLS_"), name
        found[name.strip("`")] = ast.literal_eval(default.strip("`"))
    return found


def test_settings_table_lists_every_setting_and_no_other():
    """The table has one row for each field of the config, in its order."""
    wanted = {f"CELLS_{name.upper()}" for name in CellsConfig.model_fields}
    names = [row[0].strip("`") for row in rows(section("Settings"))]
    assert set(names) == wanted
    assert len(names) == len(wanted)


@pytest.mark.parametrize("name", sorted(CellsConfig.model_fields))
def test_settings_table_tells_the_default(name):
    """The default in the table is the one in the code."""
    default = CellsConfig.model_fields[name].get_default(call_default_factory=True)
    if isinstance(default, tuple):
        default = list(default)
    documented = documented_settings()[f"CELLS_{name.upper()}"]
    assert documented == default
    assert isinstance(documented, bool) is isinstance(default, bool)


def test_every_documented_default_is_accepted():
    """Someone who writes all the defaults into settings.py gets the same crawl."""
    config = CellsConfig.from_settings(Settings(documented_settings()))
    assert config.model_dump() == CellsConfig().model_dump()


def test_no_other_setting_is_mentioned():
    """Each CELLS_ name that stands anywhere in the README exists."""
    known = {f"CELLS_{name.upper()}" for name in CellsConfig.model_fields}
    known |= {"CELLS_FALLBACK_HTTP_HANDLER", "CELLS_FALLBACK_HTTPS_HANDLER"}
    assert set(re.findall(r"\bCELLS_[A-Z_]*[A-Z]\b", README)) <= known


def test_options_of_overrides_are_all_there():
    """The list of options that a cell may have of its own is complete."""
    (listed,) = re.findall(
        r"Options that `CELLS_OVERRIDES` takes.*?: (`rate`.*?)\.\n",
        section("Settings"),
        re.DOTALL,
    )
    names = re.findall(r"`(\w+)`", listed)
    assert names == [field.name for field in dataclasses.fields(CellOptions)]


def test_known_settings_of_scrapy_lint_are_all_settings():
    """The snippet for scrapy-lint lists each setting once."""
    (block,) = code_blocks("toml")
    names = re.findall(r'"(CELLS_\w+)"', block)
    assert names == sorted(names)
    assert set(names) == {f"CELLS_{name.upper()}" for name in CellsConfig.model_fields}


def test_template_fields_are_all_there():
    """The table of what a proxy template may hold is complete."""
    fields = names_in_first_column(section("Proxies"))
    assert fields == {f"{{{name}}}" for name in FIELDS} | {"${NAME}"}


# Stats


def written_stats() -> set[str]:
    """Find the names of all stats that the package writes, ``{}`` for what varies."""
    found = set()
    for tree in SOURCES.values():
        for function in ast.walk(tree):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found |= _stats_of(function)
    return {name for name in found if name.startswith("cells/")}


def _stats_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    parts = {
        target.id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    writers = {"inc_value", "set_value", "max_value", "min_value"}
    return {
        _pattern(node.args[0], parts)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in writers
    }


def _pattern(node: ast.expr, parts: dict[str, ast.expr]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue):
        inner = node.value
        if isinstance(inner, ast.Name) and isinstance(
            parts.get(inner.id), ast.JoinedStr
        ):
            return _pattern(parts[inner.id], parts)
        return "{}"
    assert isinstance(node, ast.JoinedStr), ast.dump(node)
    return "".join(_pattern(value, parts) for value in node.values)


def test_stats_are_all_there_and_no_other():
    """The tables of stats list what the code writes, and nothing else."""
    documented = {
        re.sub(r"\{\w+\}", "{}", name)
        for name in names_in_first_column(section("Stats"))
    }
    assert documented == written_stats()


def test_no_other_stat_is_mentioned():
    """Each stat that stands anywhere in the README is one of the tables."""
    mentioned = set(re.findall(r"`(cells/[^`]*)`", README))
    assert mentioned == names_in_first_column(section("Stats"))


def test_every_stat_that_is_a_constant_is_found_by_the_walk():
    """No name of a stat hides where the walk does not look."""
    constants = {
        node.value
        for tree in SOURCES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"cells/\w+", node.value)
    }
    assert constants <= written_stats()


# Other names


def test_events_are_all_there_with_their_fields():
    """The table of events lists every class with the fields that it adds."""
    documented = {
        name.strip("`"): re.findall(r"`(\w+)`", fields)
        for name, _, fields in rows(section("Events and the signal"))
    }
    base = {field.name for field in dataclasses.fields(events.CellEvent)}
    actual = {
        name: [f.name for f in dataclasses.fields(cls) if f.name not in base]
        for name, cls in inspect.getmembers(events, inspect.isclass)
        if issubclass(cls, events.CellEvent) and cls is not events.CellEvent
    }
    assert documented == actual


def test_events_said_not_to_be_sent_are_the_ones_never_made():
    """Whatever the package never makes is marked as not sent, and nothing else."""
    made = {
        node.func.id
        for tree in SOURCES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    for name, text, _ in rows(section("Events and the signal")):
        assert ("not sent" in text) is (name.strip("`") not in made), name


def test_outcomes_are_all_there():
    """The table of outcomes lists each once."""
    documented = [row[0].strip("`") for row in rows(section("Detection"))]
    assert documented == [*dict.fromkeys(documented)]
    assert set(documented) == {str(outcome) for outcome in Outcome}


def public_meta_keys() -> set[str]:
    """Find the strings by which meta is read or written and that are not private."""
    pattern = re.compile(r"cells?(?:_\w+)?")
    found: set[str] = set()
    for tree in SOURCES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and _is_meta(node.value):
                found |= _constant(node.slice)
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in {"get", "pop", "setdefault"}
                and _is_meta(node.func.value)
            ):
                found |= _constant(node.args[0])
    return {key for key in found if pattern.fullmatch(key)}


def _is_meta(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "meta"
    return isinstance(node, ast.Name) and "meta" in node.id


def _constant(node: ast.expr) -> set[str]:
    return {str(node.value)} if isinstance(node, ast.Constant) else set()


def test_meta_keys_are_all_there():
    """The table of meta keys lists every public key that the code looks at."""
    assert names_in_first_column(section("Meta keys")) == public_meta_keys()


def test_close_reasons_are_all_there():
    """The table of close reasons lists what the code closes a spider with."""
    found = {
        node.value
        for tree in SOURCES.values()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and getattr(call.func, "attr", getattr(call.func, "id", ""))
        in {"CloseSpider", "close_spider_async"}
        for node in [*call.args, *(word.value for word in call.keywords)]
        if isinstance(node, ast.Constant)
    }
    assert names_in_first_column(section("Close reasons")) == found


def test_errors_are_all_there():
    """Every public error is in the section on errors."""
    text = section("Errors in errbacks")
    for name in scrapy_cells.__all__:
        thing = getattr(scrapy_cells, name)
        if isinstance(thing, type) and issubclass(thing, CellsError):
            assert f"`{name}`" in text


def test_item_fields_are_all_there():
    """The row of CELLS_ITEM_FIELDS names every field that can be had."""
    (row,) = (r for r in rows(section("Settings")) if "CELLS_ITEM_FIELDS" in r[0])
    names = re.findall(r"`(cell_\w+)`", row[2])
    assert CellsConfig(item_fields=names).item_fields == tuple(names)
    fields = CellsConfig.model_fields["item_fields"].annotation
    assert set(re.findall(r"cell_\w+", repr(fields))) == set(names)


# Code


def test_python_blocks_compile():
    """No block of Python has a syntax error."""
    blocks = code_blocks("python")
    assert len(blocks) > 5
    for block in blocks:
        compile(block, "README.md", "exec")


def test_quick_start_has_two_commands():
    """Two commands show all there is, and both are what tox.ini knows."""
    blocks = re.compile(r"^```sh\n(.*?)^```$", LINES | re.DOTALL)
    commands = blocks.findall(section("Quick start"))
    assert [command.strip() for command in commands] == [
        "python -m pip install tox && python -m tox -e demo",
        "python -m pip install tox && python -m tox",
    ]
    assert "[testenv:demo]" in (ROOT / "tox.ini").read_text(encoding="utf-8")


def test_settings_of_a_project_are_accepted(monkeypatch):
    """The lines for a project's settings.py are enough."""
    monkeypatch.setenv("PROXY_USER", "me")
    monkeypatch.setenv("PROXY_PASSWORD", "a{b}@:/c")
    lines = vars(block_with("ADDONS = "))
    settings = Settings({name: lines[name] for name in lines if name.isupper()})
    for addon in settings["ADDONS"]:
        load_object(addon)().update_settings(settings)
    config = CellsConfig.from_settings(settings)
    key = config.build_key()
    assert key(Request("https://shop.example/dp/B000000001?x=1")) == "B000000001"
    draw = config.build_source(("00",)).draw("00", 0, "0", 0.0)
    assert draw.proxy == "http://me-session-00g0s0:a{b}@:/c@gate.example:7777"


def test_proxy_template_and_callable_are_accepted(monkeypatch):
    """The two other forms of CELLS_PROXY work as they stand."""
    monkeypatch.setenv("PROXY_ZONE", "eu")
    monkeypatch.setenv("PROXY_PASSWORD", "secret")
    template = block_with("PROXY_ZONE").CELLS_PROXY
    function = block_with("def proxy_of").CELLS_PROXY
    for proxy in (template, function):
        source = CellsConfig(proxy=proxy).build_source(("00",))
        assert "00g0s0:secret@" in source.draw("00", 0, "0", 0.0).proxy


def test_router_of_your_own_is_accepted():
    """The class of the example routes as it says."""
    config = CellsConfig(router=block_with("class ByDepartment").ByDepartment)
    router = config.build_router()
    assert [router.route(key) for key in ("B1", "M2", "X3")] == list(router.cells)


def test_rule_of_your_own_is_asked():
    """The rule of the example finds its page, and no other."""
    detector = Detector([block_with("class EmptyShell").EmptyShell])
    request = Request("https://shop.example/dp/1")

    def verdict(text: str) -> Verdict:
        body = f"<html><head><title>Our Shop</title></head><body>{text}</body></html>"
        response = HtmlResponse(request.url, body=body.encode(), encoding="utf-8")
        return detector.classify(request, response)

    assert verdict("We are Back soon!").rule == "shop.empty_shell"
    assert verdict("Kettle, 29.90").outcome is Outcome.OK


def test_attributes_of_a_page_exist():
    """Whatever a rule is told to look at is there."""
    sentence = re.compile(r"A page has (.*?)\. Title,", re.DOTALL)
    (listed,) = sentence.findall(section("Detection"))
    request = Request("https://shop.example/dp/1")
    page = Page(request, HtmlResponse(request.url, body=b"<html></html>"))
    names = re.findall(r"`(\w+)", listed)
    assert len(names) > 10
    for name in names:
        assert hasattr(page, name), name


def test_rules_that_are_switched_off_exist():
    """The example of CELLS_DETECTION names rules that there are."""
    block = block_with("CELLS_OK_SELECTOR = ")
    less = Detector.from_setting(block.CELLS_DETECTION, block.CELLS_OK_SELECTOR)
    assert len(less.rule_names) < len(Detector().rule_names)


def test_classify_of_the_example_has_an_opinion():
    """The spider's method knows its page, and leaves others to the rules."""
    spider = block_with("def classify").ShopSpider()
    request = Request("https://shop.example/")
    for body, wanted in ((b"our shop is resting", "soft_block"), (b"x", None)):
        assert spider.classify(request, HtmlResponse(request.url, body=body)) == wanted


def test_missed_spider_starts_with_the_holes(tmp_path, monkeypatch):
    """The spider of the example asks for every hole, and for none without a file."""
    monkeypatch.chdir(tmp_path)
    spider = block_with("class MissedSpider").MissedSpider()

    async def started() -> list[Any]:
        return [request async for request in spider.start()]

    assert asyncio.run(started()) == []
    hole = '{"key": "k", "cell": "07", "url": "https://shop.example/k", "reason": "x"}'
    Path("holes.jsonl").write_text(hole + "\n", encoding="utf-8")
    (request,) = asyncio.run(started())
    assert request.url == "https://shop.example/k"
    assert request.meta == {"cell_key": "k"}


def test_pager_hears_events(caplog):
    """The extension of the example logs a quarantine, and nothing else."""
    block = block_with("class Pager")
    crawler = types.SimpleNamespace(signals=SignalManager())
    pager = block.Pager.from_crawler(crawler)
    for event in (
        events.CellQuarantined("07", 0.0, 0, 14400.0, "met captcha"),
        events.CellProbed("08", 0.0, "ok"),
    ):
        crawler.signals.send_catch_log(block.cell_event, event=event)
    assert pager
    assert [record.message for record in caplog.records] == [
        "Look at this: cell 07 quarantined for 4 h: met captcha"
    ]


def test_errback_of_the_example_reads_the_verdict(caplog):
    """The errback of the example says what a block was recognised by."""
    caplog.set_level("INFO")
    spider = block_with("class CarefulSpider").CarefulSpider()
    response = HtmlResponse("https://shop.example/", status=403)
    verdict = Verdict(Outcome.BLOCKED, "", "status.refused", "status")
    spider.failed(Failure(CellBlocked(response, verdict)))
    assert caplog.messages == ["blocked, by rule status.refused"]


def test_manual_settings_are_what_the_addon_sets():
    """Someone without add-ons who copies the block gets the same crawl."""
    block = vars(block_with("SCHEDULER_PRIORITY_QUEUE = "))
    by_hand = {name: value for name, value in block.items() if name.isupper()}
    settings = Settings()
    Addon().update_settings(settings)
    for name, value in by_hand.items():
        set_by_addon = settings[name]
        if isinstance(value, dict):
            set_by_addon = {_path(k): _path(v) for k, v in set_by_addon.items()}
            assert {k: _path(v) for k, v in value.items()} == set_by_addon, name
        else:
            assert _path(set_by_addon) == value, name
    untouched = Settings()
    changed = {
        name for name in settings if _plain(settings[name]) != _plain(untouched[name])
    }
    assert changed == set(by_hand)


def _plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "items") else value


def _path(value: Any) -> Any:
    """Return a class as its import path, the rest as it is."""
    if isinstance(value, str) and "." in value:
        value = load_object(value)
    return global_object_name(value) if isinstance(value, type) else value


# Links


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    """Files and headings that a document links to exist."""
    path = ROOT / name
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        linked = path.parent / file if file else path
        assert linked.exists(), target
        if anchor:
            assert anchor in _anchors(linked.read_text(encoding="utf-8")), target


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_style_is_plain(name):
    """Documents use no dashes that stand for a pause."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search("[\N{EM DASH}\N{EN DASH}]", text)


def test_every_module_stands_in_the_design():
    """The next person finds each module in docs/design.md, and only modules there."""
    design = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    rooms = design.partition("## Rooms")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| `([\w/]+\.py)` \|", rooms, re.MULTILINE))
    wanted = {
        path.removeprefix("scrapy_cells/")
        for path, tree in SOURCES.items()
        if tree.body and not re.search(r"/vendors/(?!__init__)", path)
    }
    assert listed == wanted
