"""What a status means when no page explained it, and answers that only look good."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy_cells.detection.rule import Stage, signature, status
from scrapy_cells.detection.shortlist import EMPTY, REDIRECTED, UNUSUAL, met_only
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from scrapy_cells.detection.page import Page

_LOGIN = re.compile(
    r"(?:^|/)(?:log-?in|log-?on|sign-?in|auth-?wall|login\.\w{2,4}|signin\.\w{2,4})"
    r"(?:/|$)"
)
_LOGIN_HOST = re.compile(r"^(?:login|signin|passport|sso|accounts?)\.")
_DATA_TYPES = re.compile(r"^\s*(?:application/(?:[\w.+-]*\+)?json|text/csv|image/)")


@met_only(UNUSUAL)
def _server_error(page: Page) -> str:
    return f"status {page.status}" if 500 <= page.status < 600 else ""


@met_only(UNUSUAL)
def _unknown_status(page: Page) -> str:
    return f"status {page.status}" if page.status >= 600 else ""


@met_only(UNUSUAL)
def _redirect(page: Page) -> str:
    neither = page.status < 400 and page.status // 100 != 2
    return f"status {page.status}" if neither else ""


@met_only(EMPTY)
def _empty(page: Page) -> str:
    """Nothing came, to a request that asked for something."""
    answered = page.method == "GET" and page.status in (200, 202, 203, 206)
    if not answered or page.kind != "empty":
        return ""
    # an empty robots.txt forbids nothing, and many sites have one
    return "" if urlsplit(page.url).path == "/robots.txt" else "body"


def _is_login(address: str) -> bool:
    try:
        parts = urlsplit(address.lower())
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(_LOGIN.search(parts.path) or _LOGIN_HOST.match(host))


@met_only(REDIRECTED)
def _login_wall(page: Page) -> str:
    """A login page is a wall where another page was asked for."""
    if not page.redirected or not 200 <= page.status < 300:
        return ""
    return "address" if _is_login(page.url) and not _is_login(page.asked) else ""


def _html_for_data(page: Page) -> str:
    """A page instead of the data that the request said it wants."""
    if not 200 <= page.status < 300 or not page.is_html:
        return ""
    accept = (page.request.headers.get("Accept") or b"").decode("latin-1").lower()
    wanted = _DATA_TYPES.match(accept) and "text/html" not in accept
    return "header content-type" if wanted else ""


RULES = (
    signature("status.redirect", Outcome.NEUTRAL, Stage.STATUS, _redirect),
    signature("status.unauthorized", Outcome.NEUTRAL, Stage.STATUS, status(401)),
    signature("status.timeout", Outcome.TIMEOUT, Stage.STATUS, status(408)),
    signature("status.rate", Outcome.RATE_LIMITED, Stage.STATUS, status(420, 429)),
    signature(
        "status.refused", Outcome.BLOCKED, Stage.STATUS, status(403, 418, 430, 451)
    ),
    signature(
        "status.server_error",
        Outcome.SERVER_ERROR,
        Stage.STATUS,
        _server_error,
    ),
    signature(
        "status.unknown",
        Outcome.BLOCKED,
        Stage.STATUS,
        _unknown_status,
    ),
    signature("soft.empty", Outcome.EMPTY, Stage.SOFT, _empty),
    signature(
        "soft.login_wall",
        Outcome.SOFT_BLOCK,
        Stage.SOFT,
        _login_wall,
    ),
    signature("soft.html_for_data", Outcome.SOFT_BLOCK, Stage.SOFT, _html_for_data),
)
