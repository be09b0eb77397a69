"""All settings, read once and checked together."""

import json
import math
import zipfile
from dataclasses import fields
from pathlib import Path

import pytest
from pydantic import ValidationError
from scrapy.settings import Settings

from scrapy_cells.config import CellsConfig
from scrapy_cells.config.cell import CellSettings
from scrapy_cells.domain.options import CellOptions
from scrapy_cells.domain.router import CatalogRouter, HashRouter, SubtreeRouter
from scrapy_cells.errors import CellsConfigError
from scrapy_cells.sources import (
    CallableSource,
    ListSource,
    NoProxySource,
    TemplateSource,
)

SECRET = "S3CR3T"
TEMPLATE = "http://{session_id}:pw@gate.example:8000"
CATALOG = "key,cell\nA,eu-1\nB,eu-2\n"


def read(**settings) -> CellsConfig:
    return CellsConfig.from_settings(Settings(settings))


def problems_of(**settings) -> tuple[str, ...]:
    with pytest.raises(CellsConfigError) as caught:
        read(**settings)
    assert caught.value.__context__ is None  # no second text, with the value in it
    assert SECRET not in str(caught.value)
    return caught.value.problems


def problem_of(**settings) -> str:
    (problem,) = problems_of(**settings)
    return problem


class TwoCells:
    """A router by class."""

    cells = ("left", "right")

    def __init__(self, config: CellsConfig) -> None:
        self.config = config

    def route(self, key: str) -> str:
        return self.cells[len(key) % 2]


def proxy_of(cell, generation, session, session_id):
    return f"http://{session_id}:pw@gate.example:8000"


PROXIES = [f"http://u{number}:{SECRET}@gate:8000" for number in range(4)]


# Reading


def test_defaults_are_those_of_the_table():
    """Without a setting there is a crawl of 24 cells."""
    config = read()
    assert (config.count, config.sessions, config.site_rate) == (24, 4, 5.0)
    assert (config.key, config.router, config.proxy) == ("url", "hash", None)
    assert config.concurrency is None
    assert config.max_wait == 600.0


def test_cell_settings_and_options_have_the_same_fields_and_defaults():
    """What can be set of a cell is what a cell lives by."""
    settings = CellSettings().model_dump() | {"concurrency": 4}
    assert settings == {f.name: f.default for f in fields(CellOptions)}


def test_config_cannot_be_changed():
    """It is read once; later changes of settings change nothing."""
    with pytest.raises(ValidationError):
        read().rate = 1.0


def test_representation_shows_no_proxy():
    """A config may stand in a traceback or a log."""
    config = read(CELLS_PROXY=f"http://{{session_id}}:{SECRET}@gate:8000")
    assert SECRET not in repr(config) + str(config)


def test_everything_can_be_given_as_text():
    """Command lines and Scrapyd know only strings, "=" and "@" among them."""
    settings = Settings()
    given = {
        "CELLS_RATE": " 0.25 ",
        "CELLS_COUNT": "12",
        "CELLS_CONCURRENCY": "2",
        "CELLS_EXPECT_ITEMS": "True",
        "CELLS_ONLY": "00, 07",
        "CELLS_PROXY": "http://a=b-{session_id}:p@ss=1@gate.example:8000",
        "CELLS_ITEM_FIELDS": '["cell_id", "cell_session"]',
        "CELLS_OVERRIDES": '{"07": {"rate": "0.1", "sessions": 2}}',
        "CELLS_USER_AGENTS": "Mozilla/5.0 (KHTML, like Gecko)",
    }
    for name, value in given.items():
        settings.set(name, value, "cmdline")
    config = CellsConfig.from_settings(settings)
    assert (config.rate, config.count, config.concurrency) == (0.25, 12, 2)
    assert config.expect_items is True
    assert config.only == ("00", "07")
    assert config.proxy == given["CELLS_PROXY"]
    assert config.item_fields == ("cell_id", "cell_session")
    assert config.user_agents == ("Mozilla/5.0 (KHTML, like Gecko)",)
    options = config.options_for("07", 7, 12)
    assert (options.rate, options.sessions) == (0.1, 2)


@pytest.mark.parametrize(
    ("name", "value", "field", "found"),
    [
        ("CELLS_ONLY", ["00"], "only", ("00",)),
        ("CELLS_ONLY", '["00"]', "only", ("00",)),
        ("CELLS_ONLY", {"01", "00"}, "only", ("00", "01")),
        ("CELLS_ONLY", "", "only", ()),
        ("CELLS_USER_AGENTS", '["A, b", "C"]', "user_agents", ("A, b", "C")),
        ("CELLS_USER_AGENTS", "", "user_agents", ()),
        ("CELLS_OVERRIDES", "", "overrides", {}),
        ("CELLS_HOLES", Path("holes.jsonl"), "holes", "holes.jsonl"),
        ("CELLS_DETECTION", "a.Rule, -b", "detection", ("a.Rule", "-b")),
        ("CELLS_DETECTION", [TwoCells], "detection", (TwoCells,)),
        ("CELLS_EXPECT_ITEMS", 1, "expect_items", True),
        ("CELLS_EXPECT_ITEMS", "0", "expect_items", False),
        ("CELLS_BREAKER_THRESHOLD", 4.0, "breaker_threshold", 4),
        ("CELLS_CONCURRENCY", None, "concurrency", None),
        ("CELLS_RATE", None, "rate", 0.5),
        ("CELLS_SITE_RATE", 0, "site_rate", 0.0),
    ],
)
def test_values_may_be_written_in_several_ways(name, value, field, found):
    """Lists are lists, JSON or comma lists, and None is the default."""
    assert getattr(read(**{name: value}), field) == found


def test_users_retry_times_is_the_default_of_ours():
    """Scrapy's own default is none that the user chose."""
    assert read().retry_times == 2
    assert read(RETRY_TIMES="7").retry_times == 7
    assert read(RETRY_TIMES=7, CELLS_RETRY_TIMES=1).retry_times == 1
    assert problem_of(RETRY_TIMES="x").startswith("RETRY_TIMES='x': must be a whole")


# Problems


def test_all_problems_come_in_one_error():
    """Settings wrong by themselves, together, unknown ones: nothing needs a rerun."""
    problems = problems_of(
        CELLS_RATE=-1,
        CELLS_BURST="many",
        CELLS_BRUST=3,
        CELLS_ONLY="99",
        CELLS_PROXY=PROXIES,
        CELLS_OVERRIDES={"00": {"rates": 1, "timeout": 0}, "24": {"rate": True}},
    )
    assert [problem.partition(":")[0] for problem in problems] == [
        "CELLS_BRUST",
        "CELLS_RATE=-1",
        "CELLS_BURST='many'",
        "CELLS_OVERRIDES['00']",
        "CELLS_OVERRIDES['00']",
        "CELLS_OVERRIDES['24']",
        "CELLS_OVERRIDES['24']",
        "CELLS_ONLY=99",
    ]


def test_message_names_setting_value_and_what_is_allowed():
    """It can be acted on without the manual."""
    assert problem_of(CELLS_RATE=-1) == (
        "CELLS_RATE=-1: must be a number > 0 (requests per second); for no limit take"
        " a high number such as 1000"
    )


@pytest.mark.parametrize("value", [True, math.nan, math.inf, "nan", "", "x", [1], {}])
@pytest.mark.parametrize("name", ["RATE", "COUNT", "MAX_WAIT", "CONCURRENCY", "RAMP"])
def test_what_is_no_number_is_refused(name, value):
    """Booleans, NaN and infinity are none."""
    problem = problem_of(**{f"CELLS_{name}": value})
    assert problem.startswith(f"CELLS_{name}={value!r}: must be a")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COUNT", 0),
        ("COUNT", 100_001),
        ("COUNT", 2.5),
        ("SESSIONS", 0),
        ("CONCURRENCY", 0),
        ("TIMEOUT", 0),
        ("SITE_RATE", -1),
        ("BREAKER_THRESHOLD", 0),
        ("PACING_FLOOR", 0),
        ("PACING_FLOOR", 1.1),
        ("CAPTCHA_PENALTY", 1.1),
        ("RETIRE_BELOW", -0.1),
        ("RETRY_TIMES", -1),
        ("RATE", 10**400),
        pytest.param("RATE", 10**5000, id="thousands of digits"),
        ("EXPECT_ITEMS", "yes"),
        ("EXPECT_ITEMS", 2),
        ("ONLY", "[1"),
        ("ONLY", [7]),
        ("OVERRIDES", "{x"),
        ("OVERRIDES", [1]),
        ("DETECTION", 5),
        ("ITEM_FIELDS", "cell"),
        ("USER_AGENTS", ["A\r\nX: y"]),
        ("USER_AGENTS", [""]),
        ("CATALOG", 5),
        ("SHARD", "8/8"),
        ("SHARD", "1-8"),
        ("SHARD", "²/8"),
        ("ROUTER", "hsah"),
        ("ROUTER", 5),
        ("ROUTER", "no_such_package.Router"),
        ("KEY", "asin"),
        ("KEY", "regex:("),
        ("KEY", "no_such_package.key"),
    ],
)
def test_bad_value_is_refused_by_name(name, value):
    """The message starts with the setting and goes on with what must be."""
    problem = problem_of(**{f"CELLS_{name}": value})
    assert problem.startswith(f"CELLS_{name}=")
    assert len(problem) < 500


@pytest.mark.parametrize("name", ["CELLS_RATE", "CELLS_BURST"])
def test_zero_is_refused_with_advice(name):
    """0 does not mean "no limit"; the message says what does."""
    assert "for no limit take a high number such as 1000" in problem_of(**{name: 0})
    assert read(**{name: 1000})


@pytest.mark.parametrize("count", [1, 100_000, "24"])
def test_number_of_cells_may_be_anything_up_to_a_hundred_thousand(count):
    """The limits themselves are allowed."""
    assert read(CELLS_COUNT=count).count == int(count)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("CELLS_BRUST", "did you mean CELLS_BURST?"),
        ("CELLS_ENABELD", "did you mean CELLS_ENABLED?"),
        ("CELLS_Rate", "did you mean CELLS_RATE?"),
        ("cells_rate", "did you mean CELLS_RATE?"),
        ("CELLS_COOLDOWN", "did you mean CELLS_BREAKER_COOLDOWN?"),
        ("CELLS_XYZZY", "see the README"),
    ],
)
def test_unknown_setting_is_refused_with_the_one_that_may_be_meant(name, hint):
    """A mistyped setting is not silently its default."""
    problem = problem_of(**{name: SECRET})
    assert problem.startswith(f"{name}: no such setting; ")
    assert hint in problem


def test_settings_of_the_add_on_itself_are_known():
    """The add-on keeps what it replaced under a name that is its own."""
    assert read(CELLS_FALLBACK_HTTP_HANDLER="a.Handler")


def test_long_value_is_cut():
    """A message stays readable."""
    assert len(problem_of(CELLS_KEY="k" * 10_000)) < 400


def test_credentials_in_a_wrong_setting_are_masked():
    """A proxy URL pasted into another setting is not shown."""
    problem = problem_of(CELLS_KEY=f"http://user:{SECRET}@gate:8000")
    assert "http://***@gate:8000" in problem


# Overrides


def test_overrides_name_unknown_cells_and_options():
    """Both with what may be meant."""
    problems = problems_of(
        CELLS_OVERRIDES={
            7: {},
            "eu": {},
            "00": {"brust": 1},
            "01": {"proxy": "x"},
            "02": 5,
        }
    )
    assert "CELLS_OVERRIDES['7']: no cell '7'; did you mean '07'?" in problems[0]
    assert "there are 24: 00, 01 ... 23" in problems[1]
    assert problems[2] == (
        "CELLS_OVERRIDES['00']: no option 'brust'; did you mean 'burst'?"
    )
    assert "no option 'proxy'; one of rate, burst" in problems[3]
    assert problems[4] == "CELLS_OVERRIDES['02']=5: must be a dictionary of options"


@pytest.mark.parametrize(
    ("option", "value"), [("rate", 0), ("sessions", True), ("timeout", math.nan)]
)
def test_overrides_are_checked_as_their_settings_are(option, value):
    """The same text follows."""
    flat = problem_of(**{f"CELLS_{option.upper()}": value})
    own = problem_of(CELLS_OVERRIDES={"07": {option: value}})
    assert own == (
        f"CELLS_OVERRIDES['07']: {option}={value!r}:{flat.partition(':')[2]}"
    )


def test_override_changes_its_own_cell_only():
    """Everybody else has the flat setting."""
    config = read(CELLS_SITE_RATE=0, CELLS_OVERRIDES={"07": {"rate": 2, "sessions": 6}})
    assert config.options_for("07", 7, 24).rate == 2.0
    assert config.options_for("07", 7, 24).concurrency == 6
    assert config.options_for("08", 8, 24) == CellOptions()


# Budgets


def test_concurrency_is_the_number_of_sessions_unless_set():
    """Also in the sum that CONCURRENT_REQUESTS must hold."""
    assert read(CELLS_SESSIONS=3).options_for("00", 0, 24).concurrency == 3
    assert read(CELLS_CONCURRENCY=9).options_for("00", 0, 24).concurrency == 9
    config = read(CELLS_OVERRIDES={"00": {"sessions": 6}, "01": {"concurrency": 1}})
    assert config.options_for("00", 0, 24).concurrency == 6
    assert config.options_for("01", 1, 24).concurrency == 1
    assert config.sum_of_bulkheads(24) == 24 * 4 + 2
    assert config.options_for("00", 0, 24, 2).concurrency == 2


def test_share_of_the_site_rate_is_the_rate_where_it_is_lower():
    """The burst is 1 then, and first tokens are spread over count / site rate."""
    config = read(CELLS_COUNT=20, CELLS_SITE_RATE=5)
    options = config.options_for("07", 7, 20)
    assert (options.rate, options.burst) == (0.25, 1.0)
    waits = [(1 - config.first_tokens(index, 20)) / options.rate for index in range(20)]
    assert waits == pytest.approx([index / 5 for index in range(20)])
    assert "CELLS_SITE_RATE=5 over 20 cells" in config.rate_in_words(20)


@pytest.mark.parametrize("site_rate", [0, 10])
def test_cells_own_rate_rules_where_its_share_is_not_lower(site_rate):
    """0 is no ceiling."""
    config = read(CELLS_COUNT=20, CELLS_SITE_RATE=site_rate)
    options = config.options_for("07", 7, 20)
    assert (options.rate, options.burst) == (0.5, 5.0)
    assert config.first_tokens(7, 20) is None


def test_rate_of_its_own_decides_whether_a_cell_starts_late():
    """A slow cell has its burst; a fast one waits for its share."""
    config = read(CELLS_OVERRIDES={"00": {"rate": 0.01}, "01": {"rate": 9}})
    assert config.first_tokens(0, 24, "00") is None
    assert config.options_for("00", 0, 24).burst == 5.0
    assert config.first_tokens(6, 24, "01") == 0.75
    assert config.options_for("01", 6, 24).rate == 5 / 24


# Which cells run


@pytest.mark.parametrize(
    ("only", "shard", "running"),
    [
        ("", "", [f"{n:02d}" for n in range(10)]),
        ("07,00", "", ["00", "07"]),
        ("", "2/8", ["02"]),
        ("", "0/4", ["00", "04", "08"]),
        ("00,01,04", "0/4", ["00", "04"]),
    ],
)
def test_cells_run_by_name_and_by_shard(only, shard, running):
    """Shards are counted from 0 and deal cells out in turn."""
    config = read(CELLS_COUNT=10, CELLS_ONLY=only, CELLS_SHARD=shard)
    cells = config.build_router().cells
    assert list(config.running_cells(cells)) == running


def test_shards_cover_all_cells_once():
    """A fleet runs every cell, and none twice."""
    cells = read().build_router().cells
    parts = [read(CELLS_SHARD=f"{n}/5").running_cells(cells) for n in range(5)]
    assert sorted(cell for part in parts for cell in part) == list(cells)


def test_cells_that_are_not_there_cannot_run():
    """Neither by name nor by shard, nor by both together."""
    assert "no cell '7'; did you mean '07'?" in problem_of(CELLS_ONLY="00,7")
    assert "no cell is left" in problem_of(CELLS_COUNT=4, CELLS_SHARD="5/8")
    assert "no cell is left" in problem_of(CELLS_ONLY="00", CELLS_SHARD="1/2")


# Routers and keys


@pytest.mark.parametrize(
    ("router", "kind"),
    [
        ("hash", HashRouter),
        ("subtree", SubtreeRouter),
        (TwoCells, TwoCells),
        ("tests.test_config.TwoCells", TwoCells),
    ],
)
def test_router_is_built_once(router, kind):
    """By word, class or import path; a catalog is not read again and again."""
    config = read(CELLS_ROUTER=router)
    assert isinstance(config.build_router(), kind)
    assert config.build_router() is config.build_router()


@pytest.mark.parametrize(
    ("router", "words"),
    [
        (dict, "has no attribute 'cells'"),
        (lambda config: 1 / 0, "division by zero"),
        (lambda config: HashRouter(0), "at least 1"),
        (type("NoCells", (TwoCells,), {"cells": ()}), "at least one"),
        (type("Numbers", (TwoCells,), {"cells": (1, 2)}), "must be strings"),
        (type("Twins", (TwoCells,), {"cells": ("a", "a")}), "all be different"),
        (type("Stuck", (TwoCells,), {"route": None}), "route cannot be called"),
    ],
)
def test_class_that_gives_no_router_is_refused(router, words):
    """Before the first request, and by name."""
    problem = problem_of(CELLS_ROUTER=router)
    assert problem.startswith("CELLS_ROUTER=")
    assert words in problem


def test_catalog_is_read_from_a_file(tmp_path):
    """Cells are those of the file; overrides and CELLS_ONLY speak of them."""
    path = tmp_path / "keys.csv"
    path.write_text(CATALOG, encoding="utf-8")
    config = read(
        CELLS_ROUTER="catalog",
        CELLS_CATALOG=path,
        CELLS_ONLY="eu-1",
        CELLS_OVERRIDES={"eu-2": {"rate": 1}},
    )
    router = config.build_router()
    assert isinstance(router, CatalogRouter)
    assert (router.route("A"), router.route("B")) == ("eu-1", "eu-2")


def test_catalog_is_read_from_a_package_in_a_zip_file(tmp_path, monkeypatch):
    """An egg has no path beside its code that could be opened."""
    with zipfile.ZipFile(tmp_path / "project.egg", "w") as egg:
        egg.writestr("egg_project/__init__.py", "")
        egg.writestr("egg_project/data/keys.csv", CATALOG)
    monkeypatch.syspath_prepend(str(tmp_path / "project.egg"))
    config = read(
        CELLS_ROUTER="catalog", CELLS_CATALOG="package:egg_project/data/keys.csv"
    )
    assert config.build_router().cells == ["eu-1", "eu-2"]
    missing = problem_of(
        CELLS_ROUTER="catalog", CELLS_CATALOG="package:egg_project/keys.csv"
    )
    assert missing.startswith("CELLS_CATALOG='package:egg_project/keys.csv': ")


@pytest.mark.parametrize(
    "path",
    [
        "no/such/keys.csv",
        ".",
        "package:no_such_package/keys.csv",
        "package:json/keys.csv",
        "package:",
        "package:/keys.csv",
    ],
)
def test_catalog_that_is_not_there_is_named(path):
    """Whatever the system says about it."""
    problem = problem_of(CELLS_ROUTER="catalog", CELLS_CATALOG=path)
    assert problem.startswith(f"CELLS_CATALOG={path!r}: ")


def test_bad_line_of_a_catalog_is_named(tmp_path):
    """A long file needs the number."""
    path = tmp_path / "keys.csv"
    path.write_text(CATALOG + "C\n", encoding="utf-8")
    problem = problem_of(CELLS_ROUTER="catalog", CELLS_CATALOG=str(path))
    assert "line 4" in problem


def test_catalog_router_needs_its_file():
    """The message names the other setting."""
    assert problem_of(CELLS_ROUTER="catalog").startswith("CELLS_CATALOG=''")


def test_key_may_be_a_function_or_its_import_path():
    """Both are asked for the key of a request."""
    for key in (proxy_of, "tests.test_config.proxy_of"):
        assert read(CELLS_KEY=key).build_key().explicit
    assert not read().build_key().explicit


# Proxies


@pytest.mark.parametrize(
    ("proxy", "kind"),
    [
        (None, NoProxySource),
        (TEMPLATE, TemplateSource),
        (proxy_of, CallableSource),
        ("tests.test_config.proxy_of", CallableSource),
        (PROXIES, ListSource),
        (json.dumps(PROXIES), ListSource),
        ("tests.test_config.PROXIES", ListSource),
        ("tests.test_config.TEMPLATE", TemplateSource),
    ],
)
def test_proxies_come_from_a_template_a_list_or_a_function(proxy, kind):
    """As objects, as text, and by import path."""
    config = read(CELLS_PROXY=proxy, CELLS_COUNT=2, CELLS_SESSIONS=2)
    source = config.build_source(["00", "01"])
    assert type(source) is kind
    draws = [source.draw(cell, 0, n, 0.0).proxy for cell in ("00", "01") for n in "01"]
    assert len(set(draws)) == (1 if proxy is None else 4)
    assert set(config.sample_proxies()) <= set(draws)


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("", "leave the setting out"),
        (f"http://user:{SECRET}@gate:8000", "the same user name for every session"),
        (f"http://u-{{cell}}:{SECRET}@gate:8000", "replaced session and every gen"),
        (f"http://u1:{SECRET}@a:1,http://u2:{SECRET}@b:1", "a list of proxies is"),
        (f"http://{{sesion}}:{SECRET}@gate:8000", "did you mean {session}?"),
        (f"http://{{session_id}}:{SECRET}${{NO_SUCH_ENV}}@gate", "NO_SUCH_ENV is not"),
        (f'["http://u:{SECRET}@h:1"', "as text, JSON"),
        ([f"http://u:{SECRET}${{NO_SUCH_ENV}}@h:1"], "NO_SUCH_ENV is not"),
        (f"no_such_package.{SECRET.lower()}", "cannot be imported"),
        (5, "must be a list"),
        ({"07": f"http://u:{SECRET}@h:1"}, "must be a list"),
        ([f"http://u:{SECRET}@h:1", 5], "must be a list of strings"),
    ],
)
def test_proxies_that_cannot_work_are_refused_masked(proxy, words, monkeypatch):
    """Each message names the setting and shows no password."""
    monkeypatch.delenv("NO_SUCH_ENV", raising=False)
    problem = problem_of(CELLS_PROXY=proxy)
    assert problem.startswith("CELLS_PROXY=")
    assert words in problem


def test_too_few_proxies_are_refused_with_the_numbers():
    """Overrides of sessions count."""
    problem = problem_of(
        CELLS_PROXY=PROXIES,
        CELLS_COUNT=2,
        CELLS_SESSIONS=2,
        CELLS_OVERRIDES={"01": {"sessions": 3}},
    )
    assert problem.startswith("CELLS_PROXY: 4 proxies are too few for 2 cells with 5")


def test_no_number_of_missing_proxies_is_told_when_it_is_not_known():
    """A wrong count of cells is one problem, not two."""
    assert "CELLS_COUNT" in problem_of(CELLS_PROXY=PROXIES, CELLS_COUNT=0)
    assert "CELLS_SESSIONS" in problem_of(CELLS_PROXY=PROXIES, CELLS_SESSIONS="x")


def test_bad_proxy_of_a_list_is_told_beside_other_problems():
    """It does not depend on how many cells there are."""
    problems = problems_of(CELLS_PROXY=[f"http://u:{SECRET}@h:x"], CELLS_COUNT=0)
    assert len(problems) == 2
    assert "proxy 1 of the list: 'http://***@h:***'" in problems[1]


def test_variables_are_expanded_in_lists_too(monkeypatch):
    """A list holds secrets as a template does."""
    monkeypatch.setenv("GATE_PASSWORD", "p{w}")
    config = read(
        CELLS_PROXY=["http://u:${GATE_PASSWORD}@h:1"], CELLS_COUNT=1, CELLS_SESSIONS=1
    )
    draw = config.build_source(["00"]).draw("00", 0, "0", 0.0)
    assert draw.proxy == "http://u:p{w}@h:1"
