"""A numbered table or figure of a paper: what it says, what we compute, and the verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from compilers.drawing.plots import Panel
from extensions.papers.diagram import Diagram

VERDICTS = {
    "exact": "every value is the printed one, to its last digit, and every order holds",
    "agrees": "every value is within the reading error of the printed one, and every order holds",
    "corrected": "a printed value or statement is wrong, and why",
    "differs": "a value is another one",
    "contradicts": "an order that is stated is reversed here",
}
"""From the best to the worst: an exhibit has the worst of its claims."""
ALIKE = ("exact", "agrees")
QUICK = "quick"
"""In the place of a verdict: sizes are smaller than the paper's, which they say nothing of."""
NOT_EXPLAINED = "not explained"


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """A value of a paper, compared with ours.

    says: the statement. printed, computed: the two values. relation: `=`, a statement of size, or
    `>=` or `<=`, of order, from our value to the printed one. rounding: half a unit of the last
    printed digit. reading: how far a size may be off as the paper's text or picture can be read; an
    order has none. mistake: why the printed value is wrong, where it is. reason: why ours is
    another one, where a test shows it.
    """

    says: str
    printed: float
    computed: float
    relation: str = "="
    rounding: float = 0.0
    reading: float = 0.0
    mistake: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if self.reading and self.relation != "=":
            raise ValueError(f"a statement of order has no reading error: {self.says}")

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        if self._within(self.rounding):
            return "exact"
        if self._within(self.rounding + self.reading):
            return "agrees"
        if self.mistake:
            return "corrected"
        return "differs" if self.relation == "=" else "contradicts"

    @property
    def why(self) -> str:
        """Why the values differ, "" where they do not."""
        if self.verdict == "agrees":
            return f"within {self.share:.2g} %"
        if self.verdict == "corrected":
            return self.mistake
        return "" if self.verdict == "exact" else self.reason or NOT_EXPLAINED

    @property
    def share(self) -> float:
        """The reading error in per cent of the printed value."""
        return 100 * self.reading / (abs(self.printed) or 1.0)

    def _within(self, slack: float) -> bool:
        away, slack = self.computed - self.printed, slack + 1e-9
        below, above = away >= -slack, away <= slack
        return {"=": below and above, ">=": below, "<=": above}[self.relation]

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "says": self.says,
            "relation": self.relation,
            "printed": self.printed,
            "computed": self.computed,
            "verdict": self.verdict,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Evidence:
    """What was computed for an exhibit.

    claims: at least one. columns, rows: a table, where there is one. panels: of one plot. setup:
    what was simulated, a line each. quick: of smaller sizes than the paper's.
    """

    claims: tuple[PaperClaim, ...]
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()
    panels: tuple[Panel, ...] = ()
    diagrams: tuple[Diagram, ...] = ()
    setup: tuple[str, ...] = ()
    quick: bool = False

    def __repr__(self) -> str:
        return f"<Evidence {self.verdict}: {len(self.claims)} claims>"

    @property
    def verdict(self) -> str:
        """The last of `VERDICTS` that a claim has, or `QUICK`."""
        if self.quick:
            return QUICK
        order = list(VERDICTS)
        return order[max(order.index(claim.verdict) for claim in self.claims)]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is what it is, each reason once."""
        if self.quick:
            held = sum(claim.verdict in ALIKE for claim in self.claims)
            return (f"of small sizes, where {held} of {len(self.claims)} statements hold",)
        decisive = [claim for claim in self.claims if claim.verdict == self.verdict]
        if self.verdict == "agrees":
            return (f"within {max(claim.share for claim in decisive):.2g} %",)
        whys = dict.fromkeys(claim.why for claim in decisive if claim.why)
        if self.verdict in ("differs", "contradicts"):
            says = "; ".join(claim.says for claim in decisive)
            return (f"{says}: {' '.join(whys)}",)
        return tuple(whys)


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A numbered table or figure.

    paper: its short name. kind: `table` or `fig`. what: the caption, shortened. compute: makes the
    evidence; given True, of sizes that take seconds.
    """

    paper: str
    kind: str
    number: int
    what: str
    compute: Callable[[bool], Evidence]

    @property
    def id(self) -> str:
        """`polarfly-fig8`."""
        return f"{self.paper}-{self.kind}{self.number}"

    def row(self, evidence: Evidence) -> dict[str, Any]:
        """For a list and JSON."""
        return {
            "id": self.id,
            "paper": self.paper,
            "what": self.what,
            "verdict": evidence.verdict,
            "why": list(evidence.reasons),
        }


def exhibits_of(
    paper: str, kind: str, captions: dict[Callable[[bool], Evidence], str]
) -> list[Exhibit]:
    """The tables or figures of a paper, in the order of their numbers from 1."""
    made = partial(Exhibit, paper, kind)
    return [
        made(number, what, compute) for number, (compute, what) in enumerate(captions.items(), 1)
    ]
