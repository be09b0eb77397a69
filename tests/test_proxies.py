"""Proxy addresses, and where sessions get them."""

import base64
import itertools
from collections import Counter

import pytest

from scrapy_cells.proxies import mask, mask_url, parse_proxy
from scrapy_cells.sources import (
    Agents,
    CallableSource,
    ListSource,
    NoProxySource,
    TemplateSource,
    template_problem,
)

NOW = 1_800_000_000.0
DAY = 86400.0
SECRET = "S3CR3T"
NONE = Agents(())


def sent_for(url: str) -> str:
    authorization = parse_proxy(url).authorization
    assert authorization is not None
    kind, _, code = authorization.partition(b" ")
    assert kind == b"Basic"
    return base64.b64decode(code).decode("utf-8")


# Addresses


@pytest.mark.parametrize(
    ("credentials", "sent"),
    [
        ("user:pass", "user:pass"),
        ("us%40er:p%3Aw%40d", "us@er:p:w@d"),
        ("user:p@ss", "user:p@ss"),
        ("user:a:b:c", "user:a:b:c"),
        ("user:a/b", "user:a/b"),
        ("user:a#b?c", "user:a#b?c"),
        ("user:a b", "user:a b"),
        ("user:50%zz", "user:50%zz"),
        ("user:пароль", "user:пароль"),
        ("user:%D0%BF", "user:п"),
        ("user", "user:"),
        ("user:", "user:"),
        (":pass", ":pass"),
    ],
)
def test_proxy_receives_the_intended_user_and_password(credentials, sent):
    """Special characters work raw and encoded, and a password is not needed."""
    assert sent_for(f"http://{credentials}@gate.example:8000") == sent
    assert parse_proxy(f"http://{credentials}@h:1").address == "http://h:1"


def test_encoded_bytes_that_are_no_text_reach_the_proxy_as_they_are():
    """A password need not be UTF-8."""
    found = parse_proxy("http://u:%FF%00@h:1").authorization
    assert found == b"Basic " + base64.b64encode(b"u:\xff\x00")


def test_no_credentials_send_nothing():
    """A proxy that knows us by our address gets no header."""
    proxy = parse_proxy("http://gate.example:8000")
    assert proxy.authorization is None
    assert proxy.masked == "http://gate.example:8000"


@pytest.mark.parametrize(
    ("url", "address", "host"),
    [
        ("http://[::1]:3128", "http://[::1]:3128", "::1"),
        ("http://u:p@[2001:db8::1]:1", "http://[2001:db8::1]:1", "2001:db8::1"),
        ("http://[::1]", "http://[::1]:80", "::1"),
        ("https://gate", "https://gate:443", "gate"),
        ("socks5://gate", "socks5://gate:1080", "gate"),
        ("HTTP://gate:1/", "http://gate:1", "gate"),
        ("gate.example:8000", "http://gate.example:8000", "gate.example"),
        (" u:p@10.0.0.1:8000\n", "http://10.0.0.1:8000", "10.0.0.1"),
        ("http://gate:8000/path?x=1#y", "http://gate:8000", "gate"),
    ],
)
def test_address_has_brackets_and_port(url, address, host):
    """IPv6 hosts keep their brackets in the address, and ports have defaults."""
    proxy = parse_proxy(url)
    assert (proxy.address, proxy.host) == (address, host)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "no host"),
        ("http://", "no host"),
        ("http://u:S3CR3T@", "no host"),
        ("http://u:S3CR3T@ho st:1", "no host"),
        ("http://u:S3CR3T@h:99999", "port"),
        ("http://u:S3CR3T@h:0", "port"),
        ("http://u:S3CR3T@h:8x", "port"),
        ("http://u:S3CR3T@h:٣", "port"),
        ("http://u:S3CR3T@::1:8000", "brackets"),
        ("http://u:S3CR3T@[::g]:1", "no IPv6 host"),
        ("http://u:S3CR3T@[1:2]:1", "no IPv6 host"),
        ("http://u:S3CR3T@[::1]8000", "only a port"),
        ("ftp://u:S3CR3T@h:21", "reached by http, https"),
        ("http://us%3Aer:S3CR3T@h:1", "user name with a colon"),
        ("10.0.0.1:8000:user:S3CR3T", "http://user:password@host:port"),
        ("http://10.0.0.1:8000:user:S3CR3T", "http://user:password@host:port"),
        ("http://user:S3CR3T", "http://user:password@host:port"),
        ("http://u:S3 S3CR3T@@h:x", "port"),
    ],
)
def test_what_is_no_proxy_is_refused_without_its_secret(url, words):
    """The message says what is wrong, and shows no password."""
    with pytest.raises(ValueError, match=words) as caught:
        parse_proxy(url)
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_secrets_are_in_no_representation():
    """What a log or a traceback may print shows neither user nor password."""
    proxy = parse_proxy(f"http://user:{SECRET}@gate:8000")
    for text in (repr(proxy), str(proxy), proxy.address, proxy.masked):
        assert SECRET not in text
        assert "user" not in text
    assert proxy.masked == "http://***@gate:8000"


@pytest.mark.parametrize(
    "credentials",
    [
        f"u:{SECRET}",
        f"u:a@{SECRET}",
        f"u:a/{SECRET}",
        f"u:a@b/{SECRET}",
        f"{SECRET}",
        f"u:'{SECRET}\"",
    ],
)
def test_credentials_are_masked_wherever_they_stand_in_a_text(credentials):
    """A password that ends the URL for others does not end it here."""
    url = f"http://{credentials}@gate:8000"
    for text in (url, f"tried {url} twice", f'["http://a:b@h:1","{url}"]'):
        assert SECRET not in mask(text)
        assert "gate:8000" in mask(text)
    assert mask_url(url) == "http://***@gate:8000"


def test_text_without_credentials_is_not_changed():
    """Masking leaves addresses and mail addresses alone."""
    text = "http://shop.example/dp/1 failed; ask admin@shop.example"
    assert mask(text) == text


def test_password_with_a_blank_is_masked():
    """A URL that stands alone is known to its end."""
    assert mask_url(f"http://u:a {SECRET}@h:1") == "http://***@h:1"


# A template


def test_template_gives_every_session_its_user():
    """All four fields can be used."""
    template = "http://u-{cell}-{generation}-{session}-{session_id}:pw@gate:8000"
    draw = TemplateSource(template, NONE).draw("07", 1, "2r1", NOW)
    assert draw.proxy == "http://u-07-1-2r1-07g1s2r1:pw@gate:8000"


def test_secret_of_a_template_comes_from_the_environment(monkeypatch):
    """Braces in the password are no fields, neither there nor where doubled."""
    monkeypatch.setenv("GATE_PASSWORD", "{cell}@}%25{")
    template = "http://{session_id}:${GATE_PASSWORD}{{x}}@gate:8000"
    assert template_problem(template) is None
    url = TemplateSource(template, NONE).draw("07", 0, "0", NOW).proxy
    assert sent_for(url) == "07g0s0:{cell}@}%{{x}"


def test_variable_that_is_not_set_is_named(monkeypatch):
    """A forgotten secret is no empty password."""
    monkeypatch.delenv("GATE_PASSWORD", raising=False)
    problem = template_problem("http://{session_id}:${GATE_PASSWORD}@gate:8000")
    assert "environment variable GATE_PASSWORD is not set" in problem


@pytest.mark.parametrize(
    "template",
    [
        "http://{session_id}:pw@gate:8000",
        "http://u-{cell}-{generation}-{session}:pw@gate:8000",
        "http://u-{cell:>4}-{generation:03d}-{session}:pw@gate:8000",
        "http://user:pw@{session_id}.gate.example:8000",
        "socks5://{session_id}@[::1]:8000",
    ],
)
def test_template_whose_user_or_host_changes_is_fine(template):
    """A gateway tells sessions apart by user name, host or port."""
    assert template_problem(template) is None


@pytest.mark.parametrize(
    ("template", "same"),
    [
        ("http://user:pw@gate:8000", "session and every replaced session and"),
        ("http://u-{cell}-{session}:pw@gate:8000", "for every generation:"),
        ("http://u-{cell}-{generation}:pw@gate:8000", "every session and every"),
        ("http://u-{generation}-{session}:pw@gate:8000", "for every cell:"),
        ("http://{cell}-{generation}-{session:.1}:pw@gate:1", "replaced session:"),
        ("http://user:{session_id}@gate:8000", "every session"),
    ],
)
def test_template_that_would_repeat_a_burnt_user_is_refused(template, same):
    """What does not change is named; a changing password is not enough."""
    problem = template_problem(template)
    assert "gives the same user name for every" in problem
    assert same in problem


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("http://{sesion_id}:S3CR3T@h:1", "did you mean {session_id}?"),
        ("http://{country}-{session_id}:S3CR3T@h:1", "unknown field {country}"),
        ("http://{}:S3CR3T@h:1", "unknown field {}"),
        ("http://{session.real}:S3CR3T@h:1", "unknown field {session.real}"),
        ("http://{session_id}:pw{S3CR3T}@h:1", "the password holds a brace"),
        ("http://{session_id}:S3CR3T{@h:1", "{{ and }}"),
        ("http://{session_id}:S3CR3T}@h:1", "{{ and }}"),
        ("http://{session_id!x}:S3CR3T@h:1", "conversion"),
        ("http://{session:d}:S3CR3T@h:1", "format"),
        ("http://{session_id}:S3CR3T@h:1000{session}", "port"),
    ],
)
def test_bad_template_is_explained_without_its_secret(template, words):
    """A mistyped field is named, and a piece of the password is not."""
    problem = template_problem(template)
    assert words in problem
    assert SECRET not in problem


# A list


def proxies(count: int) -> list[str]:
    return [f"http://u{number}:p@gate:8000" for number in range(count)]


def drawn(source: ListSource, cell: str, count: int, now: float = NOW) -> list[str]:
    draws = [source.draw(cell, 0, str(number), now) for number in range(count)]
    return [draw.proxy for draw in draws if draw is not None]


def test_list_is_divided_so_that_no_proxy_is_in_two_cells():
    """Every proxy has one cell, and no cell has two more than another."""
    cells = {f"{number:02d}": 4 for number in range(5)}
    source = ListSource(proxies(33), cells, NONE)
    dealt = {cell: drawn(source, cell, 100) for cell in cells}
    assert sorted(Counter(map(len, dealt.values())).items()) == [(6, 2), (7, 3)]
    assert sorted(itertools.chain(*dealt.values())) == sorted(proxies(33))


def test_list_that_grows_at_its_end_leaves_sessions_where_they_are():
    """Sticky for days: more reserve does not shuffle what is in use."""
    cells = {f"{number:02d}": 4 for number in range(3)}
    before = ListSource(proxies(12), cells, NONE)
    after = ListSource(proxies(20), cells, NONE)
    for cell in cells:
        assert drawn(before, cell, 4) == drawn(after, cell, 4)


def test_cells_of_different_size_get_what_they_need():
    """An override of one cell's sessions counts when the list is divided."""
    source = ListSource(proxies(7), {"00": 1, "01": 5, "02": 1}, NONE)
    assert len(drawn(source, "01", 5)) == 5
    assert [len(drawn(source, cell, 9)) for cell in ("00", "01", "02")] == [1, 0, 1]


def test_too_few_proxies_are_refused_with_the_numbers():
    """The message says how many there are, are needed and are missing."""
    with pytest.raises(ValueError, match="10 proxies are too few for 3 cells") as why:
        ListSource(proxies(10), {"00": 4, "01": 4, "02": 4}, NONE)
    assert "12 sessions in all. Add 2 proxies" in str(why.value)


@pytest.mark.parametrize(
    "twin", ["http://u0:p@gate:8000/", "u0:p@gate:8000", "http://u%30:p@gate:8000"]
)
def test_one_proxy_written_twice_is_refused(twin):
    """Two spellings of one proxy would put it into two cells."""
    with pytest.raises(ValueError, match="proxies 1 and 4 of the list are the same"):
        ListSource([*proxies(3), twin], {"00": 1}, NONE)


def test_bad_entry_is_named_by_its_place():
    """In a long list the number helps, and the password is not shown."""
    urls = [*proxies(2), f"http://u:{SECRET}@gate:port"]
    with pytest.raises(ValueError, match="proxy 3 of the list") as why:
        ListSource(urls, {"00": 1}, NONE)
    assert SECRET not in str(why.value)


def test_burnt_proxy_rests_for_a_day():
    """The reserve comes first, then nothing, and after a day the burnt one."""
    source = ListSource(proxies(2), {"00": 1}, NONE)
    first = source.draw("00", 0, "0", NOW)
    source.burn("00", first, NOW)
    assert drawn(source, "00", 1) == proxies(2)[1:]
    assert source.draw("00", 0, "0r2", NOW + DAY - 1) is None
    assert source.draw("00", 0, "0r2", NOW + DAY) == first


# A function, and none


def test_function_is_asked_with_all_there_is_to_know():
    """It sees the cell, the generation, the session and its id."""
    asked = []

    def proxy(*about):
        asked.append(about)
        return "http://u:p@gate:1"

    draw = CallableSource(proxy, NONE).draw("07", 3, "2r1", NOW)
    assert draw.proxy == "http://u:p@gate:1"
    assert asked == [("07", 3, "2r1", "07g3s2r1")]


def test_function_that_gives_none_has_no_reserve():
    """None says that there is no proxy to have."""
    source = CallableSource(lambda *about: None, NONE)
    assert source.draw("07", 0, "0", NOW) is None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (f"ftp://u:{SECRET}@h:1", "reached by"),
        (5, "a string, not int"),
        (f"10.0.0.1:80:u:{SECRET}", "the port must be"),
    ],
)
def test_function_that_gives_no_proxy_is_logged_and_counts_as_none(
    answer, words, caplog
):
    """A mistake in mid-crawl closes one cell off, and shows no secret."""
    source = CallableSource(lambda *about: answer, NONE)
    assert source.draw("07", 0, "0", NOW) is None
    assert "session 07g0s0" in caplog.text
    assert words in caplog.text
    assert SECRET not in caplog.text


def test_function_that_raises_counts_as_none(caplog):
    """Its error is logged without the credentials it may name."""

    def broken(*about):
        raise RuntimeError(f"no answer from http://u:{SECRET}@api.example/")

    assert CallableSource(broken, NONE).draw("07", 0, "0", NOW) is None
    assert "no answer from http://***@api.example/" in caplog.text


def test_function_cannot_give_one_proxy_to_two_sessions(caplog):
    """No proxy is in two cells, whoever deals them out."""
    source = CallableSource(lambda *about: "http://u:p@gate:1", NONE)
    assert source.draw("07", 0, "0", NOW) is not None
    assert source.draw("08", 0, "0", NOW) is None
    assert "http://***@gate:1 is the proxy of session 07g0s0" in caplog.text


def test_function_cannot_give_a_burnt_proxy_again_within_a_day(caplog):
    """A new generation on the old address would be the burnt one again."""
    source = CallableSource(lambda *about: "http://u:p@gate:1", NONE)
    source.burn("07", source.draw("07", 0, "0", NOW), NOW)
    assert source.draw("07", 1, "0", NOW + DAY - 1) is None
    assert "given up less than a day ago" in caplog.text
    assert source.draw("07", 1, "0", NOW + DAY) is not None


def test_crawl_without_proxies_never_runs_out():
    """There is one address, and sessions differ in cookies and user agent."""
    source = NoProxySource(Agents(["A"]))
    draw = source.draw("07", 0, "0", NOW)
    source.burn("07", draw, NOW)
    assert (draw.proxy, draw.user_agent) == (None, "A")
    assert source.draw("07", 0, "0", NOW) == draw


# User agents


def test_session_keeps_its_user_agent():
    """It follows from the session's name, and all agents are in use."""
    agents = Agents(["A", "B", "C"])
    found = {str(n): agents.of("07", 0, str(n)) for n in range(60)}
    assert found == {str(n): agents.of("07", 0, str(n)) for n in range(60)}
    assert set(found.values()) == {"A", "B", "C"}


def test_without_user_agents_the_crawl_keeps_its_own():
    """An empty list changes nothing."""
    assert NONE.of("07", 0, "0") is None
