"""CELLS_ITEM_FIELDS on every kind of item."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Literal

import attrs
import pytest
import scrapy
from pydantic import BaseModel, ConfigDict

from scrapy_cells.crawl.stamp import Stamp, _generation_of
from tests.adapter.rig import NOW

FIELDS = [
    "cell_id",
    "cell_session",
    "cell_generation",
    "cell_provisional",
    "cell_checked_at",
]


@dataclass
class DataclassItem:
    name: str
    cell_id: str | None = None
    cell_session: str | None = None
    cell_generation: int | None = None
    cell_provisional: bool | None = None
    cell_checked_at: str | None = None


@attrs.define
class AttrsItem:
    name: str
    cell_id: str | None = None
    cell_session: str | None = None
    cell_generation: int | None = None
    cell_provisional: bool | None = None
    cell_checked_at: str | None = None


class PydanticItem(BaseModel):
    name: str
    cell_id: str | None = None
    cell_session: str | None = None
    cell_generation: int | None = None
    cell_provisional: bool | None = None
    cell_checked_at: str | None = None


class ScrapyItem(scrapy.Item):
    name = scrapy.Field()
    cell_id = scrapy.Field()
    cell_session = scrapy.Field()
    cell_generation = scrapy.Field()
    cell_provisional = scrapy.Field()
    cell_checked_at = scrapy.Field()


@dataclass
class PlainDataclass:
    name: str


@dataclass(slots=True)
class SlotsDataclass:
    name: str


@dataclass(frozen=True)
class FrozenDataclass:
    name: str
    cell_id: str | None = None


@attrs.frozen
class FrozenAttrs:
    name: str
    cell_id: str | None = None


class PlainPydantic(BaseModel):
    name: str


class FrozenPydantic(BaseModel):
    model_config = ConfigDict(frozen=True)
    name: str
    cell_id: str | None = None


class StrictPydantic(BaseModel):
    model_config = ConfigDict(validate_assignment=True)
    name: str
    cell_id: Literal["mine"] | None = None


class PlainScrapy(scrapy.Item):
    name = scrapy.Field()


def stamped(rig, item):
    request = rig.request("02", "B07")
    rig.send(request)
    return Stamp(rig.runtime).put(item, request), request


def value(item, name: str):
    return item[name] if isinstance(item, (dict, scrapy.Item)) else getattr(item, name)


@pytest.mark.parametrize(
    "item_class", [dict, DataclassItem, AttrsItem, PydanticItem, ScrapyItem]
)
def test_items_of_every_kind_say_where_they_came_from(new_rig, item_class):
    """Cell, session, generation and time are written on the very item."""
    rig = new_rig(CELLS_ITEM_FIELDS=FIELDS)
    given = item_class(name="kettle")
    item, request = stamped(rig, given)
    assert item is given
    assert {name: value(item, name) for name in ("name", *FIELDS)} == {
        "name": "kettle",
        "cell_id": "02",
        "cell_session": request.meta["cell_session"],
        "cell_generation": 0,
        "cell_provisional": False,
        "cell_checked_at": datetime.fromtimestamp(NOW, timezone.utc).isoformat(),
    }


def test_only_the_fields_asked_for_are_written(new_rig):
    """Without CELLS_ITEM_FIELDS items stay as they are."""
    item, _ = stamped(new_rig(CELLS_ITEM_FIELDS=["cell_id"]), {})
    assert item == {"cell_id": "02"}
    item, _ = stamped(new_rig(), {})
    assert item == {}


def test_value_the_spider_set_stays(new_rig):
    """A field that has a value keeps it; one that is None gets ours."""
    rig = new_rig(CELLS_ITEM_FIELDS=["cell_id", "cell_generation"])
    item, _ = stamped(rig, {"cell_id": "mine", "cell_generation": None})
    assert item == {"cell_id": "mine", "cell_generation": 0}


@pytest.mark.parametrize(
    "item_class",
    [
        PlainDataclass,
        SlotsDataclass,
        FrozenDataclass,
        FrozenAttrs,
        PlainPydantic,
        FrozenPydantic,
        PlainScrapy,
    ],
)
def test_item_that_cannot_hold_a_field_goes_on_without(new_rig, caplog, item_class):
    """No item is lost for its stamp, and each class is warned of once."""
    rig = new_rig(CELLS_ITEM_FIELDS=["cell_id"])
    stamp = Stamp(rig.runtime)
    request = rig.request("02", "B07")
    for _ in range(3):
        given = item_class(name="kettle")
        before = repr(given)
        assert stamp.put(given, request) is given
        assert repr(given) == before
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert len(warnings) == 1
    assert item_class.__name__ in warnings[0]
    assert "cell_id" in warnings[0]


def test_item_that_checks_its_values_may_refuse_ours(new_rig, caplog):
    """A model that validates on assignment keeps what it had."""
    rig = new_rig(CELLS_ITEM_FIELDS=["cell_id"])
    item, _ = stamped(rig, StrictPydantic(name="kettle"))
    assert item == StrictPydantic(name="kettle")
    assert "StrictPydantic cannot hold cell_id" in caplog.text


def test_a_field_that_fails_does_not_keep_the_others_off(new_rig):
    """A class with some of the fields gets those."""

    @dataclass
    class Some:
        name: str
        cell_session: str | None = None
        tags: list[str] = field(default_factory=list)

    rig = new_rig(CELLS_ITEM_FIELDS=["cell_id", "cell_session"])
    item, request = stamped(rig, Some("kettle"))
    assert item.cell_session == request.meta["cell_session"]


@pytest.mark.parametrize("thing", [None, "text", 5, ["a"]])
def test_what_is_no_item_passes(new_rig, thing):
    """Whatever else a callback yields is Scrapy's to complain about."""
    item, _ = stamped(new_rig(CELLS_ITEM_FIELDS=FIELDS), thing)
    assert item is thing


def test_page_without_a_cell_stamps_nothing_wrong(new_rig):
    """An item of a file or data URL has no cell, and says so."""
    rig = new_rig(CELLS_ITEM_FIELDS=["cell_id", "cell_session", "cell_generation"])
    item = Stamp(rig.runtime).put({}, scrapy.Request("data:,x"))
    assert item == {"cell_id": None, "cell_session": None, "cell_generation": None}


def test_generation_of_a_session_that_is_gone_is_read_from_its_id(new_rig):
    """A cohort retired while the callback ran does not change what the item says."""
    rig = new_rig(CELLS_ITEM_FIELDS=["cell_generation"])
    request = rig.request("02", "B07")
    rig.send(request)
    assert rig.runtime.cell("02").cohort.advance(NOW)
    assert Stamp(rig.runtime).put({}, request) == {"cell_generation": 0}


@pytest.mark.parametrize(
    ("session", "generation"),
    [
        ("07g1s2r1", 1),
        ("00g12s0", 12),
        ("bigg3s1", 3),
        ("ags4g5s1", 5),
        ("none", None),
        ("", None),
        (None, None),
    ],
)
def test_generation_is_read_from_any_session_id(session, generation):
    """Also where the cell's name holds the letters that separate the parts."""
    assert _generation_of(session) == generation
