"""The world does what the crawl tests take for granted."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import struct
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.world.crawl import run_crawl
from tests.world.faults import Hurt
from tests.world.server import Arrival
from tests.world.world import PASSWORD, World, over_budget, price_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from tests.world.crawl import CrawlResult

USER = "u-07-0-2"


def authorization(user: str = USER, password: str = PASSWORD) -> dict[str, str]:
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Proxy-Authorization": f"Basic {token}"}


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Client:
    """A client of the gateway that keeps its connection."""

    def __init__(self, world: World, user: str = USER, scheme: str = "http") -> None:
        self.world = world
        self.user = user
        self.scheme = scheme
        if scheme == "http":
            self.connection = http.client.HTTPConnection(
                "127.0.0.1", world.proxy_port, timeout=10
            )
        else:
            self.connection = http.client.HTTPSConnection(
                "127.0.0.1", world.proxy_port, timeout=10, context=unverified()
            )
            self.connection.set_tunnel(
                "127.0.0.1", world.tls_port, headers=authorization(user)
            )

    def get(self, path: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        if self.scheme == "http":
            url = self.world.base() + path
            headers = {**authorization(self.user), **headers}
        else:
            url = path
        self.connection.request("GET", url, headers=headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()


schemes = pytest.mark.parametrize("scheme", ["http", "https"])


# Target and gateway


@schemes
def test_product_page_comes_through_the_gateway(world: World, scheme: str) -> None:
    """The page arrives, and the shop knows the session it went to."""
    with Client(world, scheme=scheme) as client:
        status, page, _ = client.get("/p/k1")
    assert status == 200
    assert f'<p class="price">{price_of("k1")}</p>'.encode() in page
    (arrival,) = world.arrivals
    assert (arrival.user, arrival.key, arrival.scheme) == (USER, "k1", scheme)
    assert (arrival.cell, arrival.generation, arrival.session) == ("07", "0", "2")
    assert arrival.client == world.knocks[0].connection


@schemes
def test_connections_are_kept(world: World, scheme: str) -> None:
    """Requests one after the other share a connection on both sides of the gateway."""
    with Client(world, scheme=scheme) as client:
        for number in range(3):
            client.get(f"/p/k{number}")
    assert len({arrival.connection for arrival in world.arrivals}) == 1
    assert len({knock.connection for knock in world.knocks}) == 1
    assert len(world.knocks) == (3 if scheme == "http" else 1)


@schemes
def test_shop_never_sees_the_password(world: World, scheme: str) -> None:
    """The gateway takes its credentials off, and none go inside a tunnel."""
    with Client(world, scheme=scheme) as client:
        client.get("/p/k1")
    assert world.knocks[0].password == PASSWORD
    assert world.credentials_at_target() == []


def test_password_inside_a_tunnel_is_noticed(world: World) -> None:
    """A client that shows its credentials to the shop is found out."""
    with Client(world, scheme="https") as client:
        client.get("/p/k1", **authorization())
    assert len(world.credentials_at_target()) == 1


def test_direct_request_is_noticed(world: World) -> None:
    """Who reaches the shop past the gateway has no session."""
    with closing(http.client.HTTPConnection("127.0.0.1", world.port)) as connection:
        connection.request("GET", "/p/k1")
        connection.getresponse().read()
    assert world.requests_without_session() == world.arrivals != []


@pytest.mark.parametrize("headers", [{}, authorization(password="wrong")])
def test_gateway_wants_its_password(world: World, headers: dict[str, str]) -> None:
    """Without the right credentials there is a 407, and nothing reaches the shop."""
    connection = http.client.HTTPConnection("127.0.0.1", world.proxy_port)
    with closing(connection):
        connection.request("GET", world.base() + "/p/k1", headers=headers)
        assert connection.getresponse().status == 407
    assert world.arrivals == []
    assert len(world.unauthorized()) == 1


def test_gateway_leads_nowhere_else(world: World) -> None:
    """Whatever host is asked for, the shop answers."""
    connection = http.client.HTTPConnection("127.0.0.1", world.proxy_port)
    with closing(connection):
        connection.request("GET", "http://shop.test/p/k1", headers=authorization())
        assert connection.getresponse().status == 200
    assert world.arrivals[0].headers["host"] == "shop.test"


def test_body_goes_through(world: World) -> None:
    """A POST reaches the shop with all of its body."""
    connection = http.client.HTTPConnection("127.0.0.1", world.proxy_port)
    with closing(connection):
        connection.request(
            "POST", world.base() + "/p/k1", b"x" * 100_000, authorization()
        )
        assert connection.getresponse().status == 200
    assert len(world.arrivals[0].body) == 100_000


def test_usual_answers(world: World) -> None:
    """robots.txt, redirects, cookies, pictures and missing pages are as in a shop."""
    with Client(world) as client:
        assert client.get("/robots.txt")[1] == b"User-agent: *\nAllow: /\n"
        assert client.get("/redirect/2/p/k1")[2]["Location"] == "/redirect/1/p/k1"
        assert client.get("/redirect/1/p/k1")[2]["Location"] == "/p/k1"
        _, seen, headers = client.get("/cookie", Cookie="a=1")
        assert (seen, headers["Set-Cookie"]) == (b"a=1", f"visitor={USER}; Path=/")
        assert client.get("/img/x.png")[1].startswith(b"\x89PNG")
        assert client.get("/missing/x")[0] == 404


def test_scripted_answer_wins(world: World) -> None:
    """``respond`` and ``gate`` see each request and may answer in place of the rest."""
    world.respond = lambda arrival: (
        world.usual(arrival) if arrival.key == "k1" else None
    )
    world.gate = lambda knock: "502" if knock.target.endswith("/p/k3") else ""
    world.hurt("403")
    with Client(world) as client:
        assert [client.get(f"/p/k{n}")[0] for n in (1, 2, 3)] == [200, 403, 502]


# Faults


@pytest.mark.parametrize(
    ("fault", "status", "inside"),
    [
        ("captcha_200", 200, b"/errors/validateCaptcha"),
        ("captcha_503", 503, b"/errors/validateCaptcha"),
        ("429", 429, b"slow down"),
        ("403", 403, b"Forbidden"),
        ("503", 503, b"Back soon"),
        ("502_proxy", 502, b"gateway"),
        ("407", 407, b"gateway"),
    ],
)
def test_hurt_sessions_get_bad_answers(
    world: World, fault: str, status: int, inside: bytes
) -> None:
    """Only the sessions that are meant get the fault, and only until it heals."""
    hurt = world.hurt(fault, cell="07")
    with Client(world) as client, Client(world, "u-08-0-0") as other:
        answer = client.get("/p/k1")
        assert (answer[0], inside in answer[1]) == (status, True)
        assert other.get("/p/k2")[0] == 200
        hurt.heal()
        assert client.get("/p/k1")[0] == 200
    assert hurt.hits == 1


@schemes
@pytest.mark.parametrize("fault", ["reset", "close"])
def test_shop_can_cut_the_line(world: World, fault: str, scheme: str) -> None:
    """A reset or an early end at the shop reaches the client through the gateway."""
    world.hurt(fault)
    with Client(world, scheme=scheme) as client, pytest.raises(OSError, match=r"."):
        client.get("/p/k1")
    assert len(world.arrivals) == 1


@pytest.mark.parametrize("fault", ["reset_proxy", "refuse"])
def test_gateway_can_cut_the_line(world: World, fault: str) -> None:
    """A gateway that drops a session lets nothing reach the shop."""
    world.hurt(fault)
    with Client(world) as client, pytest.raises(OSError, match=r"."):
        client.get("/p/k1")
    assert world.arrivals == []
    assert world.spent_on("07") == 1


@pytest.mark.parametrize(
    ("fault", "scheme"),
    [
        ("hang", "http"),
        ("hang", "https"),
        ("hang_proxy", "http"),
        ("hang_connect", "https"),
        ("silent_tunnel", "https"),
    ],
)
def test_hanging_is_silence(world: World, fault: str, scheme: str) -> None:
    """Nothing comes, and the connection stays."""
    world.hurt(fault)
    with Client(world, scheme=scheme) as client:
        client.connection.timeout = 0.3
        with pytest.raises(TimeoutError):
            client.get("/p/k1")
    assert world.spent_on("07") == 1


@pytest.mark.parametrize("fault", ["407_connect", "502_proxy"])
def test_tunnel_can_be_refused(world: World, fault: str) -> None:
    """A client is told by status that its tunnel does not open."""
    world.hurt(fault)
    with (
        Client(world, scheme="https") as client,
        pytest.raises(OSError, match=fault[:3]),
    ):
        client.get("/p/k1")
    assert world.arrivals == []


@pytest.mark.parametrize(
    ("fault", "scheme"), [("slow", "http"), ("slow_proxy", "https")]
)
def test_slow_answers_are_answers(world: World, fault: str, scheme: str) -> None:
    """A slow page comes late and whole; an arrival knows when it was answered."""
    world.hurt(fault, delay=0.2)
    with Client(world, scheme=scheme) as client:
        assert client.get("/p/k1")[0] == 200
    assert world.arrivals[0].done - world.knocks[0].at > 0.19


def test_half_a_page(world: World) -> None:
    """``cut`` ends in the middle of the body."""
    world.hurt("cut")
    with Client(world) as client, pytest.raises(http.client.IncompleteRead):
        client.get("/p/k1")


def test_dripping_page_begins(world: World) -> None:
    """``drip`` sends the head at once and the body byte by byte."""
    world.hurt("drip")
    with Client(world) as client:
        client.connection.request(
            "GET", world.base() + "/p/k1", headers=authorization()
        )
        answer = client.connection.getresponse()
        assert answer.status == 200
        assert answer.read(1) == b"<"


@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_sent(world: World, as_date: bool) -> None:
    """A 429 can say for how long, in seconds or as a date."""
    world.hurt("429", retry_after=3, as_date=as_date)
    with Client(world) as client:
        value = client.get("/p/k1")[2]["Retry-After"]
    assert value.endswith("GMT") if as_date else value == "3"


def test_fault_ends_some_time_after_its_first_hit() -> None:
    """``seconds`` count from the first request that met the fault."""
    with World() as world:
        hurt = Hurt("503", seconds=5)
        statuses = []
        for at in (100.0, 104.9, 105.0):
            arrival = Arrival(at, "GET", "/p/k1", {}, USER, 1, "http")
            reply = hurt.for_arrival(arrival, world.target)
            statuses.append(reply and reply.status)
    assert statuses == [503, 503, None]


def test_fault_of_one_session_or_generation(world: World) -> None:
    """Generation and session narrow a fault down."""
    world.hurt("403", generation="0", session="2")
    users = ["u-00-0-2", "u-00-0-1", "u-00-1-2", "u-00-0-2r1"]
    statuses = []
    for user in users:
        with Client(world, user) as client:
            statuses.append(client.get("/p/k1")[0])
    assert statuses == [403, 200, 200, 200]


def test_unknown_fault_is_refused(world: World) -> None:
    """A misspelt fault would be a test of nothing."""
    with pytest.raises(ValueError, match="no such fault: hangs"):
        world.hurt("hangs")


# Questions


def test_two_sessions_of_a_key_and_a_connection_are_found(world: World) -> None:
    """The queries find what must never happen."""
    with Client(world) as client:
        client.get("/p/k1")
        client.user = "u-07-0-3"
        client.get("/p/k1", Cookie=f"visitor={USER}")
    both = {USER, "u-07-0-3"}
    assert world.keys_on_two_sessions() == {"k1": both}
    assert list(world.connections_with_two_users().values()) == [both]
    assert [arrival.user for arrival in world.foreign_cookies()] == ["u-07-0-3"]


def test_peak_concurrency_counts_unanswered_requests(world: World) -> None:
    """Requests that wait for their answers at one time are counted together."""
    world.hurt("hang", cell="07")
    clients = [Client(world) for _ in range(3)]
    for client in clients:
        client.connection.request("GET", world.base() + "/p/k", headers=authorization())
    with Client(world, "u-08-0-0") as other:
        while len(world.arrivals) < 3:
            other.get("/robots.txt")
    for client in clients:
        client.connection.close()
    assert world.peak_concurrency("07") == 3


@pytest.mark.parametrize(
    ("times", "excess"),
    [
        ([0.0], -2.0),
        ([0.0, 0.0, 0.0], 0.0),
        ([0.0, 0.0, 0.0, 0.0], 1.0),
        ([0.0, 0.0, 0.0, 0.5, 1.0], 0.0),
        ([0.0, 10.0, 10.0, 10.0, 10.25], 0.5),
    ],
)
def test_worst_window(times: list[float], excess: float) -> None:
    """With a burst of 3 and 2 a second, the worst window is found wherever it lies."""
    assert over_budget(times, 3, 2) == excess


def test_worst_window_is_that_of_all_pairs() -> None:
    """The one-pass answer equals the one of comparing all windows."""
    times = [(n * 7919 % 1000) / 100 for n in range(200)]
    ordered = sorted(times)
    worst = max(
        j - i + 1 - 3 - 2 * (ordered[j] - ordered[i])
        for i in range(len(ordered))
        for j in range(i, len(ordered))
    )
    assert over_budget(times, 3, 2) == pytest.approx(worst)


def test_names_of_sessions(world: World) -> None:
    """A session's name gives its parts; cells may have dashes in theirs."""
    assert world.cell("u-eu-1-12-2r1") == ("eu-1", "12", "2r1")
    assert world.cell("somebody") == ("", "", "")


def test_abrupt_client_does_no_harm(world: World) -> None:
    """A client that resets in the middle of a request leaves the gateway working."""
    raw = socket.create_connection(("127.0.0.1", world.proxy_port))
    raw.sendall(b"GET http://127.0.0.1/ HT")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()
    with Client(world) as client:
        assert client.get("/p/k1")[0] == 200


# Crawls

PLAIN = {"LOG_LEVEL": "INFO"}

SPIDER = """
from tests.world.spiders import KeySpider


class Mine(KeySpider):
    name = "mine"

    def parse(self, response):
        raise RuntimeError("no")
"""


@pytest.mark.parametrize("reactor", ["asyncio", "none"])
def test_crawl_reports_what_it_did(world: World, reactor: str) -> None:
    """A crawl without the add-on gives its rows, errbacks, stats and end."""
    if reactor == "none":
        pytest.importorskip("scrapy.core.downloader.handlers._httpx")
    world.hurt("403")
    world.respond = lambda arrival: (
        world.usual(arrival) if arrival.key < "k00003" else None
    )
    crawled = run_crawl(PLAIN, reactor=reactor, base=world.base(), n=5)
    assert (crawled.returncode, crawled.reason) == (0, "finished"), crawled.log
    rows = {item["key"]: int(item["price"]) for item in crawled.items}
    assert rows == {key: price_of(key) for key in ("k00000", "k00001", "k00002")}
    assert crawled.failed_with() == {"HttpError": 2}
    assert crawled.stats["downloader/request_count"] == 5
    assert crawled.max_rss_mb > 10
    assert "Spider closed (finished)" in crawled.log


def test_crawl_of_given_source(world: World) -> None:
    """A spider may be given as the source of its module."""
    crawled = run_crawl(PLAIN, SPIDER, base=world.base(), n=2)
    assert crawled.stats["spider_exceptions/RuntimeError"] == 2, crawled.log


def test_crawl_can_be_interrupted(world: World) -> None:
    """SIGINT ends a crawl as Ctrl-C does."""
    world.hurt("slow", delay=0.5)
    crawled = run_crawl(
        {**PLAIN, "CONCURRENT_REQUESTS": 4},
        base=world.base(),
        n=500,
        interrupt_when=lambda: len(world.arrivals) >= 4,
    )
    assert crawled.reason == "shutdown", crawled.log
    assert len(crawled.items) < 500


def test_crawl_that_does_not_end_is_killed(world: World) -> None:
    """A crawl that outlives its time is killed, and the result says so."""
    world.hurt("hang")
    crawled = run_crawl(PLAIN, base=world.base(), n=1, timeout=3)
    assert crawled.killed
    assert crawled.reason == ""


@schemes
def test_crawl_in_cells(
    world: World, crawl: Callable[..., CrawlResult], scheme: str
) -> None:
    """The fixture crawls through the gateway, each cell with its own sessions."""
    crawled = crawl(scheme=scheme, n=20, CELLS_COUNT=4)
    assert len(crawled.items) == 20, crawled.log
    assert world.requests_without_session() == []
    assert set(world.by_cell()) <= {"00", "01", "02", "03"}
    assert crawled.outstanding == 0
