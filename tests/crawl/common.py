"""What crawl tests share: usual settings, and what is asserted of every crawl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import version_info

from scrapy_cells.domain.router import HashRouter
from tests.harness.crawl import FAST, ROOT, run_crawl
from tests.harness.target import Reply, price_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.harness.crawl import Crawled
    from tests.harness.target import Arrival, Site

OLD_SCRAPY = version_info[:2] < (2, 15)
"""Whether Scrapy ends with exit code 0 although an add-on or component raised, and
takes for an error what a downloader middleware filtered from a media pipeline."""

PASSWORD = "S3CR3T-x9"
COUNT = 4
HURT = "02"
HTML = {"Content-Type": "text/html"}
CAPTCHA_PAGE = (
    b"<html><head><title>Robot Check</title></head><body>"
    b'<form method="get" action="/errors/validateCaptcha"><input name="field-keywords">'
    b"</form></body></html>"
)


def captcha(status: int = 200) -> Reply:
    return Reply(status, CAPTCHA_PAGE, HTML)


def proxy_of(site: Site, user: str = "u-{cell}-{generation}-{session}") -> str:
    return f"http://{user}:{PASSWORD}@127.0.0.1:{site.proxy_port}"


def usual_settings(site: Site, **more: Any) -> dict[str, Any]:
    """Four cells behind the site's gateway, as fast as they can."""
    return {
        **FAST,
        "CELLS_PROXY": proxy_of(site),
        "CELLS_COUNT": COUNT,
        "CELLS_RETRY_DELAY": 0.1,
        **more,
    }


def base_of(site: Site, scheme: str = "http") -> str:
    port = site.port if scheme == "http" else site.tls_port
    return f"{scheme}://127.0.0.1:{port}"


def crawl(
    site: Site,
    settings: dict[str, Any] | None = None,
    spider: str = "tests.harness.spiders.KeySpider",
    *,
    scheme: str = "http",
    errors: int = 0,
    **more: Any,
) -> Crawled:
    """Run a crawl of the site; no request of it may be unaccounted for at the end.

    A spider's name without a dot is one of :mod:`tests.crawl.spiders`.

    :param errors: how many the log may hold
    """
    if "." not in spider:
        spider = f"tests.crawl.spiders.{spider}"
    crawled = run_crawl(
        usual_settings(site, **(settings or {})),
        spider,
        base=base_of(site, scheme),
        **more,
    )
    assert crawled.returncode == 0, crawled.log
    assert crawled.stats.get("log_count/ERROR", 0) == errors, crawled.log
    assert crawled.stats["cells/outstanding_permit_count"] == 0, crawled.log
    assert crawled.stats["cells/repeated_settlement_count"] == 0, crawled.log
    return crawled


def keys(n: int) -> list[str]:
    """The keys that a ``KeySpider`` with this *n* asks for."""
    return [f"k{number:05d}" for number in range(n)]


def keys_by_cell(n: int, count: int = COUNT) -> dict[str, list[str]]:
    router = HashRouter(count)
    cells: dict[str, list[str]] = {cell: [] for cell in router.cells}
    for key in keys(n):
        cells[router.route(key)].append(key)
    return cells


def right_keys(crawled: Crawled) -> list[str]:
    """Sorted keys of the rows; every row must hold the price of its own key."""
    for item in crawled.items:
        assert item["price"] == str(price_of(item["key"])), item
    return sorted(item["key"] for item in crawled.items)


def pages(arrivals: Iterable[Arrival]) -> list[Arrival]:
    """Those that asked for a page, and not for robots.txt."""
    return [a for a in arrivals if not a.path.endswith("/robots.txt")]


def over_budget(times: Iterable[float], burst: float, rate: float) -> float:
    """By how many requests the worst window is over ``burst + rate * w``."""
    times = sorted(times)
    worst, low = 0.0, float("inf")
    for n, at in enumerate(times):
        low = min(low, n - rate * at)
        worst = max(worst, (n + 1 - rate * at) - low - burst)
    return worst


def read_lines(path: str | Path) -> list[dict[str, Any]]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    returncode: int
    out: str
    log: str


def run_python(
    *args: object, cwd: Path, reactor: str = "asyncio", timeout: float = 60
) -> Done:
    """Run ``python ARGS`` as a user would, in a folder of its own."""
    if reactor == "none":
        args = (*args, "-s", "TWISTED_REACTOR_ENABLED=False")
    done = subprocess.run(
        [sys.executable, *map(str, args)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return Done(
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )


@lru_cache(maxsize=1)
def _template() -> dict[Path, str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        done = run_python("-m", "scrapy", "startproject", "shop", cwd=folder)
        assert done.returncode == 0, done.log
        project = folder / "shop"
        files = [path for path in project.rglob("*") if path.suffix in {".py", ".cfg"}]
        return {path.relative_to(project): path.read_text("utf-8") for path in files}


def new_project(folder: Path, settings: dict[str, Any], **spiders: str) -> Path:
    """Make a project with Scrapy's own template, and put settings and spiders in."""
    project = folder / "shop"
    for path, text in _template().items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text, encoding="utf-8")
    with (project / "shop" / "settings.py").open("a", encoding="utf-8") as file:
        for name, value in {"TELNETCONSOLE_ENABLED": False, **settings}.items():
            file.write(f"\n{name} = {value!r}\n")
    for name, code in spiders.items():
        path = project / "shop" / "spiders" / f"{name}.py"
        path.write_text(code, encoding="utf-8")
    return project
