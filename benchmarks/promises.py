"""Measures what the package promises, on whole crawls against a site on loopback.

Run one point or all: ``python benchmarks/promises.py [point [fault]]``. Each prints
what was measured and the bound. Times are of this machine; ratios are what counts.
"""

from __future__ import annotations

import base64
import collections
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.harness.crawl import FAST, run_crawl
from tests.harness.target import Reply, Site, price_of

CAPTCHA = (
    b"<html><head><title>Robot Check</title></head><body>"
    b'<form method="get" action="/errors/validateCaptcha"><input name="field-keywords">'
    b"</form></body></html>"
)
HTML = {"Content-Type": "text/html"}
HURT = "07"
PASSWORD = "S3CR3T-x9"


def settings(site: Site, **more):
    proxy = f"http://u-{{cell}}-{{generation}}-{{session}}:{PASSWORD}@127.0.0.1:{site.proxy_port}"
    return {**FAST, "CELLS_PROXY": proxy, **more}


def base(site: Site, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{site.port if scheme == 'http' else site.tls_port}"


def show(name: str, ok: bool, text: str) -> None:
    print(f"{'ok  ' if ok else 'FAIL'} {name}: {text}", flush=True)


def over_budget(times: list[float], burst: float, rate: float) -> float:
    """Return by how many requests the worst window is over burst + rate * w."""
    times = sorted(times)
    worst, low = 0.0, float("inf")
    for n, at in enumerate(times):
        # n + 1 - i - burst - rate * (at - t_i), largest over all i <= n
        low = min(low, n - rate * at)
        worst = max(worst, (n + 1 - rate * at) - low - burst)
    return worst


FAULTS = {
    "hang": ("http", lambda a: Reply(fault="hang"), None),
    "hang_connect": ("https", None, "hang"),
    "reset": ("http", lambda a: Reply(fault="reset"), None),
    "407_connect": ("https", None, "407"),
    "captcha_200": ("http", lambda a: Reply(200, CAPTCHA, HTML), None),
    "captcha_503": ("http", lambda a: Reply(503, CAPTCHA, HTML), None),
    "429": ("http", lambda a: Reply(429, b"slow down"), None),
    "403": ("http", lambda a: Reply(403, b"no", HTML), None),
    "503": ("http", lambda a: Reply(503, b"down", HTML), None),
    "slow": ("http", lambda a: Reply(200, a.page, HTML, delay=10.0), None),
}


def isolation_run(fault: str | None, scheme: str = "http"):
    with Site() as site:
        if fault:
            _, respond, gate = FAULTS[fault]
            if respond:

                def answer(a):
                    if a.cell != HURT:
                        return None
                    reply = respond(a) if fault != "slow" else site.usual(a)
                    if fault == "slow":
                        reply.delay = 10.0
                    return reply

                site.respond = answer
            if gate:
                site.gate = lambda k: gate if f"u-{HURT}-" in k.user else ""
        crawled = run_crawl(
            settings(site, CELLS_TIMEOUT=5), base=base(site, scheme), n=960, timeout=200
        )
        healthy = [a for a in site.arrivals if a.cell != HURT]
        done = max(a.at for a in healthy) - crawled.started
        spent = len([a for a in site.arrivals if a.cell == HURT])
        spent = max(
            spent, len([k for k in site.knocks if f"u-{HURT}-" in k.user and k.fault])
        )
        wrong = [i for i in crawled.items if str(price_of(i["key"])) != i["price"]]
        rows = {i["key"] for i in crawled.items if i["cell"] != HURT}
        return crawled, done, spent, len(wrong), len(rows)


def isolation(only: str | None = None, rounds: int = 3) -> None:
    for fault, (scheme, _, _) in FAULTS.items():
        if only not in (None, fault):
            continue
        free, hurt = [], []
        for _ in range(rounds):
            _, done, _, _, rows0 = isolation_run(None, scheme)
            free.append(done)
            crawled, done, spent, wrong, rows = isolation_run(fault, scheme)
            hurt.append(done)
        ratio = statistics.median(hurt) / statistics.median(free)
        show(
            f"isolation {fault}",
            ratio <= 1.05
            and not wrong
            and rows == rows0
            and (spent <= 30 or fault == "slow"),
            f"healthy done x{ratio:.3f} ({statistics.median(hurt):.2f} s), rows {rows}/{rows0},"
            f" wrong {wrong}, spent on hurt {spent}, {crawled.reason} after {crawled.seconds:.1f} s",
        )


def budget() -> None:
    with Site() as site:
        first: dict[str, float] = {}

        def answer(a):
            first.setdefault("t", a.at)
            if a.cell == "03" and a.at - first["t"] < 4:
                return Reply(503, b"down")
            return None

        site.respond = answer
        crawled = run_crawl(
            settings(site, CELLS_COUNT=6, CELLS_RATE=2, CELLS_BURST=3),
            base=base(site),
            n=240,
            timeout=200,
        )
        by_cell = collections.defaultdict(list)
        for a in site.arrivals:
            by_cell[a.cell].append(a.at)
        worst = max(over_budget(t, 3, 2) for t in by_cell.values())
        used = []
        for cell, times in by_cell.items():
            if cell != "03":
                span = max(times) - min(times)
                used.append(len(times) / (3 + 2 * span))
        show(
            "budget",
            worst <= 0.02 and min(used) >= 0.97 and len(crawled.items) == 240,
            f"worst window {worst:+.3f} requests, used {min(used):.1%}..{max(used):.1%},"
            f" rows {len(crawled.items)}/240, {crawled.reason}",
        )
    with Site() as site:
        crawled = run_crawl(
            settings(
                site, CELLS_COUNT=8, CELLS_RATE=50, CELLS_BURST=5, CELLS_SITE_RATE=16
            ),
            base=base(site),
            n=240,
        )
        worst = over_budget([a.at for a in site.arrivals], 8, 16)
        show(
            "site rate",
            worst <= 0.02 and len(crawled.items) == 240,
            f"worst window {worst:+.3f}, rows {len(crawled.items)}/240, {crawled.seconds:.1f} s",
        )


def breaker() -> None:
    with Site() as site:
        first: dict[str, float] = {}

        def answer(a):
            first.setdefault("t", a.at)
            if a.cell == "03" and a.at - first["t"] < 14:
                return Reply(503, b"down")
            return None

        site.respond = answer
        crawled = run_crawl(
            settings(
                site,
                CELLS_COUNT=6,
                CELLS_BREAKER_THRESHOLD=5,
                CELLS_BREAKER_COOLDOWN=4,
                CELLS_RAMP=2,
            ),
            base=base(site),
            n=120,
        )
        opened = [e for e in crawled.events if e["type"] == "CellOpened"]
        times = [a.at for a in site.arrivals if a.cell == "03"]
        before = sum(t <= opened[0]["mono"] + 0.3 for t in times)
        hurt = [t for t in times if opened[0]["mono"] + 0.3 < t < first["t"] + 14]
        show(
            "breaker",
            before <= 10 and len(crawled.items) == 120,
            f"open after {before} requests, probes at "
            f"{[round(t - opened[0]['mono'], 1) for t in hurt]} s while hurt,"
            f" rows {len(crawled.items)}/120, {crawled.reason}, {crawled.seconds:.1f} s",
        )


def retire() -> None:
    with Site() as site:
        site.respond = lambda a: (
            Reply(200, CAPTCHA, HTML)
            if a.cell == "03" and a.generation == "0"
            else None
        )
        crawled = run_crawl(
            settings(site, CELLS_COUNT=6, CELLS_WARMUP=3), base=base(site), n=240
        )
        captchas = sum(a.cell == "03" and a.generation == "0" for a in site.arrivals)
        lines = [e["text"] for e in crawled.events]
        show(
            "retire",
            captchas <= 8 and len(crawled.items) == 240,
            f"{captchas} captchas, rows {len(crawled.items)}/240, {lines}",
        )
    with Site() as site:
        site.respond = lambda a: Reply(200, CAPTCHA, HTML) if a.cell == "03" else None
        crawled = run_crawl(
            settings(site, CELLS_COUNT=6, CELLS_WARMUP=3), base=base(site), n=240
        )
        hits = [a for a in site.arrivals if a.cell == "03"]
        show(
            "retire, all generations",
            len(hits) <= 16
            and len({a.generation for a in hits}) == 2
            and crawled.reason == "cells_deferred",
            f"{len(hits)} captchas, generations {sorted({a.generation for a in hits})},"
            f" {crawled.reason}, {[e['text'] for e in crawled.events]}",
        )


def bad_session() -> None:
    for fault in (403,):
        with Site() as site:
            site.respond = lambda a: (
                Reply(fault, b"no", HTML) if a.session == "1" else None
            )
            crawled = run_crawl(
                settings(site, CELLS_COUNT=1, CELLS_SESSIONS=3), base=base(site), n=60
            )
            bad = sum(a.session == "1" for a in site.arrivals)
            show(
                "bad session",
                bad <= 5 and len(crawled.items) == 60,
                f"{bad} of {len(site.arrivals)} to the bad one, rows {len(crawled.items)}/60,"
                f" {[e['text'] for e in crawled.events]}",
            )


def stickiness() -> None:
    for scheme in ("http", "https"):
        with Site() as site:
            site.robots = b"User-agent: *\nDisallow: /p/k00007\n"
            for _ in range(2):
                crawled = run_crawl(
                    settings(site, ROBOTSTXT_OBEY=True), base=base(site, scheme), n=300
                )
            keys, users = collections.defaultdict(set), collections.defaultdict(set)
            for a in site.arrivals:
                users[a.connection].add(a.user)
                if not a.path.endswith("robots.txt"):
                    keys[a.key].add(a.user)
            foreign = sum(
                "cookie" in a.headers and a.headers["cookie"] != f"visitor={a.user}"
                for a in site.arrivals
            )
            figures = {
                "keys on two sessions": sum(len(u) > 1 for u in keys.values()),
                "connections with two users": sum(len(u) > 1 for u in users.values()),
                "foreign cookies": foreign,
                "credentials at the target": sum(
                    "proxy-authorization" in a.headers for a in site.arrivals
                ),
                "without a session": sum(not a.user for a in site.arrivals),
                "robots.txt broken": sum(a.key == "k00007" for a in site.arrivals),
            }
            show(
                f"stickiness {scheme}",
                not any(figures.values()) and len(crawled.items) == 299,
                f"{figures}, rows {len(crawled.items)}/299",
            )


def secrets() -> None:
    with Site() as site, tempfile.TemporaryDirectory() as folder:
        site.respond = lambda a: Reply(403, b"no", HTML) if a.cell == "03" else None
        site.gate = lambda k: "407" if "u-05-" in k.user else ""
        crawled = run_crawl(
            settings(
                site,
                LOG_LEVEL="DEBUG",
                HTTPCACHE_ENABLED=True,
                HTTPCACHE_DIR=f"{folder}/cache",
                JOBDIR=f"{folder}/job",
                CELLS_HOLES=f"{folder}/holes.jsonl",
                COOKIES_DEBUG=True,
                FEEDS={f"{folder}/out.json": {"format": "json"}},
            ),
            base=base(site, "https"),
            n=200,
            cwd=folder,
        )
        needles = [PASSWORD.encode(), base64.b64encode(PASSWORD.encode())[:-2]]
        for k in site.knocks:
            token = base64.b64encode(f"{k.user}:{PASSWORD}".encode())
            needles += [token, token[-12:]]
        needles = set(needles)
        texts = {str(p): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}
        texts["output"] = crawled.log.encode()
        found = [
            name for name, text in texts.items() if any(n in text for n in needles)
        ]
        show(
            "secrets",
            not found,
            f"{len(texts)} files searched, found in {found}; rows {len(crawled.items)}",
        )


def ending() -> None:
    with Site() as site:
        site.respond = lambda a: Reply(503, b"down")
        crawled = run_crawl(
            settings(site, CELLS_COUNT=6, CELLS_MAX_WAIT=10_000, CELLS_TIMEOUT=5),
            base=base(site),
            n=240,
            interrupt_when=lambda: (
                len(site.arrivals) > 20 and time.monotonic() - site.arrivals[-1].at > 3
            ),
        )
        show(
            "Ctrl-C, every cell open",
            crawled.seconds <= 2,
            f"{crawled.seconds:.2f} s, {crawled.reason}",
        )
    with Site() as site:
        site.respond = lambda a: Reply(fault="hang")
        crawled = run_crawl(
            settings(site, CELLS_COUNT=6, CELLS_TIMEOUT=5),
            base=base(site),
            n=240,
            interrupt_when=lambda: len(site.arrivals) >= 24,
        )
        show(
            "Ctrl-C, every session hung",
            crawled.seconds <= 7,
            f"{crawled.seconds:.2f} s, {crawled.reason}",
        )


def cost(rounds: int = 5) -> None:
    ours, plain = [], []
    for _ in range(rounds):
        with Site() as site:
            c = run_crawl(
                {
                    "CONCURRENT_REQUESTS": 96,
                    "CONCURRENT_REQUESTS_PER_DOMAIN": 96,
                    "LOG_LEVEL": "INFO",
                    "RETRY_ENABLED": True,
                },
                "benchmarks.plain.PlainSpider",
                base=base(site),
                n=3000,
                proxy=site.proxy_port,
            )
            assert len(c.items) == 3000, c.log[-2000:]
            plain.append(3000 / float(c.stats["elapsed_time_seconds"]))
        with Site() as site:
            c = run_crawl(settings(site), base=base(site), n=3000)
            assert len(c.items) == 3000, c.log[-2000:]
            ours.append(3000 / float(c.stats["elapsed_time_seconds"]))
    ratios = [o / p for o, p in zip(ours, plain, strict=True)]
    ratio = statistics.median(ratios)
    show(
        "cost",
        ratio >= 0.95,
        f"{statistics.median(ours):.0f}/s against {statistics.median(plain):.0f}/s,"
        f" ratio {ratio:.3f} ({min(ratios):.2f}..{max(ratios):.2f})",
    )


def memory() -> None:
    with Site() as site, tempfile.TemporaryDirectory() as folder:
        site.respond = lambda a: Reply(fault="hang")
        crawled = run_crawl(
            settings(site, JOBDIR=f"{folder}/job", CELLS_TIMEOUT=600),
            base=base(site),
            n=1_000_000,
            timeout=1500,
            spider="benchmarks.plain.MillionSpider",
        )
        show(
            "memory",
            crawled.max_rss_mb < 400,
            f"{crawled.max_rss_mb:.0f} MB, {crawled.reason}, enqueued"
            f" {crawled.stats.get('scheduler/enqueued')}, {crawled.seconds:.0f} s",
        )


def retry_after() -> None:
    with Site() as site:
        first: dict[str, float] = {}

        def answer(a):
            first.setdefault("t", a.at)
            if a.at - first["t"] < 5:
                return Reply(429, b"wait", {"Retry-After": "3"})
            return None

        site.respond = answer
        crawled = run_crawl(settings(site, CELLS_COUNT=4), base=base(site), n=100)
        last = max(a.at for a in site.arrivals) - first["t"]
        show(
            "Retry-After 3",
            len(crawled.items) == 100 and len(site.arrivals) <= 124 and last <= 7,
            f"rows {len(crawled.items)}, hits {len(site.arrivals)}, {last:.1f} s",
        )
    with Site() as site:
        site.respond = lambda a: (
            Reply(429, b"wait", {"Retry-After": "3600"}) if a.cell == "01" else None
        )
        crawled = run_crawl(settings(site, CELLS_COUNT=4), base=base(site), n=100)
        hits = sum(a.cell == "01" for a in site.arrivals)
        show(
            "Retry-After 3600",
            hits <= 4 and crawled.reason == "cells_deferred",
            f"{hits} hits on the cell, {crawled.reason}, {crawled.seconds:.1f} s",
        )


def chaos() -> None:
    rng = random.Random(7)
    with Site() as site, tempfile.TemporaryDirectory() as folder:

        def answer(a):
            if rng.random() >= 0.2:
                return None
            return rng.choice(
                [Reply(429, b"x"), Reply(503, b"x"), Reply(fault="reset")]
            )

        site.respond = answer
        holes = Path(folder, "holes.jsonl")
        crawled = run_crawl(
            settings(site, CELLS_HOLES=str(holes)), base=base(site), n=2000
        )
        import json

        missing = {json.loads(line)["key"] for line in holes.read_text().splitlines()}
        rows = {
            i["key"] for i in crawled.items if str(price_of(i["key"])) == i["price"]
        }
        lost = 2000 - len(rows | missing)
        show(
            "random trouble",
            lost == 0 and len(site.arrivals) <= 2500,
            f"rows {len(rows)}, holes {len(missing)}, lost {lost}, requests {len(site.arrivals)}"
            f" (x{len(site.arrivals) / 2000:.3f}), {crawled.reason}, events {collections.Counter(crawled.event_types())}",
        )


POINTS = [
    isolation,
    budget,
    breaker,
    retire,
    bad_session,
    stickiness,
    secrets,
    ending,
    cost,
    memory,
    retry_after,
    chaos,
]

if __name__ == "__main__":
    wanted = sys.argv[1:]
    for point in POINTS:
        if not wanted or wanted[0] == point.__name__:
            point(*wanted[1:2]) if point is isolation else point()
