"""The built-in rules, one module a vendor."""

from __future__ import annotations

from scrapy_cells.detection.vendors import (
    akamai,
    amazon,
    anubis,
    asia,
    aws_waf,
    cloudflare,
    datadome,
    ddos_guard,
    ebay,
    f5,
    generic,
    google,
    hosting,
    imperva,
    kasada,
    perimeterx,
    proxies,
    reddit,
    sites,
    soft,
    sucuri,
    vercel,
)

__all__ = ["BUILT_IN"]

#: All built-in rules in the order they are asked: by stage, then as listed here.
BUILT_IN = tuple(
    sorted(
        (
            *proxies.RULES,
            *amazon.RULES,
            *ebay.RULES,
            *reddit.RULES,
            *google.RULES,
            *sites.RULES,
            *asia.RULES,
            *cloudflare.RULES,
            *akamai.RULES,
            *datadome.RULES,
            *perimeterx.RULES,
            *imperva.RULES,
            *aws_waf.RULES,
            *kasada.RULES,
            *f5.RULES,
            *sucuri.RULES,
            *vercel.RULES,
            *ddos_guard.RULES,
            *anubis.RULES,
            *hosting.RULES,
            *generic.RULES,
            *soft.RULES,
        ),
        key=lambda rule: rule.stage,
    )
)
