"""What is made of answers and failures, with real permits of real cells."""

from __future__ import annotations

import logging

import pytest
from scrapy import Request
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.spider import DefaultSpider
from twisted.internet.error import ConnectionLost
from twisted.python.failure import Failure
from twisted.web.client import ResponseFailed

from scrapy_cells import CellBlocked, CellsConfigError, Outcome, Verdict
from scrapy_cells._scrapy_compat import DownloadTimeoutError
from scrapy_cells.crawl.handler import REUSED
from scrapy_cells.crawl.lane import NOT_BEFORE
from scrapy_cells.crawl.outcomes import Judge, OutcomeMiddleware, as_verdict, judge_of
from scrapy_cells.crawl.session import SessionMiddleware
from tests.adapter.rig import NOW, page

WALL = Verdict(Outcome.CAPTCHA, "acme", "acme.wall", "title")


class WalledSpider(DefaultSpider):
    """Takes every page for a wall."""

    def classify(self, request, response):
        return WALL


def lost() -> Exception:
    """Return what this Scrapy's handlers raise when a connection breaks."""
    try:
        from scrapy.exceptions import DownloadFailedError
    except ImportError:
        return ResponseFailed([Failure(ConnectionLost())])
    return DownloadFailedError("the connection was lost")


def answered(rig, status: int = 200, body: str = "", request=None, **headers):
    """Send a request, let it be answered, and return what the judge makes of it."""
    request = request or rig.request()
    rig.send(request)
    return judge_of(rig.crawler).response(
        request, page(request, body, status, **headers)
    )


def failed(rig, exception: Exception, request=None):
    """Send a request, let it fail, and return what the judge makes of it."""
    request = request or rig.request()
    rig.send(request)
    return judge_of(rig.crawler).failure(request, exception)


def counts(rig, cell: str = "00") -> dict[Outcome, int]:
    return dict(rig.runtime.cell(cell).counts)


# What the spider says


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (WALL, Outcome.CAPTCHA),
        (Outcome.SOFT_BLOCK, Outcome.SOFT_BLOCK),
        ("blocked", Outcome.BLOCKED),
        ("empty", Outcome.EMPTY),
    ],
)
def test_spider_classifies_with_verdict_outcome_or_name(new_rig, answer, outcome):
    """``classify(request, response)`` is asked first, and may answer in three forms."""
    asked = []

    class Spider(DefaultSpider):
        def classify(self, request, response):
            asked.append((request.url, response.status))
            return answer

    rig = new_rig(Spider)
    retry = answered(rig)
    assert isinstance(retry, Request)
    assert counts(rig) == {outcome: 1}
    assert asked == [("http://shop.example/k", 200)]


def test_spider_without_an_opinion_leaves_it_to_the_rules(new_rig):
    """``None`` asks the rules; ``ok`` overrules them."""

    class Spider(DefaultSpider):
        def classify(self, request, response):
            return request.meta.get("say")

    rig = new_rig(Spider)
    assert isinstance(answered(rig, 403), Request)
    assert counts(rig) == {Outcome.BLOCKED: 1}
    fine = answered(rig, 403, request=rig.request("01", meta={"say": "ok"}))
    assert fine.status == 403
    assert counts(rig, "01") == {Outcome.OK: 1}


@pytest.mark.parametrize("wrong", ["nonsense", 5, ["captcha"], KeyError("price")])
def test_failing_classify_is_no_opinion_and_logged_once(new_rig, caplog, wrong):
    """A bug in the spider's own rule neither blocks nor passes anything."""

    class Spider(DefaultSpider):
        def classify(self, request, response):
            if isinstance(wrong, Exception):
                raise wrong
            return wrong

    rig = new_rig(Spider)
    assert answered(rig).status == 200
    assert isinstance(answered(rig, 403), Request)
    errors = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "classify()" in errors[0].getMessage()


def test_as_verdict_says_who_said_so():
    """What the spider said is told from what a rule said."""
    verdict = as_verdict("captcha")
    assert verdict == Verdict(Outcome.CAPTCHA, "", "spider.classify", "spider")
    assert as_verdict(WALL) is WALL
    assert as_verdict(None) is None
    with pytest.raises(ValueError, match="nonsense"):
        as_verdict("nonsense")


def test_bad_rule_in_settings_is_named(new_rig):
    """CELLS_DETECTION is checked before the first request."""
    rig = new_rig(CELLS_DETECTION=["-no.such.rule"])
    with pytest.raises(CellsConfigError, match=r"CELLS_DETECTION.*no\.such\.rule"):
        Judge(rig.runtime)
    rig = new_rig(CELLS_OK_SELECTOR="[[")
    with pytest.raises(CellsConfigError, match="CELLS_OK_SELECTOR"):
        Judge(rig.runtime)


# Good answers


def test_page_is_settled_by_its_callback(new_rig):
    """A 2xx goes on with its permit open: the callback may still fail."""
    rig = new_rig()
    request = rig.request()
    response = answered(rig, request=request)
    assert response.status == 200
    permit = rig.runtime.permit_of(request)
    assert not permit.settled


@pytest.mark.parametrize("status", [404, 410])
def test_missing_page_is_ok_and_settled_at_once(new_rig, status):
    """The way out works; a callback need not follow."""
    rig = new_rig()
    assert answered(rig, status).status == status
    assert counts(rig) == {Outcome.OK: 1}
    assert rig.runtime.permits == {}


def test_same_page_for_many_keys_is_a_soft_block(new_rig):
    """A wall nobody knows is told by being everybody's page."""
    rig = new_rig(CELLS_BREAKER_THRESHOLD=100, CELLS_RETIRE_BELOW=0)
    body = "<html><title>Shop</title><body>Have a look around.</body></html>"
    kinds = []
    for n in range(12):
        result = answered(rig, body=body, request=rig.request("00", f"k{n}"))
        kinds.append(isinstance(result, Request))
        for permit in list(rig.runtime.permits.values()):
            rig.runtime.settle(permit, Outcome.OK)
    assert not kinds[0]
    assert kinds[-1]
    assert counts(rig)[Outcome.SOFT_BLOCK] == sum(kinds)


def test_answer_without_a_permit_passes(new_rig):
    """Foreign schemes, and requests whose permit was taken back, are not judged."""
    rig = new_rig(WalledSpider)
    response = page(Request("http://shop.example/"))
    assert judge_of(rig.crawler).response(response.request, response) is response
    assert judge_of(rig.crawler).failure(response.request, lost()) is None


# Walls


def test_wall_is_tried_again_on_another_session(new_rig):
    """The retry waits in the queue, avoids the session, and counts one try."""
    rig = new_rig(WalledSpider, CELLS_RETRY_DELAY=8)
    request = rig.request(meta={"cell_session": "00g0s2"})
    retry = answered(rig, request=request)
    assert retry.meta["_cells_avoid"] == ("00g0s2",)
    assert "cell_session" not in retry.meta
    assert retry.meta["retry_times"] == 1
    assert NOW <= retry.meta[NOT_BEFORE] <= NOW + 8
    assert retry.dont_filter
    assert rig.stats["retry/count"] == 1
    assert rig.stats["retry/reason_count/captcha"] == 1
    assert rig.stats["cells/verdict_count/acme.wall"] == 1
    assert rig.runtime.holes.by_reason == {}


def test_wall_that_stays_raises_with_answer_and_verdict(new_rig):
    """Tries used up: an IgnoreRequest for the errback, and a hole for the report."""
    rig = new_rig(WalledSpider)
    with pytest.raises(CellBlocked) as caught:
        answered(rig, request=rig.request(meta={"retry_times": 2}))
    assert isinstance(caught.value, IgnoreRequest)
    assert caught.value.verdict is WALL
    assert caught.value.response.status == 200
    for word in ("captcha", "acme", "acme.wall", "title", "http://shop.example/k"):
        assert word in str(caught.value)
    assert rig.runtime.holes.by_reason == {"captcha": 1}
    assert rig.stats["retry/max_reached"] == 1
    assert rig.runtime.permits == {}


def test_cells_pass_blocked_hands_the_wall_to_the_callback(new_rig):
    """Who asks for it gets the wall, after the tries, with the cell told of it."""
    rig = new_rig(WalledSpider)
    request = rig.request(meta={"cells_pass_blocked": True})
    retry = answered(rig, request=request)
    assert isinstance(retry, Request)
    retry.meta["retry_times"] = 2
    assert answered(rig, request=retry).status == 200
    assert counts(rig) == {Outcome.CAPTCHA: 2}
    assert rig.runtime.permits == {}
    assert rig.runtime.holes.by_reason == {"captcha": 1}


@pytest.mark.parametrize(
    ("status", "outcome"), [(403, "blocked"), (429, "rate_limited"), (407, "proxy")]
)
def test_refusals_by_status_never_reach_a_callback(new_rig, status, outcome):
    """Without a word of the vendor's, the status alone is enough."""
    rig = new_rig(CELLS_RETRY_TIMES=0)
    with pytest.raises(CellBlocked) as caught:
        answered(rig, status)
    assert str(caught.value.verdict.outcome).startswith(outcome)


def test_server_error_is_left_to_scrapy_when_given_up(new_rig):
    """HttpErrorMiddleware says what becomes of a 5xx, as without cells."""
    rig = new_rig(CELLS_RETRY_TIMES=0)
    assert answered(rig, 503).status == 503
    assert counts(rig) == {Outcome.SERVER_ERROR: 1}


def test_redirect_to_a_wall_is_judged_before_it_is_followed(new_rig):
    """The innermost middleware asks; a fine redirect goes on to Scrapy's."""

    class Spider(DefaultSpider):
        def classify(self, request, response):
            return "captcha" if b"captcha" in response.headers[b"Location"] else None

    rig = new_rig(Spider, CELLS_RETRY_TIMES=0)
    session = SessionMiddleware.from_crawler(rig.crawler)
    for place, raises in (("/captcha", True), ("/next", False)):
        request = rig.request("00", place.strip("/"))
        rig.send(request)
        response = page(request, "moved", 302, Location=place)
        if raises:
            with pytest.raises(CellBlocked):
                session.process_response(request, response)
        else:
            assert session.process_response(request, response) is response
        assert rig.runtime.permits == {}
        assert rig.runtime.cell("00").in_flight == 0


# Answers of others


def test_cached_wall_is_fetched_afresh(new_rig):
    """A wall in the HTTP cache is no page: once more, past the cache."""
    rig = new_rig(WalledSpider)
    request = rig.request()
    rig.admit(request)
    cached = page(request).replace(flags=["cached"])
    fresh = judge_of(rig.crawler).response(request, cached)
    assert isinstance(fresh, Request)
    assert fresh.dont_filter
    assert fresh.meta["dont_cache"] is True
    assert fresh.url == request.url
    assert counts(rig) == {Outcome.NEUTRAL: 1}
    assert rig.runtime.cell("00").requests_sent == 0


def test_cached_page_passes_and_gives_its_token_back(new_rig):
    """Nothing was sent, so nothing was spent."""
    rig = new_rig()
    request = rig.request()
    tokens = rig.runtime.cell("00").bucket.tokens
    rig.admit(request)
    cached = page(request).replace(flags=["cached"])
    assert judge_of(rig.crawler).response(request, cached) is cached
    assert rig.runtime.cell("00").bucket.tokens == tokens
    assert rig.runtime.permits == {}


def test_answer_of_a_middleware_is_its_own_business(new_rig):
    """What was not fetched is not judged by the way out."""
    rig = new_rig(WalledSpider)
    request = rig.request()
    rig.admit(request)
    response = page(request)
    assert judge_of(rig.crawler).response(request, response) is response
    assert counts(rig) == {Outcome.NEUTRAL: 1}


# Failures on the wire


def test_timeout_is_tried_again_on_another_session(new_rig):
    """It speaks against the session, and costs one try."""
    rig = new_rig()
    request = rig.request()
    retry = failed(rig, DownloadTimeoutError("took longer than 20 s"), request)
    assert retry.meta["_cells_avoid"] == (request.meta["cell_session"],)
    assert retry.meta["retry_times"] == 1
    assert counts(rig) == {Outcome.TIMEOUT: 1}


def test_post_is_not_sent_twice_after_a_lost_connection(new_rig):
    """It may have arrived: given up, unless its ``max_retry_times`` says otherwise."""
    rig = new_rig()
    assert failed(rig, lost(), rig.request(method="POST")) is None
    assert rig.runtime.holes.by_reason == {"not_idempotent": 1}
    asked = rig.request(method="POST", meta={"max_retry_times": 1})
    retry = failed(rig, lost(), asked)
    assert (retry.method, retry.meta["retry_times"]) == ("POST", 1)


def test_post_that_met_only_the_proxy_is_sent_again(new_rig):
    """A tunnel that was refused let nothing through."""
    rig = new_rig()
    retry = failed(rig, TunnelError("502"), rig.request(method="POST"))
    assert retry.method == "POST"
    assert counts(rig) == {Outcome.PROXY_ERROR: 1}


def test_stale_connection_is_nobodys_fault(new_rig):
    """One more try at once on a new connection: no attempt, no strike, no delay."""
    rig = new_rig()
    request = rig.request(meta={REUSED: True})
    retry = failed(rig, lost(), request)
    assert NOT_BEFORE not in retry.meta
    assert retry.meta["retry_times"] == 0
    assert retry.meta["cell_session"] == request.meta["cell_session"]
    assert counts(rig) == {Outcome.NEUTRAL: 1}
    retry.meta[REUSED] = True
    again = failed(rig, lost(), retry)
    assert again.meta["retry_times"] == 1, "only once"
    assert counts(rig) == {Outcome.NEUTRAL: 1, Outcome.CONNECTION: 1}


@pytest.mark.parametrize(
    ("method", "meta"), [("POST", {}), ("GET", {"dont_retry": True})]
)
def test_no_free_try_where_none_was_to_be(new_rig, method, meta):
    """A POST, or ``dont_retry``, is not sent again for a stale connection either."""
    rig = new_rig()
    request = rig.request(method=method, meta={REUSED: True, **meta})
    assert failed(rig, lost(), request) is None
    assert counts(rig) == {Outcome.CONNECTION: 1}


def test_failure_before_sending_is_not_the_cells(new_rig):
    """A middleware that raised is told of by Scrapy; the admission settles it."""
    rig = new_rig()
    request = rig.request()
    rig.admit(request)
    middleware = OutcomeMiddleware.from_crawler(rig.crawler)
    assert middleware.process_exception(request, IgnoreRequest()) is None
    assert counts(rig) == {}


def test_exception_that_scrapy_would_not_retry_is_not_retried(new_rig):
    """``RETRY_EXCEPTIONS`` keeps its meaning."""
    rig = new_rig(RETRY_EXCEPTIONS=[KeyError])
    assert failed(rig, lost()) is None
    assert rig.runtime.holes.by_reason == {"connection": 1}


def test_bug_on_the_way_is_neutral(new_rig):
    """What is no failure of the network neither counts nor leaves a hole."""
    rig = new_rig()
    assert failed(rig, RuntimeError("a bug")) is None
    assert counts(rig) == {Outcome.NEUTRAL: 1}
    assert rig.runtime.holes.by_reason == {}


# Retry settings keep what they mean


def tries(rig, status: int = 503, **meta) -> int:
    """Return how often a request is tried again until it is given up."""
    request = rig.request(meta=meta)
    for times in range(10):
        result = answered(rig, status, request=request)
        if not isinstance(result, Request):
            return times
        request = result
    return 10


@pytest.mark.parametrize(
    ("settings", "meta", "times"),
    [
        ({}, {}, 2),
        ({"CELLS_RETRY_TIMES": 4}, {}, 4),
        ({"CELLS_RETRY_TIMES": 0}, {}, 0),
        ({"RETRY_TIMES": 3}, {}, 3),
        ({"RETRY_TIMES": 3, "CELLS_RETRY_TIMES": 1}, {}, 1),
        ({"CELLS_OVERRIDES": {"00": {"retry_times": 5}}}, {}, 5),
        ({}, {"max_retry_times": 4}, 4),
        ({}, {"max_retry_times": 0}, 0),
        ({}, {"dont_retry": True}, 0),
        ({}, {"dont_retry": False}, 2),
        ({"RETRY_ENABLED": False}, {}, 0),
        ({"RETRY_HTTP_CODES": [500]}, {}, 0),
        ({"RETRY_HTTP_CODES": "503"}, {}, 2),
    ],
)
def test_number_of_tries_is_what_settings_and_meta_say(new_rig, settings, meta, times):
    """Meta before a cell's own option, that before CELLS_RETRY_TIMES, RETRY_TIMES."""
    rig = new_rig(CELLS_BREAKER_THRESHOLD=100, CELLS_RETIRE_BELOW=0, **settings)
    assert tries(rig, **meta) == times
    assert sum(rig.runtime.holes.by_reason.values()) == 1


def test_status_of_retry_http_codes_is_retried_though_it_is_fine(new_rig):
    """A 404 listed there is tried again without speaking against the cell."""
    rig = new_rig(RETRY_HTTP_CODES=[404])
    assert tries(rig, 404) == 2
    assert counts(rig) == {Outcome.OK: 3}
    assert rig.stats["retry/reason_count/404"] == 2


def test_server_error_keeps_its_session(new_rig):
    """An overloaded site says nothing against who asked."""
    rig = new_rig()
    request = rig.request()
    retry = answered(rig, 503, request=request)
    assert retry.meta["cell_session"] == request.meta["cell_session"]
    assert "_cells_avoid" not in retry.meta


@pytest.mark.parametrize(
    ("settings", "meta", "priority"),
    [
        ({}, {}, 10),
        ({"RETRY_PRIORITY_ADJUST": -3}, {}, 7),
        ({}, {"priority_adjust": 5}, 15),
        ({"RETRY_PRIORITY_ADJUST": -3}, {"priority_adjust": 0}, 10),
    ],
)
def test_priority_changes_only_where_it_was_asked_for(
    new_rig, settings, meta, priority
):
    """Scrapy's default of -1 would let a retry wait behind a whole catalogue."""
    rig = new_rig(**settings)
    retry = answered(rig, 503, request=rig.request(priority=10, meta=meta))
    assert retry.priority == priority


def test_retries_are_a_share_of_the_first_tries(new_rig):
    """A cell whose every request fails does not ask thrice for each."""
    rig = new_rig(CELLS_BREAKER_THRESHOLD=1000, CELLS_RETIRE_BELOW=0)
    results = [
        answered(rig, 503, request=rig.request("00", f"k{n}")) for n in range(20)
    ]
    assert sum(isinstance(result, Request) for result in results) == 10
    assert rig.runtime.holes.by_reason == {"retry_budget": 10}


def test_sessions_to_avoid_do_not_pile_up(new_rig):
    """Meta of a request that is tried often stays small."""
    rig = new_rig(WalledSpider)
    avoided = tuple(f"00g0s{n}r9" for n in range(8))
    retry = answered(rig, request=rig.request(meta={"_cells_avoid": avoided}))
    assert len(retry.meta["_cells_avoid"]) == 8
    assert retry.meta["_cells_avoid"][:7] == avoided[1:]


# Retry-After


def test_retry_after_costs_no_attempt(new_rig):
    """A 429 that says when is obeyed as often as it is said, and holds the cell."""
    rig = new_rig(CELLS_RETRY_TIMES=1)
    request = rig.request()
    for _ in range(5):
        rig.clock.time += 100
        request = answered(rig, 429, request=request, Retry_After="30")
        assert request.meta["retry_times"] == 0
        assert request.meta[NOT_BEFORE] >= rig.clock.time + 30
        cell = rig.runtime.cell("00")
        assert cell.ready_at(rig.clock.time) == rig.clock.time + 30
    assert rig.runtime.cell("01").ready_at(rig.clock.time) == rig.clock.time


@pytest.mark.parametrize("value", [None, "0", "-5", "soon"])
def test_rate_limit_without_a_time_costs_an_attempt(new_rig, value):
    """Nothing that can be used is nothing said."""
    rig = new_rig()
    headers = {} if value is None else {"Retry_After": value}
    retry = answered(rig, 429, **headers)
    assert retry.meta["retry_times"] == 1


def test_retry_after_of_a_server_error_holds_but_costs(new_rig):
    """A 503 waits as asked; only a rate limit is free."""
    rig = new_rig()
    retry = answered(rig, 503, Retry_After="30")
    assert retry.meta["retry_times"] == 1
    assert retry.meta[NOT_BEFORE] >= NOW + 30
    assert rig.runtime.cell("00").ready_at(NOW) == NOW + 30


def test_long_retry_after_is_kept_in_full(new_rig):
    """Longer than CELLS_RETRY_MAX_DELAY is not clamped to it."""
    rig = new_rig(CELLS_RETRY_MAX_DELAY=10)
    retry = answered(rig, 429, Retry_After="7200")
    assert retry.meta[NOT_BEFORE] == NOW + 7200


def test_failed_probe_costs_no_attempt(new_rig):
    """The one that looks whether the way is free does not pay for it."""
    rig = new_rig()
    cell = rig.runtime.cell("00")
    cell.force_open(NOW + 60, NOW)
    rig.advance(60)
    request = rig.request(meta={"retry_times": 2})
    retry = answered(rig, 503, request=request)
    assert retry.meta["retry_times"] == 2
