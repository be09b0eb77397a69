from __future__ import annotations

import pytest

from tests.world.crawl import run_crawl
from tests.world.world import World


@pytest.fixture
def world():
    with World() as world:
        yield world


@pytest.fixture
def crawl():
    return run_crawl
