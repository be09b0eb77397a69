"""What a request wears of its cell and session between admission and answer.

Put on by the outermost downloader middleware, taken off by it or, where the request
comes back another way (redirect, retry), by the queue: so that it neither reaches a
follow-up through copied meta nor the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_cells.domain.permit import Permit

_WORN = "_cells_worn"


def dress(request: Request, permit: Permit, timeout: float) -> None:
    """Give a request its cell's slot and deadline and its session's cookies.

    A ``cookiejar`` of the user's becomes one of that session's jars; a
    ``download_timeout`` and a ``User-Agent`` of the user's stay.

    :param timeout: seconds
    """
    undress(request)
    meta = request.meta
    session = permit.session
    worn: dict[str, object] = {}
    meta["download_slot"] = f"cell:{permit.cell}"
    meta.setdefault("autothrottle_dont_adjust_delay", True)
    jar = meta.get("cookiejar")
    if jar is not None:
        worn["jar"] = jar
        meta["cookiejar"] = f"{session.id}/{jar}"
    else:
        meta["cookiejar"] = session.id
    if "download_timeout" not in meta:
        meta["download_timeout"] = timeout
        worn["timeout"] = True
    user_agent = session.draw.user_agent
    if user_agent and b"User-Agent" not in request.headers:
        request.headers[b"User-Agent"] = user_agent
        worn["agent"] = True
    meta[_WORN] = worn


def undress(request: Request) -> None:
    """Take off what :func:`dress` put on; does nothing to others."""
    meta = request.meta
    worn = meta.pop(_WORN, None)
    if worn is None:
        return
    if "jar" in worn:
        meta["cookiejar"] = worn["jar"]
    else:
        meta.pop("cookiejar", None)
    if "timeout" in worn:
        meta.pop("download_timeout", None)
    if "agent" in worn:
        request.headers.pop(b"User-Agent", None)
