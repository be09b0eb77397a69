"""Small answers for the detection tests; every page is written for them."""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

URL = "https://shop.example/item/1"
LONG = (
    "<p>" + "The kettle holds two litres and boils them in four minutes. " * 60 + "</p>"
)


def answer(
    body: str | bytes = b"",
    status: int = 200,
    headers: dict[str, Any] | None = None,
    url: str = URL,
    **request: Any,
) -> tuple[Request, Response]:
    """Return a request and the answer to it, typed as Scrapy would type it."""
    raw = body.encode() if isinstance(body, str) else body
    asked = Request(request.pop("asked", url), **request)
    cls = responsetypes.from_args(headers=Headers(headers or {}), url=url, body=raw)
    return asked, cls(url, status=status, headers=headers or {}, body=raw)


def page(head: str = "", body: str = "", title: str = "") -> str:
    """Return an HTML page."""
    named = f"<title>{title}</title>" if title else ""
    return f"<!DOCTYPE html><html><head>{named}{head}</head><body>{body}</body></html>"
