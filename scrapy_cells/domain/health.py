"""The decaying score of a cell, and what it died of."""

from __future__ import annotations

from scrapy_cells.domain.checked import share
from scrapy_cells.domain.outcome import Outcome

_HARD = frozenset({Outcome.CAPTCHA, Outcome.BLOCKED, Outcome.SOFT_BLOCK})
_HALF_LIFE = 600.0
"""Seconds after which an outcome counts half in :meth:`Health.share`."""


class Health:
    """A score in [0, 1].

    :param captcha_penalty: share lost on a captcha or a refusal
    :param failure_penalty: share lost on any other failure
    :param recovery: gained on an answer that is fine
    """

    def __init__(
        self, captcha_penalty: float, failure_penalty: float, recovery: float
    ) -> None:
        self._hard = 1.0 - share("captcha_penalty", captcha_penalty)
        self._soft = 1.0 - share("failure_penalty", failure_penalty)
        self._recovery = share("recovery", recovery)
        self.score = 1.0
        self._weights: dict[Outcome, float] = {}
        self._noted_at = 0.0

    def apply(self, outcome: Outcome) -> float:
        """Count an outcome; return the factor it cost, 1 for none."""
        if outcome is Outcome.OK:
            self.score = min(1.0, self.score + self._recovery)
            return 1.0
        if not outcome.is_failure:
            return 1.0
        factor = self._hard if outcome in _HARD else self._soft
        self.score *= factor
        return factor

    def restore(self, factor: float) -> None:
        """Give back what the session cost that was to blame, now that it is gone."""
        self.score = min(1.0, self.score / factor) if factor > 0 else 1.0

    def reset(self) -> None:
        self.score = 1.0

    def note(self, outcome: Outcome, now: float) -> None:
        """Count an outcome in the decaying shares, old generations' too."""
        if now > self._noted_at:
            fade = 0.5 ** ((now - self._noted_at) / _HALF_LIFE)
            for known in self._weights:
                self._weights[known] *= fade
            self._noted_at = now
        self._weights[outcome] = self._weights.get(outcome, 0.0) + 1.0

    def share(self, outcome: Outcome) -> float:
        """Return the share of an outcome in the last minutes, in [0, 1]."""
        total = sum(self._weights.values())
        return self._weights.get(outcome, 0.0) / total if total else 0.0
