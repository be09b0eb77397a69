"""Where the proxies of sessions come from: a template, a list, a function, nowhere."""

from __future__ import annotations

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

    :param template: checked by :func:`check_template`
    """

    def __init__(self, template: str, agents: Agents) -> None:
        super().__init__(agents)
        self._template = expand_env(template)

    def draw(self, cell: str, generation: int, name: str, now: float) -> Draw | None:
        url = render(self._template, cell, generation, name)
        return Draw(url, self._agents.of(cell, generation, name))


class CallableSource(NoProxySource):
    """Proxies by a function of ``(cell, generation, session, session_id)``.

    It returns a proxy URL, or ``None`` when there is no other to have.
    """

    def __init__(
        self, function: Callable[[str, int, str, str], str | None], agents: Agents
    ) -> None:
        super().__init__(agents)
        self._function = function

    def draw(self, cell: str, generation: int, name: str, now: float) -> Draw | None:
        session_id = f"{cell_tag(cell)}g{generation}s{name}"
        url = self._function(cell, generation, name, session_id)
        if url is None:
            return None
        parse_proxy(url)
        return Draw(url, self._agents.of(cell, generation, name))


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
        if problem := list_problem(urls, sessions):
            raise ValueError(problem)
        self._fresh: dict[str, deque[str]] = {cell: deque() for cell in sessions}
        self._burnt: dict[str, deque[tuple[float, str]]] = {}
        # first what everybody needs, then the reserve, one each in turn
        left = deque(urls)
        for cell, needed in sessions.items():
            self._fresh[cell].extend(left.popleft() for _ in range(needed))
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


def list_problem(urls: Sequence[str], sessions: Mapping[str, int]) -> str | None:
    """Return what is wrong with a proxy list for these cells, in words."""
    for number, url in enumerate(urls, 1):
        try:
            parse_proxy(url)
        except ValueError as error:
            return f"proxy {number} of the list: {error}"
    if len(set(urls)) < len(urls):
        twice = next(url for url in urls if urls.count(url) > 1)
        return f"{mask(twice)!r} stands in the list more than once"
    needed = sum(sessions.values())
    if len(urls) < needed:
        return (
            f"{len(urls)} proxies are too few for {len(sessions)} cells with"
            f" {needed} sessions in all. Add {needed - len(urls)} proxies, or lower"
            " CELLS_COUNT or CELLS_SESSIONS"
        )
    return None


def expand_env(template: str) -> str:
    """Put environment variables in the place of ``${NAME}``.

    :raises ValueError: naming one that is not set
    """

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise ValueError(
                f"the environment variable {name} is not set; set it, or take"
                f" ${{{name}}} out of the template"
            )
        # what looks like a field in a password is none
        return os.environ[name].replace("{", "{{").replace("}", "}}")

    return _ENV.sub(value, template)


def render(template: str, cell: str, generation: int, name: str) -> str:
    """Return a session's proxy URL."""
    return template.format(
        cell=cell,
        generation=generation,
        session=name,
        session_id=f"{cell_tag(cell)}g{generation}s{name}",
    )


def template_problem(template: str) -> str | None:
    """Return what is wrong with a template, in words."""
    try:
        expanded = expand_env(template)
        names = [field for _, field, _, _ in string.Formatter().parse(expanded)]
        unknown = [name for name in names if name is not None and name not in FIELDS]
        if unknown:
            known = ", ".join(f"{{{name}}}" for name in FIELDS)
            return f"unknown field {{{unknown[0]}}}; there are {known} and ${{ENV}}"
        first, by_session, by_generation, by_cell = (
            parse_proxy(render(expanded, cell, generation, name))
            for cell, generation, name in (
                ("00", 0, "0"),
                ("00", 0, "0r1"),
                ("00", 1, "0"),
                ("01", 0, "0"),
            )
        )
    except (ValueError, KeyError, IndexError) as error:
        return str(error)
    same = [
        what
        for what, other in (
            ("session", by_session),
            ("generation", by_generation),
            ("cell", by_cell),
        )
        if other == first
    ]
    if same:
        return (
            f"gives the same proxy user for every {' and every '.join(same)}: what"
            " replaces a burnt session would be the burnt one again. Use {session_id},"
            " or {cell}, {generation} and {session} together"
        )
    return None
