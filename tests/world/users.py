"""Names of proxy sessions: ``u-{cell}-{generation}-{session}``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

TEMPLATE = "u-{cell}-{generation}-{session}"

_USER = re.compile(r"u-(?P<cell>.+)-(?P<generation>\d+)-(?P<session>[^-]+)")


class User(NamedTuple):
    """What a session's name says; all parts are empty for a foreign name."""

    cell: str = ""
    generation: str = ""
    session: str = ""


@lru_cache(maxsize=100_000)
def read_user(name: str) -> User:
    """Take a session's name apart."""
    found = _USER.fullmatch(name)
    return User(**found.groupdict()) if found else User()


def part(name: str, field: str) -> str:
    value: str = getattr(read_user(name), field)
    return value
