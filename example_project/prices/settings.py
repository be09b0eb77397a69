"""Settings of the project.

The story of a day is told in a minute: ``SHOP_TIME_FACTOR`` says how many seconds of
the story pass in one of ours. It is read from the environment, since so much follows
from it. In a project of your own, times are plain seconds, and most defaults fit.
"""

from __future__ import annotations

import os

BOT_NAME = "prices"
SPIDER_MODULES = ["prices.spiders"]
ROBOTSTXT_OBEY = True
TELNETCONSOLE_ENABLED = False
FEED_EXPORT_ENCODING = "utf-8"
FEEDS = {"prices.jsonl": {"format": "jsonlines", "overwrite": True}}
LOG_LEVEL = "INFO"

SHOP_TIME_FACTOR = float(os.environ.get("SHOP_TIME_FACTOR", "1440"))
HOUR = 3600 / SHOP_TIME_FACTOR
"""An hour of the story in seconds of ours."""

ADDONS = {
    # starts the shop and its gateway, and sets SHOP_URL and CELLS_PROXY; in a project
    # of your own there is only the line below, and CELLS_PROXY is written here
    "prices.shop.addon.ShopAddon": 100,
    "scrapy_cells.Addon": 900,
}

# Who looks at what: 24 cells, each with two categories of the shop
CELLS_KEY = "regex:/dp/([A-Z0-9]+)"
CELLS_ROUTER = "catalog"
CELLS_CATALOG = "package:prices/keys.csv"
CELLS_SESSIONS = 4
CELLS_SESSION_ROTATION = 7 * 24 * HOUR
CELLS_USER_AGENTS = [
    f"Mozilla/5.0 ({system}; rv:140.0) Gecko/20100101 Firefox/140.0"
    for system in ("X11; Linux x86_64", "Windows NT 10.0; Win64; x64")
]

# The budget: 108 requests an hour, 4.5 for each cell. The shop suspects an address that
# asks for more than 12; a whole cell stays below that, whichever session it uses.
CELLS_SITE_RATE = 108 / HOUR
CELLS_RATE = 6 / HOUR
CELLS_TIMEOUT = 0.8 * HOUR

# What a cell does about trouble
CELLS_BREAKER_THRESHOLD = 4
CELLS_BREAKER_WINDOW = 3 * HOUR
CELLS_BREAKER_COOLDOWN = 1 * HOUR
CELLS_BREAKER_MAX_COOLDOWN = 4 * HOUR
CELLS_RAMP = 1.5 * HOUR
CELLS_WARMUP = 1.5 * HOUR
CELLS_FRESH_WINDOW = 4 * HOUR
CELLS_QUARANTINE = 5 * HOUR
CELLS_MAX_QUARANTINE = 24 * HOUR
CELLS_RETRY_DELAY = 0.3 * HOUR
CELLS_RETRY_MAX_DELAY = 2 * HOUR

# The rows, and what is missing
CELLS_EXPECT_ITEMS = True
CELLS_ITEM_FIELDS = ["cell_id", "cell_session", "cell_checked_at"]
CELLS_HOLES = "holes.jsonl"
CELLS_MAX_WAIT = 4 * HOUR
