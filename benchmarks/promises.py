"""Holds the package to its promises, on whole crawls through a gateway on loopback.

``python benchmarks/promises.py [--rounds N] [point [part]]`` runs one point, or all of
them, and prints what was measured next to its bound. The figures come from what arrived
at the shop. Times are of this machine, which should have nothing else to do; ratios are
of runs that took turns.
"""

from __future__ import annotations

import argparse
import base64
import collections
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from scrapy_cells.domain.router import HashRouter
from tests.world.crawl import CrawlResult, run_crawl
from tests.world.world import PASSWORD, Arrival, Reply, World, over_budget, price_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Self

HURT = "07"

# Figures


class Report:
    """Prints each figure with its bound, and remembers whether one was missed."""

    failed = False

    def __init__(self, name: str) -> None:
        self._name = name
        self._parts: list[str] = []
        self._ok = True

    def most(self, what: str, value: float, bound: float) -> None:
        self._note(value <= bound, f"{what} {value:.4g} (at most {bound:.4g})")

    def least(self, what: str, value: float, bound: float) -> None:
        self._note(value >= bound, f"{what} {value:.4g} (at least {bound:.4g})")

    def equal(self, what: str, value: Any, wanted: Any) -> None:
        self._note(value == wanted, f"{what} {value} (wanted {wanted})")

    def tell(self, what: str) -> None:
        self._parts.append(what)

    def _note(self, ok: bool, text: str) -> None:
        self._parts.append(text if ok else f"!! {text}")
        self._ok = self._ok and ok

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        ok = self._ok and kind is None
        Report.failed = Report.failed or not ok
        print(f"{'ok  ' if ok else 'FAIL'} {self._name}: {'; '.join(self._parts)}")
        sys.stdout.flush()


def keys_of(count: int, cells: int) -> dict[str, set[str]]:
    """Return which of the first *count* keys each of *cells* cells owns."""
    router = HashRouter(cells)
    keys: dict[str, set[str]] = collections.defaultdict(set)
    for number in range(count):
        key = f"k{number:05d}"
        keys[router.route(key)].add(key)
    return keys


def right_rows(crawled: CrawlResult) -> set[str]:
    return {i["key"] for i in crawled.items if str(price_of(i["key"])) == i["price"]}


def wrong_rows(crawled: CrawlResult) -> int:
    return sum(str(price_of(i["key"] or "")) != i["price"] for i in crawled.items)


def span(arrivals: Iterable[Arrival]) -> float:
    times = [arrival.at for arrival in arrivals]
    return max(times) - min(times)


def stories(crawled: CrawlResult, cell: str | None = None) -> str:
    lines = [e["text"] for e in crawled.events if cell in {None, e["cell"]}]
    more = f" and {len(lines) - 6} more" if len(lines) > 6 else ""
    return " | ".join(lines[:6]) + more


def check_clean(report: Report, crawled: CrawlResult) -> None:
    """Check what holds after every crawl."""
    report.equal("killed", crawled.killed, False)
    report.equal("permits left", crawled.outstanding, 0)
    report.equal("tracebacks", crawled.log.count("Traceback"), 0)
    if crawled.killed or "Traceback" in crawled.log:
        print(crawled.log[-1500:])


# Isolation

FAULTS = {
    "hang": "http",
    "hang_connect": "https",
    "reset": "http",
    "407_connect": "https",
    "captcha_200": "http",
    "captcha_503": "http",
    "429": "http",
    "403": "http",
    "503": "http",
    "slow": "http",
}


class _Isolated:
    """One crawl of 960 keys, with or without a hurt cell."""

    def __init__(self, fault: str | None, scheme: str, latency: float) -> None:
        keys = keys_of(960, 24)
        healthy = set().union(*(keys[cell] for cell in keys if cell != HURT))
        with World() as world:
            if fault is not None:
                world.hurt(fault, cell=HURT, delay=10.0)
            if latency:
                world.hurt("slow", delay=latency)
            crawled = run_crawl(
                world.settings(CELLS_TIMEOUT=5), base=world.base(scheme), n=960
            )
            arrivals = [a for a in world.arrivals if a.cell != HURT]
            self.seconds = span(arrivals)
            self.spent = world.spent_on(HURT)
            self.lost = len(healthy - right_rows(crawled))
            self.wrong = wrong_rows(crawled)
            self.crawled = crawled


def isolation(part: str | None, rounds: int, latency: float = 0.0) -> None:
    """Whatever hurts one cell, the other 23 finish as if nothing had.

    :param latency: seconds the shop takes; with some, the time does not depend on what
        else the machine does
    """
    for fault, scheme in FAULTS.items():
        if part not in {None, fault}:
            continue
        free, hurt = [], []
        for number in range(rounds):
            pair = [lambda: free.append(_Isolated(None, scheme, latency))]
            pair.append(lambda: hurt.append(_Isolated(fault, scheme, latency)))
            for run in pair if number % 2 else reversed(pair):
                run()
        usual = statistics.median(run.seconds for run in free)
        ratios = [b.seconds / a.seconds for a, b in zip(free, hurt, strict=True)]
        slower = statistics.median(run.seconds for run in hurt) / usual
        with Report(f"isolation, {fault}") as report:
            report.most("time of the healthy against unhurt", slower, 1.05)
            report.tell(f"of {usual:.2f} s, pairs {min(ratios):.3f}..{max(ratios):.3f}")
            report.equal("healthy keys lost", max(run.lost for run in hurt), 0)
            report.equal("wrong rows", max(run.wrong for run in hurt), 0)
            report.most("requests of the hurt", max(run.spent for run in hurt), 30)
            last = hurt[-1].crawled
            report.tell(f"{last.reason} after {last.seconds:.1f} s")
            check_clean(report, last)
            report.tell(stories(last, HURT))


# Budget


def budget(part: str | None, rounds: int) -> None:
    """No window is over budget, retries included, and the budget is used."""
    with World() as world, tempfile.TemporaryDirectory() as folder:
        hurt = world.hurt("503", cell="03", seconds=4)
        holes = Path(folder, "holes.jsonl")
        crawled = run_crawl(
            world.settings(
                CELLS_COUNT=6,
                CELLS_RATE=2,
                CELLS_BURST=3,
                CELLS_BREAKER_THRESHOLD=100,
                CELLS_RETIRE_BELOW=0,
                CELLS_HOLES=str(holes),
            ),
            base=world.base(),
            n=240,
        )
        cells = {c: [a.at for a in seen] for c, seen in world.by_cell().items()}
        used = {
            cell: len(times) / (3 + 2 * (max(times) - min(times)))
            for cell, times in cells.items()
        }
        with Report("budget, 6 cells at 2/s, burst 3") as report:
            worst = max(over_budget(times, 3, 2) for times in cells.values())
            report.most("worst window over", worst, 0.1)
            others = [share for cell, share in used.items() if cell != "03"]
            report.least("share used", min(others), 0.97)
            report.tell(f"by the one that failed {hurt.hits} times {used['03']:.3f}")
            found = right_rows(crawled) | missing(holes)
            report.equal("rows and holes", len(found), 240)
            check_clean(report, crawled)
    with World() as world:
        crawled = run_crawl(
            world.settings(
                CELLS_COUNT=8, CELLS_RATE=50, CELLS_BURST=5, CELLS_SITE_RATE=16
            ),
            base=world.base(),
            n=240,
        )
        times = [a.at for a in world.arrivals]
        with Report("site rate, 8 cells at 50/s under 16/s") as report:
            report.most("worst window over 8 + 16 w", over_budget(times, 8, 16), 0.0)
            report.equal("rows", len(right_rows(crawled)), 240)
            check_clean(report, crawled)
            slowest = max(map(len, keys_of(240, 8).values())) / 2
            report.tell(f"{span(world.arrivals):.1f} s, {slowest:.1f} s by the budget")


def missing(path: Path) -> set[str]:
    """Return the keys of a file of holes."""
    if not path.exists():
        return set()
    return {json.loads(line)["key"] for line in path.read_text().splitlines()}


# Breaker, cohorts, sessions


def breaker(part: str | None, rounds: int) -> None:
    """It opens soon, lets one request out per cooldown, and closes when all is well."""
    with World() as world:
        hurt = world.hurt("503", cell="03", seconds=14)
        crawled = run_crawl(
            world.settings(
                CELLS_COUNT=6,
                CELLS_BREAKER_THRESHOLD=5,
                CELLS_BREAKER_COOLDOWN=4,
                CELLS_RAMP=2,
            ),
            base=world.base(),
            n=120,
        )
        times = [a.at for a in world.of_cell("03")]
        opened = crawled.events_of("CellOpened", "03")
        with Report("breaker, 5 failures, 4 s") as report:
            first = opened[0]["mono"]
            begun = [t for t in times if t <= first]
            report.most("requests until open", len(begun), 10)
            late = [t for t in times if first < t < first + 0.5]
            report.equal("in the half second after", len(late), 0)
            end = hurt.first_hit + 14
            for event, after in zip(opened, [*opened[1:], None], strict=True):
                until = event["mono"] + event["until"] - event["at"]
                last = end if after is None else after["mono"]
                if until >= end:
                    break
                early = [t for t in times if event["mono"] < t < until - 0.01]
                probes = [t for t in times if until - 0.01 <= t <= last]
                report.equal("before its time", len(early), 0)
                report.equal("probes", len(probes), 1)
                report.tell(f"at +{probes[0] - event['mono']:.2f} s")
            report.equal("rows", len(right_rows(crawled)), 120)
            check_clean(report, crawled)
            report.tell(stories(crawled))


def retire(part: str | None, rounds: int) -> None:
    """Captchas retire a cohort; if they go on, the cell is closed off for hours."""
    with World() as world:
        hurt = world.hurt("captcha_200", cell="03", generation="0")
        crawled = run_crawl(
            world.settings(CELLS_COUNT=6, CELLS_RATE=20, CELLS_BURST=4, CELLS_WARMUP=4),
            base=world.base(),
            n=240,
        )
        with Report("retire, captchas on generation 0") as report:
            report.most("captchas", hurt.hits, 8)
            report.equal("rows", len(right_rows(crawled)), 240)
            (retired,) = crawled.events_of("CohortRetired", "03")
            times = [a.at for a in world.of_cell("03", "1")]
            warm = [t for t in times if t < retired["mono"] + 4]
            report.most("warm-up over 1 + 5 w", over_budget(warm, 1, 5), 0.25)
            report.least("warm-up used", len(warm) / (1 + 5 * 4), 0.9)
            report.equal("finish", crawled.reason, "finished")
            check_clean(report, crawled)
            report.tell(stories(crawled))
    with World() as world:
        hurt = world.hurt("captcha_200", cell="03")
        crawled = run_crawl(
            world.settings(CELLS_COUNT=6, CELLS_WARMUP=3), base=world.base(), n=240
        )
        others = set().union(*(k for c, k in keys_of(240, 6).items() if c != "03"))
        with Report("retire, captchas on every generation") as report:
            report.most("captchas", hurt.hits, 16)
            seen = {a.generation for a in world.of_cell("03")}
            report.equal("generations", len(seen), 2)
            report.equal("quarantines", len(crawled.events_of("CellQuarantined")), 1)
            report.equal("finish", crawled.reason, "cells_deferred")
            report.equal("healthy rows lost", len(others - right_rows(crawled)), 0)
            check_clean(report, crawled)
            report.tell(f"{crawled.seconds:.1f} s; {stories(crawled)}")


def bad_session(part: str | None, rounds: int) -> None:
    """A session of three that is always refused gets next to nothing."""
    with World() as world:
        world.hurt("403", session="1")
        crawled = run_crawl(
            world.settings(CELLS_COUNT=1, CELLS_SESSIONS=3), base=world.base(), n=60
        )
        bad = sum(a.session == "1" for a in world.arrivals)
        with Report("bad session of three") as report:
            report.most("requests to it", bad, 5)
            report.equal("rows", len(right_rows(crawled)), 60)
            check_clean(report, crawled)
            report.tell(f"{len(world.arrivals)} requests; {stories(crawled)}")


# Sessions


def stickiness(part: str | None, rounds: int) -> None:
    """A key stays on its session, and nothing of a session reaches another."""
    for scheme in ("http", "https"):
        if part not in {None, scheme}:
            continue
        with World() as world:
            world.robots = b"User-agent: *\nDisallow: /p/k00007\n"
            crawls = [
                run_crawl(
                    world.settings(ROBOTSTXT_OBEY=True), base=world.base(scheme), n=300
                )
                for _ in range(2)
            ]
            robots = [a for a in world.arrivals if a.path == "/robots.txt"]
            with Report(f"stickiness, {scheme}") as report:
                for what, seen in {
                    "keys on two sessions": world.keys_on_two_sessions(),
                    "connections with two users": world.connections_with_two_users(),
                    "foreign cookies": world.foreign_cookies(),
                    "credentials at the shop": world.credentials_at_target(),
                    "without a session": world.requests_without_session(),
                    "unknown at the gateway": world.unauthorized(),
                    "disallowed": [a for a in world.arrivals if a.key == "k00007"],
                }.items():
                    report.equal(what, len(seen), 0)
                report.equal("rows", {len(right_rows(c)) for c in crawls}, {299})
                sent = sum("cookie" in a.headers for a in world.arrivals)
                report.tell(f"{sent} requests with a cookie, {len(robots)} robots.txt")
                users = {a.user for a in world.arrivals}
                report.tell(f"{len(users)} sessions of {len(world.by_cell())} cells")
                for crawled in crawls:
                    check_clean(report, crawled)


def secrets(part: str | None, rounds: int) -> None:
    """The gateway's password is in no file and no output, in plain or in base64."""
    with World() as world, tempfile.TemporaryDirectory() as folder:
        world.hurt("403", cell="03")
        world.hurt("407", cell="05")
        world.hurt("reset_proxy", cell="06")
        world.hurt("hang_proxy", cell="08")
        world.hurt("502_proxy", cell="09")
        settings = world.settings(
            LOG_LEVEL="DEBUG",
            CELLS_TIMEOUT=2,
            CELLS_ITEM_FIELDS="cell_id,cell_session,cell_generation",
            COOKIES_DEBUG=True,
            HTTPCACHE_ENABLED=True,
            HTTPCACHE_DIR=f"{folder}/cache",
            JOBDIR=f"{folder}/job",
            CELLS_HOLES=f"{folder}/holes.jsonl",
            FEEDS={f"{folder}/out.json": {"format": "json"}},
            RETRY_TIMES=1,
        )
        outputs, rows = [], 0
        for scheme in ("http", "https"):
            stopped = run_crawl(
                settings,
                base=world.base(scheme),
                n=300,
                cwd=folder,
                interrupt_when=lambda: len(world.arrivals) > 60,
            )
            crawled = run_crawl(settings, base=world.base(scheme), n=300, cwd=folder)
            outputs += [stopped.log, crawled.log]
            rows += len(stopped.items) + len(crawled.items)
        files = {str(p): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}
        files["output"] = "".join(outputs).encode()
        found = {
            name for name, text in files.items() if any(n in text for n in needles())
        }
        with Report("secrets") as report:
            report.equal("files with the password", sorted(found), [])
            report.tell(f"{len(files)} files, {rows} rows searched")
            report.least("characters of output", len(files["output"]), 100_000)
            check_clean(report, crawled)


def needles() -> set[bytes]:
    """Return what the password looks like in plain, quoted, and inside base64."""
    wanted = {PASSWORD.encode()}
    for before in ("", "x", "xx"):
        text = base64.b64encode(f"{before}{PASSWORD}".encode()).decode()
        # the characters that the bytes before and behind it have no part in
        wanted.add(text[[0, 2, 3][len(before)] : len(text) // 4 * 4 - 4].encode())
    return wanted


# Ending


def ending(part: str | None, rounds: int) -> None:
    """Ctrl-C ends a crawl soon, whatever the cells wait for."""
    if part in {None, "open"}:
        with World() as world:
            world.hurt("503")
            crawled = run_crawl(
                world.settings(CELLS_COUNT=6, CELLS_MAX_WAIT=10_000, CELLS_TIMEOUT=5),
                base=world.base(),
                n=240,
                interrupt_when=lambda: (
                    len(world.arrivals) > 20
                    and time.monotonic() - world.arrivals[-1].at > 3
                ),
            )
            with Report("Ctrl-C, every cell open") as report:
                report.most("seconds", crawled.seconds, 2)
                report.equal("finish", crawled.reason, "shutdown")
                check_clean(report, crawled)
    for scheme in ("http", "https"):
        if part not in {None, "hung"}:
            continue
        with World() as world:
            world.hurt("hang" if scheme == "http" else "hang_connect")
            crawled = run_crawl(
                world.settings(CELLS_COUNT=6, CELLS_TIMEOUT=5),
                base=world.base(scheme),
                n=240,
                interrupt_when=lambda: len(world.knocks) >= 24,
            )
            with Report(f"Ctrl-C, every session hung, {scheme}") as report:
                report.most("seconds", crawled.seconds, 5 + 2)
                report.equal("finish", crawled.reason, "shutdown")
                check_clean(report, crawled)
    if part in {None, "robots"}:
        with World() as world:
            world.hurt("hang")
            crawled = run_crawl(
                world.settings(CELLS_COUNT=6, CELLS_TIMEOUT=5, ROBOTSTXT_OBEY=True),
                base=world.base(),
                n=240,
                interrupt_when=lambda: len(world.knocks) >= 1,
            )
            with Report("Ctrl-C, robots.txt hung") as report:
                report.most("seconds", crawled.seconds, 5 + 2)
                report.equal("finish", crawled.reason, "shutdown")
                check_clean(report, crawled)


# Cost

PLAIN_SPIDER = """
import scrapy
from tests.world.spiders import KeySpider


class PlainSpider(KeySpider):
    # deals the same sessions out itself

    def __init__(self, proxy="", **kwargs):
        super().__init__(**kwargs)
        self.proxy = proxy

    def request(self, key):
        number = int(key[1:])
        user = f"u-{number % 24:02d}-0-{number // 24 % 4}"
        return scrapy.Request(
            f"{self.base}/p/{key}",
            errback=self.failed,
            meta={"proxy": self.proxy.replace("USER", user), "cookiejar": user},
        )
"""


def cost(part: str | None, rounds: int) -> None:
    """Cells cost little against plain Scrapy with the same sessions."""
    ours: list[CrawlResult] = []
    plain: list[CrawlResult] = []
    for number in range(rounds):
        for mine in (True, False) if number % 2 else (False, True):
            with World() as world:
                base = world.base()
                if mine:
                    crawled = run_crawl(world.settings(), base=base, n=3000)
                    ours.append(crawled)
                else:
                    crawled = run_crawl(
                        {
                            "CONCURRENT_REQUESTS": 96,
                            "CONCURRENT_REQUESTS_PER_DOMAIN": 96,
                            "LOG_LEVEL": "INFO",
                        },
                        PLAIN_SPIDER,
                        base=base,
                        n=3000,
                        proxy=world.proxy_url("USER"),
                    )
                    plain.append(crawled)
                if len(right_rows(crawled)) != 3000:
                    raise RuntimeError(crawled.log[-3000:])

    def speed(crawled: CrawlResult) -> float:
        return 3000 / float(crawled.stats["elapsed_time_seconds"])

    ratios = [speed(a) / speed(b) for a, b in zip(ours, plain, strict=True)]
    cpu = [b.cpu_seconds / a.cpu_seconds for a, b in zip(ours, plain, strict=True)]
    with Report("cost") as report:
        report.least("throughput against plain", statistics.median(ratios), 0.95)
        report.tell(
            f"{statistics.median(map(speed, ours)):.0f}/s against"
            f" {statistics.median(map(speed, plain)):.0f}/s,"
            f" pairs {min(ratios):.2f}..{max(ratios):.2f};"
            f" by CPU time {statistics.median(cpu):.3f}"
            f" ({min(cpu):.2f}..{max(cpu):.2f})"
        )
        check_clean(report, ours[-1])


class InstantHandler:
    """Answers every request at once, so that a million take minutes.

    ``http://blocked...`` never answers.
    """

    lazy = True

    async def download_request(self, request: Any) -> Any:
        from scrapy.http import HtmlResponse

        key = request.url.rpartition("/")[2]
        if request.meta["cell"] == HURT:
            return HtmlResponse(request.url, status=503, request=request)
        body = f"<html><h1>{key}</h1><p class=price>1</p>{'x ' * 200}</html>"
        return HtmlResponse(request.url, body=body.encode(), request=request)

    async def close(self) -> None:
        pass


MILLION_SPIDER = """
import resource

from tests.world.spiders import KeySpider


class MillionSpider(KeySpider):
    def parse(self, response):
        pass

    def failed(self, failure):
        pass
"""


def memory(part: str | None, rounds: int) -> None:
    """A million start requests need no more memory than a thousand, nearly.

    One cell answers 503 all along, so that its part of them has to wait somewhere.
    """
    count = int(part or 1_000_000)
    for jobdir in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            crawled = run_crawl(
                {
                    **World().settings(),
                    "CELLS_PROXY": None,
                    "CELLS_RATE": 1e6,
                    "CELLS_BURST": 1e6,
                    "DOWNLOAD_HANDLERS": {"http": "benchmarks.promises.InstantHandler"},
                    **({"JOBDIR": f"{folder}/job"} if jobdir else {}),
                },
                MILLION_SPIDER,
                base="http://shop.test",
                n=count,
                timeout=3600,
            )
            name = "with JOBDIR" if jobdir else "without JOBDIR"
            with Report(f"memory, {count} requests {name}") as report:
                report.most("MB at most", crawled.max_rss_mb, 400)
                report.equal("finish", crawled.reason, "cells_deferred")
                done = crawled.stats.get("response_received_count", 0)
                report.least("answers", done, count * 0.9)
                report.tell(f"{done / crawled.seconds:.0f} requests/s")
                report.tell(f"{crawled.stats.get('scheduler/enqueued')} enqueued")
                check_clean(report, crawled)


# Retry-After, random trouble


def retry_after(part: str | None, rounds: int) -> None:
    """The site says when: nobody asks before, and nothing is lost for it."""
    if part in {None, "3"}:
        with World() as world:
            hurt = world.hurt("429", seconds=5, retry_after=3)
            crawled = run_crawl(world.settings(CELLS_COUNT=4), base=world.base(), n=100)
            with Report("Retry-After of 3 s for 5 s") as report:
                report.equal("rows", len(right_rows(crawled)), 100)
                report.most("hits", len(world.arrivals), 124)
                report.most("seconds", span(world.arrivals), 7)
                check_clean(report, crawled)
                report.tell(f"{hurt.hits} refused; {stories(crawled, '00')}")
    for as_date in (False, True):
        if part not in {None, "3600"}:
            continue
        with World() as world:
            hurt = world.hurt("429", cell="01", retry_after=3600, as_date=as_date)
            crawled = run_crawl(world.settings(CELLS_COUNT=4), base=world.base(), n=100)
            keys = keys_of(100, 4)
            others = set().union(*(keys[c] for c in keys if c != "01"))
            name = "as a date" if as_date else "in seconds"
            with Report(f"Retry-After of an hour {name}") as report:
                report.most("hits on the cell", hurt.hits, 4)
                report.equal("finish", crawled.reason, "cells_deferred")
                report.equal("other rows lost", len(others - right_rows(crawled)), 0)
                report.most("seconds", crawled.seconds, 20)
                check_clean(report, crawled)


def chaos(part: str | None, rounds: int) -> None:
    """With a fifth of the answers bad at random, every key is a row or a hole."""
    rng = random.Random(7)
    with World() as world, tempfile.TemporaryDirectory() as folder:

        def answer(arrival: Arrival) -> Reply | None:
            if rng.random() >= 0.2:
                return None
            bad = [Reply(429, b"x"), Reply(503, b"x"), Reply(fault="reset")]
            return rng.choice(bad)

        world.respond = answer
        holes = Path(folder, "holes.jsonl")
        crawled = run_crawl(
            world.settings(CELLS_HOLES=str(holes)), base=world.base(), n=2000
        )
        rows, gone = right_rows(crawled), missing(holes)
        with Report("random trouble, 20 %") as report:
            report.equal("keys lost", 2000 - len(rows | gone), 0)
            report.equal("both row and hole", len(rows & gone), 0)
            report.equal("wrong rows", wrong_rows(crawled), 0)
            report.most("requests per key", len(world.arrivals) / 2000, 1.25)
            report.tell(f"{len(rows)} rows, {len(gone)} holes, {crawled.reason}")
            report.tell(f"{dict(collections.Counter(crawled.event_types()))}")
            check_clean(report, crawled)
            report.tell(f"errbacks {crawled.failed_with()}, {crawled.seconds:.1f} s")


POINTS: dict[str, Callable[[str | None, int], None]] = {
    point.__name__: point
    for point in (
        isolation,
        budget,
        breaker,
        retire,
        bad_session,
        stickiness,
        secrets,
        ending,
        cost,
        retry_after,
        chaos,
        memory,
    )
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("point", nargs="?", choices=list(POINTS))
    parser.add_argument("part", nargs="?", help="a fault of isolation, a scheme...")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--latency", type=float, default=0.0, help="of the shop, for isolation"
    )
    given = parser.parse_args()
    for name, point in POINTS.items():
        if given.point in {None, name}:
            if point is isolation:
                isolation(given.part, given.rounds, given.latency)
            else:
                point(given.part, given.rounds)
    return int(Report.failed)


if __name__ == "__main__":
    sys.exit(main())
