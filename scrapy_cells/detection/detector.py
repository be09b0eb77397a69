"""The policy that joins all rules: answer or exception in, verdict out."""

from __future__ import annotations

import difflib
import logging
from typing import TYPE_CHECKING, Any

from parsel.csstranslator import HTMLTranslator
from scrapy.utils.misc import load_object

from scrapy_cells.detection.failures import RULE_NAMES, classify_exception
from scrapy_cells.detection.page import Page
from scrapy_cells.detection.rule import Rule, Stage
from scrapy_cells.detection.shortlist import Shortlist
from scrapy_cells.detection.vendors import BUILT_IN
from scrapy_cells.domain.outcome import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scrapy.http import Request, Response

__all__ = ["Detector"]

logger = logging.getLogger(__name__)

_OK = Verdict(Outcome.OK)
_NEUTRAL = Verdict(Outcome.NEUTRAL)
_BODY_STAGES = frozenset({Stage.JSON, Stage.TINY, Stage.MARK, Stage.SENTENCE})
#: So many flags of a rule of the user's, without one good answer, are suspicious.
_SUSPICIOUS_FLAGS = 10


class Detector:
    """Tell good answers from walls. Never raises, whatever the answer is.

    :param rules: rules of your own, classes or instances; one with the name of a
        built-in rule replaces it
    :param disabled: names of rules, or of whole vendors, that are not asked
    :param ok_selector: CSS selector of what only a served page has; where it matches on
        a 2xx answer, the answer is ok whatever the rules say
    :raises ValueError: for an unknown name, a thing that is no rule, a bad selector
    """

    def __init__(
        self,
        rules: Iterable[Any] = (),
        disabled: Iterable[str] = (),
        ok_selector: str | None = None,
    ) -> None:
        own = [_instance(rule) for rule in rules]
        replaced = {rule.name for rule in own}
        kept = [rule for rule in BUILT_IN if rule.name not in replaced]
        self._own = frozenset(map(id, own))
        self._disabled = frozenset(filter(None, disabled))
        everything: list[Rule] = [*own, *kept]
        _refuse_unknown(self._disabled, everything)
        self._rules: Sequence[Rule] = sorted(
            (rule for rule in everything if not self._is_off(rule)),
            key=lambda rule: rule.stage,
        )
        self._shortlist = Shortlist(self._rules)
        self._ok_path = _xpath(ok_selector) if ok_selector else None
        self._broken: set[str] = set()
        self._flags: dict[str, int] = {}

    @classmethod
    def from_setting(
        cls, entries: Iterable[Any] | str, ok_selector: str | None = None
    ) -> Detector:
        """Build one from ``CELLS_DETECTION`` (see :mod:`scrapy_cells.detection`)."""
        if isinstance(entries, str):
            entries = [part.strip() for part in entries.split(",")]
        rules: list[Any] = []
        disabled: list[str] = []
        for entry in entries:
            if isinstance(entry, str) and entry.startswith("-"):
                disabled.append(entry[1:].strip())
            elif isinstance(entry, str):
                if entry:
                    rules.append(_imported(entry))
            else:
                rules.append(entry)
        return cls(rules, disabled, ok_selector)

    @property
    def rule_names(self) -> tuple[str, ...]:
        """Names of all rules that are asked, in that order."""
        return tuple(rule.name for rule in self._rules)

    def classify(self, request: Request, response: Response) -> Verdict:
        """Say what *response* is."""
        return self.classify_page(Page(request, response))

    def classify_page(self, page: Page) -> Verdict:
        """Say what an answer is that was made a page already."""
        for rule in self._shortlist.of(page):
            if rule.stage in _BODY_STAGES and not self._reads(page, rule.stage):
                continue
            verdict = self._ask(rule, page)
            if verdict is not None:
                return self._concluded(rule, verdict, page)
        self._flags.clear()
        return _OK

    def classify_exception(
        self,
        exc: BaseException,
        request: Request | None,
        proxied: bool,
    ) -> Verdict:
        """Say what *exc*, raised instead of an answer, is.

        :param proxied: whether the request went through a proxy
        """
        try:
            verdict = classify_exception(exc, proxied)
        except Exception:
            # an exception whose own text or type misbehaves
            logger.exception("Could not classify a download error")
            return _NEUTRAL
        return _NEUTRAL if verdict.rule in self._disabled else verdict

    def _is_off(self, rule: Rule) -> bool:
        return rule.name in self._disabled or (
            bool(rule.vendor) and rule.vendor in self._disabled
        )

    @staticmethod
    def _reads(page: Page, stage: Stage) -> bool:
        if 300 <= page.status < 400:
            return False
        if page.kind == "json":
            return stage is Stage.JSON
        if page.kind not in ("html", "text"):
            return False
        # pages on what is missing use all kinds of words, and so do titles of products
        plain = page.status not in (404, 410) and not page.has_data
        return stage is not Stage.SENTENCE or plain

    def _ask(self, rule: Rule, page: Page) -> Verdict | None:
        try:
            answer = rule.match(page)
        except Exception:
            if rule.name not in self._broken:
                self._broken.add(rule.name)
                logger.warning(
                    "Detection rule %(rule)s failed and has no opinion on %(url)s; "
                    "further failures of it are not logged",
                    {"rule": rule.name, "url": page.url},
                    exc_info=True,
                )
            return None
        return _verdict(rule, answer)

    def _concluded(self, rule: Rule, verdict: Verdict, page: Page) -> Verdict:
        if verdict.outcome is not Outcome.OK and self._is_served(page):
            verdict = Verdict(Outcome.OK, rule="ok_selector", place="selector")
        if verdict.outcome is Outcome.OK:
            self._flags.clear()
        elif id(rule) in self._own:
            self._watch(rule)
        return verdict

    def _is_served(self, page: Page) -> bool:
        if self._ok_path is None or not 200 <= page.status < 300:
            return False
        try:
            return bool(page.response.xpath(self._ok_path))
        except Exception:  # noqa: BLE001 -- no text, or none that can be parsed
            return False

    def _watch(self, rule: Rule) -> None:
        flags = self._flags[rule.name] = self._flags.get(rule.name, 0) + 1
        if flags == _SUSPICIOUS_FLAGS:
            logger.warning(
                "Detection rule %(rule)s flagged %(count)d answers and nothing was ok "
                "in between: if it matches every page, correct it or switch it off "
                'with "-%(rule)s" in CELLS_DETECTION',
                {"rule": rule.name, "count": flags},
            )


def _instance(rule: Any) -> Rule:
    try:
        made = rule() if isinstance(rule, type) else rule
    except TypeError as error:
        raise ValueError(f"{rule!r} cannot be made a rule: {error}") from error
    if not isinstance(made, Rule):
        # a wrong setting like any other, so no TypeError
        raise ValueError(
            f"{rule!r} is no detection rule: it must be a scrapy_cells.detection.Rule"
        )
    if not made.name:
        raise ValueError(f"{rule!r} needs a name, to be reported and switched off by")
    return made


def _imported(path: str) -> Any:
    try:
        return load_object(path)
    except (ImportError, NameError, ValueError) as error:
        raise ValueError(f"{path!r} is no rule that can be imported: {error}") from None


def _refuse_unknown(names: frozenset[str], rules: Iterable[Rule]) -> None:
    known = {rule.name for rule in rules} | {rule.vendor for rule in rules} | RULE_NAMES
    for name in sorted(names - known):
        close = difflib.get_close_matches(name, known, 1)
        hint = f", did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"no detection rule is called {name!r}{hint}")


def _xpath(selector: str) -> str:
    try:
        return HTMLTranslator().css_to_xpath(selector)
    except Exception as error:
        raise ValueError(f"{selector!r} is no CSS selector: {error}") from error


def _verdict(rule: Rule, answer: object) -> Verdict | None:
    if answer is None or answer is False or answer == "":
        return None
    if isinstance(answer, Verdict):
        return answer
    if isinstance(answer, Outcome):
        return Verdict(answer, rule.vendor, rule.name, "page")
    place = answer if isinstance(answer, str) else "page"
    return Verdict(rule.outcome, rule.vendor, rule.name, place)
