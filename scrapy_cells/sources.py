"""Where the proxies of sessions come from: a template, a list, a function, nowhere."""

from __future__ import annotations

import difflib
import logging
import os
import re
import string
from collections import deque
from typing import TYPE_CHECKING

from scrapy_cells.domain.cohort import Draw, cell_tag
from scrapy_cells.domain.router import hash64
from scrapy_cells.proxies import mask, parse_proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scrapy_cells.proxies import ProxyUrl

logger = logging.getLogger(__name__)

FIELDS = ("cell", "generation", "session", "session_id")
_ENV = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_REST = 86400.0
"""Seconds a burnt address is not used again."""


class Agents:
    """Gives every session one user agent, always the same."""

    def __init__(self, user_agents: Sequence[str]) -> None:
        self._agents = tuple(user_agents)

    def of(self, cell: str, generation: int, name: str) -> str | None:
        if not self._agents:
            return None
        number = hash64(f"{cell}\n{generation}\n{name}")
        return self._agents[number % len(self._agents)]


class NoProxySource:
    """Sessions without a proxy: cookies of their own, one address for all."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    def draw(self, cell: str, generation: int, name: str, now: float) -> Draw | None:
        return Draw(None, self._agents.of(cell, generation, name))

    def burn(self, cell: str, draw: Draw, now: float) -> None:
        """Forget it: there is only one address."""


class TemplateSource(NoProxySource):
    """Proxies by a template with the fields of :data:`FIELDS`.

    :param template: one in which :func:`template_problem` finds nothing
    """

    def __init__(self, template: str, agents: Agents) -> None:
        super().__init__(agents)
        self._template = _expand_braced(template)

    def draw(self, cell: str, generation: int, name: str, now: float) -> Draw | None:
        url = render(self._template, cell, generation, name)
        return Draw(url, self._agents.of(cell, generation, name))


class CallableSource(NoProxySource):
    """Proxies by a function of ``(cell, generation, session, session_id)``.

    It returns a proxy URL, or ``None`` when there is no other to have. What it cannot
    mean to return counts as ``None`` and is logged: no URL, a proxy that another
    session has, or one that was given up within a day.
    """

    def __init__(
        self, function: Callable[[str, int, str, str], str | None], agents: Agents
    ) -> None:
        super().__init__(agents)
        self._function = function
        self._users: dict[ProxyUrl, str] = {}
        self._burnt: dict[ProxyUrl, float] = {}

    def draw(self, cell: str, generation: int, name: str, now: float) -> Draw | None:
        session_id = f"{cell_tag(cell)}g{generation}s{name}"
        try:
            url = self._function(cell, generation, name, session_id)
            if url is None:
                return None
            self._take(parse_proxy(_text(url)), session_id, now)
        except Exception as error:  # noqa: BLE001
            # a user's function that fails in mid-crawl must not take the crawl along;
            # no traceback, which may show credentials
            logger.error(  # noqa: TRY400
                "CELLS_PROXY gave no proxy for session %(session)s: %(error)s",
                {"session": session_id, "error": mask(str(error))},
            )
            return None
        return Draw(url, self._agents.of(cell, generation, name))

    def burn(self, cell: str, draw: Draw, now: float) -> None:
        if draw.proxy is not None:
            proxy = parse_proxy(draw.proxy)
            self._users.pop(proxy, None)
            self._burnt[proxy] = now

    def _take(self, proxy: ProxyUrl, session_id: str, now: float) -> None:
        if (user := self._users.get(proxy, session_id)) != session_id:
            raise ValueError(f"{proxy.masked} is the proxy of session {user}")
        if now - self._burnt.get(proxy, -_REST) < _REST:
            raise ValueError(f"{proxy.masked} was given up less than a day ago")
        self._burnt.pop(proxy, None)
        self._users[proxy] = session_id


class ListSource(NoProxySource):
    """A list of proxies, dealt out to cells: no proxy is in two of them.

    What a cell gets beyond its sessions is its own reserve. A proxy that was given up
    rests for a day.

    :raises ValueError: with the numbers, if there are too few
    """

    def __init__(
        self, urls: Sequence[str], sessions: Mapping[str, int], agents: Agents
    ) -> None:
        super().__init__(agents)
        if problem := list_problem(urls) or too_few(urls, sessions):
            raise ValueError(problem)
        self._fresh: dict[str, deque[str]] = {cell: deque() for cell in sessions}
        self._burnt: dict[str, deque[tuple[float, str]]] = {}
        # one each in turn, until all have what they need; the rest is the reserve
        left = deque(urls)
        for turn in range(max(sessions.values(), default=0)):
            for cell, needed in sessions.items():
                if turn < needed:
                    self._fresh[cell].append(left.popleft())
        while left:
            for cell in sessions:
                if left:
                    self._fresh[cell].append(left.popleft())

    def draw(self, cell: str, generation: int, name: str, now: float) -> Draw | None:
        fresh, burnt = self._fresh[cell], self._burnt.get(cell)
        if fresh:
            url = fresh.popleft()
        elif burnt and now - burnt[0][0] >= _REST:
            url = burnt.popleft()[1]
        else:
            return None
        return Draw(url, self._agents.of(cell, generation, name))

    def burn(self, cell: str, draw: Draw, now: float) -> None:
        if draw.proxy is not None:
            self._burnt.setdefault(cell, deque()).append((now, draw.proxy))


def list_problem(urls: Sequence[str]) -> str | None:
    """Return what is wrong with the entries of a proxy list, in words."""
    places: dict[ProxyUrl, int] = {}
    for number, url in enumerate(urls, 1):
        try:
            proxy = parse_proxy(url)
        except ValueError as error:
            return f"proxy {number} of the list: {error}"
        first = places.setdefault(proxy, number)
        if first != number:
            return (
                f"proxies {first} and {number} of the list are the same,"
                f" {proxy.masked!r}: a proxy is in one cell only"
            )
    return None


def too_few(urls: Sequence[str], sessions: Mapping[str, int]) -> str | None:
    """Say, with the numbers, that a list is too short; ``None`` if it is not."""
    needed = sum(sessions.values())
    if len(urls) >= needed:
        return None
    return (
        f"{len(urls)} proxies are too few for {len(sessions)} cells with"
        f" {needed} sessions in all. Add {needed - len(urls)} proxies, or lower"
        " CELLS_COUNT or CELLS_SESSIONS"
    )


def expand_env(text: str) -> str:
    """Put environment variables in the place of ``${NAME}``.

    :raises ValueError: naming one that is not set
    """
    return _ENV.sub(lambda match: _environment(match.group(1)), text)


def _expand_braced(template: str) -> str:
    # what looks like a field in a password from the environment is none
    return _ENV.sub(
        lambda match: (
            _environment(match.group(1)).replace("{", "{{").replace("}", "}}")
        ),
        template,
    )


def _environment(name: str) -> str:
    if name not in os.environ:
        raise ValueError(
            f"the environment variable {name} is not set; set it, or take"
            f" ${{{name}}} out of the setting"
        )
    return os.environ[name]


def render(template: str, cell: str, generation: int, name: str) -> str:
    """Return a session's proxy URL."""
    return template.format(
        cell=cell,
        generation=generation,
        session=name,
        session_id=f"{cell_tag(cell)}g{generation}s{name}",
    )


_SAMPLES = {
    "session": ("00", 0, "1"),
    "replaced session": ("00", 0, "0r1"),
    "generation": ("00", 1, "0"),
    "cell": ("01", 0, "0"),
}
"""What differs from session 0 of generation 0 of cell 00, and must show."""


def template_problem(template: str) -> str | None:
    """Return what is wrong with a template, in words."""
    try:
        expanded = _expand_braced(template)
        names = [field for _, field, _, _ in string.Formatter().parse(expanded)]
        for name in names:
            if name is not None and name not in FIELDS:
                return _unknown_field(template, name)
        first = _identity(render(expanded, "00", 0, "0"))
        same = [
            what
            for what, sample in _SAMPLES.items()
            if _identity(render(expanded, *sample)) == first
        ]
    except (ValueError, KeyError, IndexError) as error:
        return f"{error} (write {{{{ and }}}} for braces that are no field)"
    if same:
        return (
            f"gives the same user name for every {' and every '.join(same)}: what"
            " replaces a burnt session would be the burnt one again. Put {session_id},"
            " or {cell}, {generation} and {session} together, into the user name; a"
            ' list of proxies is written ["http://...", "http://..."]'
        )
    return None


def _identity(url: str) -> tuple[str, int, str | None]:
    """Return what a gateway tells its sessions apart by: not the password."""
    proxy = parse_proxy(url)
    return proxy.host, proxy.port, proxy.username


def _unknown_field(template: str, name: str) -> str:
    if near := difflib.get_close_matches(name, FIELDS, n=1):
        return f"unknown field {{{name}}}; did you mean {{{near[0]}}}?"
    credentials = template.partition("://")[2].rpartition("@")[0]
    if "{" + name in credentials.partition(":")[2]:
        # it may be a piece of a password, and is not shown
        return (
            "the password holds a brace that starts no field; write {{ and }} for"
            " braces, or take the password from ${ENV}"
        )
    known = ", ".join(f"{{{field}}}" for field in FIELDS)
    return f"unknown field {{{name}}}; there are {known} and ${{ENV}}"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a proxy URL is a string, not {type(value).__name__}")
    return value
