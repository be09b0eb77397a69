"""Every vendor's marks, with status 200 and no headers where these allow it."""

from __future__ import annotations

import pytest

from scrapy_cells.detection import Detector
from tests.detection.answers import LONG, answer, page

CF_SCRIPT = (
    "<script>(function(){window._cf_chl_opt={cvId:'3',cType:'managed'};}());</script>"
)
CF_DETAILS = '<div id="cf-wrapper"><div id="cf-error-details">{}</div></div>'
CF_TITLE = "Access denied | shop.example used Cloudflare to restrict access"
DD = "<script>var dd={{'rt':'c','t':'{}','host':'geo.captcha-delivery.com'}}</script>"
IMPERVA = '<iframe id="main-iframe" src="/_Incapsula_Resource?{}"></iframe>'
AMAZON_COMMENT = (
    "<!-- To discuss automated access to Amazon data write us. /ref=rm_5_sv -->"
)

# rule, outcome, page
MARKS = [
    (
        "amazon.captcha_form",
        "captcha",
        page("", '<form method="get" action="/errors/validateCaptcha"></form>'),
    ),
    (
        "amazon.captcha_script",
        "captcha",
        page('<script>var ue_sn = "opfcaptcha.amazon.com", ue_id = 1;</script>'),
    ),
    (
        "amazon.throttled",
        "blocked",
        AMAZON_COMMENT + page("", '<a href="/ref=cs_503_link">Try again</a>'),
    ),
    (
        "amazon.continue_shopping",
        "soft_block",
        page(
            "",
            "Click the button below to continue shopping <form "
            "action='/errors/validateCaptcha'></form>",
            "Amazon.com",
        ),
    ),
    ("amazon.captcha_title", "captcha", page("", "", "Robot Check")),
    ("cloudflare.challenge_script", "captcha", page("", CF_SCRIPT, "Einen Moment…")),
    ("cloudflare.challenge_script", "captcha", page("", LONG + CF_SCRIPT)),
    (
        "cloudflare.orchestrate",
        "captcha",
        page(
            "<script>var a=document.createElement('script');a.src='/cdn-cgi/"
            "challenge-platform/h/b/orchestrate/chl_page/v1?ray=1';</script>"
        ),
    ),
    (
        "cloudflare.orchestrate",
        "captcha",
        page(
            '<script src="/cdn-cgi/challenge-platform/h/g/orchestrate/jsch/v1">'
            "</script>"
        ),
    ),
    (
        "cloudflare.challenge_form",
        "captcha",
        page("", '<form id="challenge-form" action="/?__cf_chl_f_tk=x"></form>'),
    ),
    (
        "cloudflare.challenge_form",
        "captcha",
        page("", f'{LONG}<form action="/cdn-cgi/l/chk_jschl" method="get"></form>'),
    ),
    (
        "cloudflare.challenge_element",
        "captcha",
        page(
            "",
            '<noscript><span class="h2" id="challenge-error-text">Enable '
            "JavaScript</span></noscript>",
        ),
    ),
    (
        "cloudflare.challenge_element",
        "captcha",
        page("", '<form><input type="hidden" name="jschl_vc" value="1"></form>'),
    ),
    ("cloudflare.waiting_title", "captcha", page("", "", "Just a  moment...")),
    (
        "cloudflare.refused_page",
        "blocked",
        page(
            "",
            CF_DETAILS.format("<h1>Sorry, you have been blocked</h1>"),
            "Attention Required! | Cloudflare",
        ),
    ),
    (
        "cloudflare.refused_page",
        "blocked",
        page("", "<p>Refused. Error code: 1020</p>", CF_TITLE),
    ),
    (
        "cloudflare.rate_page",
        "rate_limited",
        page(
            "",
            CF_DETAILS.format("Error <b>1015</b> You are being rate limited"),
            CF_TITLE,
        ),
    ),
    ("cloudflare.tiny_rate", "rate_limited", "error code: 1015"),
    ("cloudflare.tiny_refused", "blocked", "error code: 1020\n"),
    ("cloudflare.tiny_origin", "server_error", "error code: 522"),
    (
        "cloudflare.origin_page",
        "server_error",
        page(
            "",
            CF_DETAILS.format("Web server is down"),
            "shop.example | 521: Web server is down",
        ),
    ),
    (
        "cloudflare.json_rate",
        "rate_limited",
        '{"cloudflare_error":true,"error_code":1015,"title":"Slow"}',
    ),
    (
        "cloudflare.json_refused",
        "blocked",
        '{"cloudflare_error":true,"error_code":1010,"title":"No"}',
    ),
    (
        "akamai.verify_refresh",
        "captcha",
        page(
            '<meta http-equiv="refresh" content="5; URL=\'/?bm-verify=AAQ\'" />',
            "",
            "&nbsp;",
        ),
    ),
    (
        "akamai.interstitial_script",
        "captcha",
        page("", "<script>function triggerInterstitialChallenge() {}</script>"),
    ),
    (
        "akamai.behavioural",
        "captcha",
        page("", '<div id="sec-if-cpt-container" role="main"></div>'),
    ),
    ("akamai.json_challenge", "captcha", '{"sec-cp-challenge":"true","token":"x"}'),
    (
        "akamai.access_denied",
        "blocked",
        page("", "Reference&#32;&#35;18&#46;53b06c9&#46;178&#46;b92", "Access Denied"),
    ),
    ("datadome.object", "captcha", page("", DD.format("fe"))),
    ("datadome.ban", "blocked", page("", DD.format("bv"))),
    (
        "datadome.frame",
        "captcha",
        page("", '<iframe src="https://geo.captcha-delivery.com/captcha/"></iframe>'),
    ),
    (
        "datadome.json",
        "captcha",
        '{"url":"https://geo.captcha-delivery.com/captcha/?cid=1&t=fe"}',
    ),
    (
        "datadome.json_ban",
        "blocked",
        '{"captchaUrl":"https://geo.captcha-delivery.com/captcha/?cid=1&t=bv"}',
    ),
    (
        "perimeterx.captcha_meta",
        "captcha",
        page('<meta name="description" content="px-captcha">', ""),
    ),
    (
        "perimeterx.captcha_source",
        "captcha",
        page("<script>s.src = '/abc/captcha/captcha.js?a=c&u=1&m=0';</script>"),
    ),
    (
        "perimeterx.hold_box",
        "captcha",
        page("", '<div class="re-captcha"><div id="px-captcha"></div></div>'),
    ),
    ("perimeterx.title", "captcha", page("", "", "Robot or human?")),
    (
        "perimeterx.json",
        "captcha",
        '{"appId":"PX1","jsClientSrc":"/i.js","blockScript":"/c.js?a=c"}',
    ),
    ("perimeterx.json", "captcha", '{"captchaRelativeURL":"/captcha?id=1"}'),
    ("imperva.frame", "blocked", page("", IMPERVA.format("CWUDNSAI=22&edet=15"))),
    (
        "imperva.frame_captcha",
        "captcha",
        page("", IMPERVA.format("SWUDNSAI=31&amp;edet=12&amp;cinfo=0")),
    ),
    (
        "imperva.loader_alone",
        "captcha",
        page('<script src="/_Incapsula_Resource?SWJIYLWA=1"></script>'),
    ),
    (
        "imperva.interruption",
        "captcha",
        page(
            "<script>var reeseSkipExpirationCheck = true;</script>",
            "<p>Hm</p>",
            "Pardon Our Interruption",
        ),
    ),
    (
        "distil.captcha",
        "captcha",
        page(
            "", '<form id="distilCaptchaForm" action="/distil_r_captcha.html"></form>'
        ),
    ),
    (
        "aws_waf.script",
        "captcha",
        page('<script>window.gokuProps = {"key":"x"};</script>'),
    ),
    (
        "aws_waf.verification",
        "captcha",
        page(
            '<script src="https://1.eu.captcha.awswaf.com/1/captcha.js"></script>',
            "",
            "Human Verification",
        ),
    ),
    (
        "kasada.script",
        "captcha",
        page(
            "",
            '<script>window.KPSDK={};</script><script src="/1/2/ips.js?x=1"></script>',
        ),
    ),
    (
        "f5.rejected",
        "blocked",
        page("", "Your support ID is: 350", "Request Rejected"),
    ),
    (
        "f5.tspd",
        "captcha",
        page(
            '<script src="/TSPD/?type=1"></script>',
            "<noscript>Please enable JavaScript to view the page content.</noscript>",
        ),
    ),
    ("f5.shape", "captcha", page("<script>window.istlWasHere = true;</script>")),
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
