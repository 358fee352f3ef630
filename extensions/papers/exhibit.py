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
    """A value of a paper, compared with ours."""

    says: str
    """What the paper says."""
    printed: float
    """The value that the paper prints."""
    computed: float
    """The value that we compute."""
    relation: str = "="
    """`=` compares sizes; `>=` or `<=` compare only the order, from our value to the printed one.
    """
    rounding: float = 0.0
    """Half a unit of the last printed digit."""
    reading: float = 0.0
    """How far a size may be off as the paper's text or picture can be read; an order has none."""
    mistake: str = ""
    """Why the printed value is wrong, where it is."""
    reason: str = ""
    """Why ours is another one, where a test shows it."""

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
    """What was computed for an exhibit."""

    claims: tuple[PaperClaim, ...]
    """The claims of the exhibit, at least one."""
    columns: tuple[str, ...] = ()
    """The heads of a table's columns; empty where there is no table."""
    rows: tuple[tuple[object, ...], ...] = ()
    """The rows of that table."""
    panels: tuple[Panel, ...] = ()
    """The panels of one plot."""
    diagrams: tuple[Diagram, ...] = ()
    """The drawings of graphs."""
    setup: tuple[str, ...] = ()
    """What was simulated, a line each."""
    quick: bool = False
    """Whether sizes are smaller than the paper's."""

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
    """A numbered table or figure of a paper."""

    paper: str
    """The short name of the paper."""
    kind: str
    """What it is: `table` or `fig`."""
    number: int
    """Its number in the paper."""
    what: str
    """Its caption, shortened."""
    compute: Callable[[bool], Evidence]
    """Computes the evidence; with True, of sizes that take seconds."""

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
    numbered = partial(Exhibit, paper, kind)
    return [
        numbered(number, what, compute)
        for number, (compute, what) in enumerate(captions.items(), 1)
    ]
