"""Headers that only a wall sends, and addresses that only a wall has."""

from __future__ import annotations

import pytest

from scrapy_cells.detection import Detector
from tests.detection.answers import answer, page

# rule, outcome, status, headers
HEADERS = [
    ("cloudflare.mitigated", "captcha", 403, {"cf-mitigated": "challenge"}),
    ("vercel.challenge_header", "captcha", 429, {"x-vercel-mitigated": "challenge"}),
    ("aws_waf.challenge_header", "captcha", 202, {"x-amzn-waf-action": "challenge"}),
    ("aws_waf.captcha_header", "captcha", 405, {"x-amzn-waf-action": "captcha"}),
    ("datadome.header", "captcha", 403, {"x-datadome-cid": "x"}),
    ("kasada.header", "captcha", 429, {"x-kpsdk-ct": "x"}),
    ("perimeterx.blocked_header", "captcha", 403, {"x-px-blocked": "1"}),
    ("sucuri.block_header", "blocked", 403, {"X-Sucuri-Block": "FBP007"}),
    ("siteground.header", "captcha", 202, {"sg-captcha": "challenge"}),
    ("akamai.denied_status", "blocked", 403, {"Server": "AkamaiGHost"}),
]


@pytest.mark.parametrize(("rule", "outcome", "status", "headers"), HEADERS)
def test_block_only_headers_decide_whatever_the_body_is(
    rule: str, outcome: str, status: int, headers: dict[str, str]
) -> None:
    """Headers that only a wall sends count on empty, HTML and binary bodies alike."""
    for body in (b"", page("", "Hm"), b"\x89PNG\r\n\x1a\n\0\0"):
        verdict = Detector().classify(*answer(body, status, headers))
        assert (verdict.rule, str(verdict.outcome)) == (rule, outcome)


ADDRESSES = [
    ("google.sorry_address", "https://www.google.com/sorry/index?continue=x"),
    ("google.consent_address", "https://consent.google.com/m?continue=x"),
    ("amazon.captcha_address", "https://www.amazon.co.uk/errors/validateCaptcha?x=1"),
    ("ebay.check_address", "https://www.ebay.com/splashui/challenge?ap=1"),
    ("perimeterx.blocked_address", "https://www.walmart.com/blocked?url=Lw=="),
    ("yandex.captcha_address", "https://yandex.ru/showcaptcha?retpath=x"),
    ("alibaba.punish_address", "https://x.lazada.sg/_____tmd_____/punish?x=1"),
    ("shopee.traffic_address", "https://shopee.sg/verify/traffic/error?home_url=x"),
    ("linkedin.wall_address", "https://www.linkedin.com/authwall?trk=x"),
    ("baidu.address", "https://wappass.baidu.com/static/captcha/tuxing.html"),
    ("radware.address", "https://validate.perfdrive.com/?ssa=x"),
    ("siteground.address", "https://shop.example/.well-known/sgcaptcha/?r=%2F"),
    ("cloudflare.challenge_address", "https://shop.example/cdn-cgi/l/chk_jschl?x=1"),
    ("cloudflare.challenge_token", "https://shop.example/?__cf_chl_rt_tk=x"),
    ("akamai.verify_address", "https://shop.example/news?a=1&bm-verify=x"),
    ("anubis.address", "https://shop.example/.within.website?redir=x"),
    ("distil.captcha_address", "https://shop.example/distil_r_captcha.html"),
    ("reddit.challenge_address", "https://www.reddit.com/r/x/?js_challenge=1"),
]


@pytest.mark.parametrize(("rule", "url"), ADDRESSES)
def test_the_landed_address_counts_after_a_redirect(rule: str, url: str) -> None:
    """A good-looking 200 at a wall's own address is the wall."""
    detector = Detector()
    landed = answer(
        page("", "Hello"), url=url, meta={"redirect_urls": ["https://a.b/"]}
    )
    assert detector.classify(*landed).rule == rule
    sent = answer(status=302, headers={"Location": url}, url="https://shop.example/p")
    assert detector.classify(*sent).rule == rule
