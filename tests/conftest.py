"""Fixtures of all tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.harness.target import Site

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def site() -> Iterator[Site]:
    """A web site on loopback behind a gateway, of this test alone."""
    with Site() as running:
        yield running


@pytest.fixture
def reactor() -> str:
    """How crawls run: ``asyncio``, or ``none`` in the environment ``no-reactor``."""
    return os.environ.get("SCRAPY_CELLS_TEST_REACTOR", "asyncio")
