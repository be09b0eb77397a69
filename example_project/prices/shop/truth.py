"""What the shop remembers, and the check of a crawl's rows against it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from prices.shop.story import clock_face

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from decimal import Decimal

    from prices.shop.catalogue import Catalogue
    from prices.shop.story import Exit

PAGE = "page"
KINDS = (PAGE, "robot", "refused", "429", "hang", "reset", "not found")


@dataclass(frozen=True, slots=True)
class Served:
    """What became of a request, as the shop knows it.

    :param at: seconds of the story
    :param kind: one of :data:`KINDS`
    :param price: on the page
    """

    at: float
    exit: Exit
    key: str
    kind: str
    price: Decimal | None = None


@dataclass(slots=True)
class Report:
    """The verdict on a crawl.

    :ivar wrong: row by row, in words
    :ivar missing: keys without a row, by cell
    :ivar reasons: how many keys are missing for which reason, by cell
    :ivar served: what kinds of answers each cell got
    :ivar hurt: cells that the story, or a suspicion of the shop, happened to
    :ivar planned: cells that the story happens to
    :ivar shared: exits that carried keys of more than one cell
    """

    right: int = 0
    wrong: list[str] = field(default_factory=list)
    missing: dict[str, list[str]] = field(default_factory=dict)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    served: dict[str, Counter[str]] = field(default_factory=dict)
    hurt: set[str] = field(default_factory=set)
    planned: frozenset[str] = frozenset()
    shared: list[str] = field(default_factory=list)
    exits: int = 0
    suspicions: list[str] = field(default_factory=list)

    @property
    def others_hurt(self) -> list[str]:
        """Cells that lost a key or met a refusal without a part in the story."""
        return sorted((self.hurt | set(self.missing)) - self.planned)

    @property
    def fine(self) -> bool:
        return not (self.wrong or self.shared or self.others_hurt)

    def lines(self) -> list[str]:
        """Return the verdict as people read it."""
        lines = [
            f"rows right          {self.right}",
            f"rows wrong          {len(self.wrong)}",
            *(f"    {what}" for what in self.wrong[:5]),
            f"keys missing        {sum(map(len, self.missing.values()))}",
        ]
        for cell, keys in sorted(self.missing.items())[:5]:
            whys = self.reasons.get(cell) or Counter({"no reason given": len(keys)})
            words = ", ".join(f"{n} {why}" for why, n in whys.most_common())
            lines.append(f"    cell {cell}: {len(keys)} ({words})")
        if len(self.missing) > 5:
            lines.append(f"    and {len(self.missing) - 5} cells more")
        lines += self._served_lines()
        lines.append(
            f"exit addresses      {self.exits}; "
            + (", ".join(self.shared[:3]) or "none carried keys of two cells")
        )
        lines += [
            f"shop suspected      {text}"
            for text in self.suspicions[:5] or ["nobody of its own accord"]
        ]
        planned = ", ".join(sorted(self.planned)) or "nobody"
        others = ", ".join(self.others_hurt) or "nobody"
        lines.append(f"hurt by the story   {planned}")
        lines.append(f"hurt besides        {others}")
        lines.append("verdict             " + ("fine" if self.fine else "NOT FINE"))
        return lines

    def _served_lines(self) -> list[str]:
        groups = {
            "cells in the story ": sorted(set(self.served) & self.planned),
            "all other cells    ": sorted(set(self.served) - self.planned),
        }
        lines = []
        for title, cells in groups.items():
            sums: Counter[str] = sum((self.served[c] for c in cells), Counter())
            words = ", ".join(f"{sums[k]} {k}" for k in KINDS if sums[k])
            lines.append(f"{title} {len(cells)}: {words or 'nothing'}")
        return lines


class Ledger:
    """Everything the shop served, and to whom."""

    def __init__(self) -> None:
        self.served: list[Served] = []

    def note(self, served: Served) -> None:
        self.served.append(served)

    def check(
        self,
        rows: Iterable[Mapping[str, Any]],
        catalogue: Catalogue,
        cells: Mapping[str, str],
        *,
        planned: frozenset[str] = frozenset(),
        reasons: Mapping[str, str] | None = None,
    ) -> Report:
        """Compare a crawl's rows with what was served.

        :param cells: the cell of every key that was asked for
        :param planned: cells that the story happens to
        :param reasons: why a key has no row, as the crawl tells it
        """
        report = Report(planned=planned)
        pages: dict[str, set[Decimal]] = defaultdict(set)
        exits: dict[str, set[str]] = defaultdict(set)
        asked = {served.key for served in self.served}
        for served in self.served:
            cell = cells.get(served.key, "")
            report.served.setdefault(cell, Counter())[served.kind] += 1
            exits[served.exit.address].add(cell)
            if served.kind != PAGE:
                report.hurt.add(cell)
            elif served.price is not None:
                pages[served.key].add(served.price)
        report.exits = len(exits)
        report.shared = [
            f"{address} carried keys of {len(of)} cells"
            for address, of in exits.items()
            if len(of) > 1
        ]
        seen = self._check_rows(report, rows, catalogue, pages)
        for key, cell in cells.items():
            if key not in seen:
                report.missing.setdefault(cell, []).append(key)
                silence = "no reason given" if key in asked else "never asked for"
                why = (reasons or {}).get(key, silence)
                report.reasons.setdefault(cell, Counter())[why] += 1
        return report

    def _check_rows(
        self,
        report: Report,
        rows: Iterable[Mapping[str, Any]],
        catalogue: Catalogue,
        pages: Mapping[str, set[Decimal]],
    ) -> set[str]:
        seen: set[str] = set()
        for row in rows:
            key = str(row["key"])
            product = catalogue.get(key)
            if product is None or row["price"] not in pages.get(key, ()):
                problem = f"the shop never said {row['price']}"
            elif row["title"] != product.title or row["category"] != product.category:
                problem = f"{row['title']!r} in {row['category']!r} is another product"
            elif key in seen:
                problem = "a second row"
            else:
                report.right += 1
                seen.add(key)
                continue
            seen.add(key)
            report.wrong.append(f"{key}: {problem}")
        return seen


def in_words(at: float, exit_: Exit, why: str) -> str:
    """Return a suspicion as a line of the report."""
    whose = f" of cell {exit_.cell}" if exit_.cell else ""
    return f"{exit_.address}{whose} at {clock_face(at)}: {why}"
