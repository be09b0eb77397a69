"""Milliseconds that detection spends on a 500 KB page, and what bounds it.

Run with ``python -m benchmarks.bench_detection``; the budget is 10 ms for each page.
Hostile pages only have to stay within a small multiple of it.
"""

from __future__ import annotations

import statistics
import time

from scrapy import Request
from scrapy.http import HtmlResponse

from scrapy_cells.detection import Detector

SIZE = 500_000
BUDGET_MS = 10.0
ROUNDS = 20

_CARD = (
    b'<div class="card" id="p%d"><a href="/p/%d" title="Kettle"><img src="/i/%d.jpg" '
    b'alt="kettle"></a><h3>Kettle %d</h3><span class="price">29.90</span></div>\n'
)
_STATE = b'{"id":%d,"name":"Kettle","text":"we never block robots","price":29.9},'
_SCRIPT = (
    b"<script>(function(){var a=%d,b='captcha';window.q=(a+b).length;})();</script>"
)


def _page(parts: list[bytes], head: bytes = b"") -> bytes:
    body = b"".join(parts)
    return b"<!DOCTYPE html><html><head><title>Kettles</title>%s</head><body>%s" % (
        head,
        body[:SIZE],
    )


def pages() -> dict[str, bytes]:
    """Return pages of 500 KB of different make."""
    cards = [_CARD % (n, n, n, n) for n in range(3000)]
    state = b"".join(_STATE % n for n in range(7000))
    scripts = [_SCRIPT % n for n in range(7000)]
    mixed = [cards[n] if n % 10 else scripts[n] + cards[n] for n in range(3000)]
    challenge = b"<script>window._cf_chl_opt={cvId:'3'};</script>"
    return {
        "product list": _page(cards),
        "inline state": _page([b"<script>s=[", state[: SIZE - 2000], b"]</script>"]),
        "list and scripts": _page(mixed),
        "little text": _page([b"<p>Hi</p><style>", b"a{b:c}" * 80_000, b"</style>"]),
        "challenge at the end": _page([*cards[:2900], challenge]),
        "hostile: scripts": _page(scripts),
        "hostile: open quotes": _page([b"<form a='b>" * 45_000]),
        "hostile: one string": _page([b"<script>_cf_chl_opt '" + b"\\'" * 240_000]),
    }


def measure(detector: Detector, body: bytes) -> tuple[float, str]:
    """Return the median of some runs in milliseconds, and the outcome."""
    request = Request("https://shop.example/")
    taken = []
    outcome = ""
    for _ in range(ROUNDS):
        response = HtmlResponse("https://shop.example/", body=body)
        started = time.perf_counter()
        outcome = str(detector.classify(request, response).outcome)
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken), outcome


def main() -> None:
    detector = Detector()
    for name, body in pages().items():
        taken, outcome = measure(detector, body)
        fits = taken < BUDGET_MS or name.startswith("hostile")
        flag = "" if fits else "  OVER BUDGET"
        print(f"{name:22} {len(body):7} B {taken:6.2f} ms  {outcome}{flag}")


if __name__ == "__main__":
    main()
