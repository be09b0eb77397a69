"""How the rules are joined: order, status, switches, rules of one's own."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from scrapy_cells.detection import Detector, Page, Rule, Stage
from scrapy_cells.domain.outcome import Outcome, Verdict
from tests.detection.answers import LONG, URL, answer, page

CHALLENGE = page("", "<script>window._cf_chl_opt={a:1};</script>", "Just a moment...")
PRODUCT = page("", '<h1 class="name">Kettle</h1><p>29.90 EUR</p>', "Kettle")


class SoldOutShell(Rule):
    name = "shop.shell"
    vendor = "shop"
    outcome = Outcome.SOFT_BLOCK

    def match(self, page: Page) -> bool:
        return page.title == "shell"


class Broken(Rule):
    name = "shop.broken"

    def match(self, page: Page) -> bool:
        raise RuntimeError("a bug")


class Everything(Rule):
    name = "shop.everything"

    def match(self, page: Page) -> bool:
        return True


@pytest.mark.parametrize(
    ("status", "outcome", "rule"),
    [
        (200, "ok", ""),
        (201, "ok", ""),
        (204, "ok", ""),
        (302, "neutral", "status.redirect"),
        (304, "neutral", "status.redirect"),
        (400, "ok", ""),
        (401, "neutral", "status.unauthorized"),
        (403, "blocked", "status.refused"),
        (404, "ok", ""),
        (405, "ok", ""),
        (407, "proxy_error", "proxy.authentication"),
        (408, "timeout", "status.timeout"),
        (410, "ok", ""),
        (418, "blocked", "status.refused"),
        (429, "rate_limited", "status.rate"),
        (451, "blocked", "status.refused"),
        (500, "server_error", "status.server_error"),
        (503, "server_error", "status.server_error"),
        (522, "server_error", "status.server_error"),
        (530, "server_error", "status.server_error"),
        (999, "blocked", "status.unknown"),
    ],
)
def test_a_status_counts_where_the_page_explains_nothing(
    status: int, outcome: str, rule: str
) -> None:
    """Statuses have one meaning each, for pages without any mark."""
    verdict = Detector().classify(*answer(PRODUCT, status))
    assert (str(verdict.outcome), verdict.rule) == (outcome, rule)


@pytest.mark.parametrize("status", [200, 202, 401, 403, 404, 429, 503])
def test_a_mark_wins_over_every_status(status: int) -> None:
    """A challenge is a captcha with whatever status it comes."""
    verdict = Detector().classify(*answer(CHALLENGE, status))
    assert verdict.outcome is Outcome.CAPTCHA


def test_stages_are_asked_in_the_documented_order() -> None:
    """Proxy errors come before headers, headers before marks, marks before status."""
    detector = Detector()
    headers = {"X-Squid-Error": "ERR_ACCESS_DENIED 0", "cf-mitigated": "challenge"}
    verdict = detector.classify(*answer(CHALLENGE, 403, headers))
    assert verdict.rule == "squid.error_header"
    del headers["X-Squid-Error"]
    verdict = detector.classify(*answer(CHALLENGE, 403, headers))
    assert verdict.rule == "cloudflare.mitigated"
    verdict = detector.classify(*answer(CHALLENGE, 403))
    assert (verdict.rule, verdict.place) == ("cloudflare.challenge_script", "script")
    verdict = detector.classify(*answer(page("", "", "Just a moment..."), 403))
    assert (verdict.rule, verdict.place) == ("cloudflare.waiting_title", "title")


def test_rules_and_vendors_are_switched_off_by_name() -> None:
    """A rule that is off has no opinion, and the next one decides."""
    first = Detector().classify(*answer(CHALLENGE)).rule
    second = Detector(disabled=[first]).classify(*answer(CHALLENGE))
    assert second.rule == "cloudflare.waiting_title"
    assert (
        Detector(disabled=["cloudflare"]).classify(*answer(CHALLENGE)).outcome == "ok"
    )
    allowed = Detector(disabled=["status.refused"]).classify(*answer(PRODUCT, 403))
    assert allowed.outcome == "ok"


def test_unknown_names_and_things_are_refused() -> None:
    """A misspelt rule is an error that says what was meant."""
    with pytest.raises(ValueError, match=r"did you mean 'cloudflare.waiting_title'"):
        Detector(disabled=["cloudflare.wating_title"])
    with pytest.raises(ValueError, match="no detection rule"):
        Detector(rules=[object()])
    with pytest.raises(ValueError, match="no rule that can be imported"):
        Detector.from_setting(["no.such.module.Rule"])
    with pytest.raises(ValueError, match="no CSS selector"):
        Detector(ok_selector="h1[")


def test_the_setting_takes_classes_paths_and_switches() -> None:
    """CELLS_DETECTION holds rules in any form, and names to switch off."""
    detector = Detector.from_setting(
        [SoldOutShell, Everything(), "-status.refused", "-shop.everything"]
    )
    assert detector.rule_names[0] == "shop.shell"
    assert "status.refused" not in detector.rule_names
    assert "shop.everything" not in detector.rule_names
    written = Detector.from_setting(f"{__name__}.SoldOutShell, -amazon")
    assert written.classify(*answer(page("", "", "shell"))).rule == "shop.shell"
    assert Detector.from_setting("").rule_names == Detector().rule_names


def test_own_rules_are_asked_first_and_replace_by_name() -> None:
    """What a user says about a page goes before what the package knows."""

    class Served(Rule):
        name = "cloudflare.challenge_script"

        def match(self, page: Page) -> Outcome:
            return Outcome.OK

    detector = Detector(rules=[Served])
    assert detector.rule_names.count("cloudflare.challenge_script") == 1
    verdict = detector.classify(*answer(CHALLENGE, 403))
    assert verdict == Verdict(Outcome.OK, "", "cloudflare.challenge_script", "page")


def test_own_rules_may_ask_to_be_last() -> None:
    """The stage of a rule decides when it is asked."""

    class Last(Rule):
        name = "shop.last"
        outcome = Outcome.SOFT_BLOCK
        stage = Stage.SOFT

        def match(self, page: Page) -> str:
            return "h1" if "29.90" in page.text else ""

    detector = Detector(rules=[Last])
    assert detector.classify(*answer(PRODUCT, 403)).outcome == "blocked"
    verdict = detector.classify(*answer(PRODUCT))
    assert verdict == Verdict(Outcome.SOFT_BLOCK, "", "shop.last", "h1")


def test_a_raising_rule_has_no_opinion_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A bug in a user's rule costs neither the crawl nor the log."""
    detector = Detector(rules=[Broken])
    for _ in range(3):
        assert detector.classify(*answer(PRODUCT)).outcome == "ok"
    assert [r.levelno for r in caplog.records] == [logging.WARNING]
    assert "shop.broken" in caplog.text


def test_a_rule_that_matches_everything_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Before all cells are closed, the log names the rule and how to switch it off."""
    detector = Detector(rules=[Everything])
    for _ in range(30):
        assert detector.classify(*answer(PRODUCT)).outcome == "blocked"
    assert len(caplog.records) == 1
    assert '"-shop.everything"' in caplog.text


def test_a_rule_with_good_answers_in_between_is_not_suspicious(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One good answer shows that the rule does not match everything."""
    detector = Detector(rules=[SoldOutShell])
    for _ in range(30):
        detector.classify(*answer(page("", "", "shell")))
        detector.classify(*answer(PRODUCT))
    assert not caplog.records


def test_the_ok_selector_wins_over_marks_on_a_good_status_only() -> None:
    """Content that proves a served page counts more than any mark in it."""
    body = CHALLENGE.replace("</body>", '<h1 class="name">Kettle</h1></body>')
    detector = Detector(ok_selector="h1.name::text")
    assert detector.classify(*answer(body)).rule == "ok_selector"
    assert detector.classify(*answer(body, 403)).outcome == "captcha"
    assert detector.classify(*answer(CHALLENGE)).outcome == "captcha"
    json = answer(b'{"captchaRelativeURL": "/c"}')
    assert detector.classify(*json).outcome == "captcha"


@pytest.mark.parametrize(
    ("method", "status", "body", "url", "outcome"),
    [
        ("GET", 200, b"", URL, "empty"),
        ("GET", 202, b" \r\n ", URL, "empty"),
        ("HEAD", 200, b"", URL, "ok"),
        ("POST", 200, b"", URL, "ok"),
        ("GET", 204, b"", URL, "ok"),
        ("GET", 302, b"", URL, "neutral"),
        ("GET", 304, b"", URL, "neutral"),
        ("GET", 404, b"", URL, "ok"),
        ("GET", 200, b"", "https://shop.example/robots.txt", "ok"),
    ],
)
def test_only_an_empty_answer_to_a_question_is_empty(
    method: str, status: int, body: bytes, url: str, outcome: str
) -> None:
    """Bodies that have to be empty, or may be, say nothing."""
    verdict = Detector().classify(*answer(body, status, url=url, method=method))
    assert str(verdict.outcome) == outcome


def test_html_where_data_was_asked_for_is_a_soft_block() -> None:
    """A page cannot be the JSON that the request accepts; an error page may be one."""
    detector = Detector()
    headers = {"Accept": "application/json, text/javascript, */*; q=0.01"}
    verdict = detector.classify(*answer(PRODUCT, headers={}, asked=URL))
    assert verdict.outcome == "ok"
    request, response = answer(PRODUCT)
    verdict = detector.classify(request.replace(headers=headers), response)
    assert (verdict.outcome, verdict.rule) == ("soft_block", "soft.html_for_data")
    request, response = answer(PRODUCT, 404)
    assert detector.classify(request.replace(headers=headers), response).outcome == "ok"
    request, response = answer(b'{"price": 1}')
    assert detector.classify(request.replace(headers=headers), response).outcome == "ok"


def test_a_login_page_is_a_wall_only_where_it_was_not_asked_for() -> None:
    """Landing at a log-in page is a soft block, unless that was the request."""
    login = page("", "<form><input name=u><input type=password></form>", "Sign in")
    detector = Detector()
    url = "https://shop.example/account/login?next=/item/1"
    verdict = detector.classify(*answer(login, url=url, meta={"redirect_urls": [URL]}))
    assert (verdict.outcome, verdict.rule) == ("soft_block", "soft.login_wall")
    assert detector.classify(*answer(login, url=url)).outcome == "ok"
    verdict = detector.classify(*answer(login, url=url, asked=URL))
    assert verdict.rule == "soft.login_wall"
    moved = answer(
        login, url=url, meta={"redirect_urls": ["https://shop.example/login"]}
    )
    assert detector.classify(*moved).outcome == "ok"


@pytest.mark.parametrize(
    ("status", "headers", "outcome"),
    [
        (407, {}, "proxy_error"),
        (407, {"Proxy-Authenticate": 'Basic realm="x"'}, "proxy_error"),
        (503, {"X-Squid-Error": "ERR_CONNECT_FAIL 110"}, "proxy_error"),
        (502, {"Server": "tinyproxy/1.11"}, "proxy_error"),
        (502, {"Via": "1.1 gateway"}, "proxy_error"),
        (503, {"Via": "1.1 gateway", "Server": "nginx"}, "server_error"),
        (503, {"Via": "1.1 abc.cloudfront.net (CloudFront)"}, "server_error"),
        (503, {}, "server_error"),
        (429, {"x-brd-error": "policy"}, "proxy_error"),
        (403, {"X-Luminati-Error": "Forbidden"}, "proxy_error"),
        (503, {"X-Crawlera-Error": "banned"}, "blocked"),
        (503, {"X-Crawlera-Error": "noslaves"}, "proxy_error"),
        (503, {"X-Crawlera-Error": "serverbusy"}, "rate_limited"),
        (503, {"Zyte-Error": "client_conn_closed"}, "neutral"),
    ],
)
def test_a_proxys_own_errors_are_told_from_the_sites(
    status: int, headers: dict[str, str], outcome: str
) -> None:
    """For http:// targets the proxy's answers come as if the site had sent them."""
    over_proxy = {"url": "http://shop.example/1", "meta": {"proxy": "http://p:1"}}
    verdict = Detector().classify(*answer(b"", status, headers, **over_proxy))
    assert str(verdict.outcome) == outcome


def test_an_unsigned_gateway_error_without_a_proxy_is_the_sites() -> None:
    """Without a proxy there is nobody else to blame."""
    verdict = Detector().classify(*answer(b"", 502, {"Via": "1.1 gateway"}))
    assert verdict.outcome == "server_error"


def test_only_the_head_of_a_huge_body_is_read() -> None:
    """What stands behind the first half megabyte does not count."""
    body = page("", LONG * 400 + CHALLENGE)
    assert len(body) > 600_000
    assert Detector().classify(*answer(body)).outcome == "ok"


def _utf16(text: str) -> bytes:
    return text.encode("utf-16")


@pytest.mark.parametrize(
    ("body", "headers", "outcome"),
    [
        (_utf16(CHALLENGE), {"Content-Type": "text/html; charset=utf-16"}, "captcha"),
        (CHALLENGE.encode(), {"Content-Type": "text/html; charset=none"}, "captcha"),
        (CHALLENGE.encode(), {"Content-Type": "image/jpeg"}, "captcha"),
        (b"%PDF-1.7 You have been blocked", {"Content-Type": "application/pdf"}, "ok"),
        (b"\x89PNG\r\n\x1a\n\0<form action=/cdn-cgi/l/chk_jschl>", {}, "ok"),
        (b"\x1f\x8b\x08 you have been blocked", {}, "ok"),
        ("<title>百度安全验证</title>".encode("gb18030"),
         {"Content-Type": "text/html; charset=gb18030"}, "captcha"),
        (b"[" * 60_000, {"Content-Type": "application/json"}, "ok"),
    ],
)  # fmt: skip
def test_bodies_are_judged_by_what_they_are(
    body: bytes, headers: dict[str, Any], outcome: str
) -> None:
    """Binary content is left alone; a page stays a page under any label."""
    verdict = Detector().classify(*answer(body, 200, headers))
    assert str(verdict.outcome) == outcome
