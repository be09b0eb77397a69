"""Marks of single sites, of hosts, of proxies, and of gates without a vendor."""

from __future__ import annotations

import pytest

from scrapy_cells.detection import Detector
from tests.detection.answers import answer, page

# rule, outcome, page
MARKS = [
    (
        "google.captcha_form",
        "captcha",
        page("", '<form id="captcha-form" action="index" method="post"></form>'),
    ),
    (
        "google.captcha_body",
        "captcha",
        "<html><body onload=\"e=document.getElementById('captcha');\">x</body></html>",
    ),
    (
        "google.enablejs",
        "soft_block",
        page(
            "<noscript><meta http-equiv=refresh "
            "content='0;url=/httpservice/retry/enablejs?sei=1'></noscript>"
        ),
    ),
    ("google.consent", "soft_block", page("", "", "Before you continue to Google")),
    ("google.blank_video", "soft_block", page("", "", " - YouTube")),
    ("reddit.humanity", "captcha", page("", "", "Reddit - Prove your humanity")),
    (
        "reddit.humanity",
        "captcha",
        page("", "", "Reddit - Please wait for verification"),
    ),
    (
        "reddit.refused",
        "blocked",
        page(
            "",
            "whoa there, pardner! Your request has been blocked due to a network "
            "policy.",
            "Blocked",
        ),
    ),
    (
        "reddit.refused",
        "blocked",
        page(
            f"<style>{'a{b:c}' * 20_000}</style>",
            "You've been blocked by network security.",
        ),
    ),
    (
        "reddit.slow_down",
        "rate_limited",
        page("", "whoa there, pardner! please wait 1 second(s)", "Too Many Requests"),
    ),
    (
        "ebay.checking",
        "captcha",
        page(
            "",
            "Checking your browser before you access eBay.",
            "Pardon Our Interruption...",
        ),
    ),
    ("ebay.security_measure", "captcha", page("", "", "Security Measure")),
    (
        "ebay.check_script",
        "captcha",
        page("<script>var c = {pageName: 'challengeget'};</script>"),
    ),
    (
        "sucuri.redirect_script",
        "captcha",
        page("<script>var s={},sucuri_cloudproxy_js='',S='x';</script>"),
    ),
    (
        "sucuri.denied",
        "blocked",
        page("", "", "Sucuri WebSite Firewall - Access Denied"),
    ),
    (
        "vercel.checkpoint_script",
        "captcha",
        page('<script src="/.well-known/vercel/security/static/c.js"></script>'),
    ),
    ("vercel.checkpoint_title", "captcha", page("", "", "Vercel Security Checkpoint")),
    (
        "ddos_guard.script",
        "captcha",
        page('<script src="/.well-known/ddos-guard/js-challenge/index.js"></script>'),
    ),
    (
        "anubis.script",
        "captcha",
        page(
            "",
            '<script id="anubis_challenge" type="application/json">{}</script>',
            "My own forge",
        ),
    ),
    (
        "siteground.refresh",
        "captcha",
        page('<meta http-equiv="refresh" content="0;/.well-known/sgcaptcha/?r=1">'),
    ),
    (
        "imunify360.form",
        "captcha",
        page("", '<form id="wsidchk-form" style="display:none"></form>'),
    ),
    (
        "imunify360.json",
        "blocked",
        '{"message":"Access denied by Imunify360 bot-protection."}',
    ),
    ("radware.captcha", "captcha", page("", "", "Radware Captcha Page")),
    (
        "fastly.challenge",
        "captcha",
        page('<script src="/_fs-ch-1T1wm/script.js"></script>', "", "Client Challenge"),
    ),
    (
        "yandex.captcha",
        "captcha",
        page("", '<form id="checkbox-captcha-form" action="/checkcaptcha"></form>'),
    ),
    ("baidu.title", "captcha", page('<meta charset="utf-8">', "", "百度安全验证")),
    (
        "alibaba.gateway",
        "captcha",
        '{"ret":["FAIL_SYS_USER_VALIDATE"],"data":{"url":"x"}}',
    ),
    (
        "alibaba.punish",
        "captcha",
        page("<script>location.href='/x/_____tmd_____/punish?x5secdata=1';</script>"),
    ),
    (
        "duckduckgo.anomaly",
        "captcha",
        page("", '<div class="anomaly-modal__mask">Select all ducks</div>'),
    ),
    ("bing.captcha", "captcha", page("", '<div class="captcha_header">One more</div>')),
    (
        "linkedin.wall_script",
        "blocked",
        page(
            '<script>window.location.href = "https://" + d + "/authwall?trk=" + t;'
            "</script>"
        ),
    ),
    ("weibo.visitor", "soft_block", page("", "", "Sina Visitor System")),
    (
        "cloudfront.refused",
        "blocked",
        page(
            "",
            "403 ERROR Request blocked.",
            "ERROR: The request could not be satisfied",
        ),
    ),
    (
        "cloudfront.origin",
        "server_error",
        page(
            "",
            "504 ERROR The request could not be satisfied.",
            "ERROR: The request could not be satisfied",
        ),
    ),
    ("azure.refused", "blocked", page("", "The request is blocked. 0abc")),
    (
        "wordfence.refused",
        "blocked",
        page("", "Your access to this site has been limited. Generated by Wordfence"),
    ),
    (
        "cleantalk.refused",
        "blocked",
        page("", "Anti-Crawler by CleanTalk. Please wait to be redirected."),
    ),
    ("ccbot.refused", "blocked", page("", "CCBot is not allowed to read this site.")),
    (
        "federal_register.request_access",
        "captcha",
        page("", "", "Federal Register :: Request Access"),
    ),
    ("generic.tiny_rate", "rate_limited", page("", "429 Too Many Requests nginx")),
    ("generic.tiny_refused", "blocked", "Forbidden"),
    ("generic.tiny_trouble", "server_error", page("", "502 Bad Gateway nginx/1.2")),
    (
        "generic.json_rate",
        "rate_limited",
        '{"message":"You are being rate limited.","retry_after":5.2}',
    ),
    ("generic.ddos_gate", "captcha", page("", "Wait.", "Market | DDoS Protection")),
    (
        "generic.picture_gate",
        "captcha",
        page(
            "",
            '<img src="/captcha.php?t=1"><form><input type="text" name="c">'
            '<input type="submit"></form>',
            "Hello",
        ),
    ),
    ("generic.captcha_sentence", "captcha", page("", "Please verify you are human.")),
    ("generic.refused_sentence", "blocked", "you have been blocked for some minutes"),
    ("generic.refused_title", "blocked", page("", "No.", "Access Denied")),
    (
        "squid.page",
        "proxy_error",
        page("", "Cache", "ERROR: The requested URL could not be retrieved"),
    ),
    ("proxy.page", "proxy_error", page("", "Parent proxy unreacheable")),
    ("fortiguard.filter", "proxy_error", page("", "", "Web Filter Violation")),
]


@pytest.mark.parametrize(("rule", "outcome", "body"), MARKS)
def test_marks_are_found_with_status_200_and_no_headers(
    rule: str, outcome: str, body: str
) -> None:
    """The page alone is enough, and the verdict names rule, vendor and place."""
    verdict = Detector().classify(*answer(body))
    assert (verdict.rule, str(verdict.outcome)) == (rule, outcome)
    prefix = rule.partition(".")[0]
    assert verdict.vendor in (prefix, "")
    assert verdict.place
