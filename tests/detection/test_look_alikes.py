"""Good pages that carry vendors' names, and walls' words where they do not act."""

from __future__ import annotations

import pytest

from scrapy_cells.detection import Detector
from tests.detection.answers import LONG, answer, page

PRODUCT = (
    '<h1>Kettle</h1><p>Two litres, 29.90 EUR, in stock.</p><a href="/cart">Cart</a>'
)
QUOTE = "window._cf_chl_opt={cvId:'3'}; var dd={'host':'geo.captcha-delivery.com'}"

GOOD = {
    "cloudflare beacon": page("", PRODUCT + "<script>(function(){var a=document."
        "createElement('script');a.innerHTML=\"window.__CF$cv$params={r:'1'};\";"
        "a.src='/cdn-cgi/challenge-platform/scripts/jsd/main.js';})();</script>"),
    "turnstile": page('<script src="https://challenges.cloudflare.com/turnstile/v0/'
        'api.js"></script>', PRODUCT + '<div class="cf-turnstile"></div>'),
    "email protection": page("", PRODUCT
        + '<a href="/cdn-cgi/l/email-protection#1">[email&#160;protected]</a>'),
    "imperva loader": page('<script src="/_Incapsula_Resource?SWJIYLWA=719"></script>',
        '<form><input name="user"><input type="password" name="p"></form>Sign in',
        "Log in"),
    "px sensor and hidden box": page("<script>window._pxAppId='PX1'</script>",
        PRODUCT + '<div hidden>Robot?<div id="px-captcha"></div></div>'),
    "akamai sensor": page('<script src="/akam/13/5e1"></script>', PRODUCT),
    "datadome tags": page('<script src="https://js.datadome.co/tags.js"></script>',
        PRODUCT),
    "aws waf sdk": page('<script src="https://1.eu.token.awswaf.com/1/challenge.js">'
        "</script><script>AwsWafIntegration.getToken();</script>", PRODUCT),
    "kasada on a passed page": page('<script>window.KPSDK={};</script>'
        '<script src="/1/p.js"></script>', PRODUCT),
    "radware sensor": page('<script>var x="validate.perfdrive.com";</script>', PRODUCT),
    "recaptcha login": page("", '<form><input name="email"><input name="password" '
        'type="password"><div class="g-recaptcha"></div></form>Please verify you are '
        "human", "Sign in"),
    "picture captcha in a contact form": page("", '<form><input name="name"><textarea '
        'name="text"></textarea><img src="/captcha.png"><input name="code"></form>'),
    "amazon 404": "<!-- To discuss automated access to Amazon data ... ref=rm_5_sv -->"
        + page("", '<a href="/ref=cs_404_link">Home</a>', "Page Not Found"),
    "quoted in json-ld": page('<script type="application/ld+json">{"articleBody":'
        f'"{QUOTE}"}}</script>', PRODUCT),
    "quoted in a state script": page("", PRODUCT
        + f'<script>window.__STATE__ = {{"text":"{QUOTE}"}};</script>'),
    "quoted in a comment of a script": page("", PRODUCT
        + f"<script>/* {QUOTE} */ var a = 1; // {QUOTE}\n</script>"),
    "quoted in pre": page("", f"<pre>{QUOTE}\n&lt;div id=\"px-captcha\"&gt;</pre>"),
    "quoted in a template": page("", PRODUCT + "<template><form "
        'action="/errors/validateCaptcha"></form></template>'),
    "quoted in a textarea": page("", PRODUCT + "<textarea><form "
        'action="/errors/validateCaptcha"></textarea>'),
    "token in a link": page("", PRODUCT
        + '<a href="https://x.example/?__cf_chl_jschl_tk__=1&bm-verify=2">there</a>'),
    "enable javascript": page("", "<noscript>Please enable JavaScript.</noscript>"
        + PRODUCT),
    "article on blocking": page("", "<p>Reddit answers whoa there, pardner! You have "
        f"been blocked, verify you are human, too many requests.</p>{LONG}",
        "Just a moment..."),
    "film of that name": page('<script type="application/ld+json">{"@type": "Movie", '
        '"name": "Blocked"}</script>', "", "Blocked"),
    "consent overlay on results": page("", LONG
        + "<div>Before you continue to Google</div>", "shoes - Google Search"),
    "react shell": page("", '<noscript>You need to enable JavaScript.</noscript>'
        '<div id="root"></div>', "My shop"),
    "no results": page("", "Sorry, nothing found for unicorn steak", "Search"),
    "moved page": page('<meta http-equiv="refresh" content="3; url=/new">', "Moved."),
    "json": '{"items":[{"title":"You have been blocked: a history of captcha"}]}',
    "json list": '[{"message": "Too many requests for one kettle"}]',
    "rss": '<?xml version="1.0"?><rss><channel><title>Blocked</title></channel></rss>',
}  # fmt: skip


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD.keys())
def test_look_alikes_are_ok(body: str) -> None:
    """What stands on good pages flags nothing."""
    status = 404 if "cs_404" in body else 200
    assert Detector().classify(*answer(body, status)).outcome == "ok"


@pytest.mark.parametrize(
    "headers",
    [
        {"cf-ray": "1", "server": "cloudflare", "set-cookie": "__cf_bm=1"},
        {"cf-mitigated": "log"},
        {"x-datadome": "protected", "set-cookie": "datadome=1"},
        {"x-kpsdk-ct": "1"},
        {"server": "AkamaiGHost", "set-cookie": "_abck=1"},
        {"X-Sucuri-ID": "1", "Server": "Sucuri/Cloudproxy"},
        {"x-iinfo": "1", "x-cdn": "Incapsula"},
        {"x-amzn-waf-action": "challenge"},
        {"x-azure-ref": "1"},
        {"via": "1.1 squid (squid/6.9)"},
        {"x-luminati-ip": "192.0.2.1"},
    ],
)
def test_headers_that_only_name_a_vendor_say_nothing(headers: dict[str, str]) -> None:
    """Good answers of protected sites stay good."""
    assert Detector().classify(*answer(page("", PRODUCT), 200, headers)).outcome == "ok"


def test_missing_pages_may_use_any_words() -> None:
    """On a 404 sentences and titles of refusal are only a site's way of speaking."""
    body = page("", "Access denied or not there", "Access Denied")
    assert Detector().classify(*answer(body, 404)).outcome == "ok"
    assert Detector().classify(*answer(body, 410)).outcome == "ok"
