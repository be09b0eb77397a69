"""What the shop answers: the story first, then its own suspicions, then the page."""

from __future__ import annotations

import html
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prices.shop.catalogue import CURRENCY
from prices.shop.truth import PAGE, Served
from prices.shop.watch import Standing

if TYPE_CHECKING:
    from prices.shop.catalogue import Catalogue
    from prices.shop.story import Exit, Story, StoryClock
    from prices.shop.truth import Ledger
    from prices.shop.watch import Watch

_PRODUCT = re.compile(r"/dp/([A-Z0-9]+)")
_VISITOR = re.compile(r"(?:^|;\s*)visitor=([0-9.]+)")

ROBOTS = b"User-agent: *\nAllow: /dp/\nDisallow: /cart/\n"

ROBOT_PAGE = b"""<!doctype html><html><head><title>Robot Check</title></head><body>
<h4>One moment, please</h4><p>We need to be sure that a person is asking.</p>
<form action="/check" method="get"><img src="/check/picture" alt="letters">
<label>Enter the letters you see <input name="letters"></label>
<button>Go on</button></form></body></html>"""

REFUSED_PAGE = b"""<!doctype html><html><head><title>Sorry!</title></head><body>
<h1>Sorry! Something went wrong on our end.</h1></body></html>"""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; or, with a fault (hang, reset), none."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    fault: str = ""


class Desk:
    """Answers requests. No I/O: a server tells it who asks for what.

    :param clock: the story's
    """

    def __init__(
        self,
        catalogue: Catalogue,
        story: Story,
        watch: Watch,
        ledger: Ledger,
        clock: StoryClock,
    ) -> None:
        self._catalogue = catalogue
        self._story = story
        self._watch = watch
        self._ledger = ledger
        self._clock = clock

    def answer(self, exit_: Exit, path: str, cookie: str = "") -> Reply:
        """Return what an exit gets for a path.

        :param cookie: the request's ``Cookie`` header
        """
        if path.partition("?")[0] == "/robots.txt":
            return Reply(body=ROBOTS, headers={"Content-Type": "text/plain"})
        now = self._clock.now()
        found = _PRODUCT.fullmatch(path.partition("?")[0])
        product = self._catalogue.get(found.group(1)) if found else None
        key = product.key if product else ""
        kind, reply = self._trouble(exit_, product.category if product else "", cookie)
        if kind is not None:
            self._ledger.note(Served(now, exit_, key, kind))
            return reply
        if product is None:
            self._ledger.note(Served(now, exit_, key, "not found"))
            return Reply(404, b"<title>Not found</title>", _html())
        price = self._catalogue.price(key, now)
        self._ledger.note(Served(now, exit_, key, PAGE, price))
        body = (
            f"<!doctype html><html><head><title>{html.escape(product.title)}</title>"
            f'</head><body><nav id="category">{product.category}</nav>'
            f'<h1 id="title">{html.escape(product.title)}</h1>'
            f'<p id="price" data-amount="{price}" data-currency="{CURRENCY}">'
            f"{price} {CURRENCY}</p><p>{_BLURB}</p></body></html>"
        )
        cookies = {"Set-Cookie": f"visitor={exit_.address}; Path=/; HttpOnly"}
        return Reply(200, body.encode(), {**_html(), **cookies})

    def _trouble(
        self, exit_: Exit, category: str, cookie: str
    ) -> tuple[str | None, Reply]:
        now = self._clock.now()
        act = self._story.now_on(exit_, now)
        if act is not None and act.what in {"hang", "reset"}:
            return act.what, Reply(fault=act.what)
        if act is not None and act.what == "429":
            seconds = math.ceil((act.end - now) / self._clock.factor)
            return "429", Reply(
                429, b"Slow down.", {**_html(), "Retry-After": str(seconds)}
            )
        if act is not None:
            self._watch.flag(exit_, now, "story")
        visitor = _VISITOR.search(cookie)
        if visitor is not None and visitor.group(1) != exit_.address:
            self._watch.flag(exit_, now, f"has the cookie of {visitor.group(1)}")
        standing = self._watch.visit(exit_, category, now)
        if standing is Standing.ROBOT:
            return "robot", Reply(200, ROBOT_PAGE, _html())
        if standing is Standing.REFUSED:
            return "refused", Reply(503, REFUSED_PAGE, _html())
        return None, Reply()


def _html() -> dict[str, str]:
    return {"Content-Type": "text/html; charset=utf-8"}


_BLURB = "Sturdy, handsome, and delivered the day after tomorrow. " * 30
