"""The cohort: which session a key gets, and how sessions make way."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from scrapy_cells.domain.cohort import Cohort, Draw, cell_tag
from scrapy_cells.sources import Agents, ListSource
from tests.domain.cells import DAY, NOW, Source

KEYS = [f"key-{number}" for number in range(4000)]


def new_cohort(size: int = 4, source: Source | None = None, **how) -> Cohort:
    return Cohort("07", size, source or Source(), NOW, **how)


def ids(cohort: Cohort) -> list[str]:
    return [session.id for session in cohort.sessions]


# Names


def test_session_ids_name_cell_generation_and_session():
    """An id can be read: cell 07, generation 0, session 2."""
    assert ids(new_cohort(3)) == ["07g0s0", "07g0s1", "07g0s2"]


def test_replaced_session_shows_how_many_times():
    """Session 2 becomes 2r1, then 2r2, in its old place."""
    cohort = new_cohort()
    cohort.replace(cohort.sessions[2], NOW)
    cohort.replace(cohort.sessions[2], NOW)
    assert ids(cohort) == ["07g0s0", "07g0s1", "07g0s2r2", "07g0s3"]
    assert cohort.sessions[2].name == "2r2"


@pytest.mark.parametrize("cell", ["eu-1", "eu_1", "eu 1", "EU-1", "é1", "-", ""])
def test_cell_tag_is_letters_and_digits(cell):
    """Gateways take only these in user names."""
    tag = cell_tag(cell)
    assert tag.isascii()
    assert tag.isalnum()


def test_cells_that_differ_in_signs_only_have_different_tags():
    """eu-1 and eu1 do not share a session id."""
    cells = ["eu1", "eu-1", "eu_1", "e-u1", "eu1-"]
    assert len({cell_tag(cell) for cell in cells}) == len(cells)


def test_credentials_do_not_show():
    """Neither a draw nor a session prints its proxy."""
    session = new_cohort().sessions[0]
    assert "secret" in str(session.draw.proxy)
    assert "secret" not in repr(session) + repr(session.draw) + str(Draw("secret"))


# Picking


def test_key_stays_on_its_session():
    """The same key gets the same session, from one run to the next too."""
    first, second = new_cohort(), new_cohort()
    for key in KEYS[:100]:
        assert first.pick(key).id == second.pick(key).id


def test_keys_are_spread_evenly():
    """Every session gets its share, within four standard deviations."""
    counts = Counter(new_cohort().pick(key).index for key in KEYS)
    sigma = math.sqrt(len(KEYS) * 0.25 * 0.75)
    assert all(abs(counts[index] - len(KEYS) / 4) < 4 * sigma for index in range(4))


def test_one_more_session_moves_only_its_own_keys():
    """Keys that move, move to the new session."""
    four, five = new_cohort(4), new_cohort(5)
    moved = [key for key in KEYS if four.pick(key).index != five.pick(key).index]
    assert {five.pick(key).index for key in moved} == {4}
    assert len(moved) == pytest.approx(len(KEYS) / 5, rel=0.15)


def test_replacement_takes_over_the_keys():
    """The keys of a replaced session go to the one in its place, others stay."""
    cohort = new_cohort()
    before = {key: cohort.pick(key).id for key in KEYS[:200]}
    old = cohort.sessions[1]
    new = cohort.replace(old, NOW)
    for key, session_id in before.items():
        wanted = new.id if session_id == old.id else session_id
        assert cohort.pick(key).id == wanted


def test_avoided_session_is_the_last_resort():
    """A retry goes elsewhere while there is an elsewhere."""
    cohort = new_cohort()
    home = cohort.pick("key").id
    other = cohort.pick("key", avoid=[home]).id
    assert other != home
    assert cohort.pick("key", avoid=ids(cohort)).id == home


def test_preferred_session_wins_while_it_lives():
    """A follow-up stays on its parent's session, unless that is gone or avoided."""
    cohort = new_cohort()
    home = cohort.pick("key")
    other = next(session for session in cohort.sessions if session is not home)
    assert cohort.pick("key", other.id) is other
    assert cohort.pick("key", other.id, avoid=[other.id]) is home
    assert cohort.pick("key", "07g9s0") is home


def test_get_knows_only_the_living():
    """A session that was replaced is not found any more."""
    cohort = new_cohort()
    old = cohort.sessions[0]
    assert cohort.get(old.id) is old
    cohort.replace(old, NOW)
    assert cohort.get(old.id) is None


# Making way


def test_first_cohort_is_never_fresh():
    """Nobody knows how long its sessions were in use before the crawl."""
    cohort = new_cohort()
    assert not cohort.fresh(NOW, 600)
    assert cohort.advance(NOW + 10)
    assert cohort.fresh(NOW + 10 + 599, 600)
    assert not cohort.fresh(NOW + 10 + 600, 600)


def test_replacements_are_counted_for_a_while():
    """What was replaced long ago, or in another generation, does not count."""
    cohort = new_cohort()
    cohort.replace(cohort.sessions[0], NOW)
    cohort.replace(cohort.sessions[1], NOW + 300)
    assert cohort.replaced_within(600, NOW + 599) == 2
    assert cohort.replaced_within(600, NOW + 600) == 1
    cohort.advance(NOW + 601)
    assert cohort.replaced_within(600, NOW + 601) == 0


def test_next_generation_is_all_new():
    """All sessions are others, and the old ones are burnt, each once."""
    source = Source()
    cohort = new_cohort(2, source)
    old = [session.draw.proxy for session in cohort.sessions]
    assert cohort.advance(NOW + 5)
    assert ids(cohort) == ["07g1s0", "07g1s1"]
    assert source.burnt == [(NOW + 5, proxy) for proxy in old]
    assert not set(old) & {session.draw.proxy for session in cohort.sessions}


def test_replacement_burns_the_old_one():
    """The source hears who was given up."""
    source = Source()
    cohort = new_cohort(2, source)
    old = cohort.sessions[1]
    cohort.replace(old, NOW + 5)
    assert source.burnt == [(NOW + 5, old.draw.proxy)]


def test_empty_reserve_replaces_nobody():
    """Without a successor the session stays, unburnt."""
    source = Source(reserve=2)
    cohort = new_cohort(2, source)
    before = ids(cohort)
    assert cohort.replace(cohort.sessions[0], NOW) is None
    assert ids(cohort) == before
    assert source.burnt == []
    assert cohort.replaced_within(600, NOW) == 0


def test_reserve_too_small_for_a_generation_is_not_lost():
    """What was drawn for a generation that fell short goes into the next try."""
    source = Source(reserve=6)
    cohort = new_cohort(4, source)
    assert not cohort.advance(NOW + 10)
    assert cohort.generation == 0
    assert cohort.advance(NOW + 10 + DAY)
    used = [session.draw.proxy for session in cohort.sessions]
    assert used[:2] == ["http://user4:secret@gate:1", "http://user5:secret@gate:1"]
    assert len(set(used)) == 4


def test_address_is_not_used_again_within_a_day_of_its_end():
    """Tries to advance in vain do not bring a burnt address back under two names."""
    urls = [f"http://user{number}:secret@gate:1" for number in range(6)]
    source = ListSource(urls, {"07": 4}, Agents([]))
    cohort = new_cohort(4, source)
    generations = [[session.draw.proxy for session in cohort.sessions]]
    ended = {}
    now = NOW
    for _ in range(40):
        now += 4 * 3600
        ended.update({proxy: now for proxy in generations[-1] if proxy not in ended})
        if cohort.advance(now):
            proxies = [session.draw.proxy for session in cohort.sessions]
            assert len(set(proxies)) == 4
            assert all(now - ended.pop(p, -math.inf) >= DAY for p in proxies)
            generations.append(proxies)
    assert len(generations) >= 4


def test_too_few_proxies_are_refused_at_once():
    """A cohort that cannot be filled does not start."""
    with pytest.raises(ValueError, match="cell 07: no proxies for 4 sessions"):
        new_cohort(4, Source(reserve=3))


@pytest.mark.parametrize("rotation", [-1.0, math.nan, math.inf])
def test_bad_rotation_is_refused(rotation):
    """The message names the field."""
    with pytest.raises(ValueError, match="rotation"):
        new_cohort(rotation=rotation)


# Rotation


def test_rotation_takes_one_session_a_period_the_oldest_first():
    """Four sessions are all new after four periods."""
    cohort = new_cohort(rotation=DAY)
    now, seen = NOW, []
    for _ in range(4):
        now += DAY
        assert cohort.rotation_due(now)
        old, new = cohort.rotate(now)
        assert not cohort.rotation_due(now + DAY - 1)
        assert cohort.sessions[old.index] is new
        seen.append(old.id)
    assert seen == ["07g0s0", "07g0s1", "07g0s2", "07g0s3"]


def test_rotation_is_no_replacement():
    """A session that reached its age does not count as trouble."""
    cohort = new_cohort(rotation=DAY)
    cohort.rotate(NOW + DAY)
    assert cohort.replaced_within(600, NOW + DAY) == 0


def test_rotation_spreads_cells_over_the_period():
    """A hundred cells do not all rotate in the same hours."""
    cohorts = [Cohort(f"{n:02}", 1, Source(), NOW, rotation=DAY) for n in range(100)]
    hours = Counter(
        next(h for h in range(25) if cohort.rotation_due(NOW + h * 3600.0))
        for cohort in cohorts
    )
    assert len(hours) >= 18
    assert max(hours.values()) <= 15


def test_rotation_without_a_reserve_waits_for_the_next_turn():
    """The old session stays, and the source is not asked at every request."""
    cohort = new_cohort(2, Source(reserve=2), rotation=DAY)
    assert cohort.rotate(NOW + DAY) is None
    assert not cohort.rotation_due(NOW + DAY + 1)
    assert ids(cohort) == ["07g0s0", "07g0s1"]


def test_rotation_of_zero_is_never():
    """Whoever wants sessions to last gets that."""
    assert not new_cohort(rotation=0).rotation_due(NOW + 1000 * DAY)
