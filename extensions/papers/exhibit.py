"""The types of an exhibit, a numbered table or figure of a paper, and of its verdict.

An `Exhibit` computes its `Evidence`: tables, curves and drawings, and a `PaperClaim` for each
statement of the paper, with the printed value, the computed one, and a verdict from `VERDICTS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import isnan, nan
from typing import Any

from compilers.drawing.plots import Panel
from extensions.papers.diagram import Diagram

VERDICTS = {
    "taken": "a number of the paper that is put in: no result of ours",
    "equal": "computed: the printed value to its last digit, or the stated order",
    "agrees": "computed: within the error with which the text or the picture can be read, or, of a"
    " limit, as near to it as is said, by a large network",
    "reading": "computed: holds if the paper's words are read as we say",
    "corrected": "computed: the paper is wrong, and a counter-example is named",
    "differs": "computed: another value",
    "contradicts": "computed: the stated order is reversed",
    "not computed": "nothing of this size was computed here, or it does not tell the order",
}
"""What can be true of a claim, from the best to the worst of what was computed."""
HOLDS = ("equal", "agrees", "reading")
"""The verdicts of claims that hold."""
TAKEN, NOT_COMPUTED = "taken", "not computed"
NEUTRAL = (TAKEN, NOT_COMPUTED)
"""The verdicts of claims that are no results of ours. They do not make an exhibit's verdict."""
NOT_EXPLAINED = "not explained"


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """A value or an order that a paper states, compared with ours."""

    says: str
    """What the paper says."""
    printed: float | None
    """The value that the paper prints, or of ours the other one that it compares; None where that
    was not computed."""
    computed: float | None
    """The value that we compute; None where nothing was computed."""
    relation: str = "="
    """`=` compares sizes; `>=`, `<=`, `>` and `<` compare only the order, from our value to the
    printed one. An equal value does not satisfy `>` or `<`: it differs.
    """
    rounding: float = 0.0
    """Half a unit of the last printed digit."""
    reading_error: float = 0.0
    """How far a size may be off as the paper's text or picture can be read, or a large network
    from its limit; an order has none.
    """
    interpretation: str = ""
    """How the paper's words are read, where they can be read in more than one way."""
    taken: bool = False
    """Whether our value has the paper's put in, so that it shows nothing."""
    mistake: str = ""
    """The counter-example to the printed value, where that is wrong."""
    reason: str = ""
    """Why ours is another value, where a test shows it; or why nothing was computed."""

    def __post_init__(self) -> None:
        if self.reading_error and self.relation != "=":
            raise ValueError(f"a statement of order has no reading error: {self.says}")
        if self.rounding and self.relation in (">", "<"):
            raise ValueError(f"a strict order is not rounded: {self.says}")

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        if self.computed is None:
            return NOT_COMPUTED
        if self.taken:
            return TAKEN
        if self._within(self.rounding):
            return "reading" if self.interpretation else "equal"
        if self._within(self.rounding + self.reading_error):
            return "reading" if self.interpretation else "agrees"
        if self.mistake and not isnan(self.computed):
            return "corrected"
        is_tie = replace(self, relation="=")._within(0)
        return "differs" if self.relation == "=" or is_tie else "contradicts"

    @property
    def why(self) -> str:
        """What a reader has to know beside the verdict; "" where the verdict says all."""
        verdict = self.verdict
        if verdict == "equal":
            return ""
        if verdict == "agrees":
            return f"within {self.share:.2g} %"
        if verdict == "reading":
            return self.interpretation
        if verdict == "corrected":
            return self.mistake
        return self.reason or ("put in" if verdict == TAKEN else NOT_EXPLAINED)

    @property
    def share(self) -> float:
        """The reading error in per cent of the printed value."""
        return 100 * self.reading_error / (abs(self.printed or 0.0) or 1.0)

    def _within(self, slack: float) -> bool:
        """Whether the relation holds, if the printed value may be off by `slack`."""
        excess = or_nan(self.computed) - or_nan(self.printed)
        large_enough, small_enough = excess >= -slack - 1e-9, excess <= slack + 1e-9
        holds = {
            "=": large_enough and small_enough,
            ">=": large_enough,
            "<=": small_enough,
            ">": excess > 1e-9,
            "<": excess < -1e-9,
        }
        return holds[self.relation]

    def row(self) -> dict[str, Any]:
        """The claim for JSON."""
        return {
            "says": self.says,
            "relation": self.relation,
            "printed": self.printed,
            "computed": self.computed,
            "verdict": self.verdict,
            "why": self.why,
        }


def not_told(claim: PaperClaim, why: str) -> PaperClaim:
    """The claim as not computed: both values are there, and do not tell its order.

    Args:
        claim: of an order. Without both values it stays as it is.
        why: why they do not, in a sentence.
    """
    ours, theirs = claim.computed, claim.printed
    if ours is None or theirs is None or isnan(ours) or isnan(theirs):
        return claim
    return replace(claim, computed=None, reason=f"{ours:.3g} against {theirs:.3g}. {why}")


def or_nan(value: float | None) -> float:
    """A value, or nan for None."""
    return nan if value is None else value


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
    """What was simulated, in lines of text."""
    quick: bool = False
    """Whether sizes are smaller than the paper's."""

    def __repr__(self) -> str:
        return f"<Evidence {self.verdict}: {len(self.claims)} claims>"

    @property
    def verdict(self) -> str:
        """The worst verdict among the claims that were computed.

        If they are less than half of those that are not taken: `NOT_COMPUTED`, or `TAKEN` if all
        claims are taken.
        """
        counts = self.counts()
        computed = [verdict for verdict in VERDICTS if verdict in counts and verdict not in NEUTRAL]
        if computed and sum(counts[verdict] for verdict in computed) >= counts[NOT_COMPUTED]:
            return computed[-1]
        return NOT_COMPUTED if NOT_COMPUTED in counts else TAKEN

    @property
    def reasons(self) -> tuple[str, ...]:
        """What a reader has to know beside the verdict, each reason once."""
        if self.quick:
            holding = sum(claim.verdict in HOLDS for claim in self.claims)
            return (f"of smaller sizes, where {holding} of {len(self.claims)} statements hold",)
        neutral = tuple(
            f"{count} of {len(self.claims)} statements: {verdict}."
            for verdict, count in self.counts().items()
            if verdict in NEUTRAL or self.verdict == NOT_COMPUTED
        )
        decisive = [claim for claim in self.claims if claim.verdict == self.verdict]
        if self.verdict == "agrees":
            return (f"within {max(claim.share for claim in decisive):.2g} %", *neutral)
        whys = dict.fromkeys(claim.why for claim in decisive if claim.why)
        if self.verdict in ("differs", "contradicts"):
            says = "; ".join(claim.says for claim in decisive)
            return (f"{says}: {' '.join(whys)}", *neutral)
        return (*whys, *neutral)

    def counts(self) -> Counter[str]:
        """How many claims have each verdict."""
        if self.quick:
            return Counter({NOT_COMPUTED: len(self.claims)})
        return Counter(claim.verdict for claim in self.claims)


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
    """Computes the evidence; with True, networks of sizes that take seconds are simulated."""

    @property
    def id(self) -> str:
        """The name of the exhibit, such as `polarfly-fig8`."""
        return f"{self.paper}-{self.kind}{self.number}"

    def row(self, evidence: Evidence) -> dict[str, Any]:
        """The exhibit with its verdict, for a list and JSON."""
        return {
            "id": self.id,
            "paper": self.paper,
            "what": self.what,
            "verdict": evidence.verdict,
            "why": list(evidence.reasons),
            "counts": dict(evidence.counts()),
        }


def exhibits_of(
    paper: str, kind: str, captions: dict[Callable[[bool], Evidence], str]
) -> list[Exhibit]:
    """The tables or figures of a paper, in the order of their numbers from 1.

    Args:
        paper: its short name.
        kind: `table` or `fig`.
        captions: by the function that computes the evidence.
    """
    numbered = partial(Exhibit, paper, kind)
    return [
        numbered(number, what, compute)
        for number, (compute, what) in enumerate(captions.items(), 1)
    ]
