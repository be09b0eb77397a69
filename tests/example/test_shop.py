"""The example's shop and its gateway, on their own."""

from __future__ import annotations

import base64
import http.client
import re
import ssl
from decimal import Decimal

import pytest
from prices import settings
from prices.shop.catalogue import HOUR, Catalogue, watchlist
from prices.shop.desk import Desk
from prices.shop.gateway import Gateway
from prices.shop.host import Host
from prices.shop.server import ShopServer
from prices.shop.story import (
    DAY_BEGINS,
    SCRIPT,
    Exit,
    Story,
    StoryClock,
    read_story,
    time_of_day,
)
from prices.shop.truth import Ledger, Served
from prices.shop.watch import Rules, Standing, Watch
from prices.watchlist import read_cells

CATALOGUE = Catalogue()
KEYS = list(CATALOGUE.products)
HERE = Exit("10.0.0.1", "07", 0, "2")
NEXT_DOOR = Exit("10.0.0.2", "07", 0, "3")


class Hands:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


class World:
    """A desk with everything around it, and no network."""

    def __init__(self, script: str = "head", factor: float = 1.0) -> None:
        self.hands = Hands()
        self.clock = StoryClock(factor, self.hands)
        self.watch = Watch()
        self.ledger = Ledger()
        story = read_story(script)
        self.desk = Desk(CATALOGUE, story, self.watch, self.ledger, self.clock)

    def to(self, time: str) -> None:
        seconds = (time_of_day(time) - DAY_BEGINS) / self.clock.factor
        self.hands.at = 100.0 + seconds


@pytest.fixture
def host():
    with Host(story=Story()) as host:
        yield host


def authorization(user: str, password: str = "secret") -> dict[str, str]:
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Proxy-Authorization": f"Basic {token}"}


def get_plain(host: Host, key: str, headers: dict[str, str], url: str = ""):
    connection = http.client.HTTPConnection("127.0.0.1", host.gateway.port, timeout=10)
    try:
        connection.request("GET", url or f"{host.plain_url}/dp/{key}", headers=headers)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def get_tunnelled(host: Host, paths: list[str], user: str, password: str = "secret"):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(
        "127.0.0.1", host.gateway.port, timeout=10, context=context
    )
    connection.set_tunnel(
        "localhost", host.shop.tls_port, authorization(user, password)
    )
    try:
        bodies = []
        for path in paths:
            connection.request("GET", path)
            bodies.append(connection.getresponse().read())
        return bodies
    finally:
        connection.close()


# The gateway


@pytest.mark.parametrize(
    "headers",
    [
        {},
        authorization("customer-07-g0-s2", "guess"),
        authorization("somebody"),
        {"Proxy-Authorization": "Basic %%%"},
        {"Proxy-Authorization": "Bearer token"},
    ],
)
def test_gateway_asks_strangers_for_credentials(host, headers):
    """Without the right password and a customer's name, there is 407."""
    status, answer, _ = get_plain(host, KEYS[0], headers)
    assert status == 407
    assert answer["Proxy-Authenticate"].startswith("Basic")
    assert not host.ledger.served


def test_tunnel_is_refused_to_strangers(host):
    """CONNECT needs credentials as well."""
    with pytest.raises(OSError, match="407"):
        get_tunnelled(host, ["/"], "customer-07-g0-s2", "guess")


def test_gateway_leads_nowhere_but_to_the_shop(host):
    """It is no open proxy."""
    headers = authorization("customer-07-g0-s2")
    assert get_plain(host, "", headers, "http://shop.test/")[0] == 403


def test_user_name_keeps_its_exit_over_connections_and_schemes(host):
    """A session is sticky: http and https, one connection or many."""
    user = "customer-07-g0-s2"
    for key in KEYS[:2]:
        assert get_plain(host, key, authorization(user))[0] == 200
    get_tunnelled(host, [f"/dp/{KEYS[2]}", f"/dp/{KEYS[3]}"], user)
    get_tunnelled(host, [f"/dp/{KEYS[4]}"], user)
    assert len(host.ledger.served) == 5
    assert {served.exit for served in host.ledger.served} == {
        Exit("10.0.0.1", "07", 0, "2")
    }


def test_every_session_has_an_exit_of_its_own_beside_its_cohort():
    """Names differ in address; those of one cell and generation are neighbours."""
    gateway = Gateway(ShopServer(World().desk))
    names = ["07-g0-s2", "07-g0-s3", "07-g0-s2r1", "07-g1-s2", "11-g0-s2"]
    exits = [gateway.exit_of(f"customer-{name}") for name in names]
    assert len({exit_.address for exit_ in exits}) == 5
    assert [exit_.network for exit_ in exits] == [
        *["10.0.0"] * 3,
        "10.0.1",
        "10.0.2",
    ]


def test_connection_shared_by_users_keeps_their_exits_apart(host):
    """A plain proxy connection may carry several users, as Scrapy's pools do."""
    connection = http.client.HTTPConnection("127.0.0.1", host.gateway.port, timeout=10)
    for number, user in enumerate(["customer-07-g0-s2", "customer-11-g0-s0"]):
        url = f"{host.plain_url}/dp/{KEYS[number]}"
        connection.request("GET", url, headers=authorization(user))
        connection.getresponse().read()
    connection.close()
    assert [served.exit.cell for served in host.ledger.served] == ["07", "11"]


def test_customer_cannot_name_an_exit_himself(host):
    """The internal header is the gateway's alone."""
    get_plain(host, KEYS[0], authorization("customer-11-g0-s0"))
    other = host.ledger.served[0].exit.address
    forged = {**authorization("customer-07-g0-s2"), "X-Exit-Address": other}
    get_plain(host, KEYS[1], forged)
    assert host.ledger.served[1].exit.cell == "07"


def test_reset_of_the_shop_reaches_the_customer_as_one():
    """The gateway passes on how a connection ended."""
    acts = read_story("head\n00:00 48:00 07 * * reset")
    with (
        Host(story=acts) as host,
        pytest.raises((ConnectionError, http.client.HTTPException)),
    ):
        get_plain(host, KEYS[0], authorization("customer-07-g0-s2"))
    assert [served.kind for served in host.ledger.served] == ["reset"]


def test_hanging_exit_gives_no_answer():
    """The request arrives, and that is all."""
    acts = read_story("head\n00:00 48:00 07 * * hang")
    with Host(story=acts) as host:
        connection = http.client.HTTPConnection(
            "127.0.0.1", host.gateway.port, timeout=0.2
        )
        headers = authorization("customer-07-g0-s2")
        connection.request("GET", f"{host.plain_url}/dp/{KEYS[0]}", headers=headers)
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()
    assert [served.kind for served in host.ledger.served] == ["hang"]


def test_page_shows_what_the_ledger_keeps(host):
    """The truth is what was on the page."""
    _, _, body = get_plain(host, KEYS[0], authorization("customer-07-g0-s2"))
    amount = re.search(r'data-amount="([\d.]+)"', body.decode()).group(1)
    assert host.ledger.served[0].price == Decimal(amount)


# What the shop puts up with


def test_exit_that_goes_too_fast_is_suspected():
    """Twelve pages an hour are fine, the thirteenth is not; robot checks, then 503."""
    world = World()
    path = f"/dp/{KEYS[0]}"
    statuses = []
    for _ in range(20):
        world.hands.at += 60
        reply = world.desk.answer(HERE, path)
        statuses.append((reply.status, b"Robot Check" in reply.body))
    assert statuses == [(200, False)] * 12 + [(200, True)] * 6 + [(503, False)] * 2
    assert [flag.why for flag in world.watch.flags] == ["too fast"]


def test_exit_within_its_budget_is_never_suspected():
    """Twelve pages an hour for a day, and nobody minds."""
    world = World()
    for _ in range(12 * 24):
        world.hands.at += HOUR / 12
        assert world.desk.answer(HERE, f"/dp/{KEYS[0]}").status == 200
    assert not world.watch.flags


def test_exit_that_hops_categories_is_suspected():
    """Three categories an hour are an evening's shopping, four are a crawl."""
    watch = Watch()
    standings = [watch.visit(HERE, name, 10.0) for name in ("a", "b", "c", "a", "d")]
    assert standings == [Standing.FINE] * 4 + [Standing.ROBOT]
    assert [flag.why for flag in watch.flags] == ["hops categories"]


def test_hammering_a_suspected_exit_spreads_to_its_neighbours():
    """Ten requests too many, and the cohort is suspected; others are not."""
    watch = Watch(Rules(spread_after=10))
    elsewhere = Exit("10.0.1.1", "11", 0, "0")
    watch.flag(HERE, 0.0, "story")
    for _ in range(10):
        watch.visit(HERE, "a", 1.0)
    assert watch.visit(NEXT_DOOR, "a", 2.0) is Standing.FINE
    watch.visit(HERE, "a", 3.0)
    assert watch.visit(NEXT_DOOR, "a", 4.0) is Standing.ROBOT
    assert watch.visit(elsewhere, "a", 4.0) is Standing.FINE


def test_suspicion_ends():
    """A flagged exit that keeps away is served again."""
    watch = Watch(Rules(hours=2))
    watch.flag(HERE, 0.0, "story")
    assert watch.visit(HERE, "a", 2 * HOUR - 1) is Standing.ROBOT
    assert watch.visit(HERE, "a", 2 * HOUR) is Standing.FINE


def test_cookie_of_another_exit_is_suspicious():
    """A visitor does not move house between two pages."""
    world = World()
    cookie = world.desk.answer(HERE, f"/dp/{KEYS[0]}").headers["Set-Cookie"]
    cookie = cookie.partition(";")[0]
    assert world.desk.answer(HERE, f"/dp/{KEYS[0]}", cookie).status == 200
    reply = world.desk.answer(NEXT_DOOR, f"/dp/{KEYS[0]}", cookie)
    assert b"Robot Check" in reply.body


# The story


def test_429_says_when_to_come_back():
    """Retry-After is in seconds of ours, up to the end of the act."""
    world = World("head\n12:10 13:20 07 * * 429", factor=1440)
    world.to("12:20")
    reply = world.desk.answer(HERE, f"/dp/{KEYS[0]}")
    assert (reply.status, reply.headers["Retry-After"]) == (429, "3")
    world.to("13:21")
    assert world.desk.answer(HERE, f"/dp/{KEYS[0]}").status == 200


@pytest.mark.parametrize(
    ("time", "exit_", "what"),
    [
        ("11:59", Exit("x", "03", 0, "0"), None),
        ("12:00", Exit("x", "03", 0, "3r1"), "robot"),
        ("12:00", Exit("x", "03", 1, "0"), None),
        ("12:30", Exit("x", "07", 4, "0"), "429"),
        ("14:59", Exit("x", "11", 0, "0"), "hang"),
        ("15:00", Exit("x", "11", 0, "0"), None),
        ("13:00", Exit("x", "14", 0, "0"), "reset"),
        ("20:00", Exit("x", "18", 0, "1"), "robot"),
        ("20:00", Exit("x", "18", 0, "1r1"), None),
        ("29:00", Exit("x", "21", 7, "2"), "robot"),
        ("20:00", Exit("x", "00", 0, "0"), None),
    ],
)
def test_script_says_what_is_on(time, exit_, what):
    """The table of the day holds for cells, generations, sessions and times."""
    act = read_story(SCRIPT).now_on(exit_, time_of_day(time))
    assert (act.what if act else None) == what


def test_script_with_a_mistake_is_refused():
    """The message shows the line."""
    with pytest.raises(ValueError, match="rain"):
        read_story("head\n12:00 13:00 07 * * rain")


def test_clock_runs_by_its_factor():
    """A minute of ours is a day of the story."""
    hands = Hands()
    clock = StoryClock(1440, hands)
    hands.at += 15
    assert clock.now() == time_of_day("12:00")
    clock.begin()
    assert clock.now() == DAY_BEGINS


def test_prices_move_at_noon():
    """Most prices differ before and after, and stay as they are between moves."""
    morning, noon, one = (
        [CATALOGUE.price(key, hour * HOUR) for key in KEYS] for hour in (11.9, 12, 13)
    )
    assert noon == one
    assert sum(a != b for a, b in zip(morning, noon, strict=True)) > 1800


# The truth


def row(key: str, price: Decimal, **changes: str) -> dict[str, object]:
    product = CATALOGUE.get(key)
    return {
        "key": key,
        "price": price,
        "title": product.title,
        "category": product.category,
        **changes,
    }


def ledger_of(*served: Served) -> Ledger:
    ledger = Ledger()
    for one in served:
        ledger.note(one)
    return ledger


def test_check_finds_wrong_rows():
    """A price no page said, another product's title, and a second row are wrong."""
    cells = dict.fromkeys(KEYS[:4], "00")
    ledger = ledger_of(
        *(Served(1.0, HERE, key, "page", Decimal(10)) for key in KEYS[:3])
    )
    rows = [
        row(KEYS[0], Decimal(10)),
        row(KEYS[0], Decimal(10)),
        row(KEYS[1], Decimal(11)),
        row(KEYS[2], Decimal(10), title="Something else"),
        row(KEYS[3], Decimal(10)),
    ]
    report = ledger.check(rows, CATALOGUE, cells)
    assert report.right == 1
    assert len(report.wrong) == 4
    assert not report.fine


def test_check_tells_who_else_was_hurt():
    """A refusal or a lost key outside the script's cells is no fine verdict."""
    cells = {KEYS[0]: "00", KEYS[1]: "01"}
    ledger = ledger_of(
        Served(1.0, HERE, KEYS[0], "page", Decimal(10)),
        Served(2.0, HERE, KEYS[1], "robot"),
    )
    rows = [row(KEYS[0], Decimal(10))]
    why = {KEYS[1]: "deferred"}
    hurt = ledger.check(rows, CATALOGUE, cells, reasons=why)
    planned = ledger.check(
        rows, CATALOGUE, cells, planned=frozenset({"01"}), reasons=why
    )
    assert hurt.others_hurt == ["01"]
    assert planned.others_hurt == []
    assert "    cell 01: 1 (1 deferred)" in planned.lines()


def test_check_finds_an_exit_with_keys_of_two_cells():
    """Sessions are never shared between cells."""
    cells = {KEYS[0]: "00", KEYS[1]: "01"}
    ledger = ledger_of(*(Served(1.0, HERE, key, "page", Decimal(10)) for key in cells))
    report = ledger.check([row(k, Decimal(10)) for k in cells], CATALOGUE, cells)
    assert report.shared == ["10.0.0.1 carried keys of 2 cells"]
    assert not report.fine


# The project


def test_watch_list_is_the_catalogue():
    """keys.csv is what ``python -m prices.shop.catalogue`` writes."""
    assert list(read_cells().items()) == watchlist(CATALOGUE)


def test_budget_of_a_whole_cell_is_below_what_an_exit_may_do():
    """So an unhurt cell is never suspected, whichever of its sessions it uses."""
    rules = Rules()
    cells = read_cells()
    count = len(set(cells.values()))
    assert settings.CELLS_SITE_RATE / count <= settings.CELLS_RATE  # then burst is 1
    hourly = settings.CELLS_SITE_RATE * settings.HOUR / count + 1
    assert hourly <= rules.per_hour / 2
    categories: dict[str, set[str]] = {}
    for key, cell in cells.items():
        categories.setdefault(cell, set()).add(CATALOGUE.get(key).category)
    assert max(map(len, categories.values())) <= rules.categories_per_hour
