"""Block-page detection: what an answer, or an exception, says about the way out.

It only recognises walls, in order to back off. A name of a vendor counts where it acts:
in an executable script, as the source of a frame, as the target of a form; words count
only in texts too short to be about something else.

``CELLS_DETECTION`` is a list (or a string with commas) of

* rules of your own: subclasses of :class:`Rule`, instances of them, or import paths.
  They are asked before the built-in ones, unless their ``stage`` says otherwise, and
  replace a built-in rule of the same name;
* ``"-cloudflare.waiting_title"``: a rule that is switched off by its name, as verdicts
  and statistics report it; ``"-cloudflare"`` switches off all rules of a vendor.

``CELLS_OK_SELECTOR`` is a CSS selector of something that only a served page has; where
it matches on a 2xx answer, no rule can flag it.
"""

from __future__ import annotations

from scrapy_cells.detection.detector import Detector
from scrapy_cells.detection.page import Page
from scrapy_cells.detection.repeated import RepeatedBody
from scrapy_cells.detection.rule import Rule, Stage

__all__ = ["Detector", "Page", "RepeatedBody", "Rule", "Stage"]
