"""The types of an exhibit, which is a numbered table or figure of a paper.

An `Exhibit` computes its `Evidence`: tables, curves, drawings, and a `PaperClaim` for each
statement of the paper. A claim has the value that the paper prints, the value that we compute, and
a verdict from `VERDICTS`. The verdict of the exhibit is the worst verdict of its claims.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
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
"""The verdicts of a claim with their meanings, the best verdict on computed values first."""
HOLDS = ("equal", "agrees", "reading")
"""The verdicts of claims that hold."""
TAKEN, NOT_COMPUTED = "taken", "not computed"
NEUTRAL = (TAKEN, NOT_COMPUTED)
"""The verdicts of claims without a result of ours. An exhibit's verdict does not depend on them."""
TOLERANCE = 1e-9
"""The rounding error of computed values: two values this near are equal."""
_SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z])")
"""The space between two sentences."""
NOT_EXPLAINED = "not explained"
"""What is printed in place of a reason where none is known."""


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """A value or an order that a paper states, compared with ours."""

    statement: str
    """The statement of the paper, shortened."""
    printed: float | None
    """The value that the paper prints. A claim on the order of two networks (`of_order`) has no
    printed value, and has here that of its right side: what we compute for the second network, or
    None if that is not computed."""
    computed: float | None
    """The value that we compute, in a claim on an order that of the first network; None: not
    computed, or not to be judged (`as_not_computed`)."""
    relation: str = "="
    """What the paper claims of `left` and `right`: `=` in a statement about a value; `>=`, `<=`,
    `>` or `<` in one about an order. Equal values do not satisfy `>` or `<`: the claim differs.
    """
    rounding: float = 0.0
    """Half a unit of the last printed digit."""
    reading_error: float = 0.0
    """With `=`, the error with which the value can be read in the paper's text or picture. For a
    limit, how far from it a large network may be."""
    interpretation: str = ""
    """How the paper's words are read, where they can be read in more than one way."""
    is_input: bool = False
    """Whether the paper's value went into the computed one, so that the claim shows nothing."""
    correction: str = ""
    """The counter-example to the printed value, where that is wrong."""
    reason: str = ""
    """Why the computed value differs, where a test shows it; or why nothing was computed."""

    @classmethod
    def of_order(
        cls,
        says: str,
        first: float | None,
        relation: str,
        second: float | None,
        interpretation: str = "",
        reason: str = "",
    ) -> PaperClaim:
        """The claim that one of two values that we compute is greater, or less, than the other.

        `PaperClaim.of_order("DF1 outperforms DF2", first=df1, relation=">", second=df2)` is read
        from left to right: it claims that df1 > df2.

        Args:
            says: the statement of the paper, shortened.
            first: the left side of the relation.
            relation: `>=`, `<=`, `>` or `<`.
            second: the right side.
            interpretation: as in `PaperClaim`.
            reason: as in `PaperClaim`.
        """
        return cls(
            statement=says,
            printed=second,
            computed=first,
            relation=relation,
            interpretation=interpretation,
            reason=reason,
        )

    def __post_init__(self) -> None:
        if self.reading_error and self.relation != "=":
            raise ValueError(f"a statement of order has no reading error: {self.statement}")
        if self.rounding and self.relation in (">", "<"):
            raise ValueError(f"a strict order is not rounded: {self.statement}")

    @property
    def left(self) -> float | None:
        """The value before the relation, which we compute."""
        return self.computed

    @property
    def right(self) -> float | None:
        """The value behind the relation: the paper's, or ours of the second network."""
        return self.printed

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        if self.computed is None:
            return NOT_COMPUTED
        if self.is_input:
            return TAKEN
        if self._relation_holds(self.rounding):
            return "reading" if self.interpretation else "equal"
        if self._relation_holds(self.rounding + self.reading_error):
            return "reading" if self.interpretation else "agrees"
        if self.correction and not isnan(self.computed):
            return "corrected"
        # Two equal values do not reverse a strict order.
        are_equal = replace(self, relation="=")._relation_holds(0)
        return "differs" if self.relation == "=" or are_equal else "contradicts"

    @property
    def why(self) -> str:
        """What a reader has to know beside the verdict; "" where the verdict says all."""
        verdict = self.verdict
        if verdict == "equal":
            return ""
        if verdict == "agrees":
            return f"within {self.reading_error_percent:.2g} %"
        if verdict == "reading":
            return self.interpretation
        if verdict == "corrected":
            return self.correction
        return self.reason or ("put in" if verdict == TAKEN else NOT_EXPLAINED)

    @property
    def reading_error_percent(self) -> float:
        """The reading error in per cent of the printed value."""
        return 100 * self.reading_error / (abs(self.printed or 0.0) or 1.0)

    @property
    def values(self) -> str:
        """What is compared, in words: the paper's value with ours, or ours of two networks."""
        ours = f"{'nothing' if self.computed is None else value_text(self.computed)} computed"
        if self.printed is None:
            return ours
        printed = value_text(self.printed)
        if self.relation == "=":
            return f"{printed} in the paper, {ours}"
        return f"{ours}, which has to be {self.relation} {printed}"

    def _relation_holds(self, slack: float) -> bool:
        """Whether the relation holds if the right value may be wrong by `slack`."""
        excess = or_nan(self.left) - or_nan(self.right)
        large_enough, small_enough = excess >= -slack - TOLERANCE, excess <= slack + TOLERANCE
        holds = {
            "=": large_enough and small_enough,
            ">=": large_enough,
            "<=": small_enough,
            ">": excess > TOLERANCE,
            "<": excess < -TOLERANCE,
        }
        return holds[self.relation]

    def row(self) -> dict[str, Any]:
        """The claim for JSON."""
        return {
            "says": self.statement,
            "relation": self.relation,
            "printed": self.printed,
            "computed": self.computed,
            "verdict": self.verdict,
            "why": self.why,
        }


def as_not_computed(claim: PaperClaim, why: str) -> PaperClaim:
    """Give a claim the verdict "not computed", as its two values do not decide it.

    Args:
        claim: the claim. If one of its values is missing, it is returned unchanged.
        why: why the values do not decide the claim, in a sentence.
    """
    left, right = claim.left, claim.right
    if left is None or right is None or isnan(left) or isnan(right):
        return claim
    # The reason keeps both values: a claim with a computed value would be judged by it.
    return replace(claim, computed=None, reason=f"{left:.3g} against {right:.3g}. {why}")


def truth_claim(says: str, holds: bool) -> PaperClaim:
    """The claim of a statement that is not about a number: the value is 1 if it holds, else 0."""
    return PaperClaim(statement=says, printed=1, computed=float(holds))


def value_text(value: float) -> str:
    """A value of a claim for readers: with six digits, or as a whole number."""
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


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
    is_quick: bool = False
    """Whether sizes are smaller than the paper's."""

    def __repr__(self) -> str:
        return f"<Evidence {self.verdict}: {len(self.claims)} claims>"

    @property
    def verdict(self) -> str:
        """The worst verdict of the claims that were computed: the last of these in `VERDICTS`.

        It is `NOT_COMPUTED` if more claims are "not computed" than computed. It is `TAKEN` if all
        claims are "taken".
        """
        counts = self.counts()
        computed = [verdict for verdict in VERDICTS if verdict in counts and verdict not in NEUTRAL]
        if computed and sum(counts[verdict] for verdict in computed) >= counts[NOT_COMPUTED]:
            return computed[-1]
        return NOT_COMPUTED if NOT_COMPUTED in counts else TAKEN

    @property
    def reasons(self) -> tuple[str, ...]:
        """What a reader has to know beside the verdict, each reason once."""
        if self.is_quick:
            count_holding = sum(claim.verdict in HOLDS for claim in self.claims)
            return (
                f"of smaller sizes, where {count_holding} of {len(self.claims)} statements hold",
            )
        # How many statements did not decide the verdict. If most were not computed, none did: then
        # all verdicts are counted.
        counts_all = self.verdict == NOT_COMPUTED
        neutral = tuple(
            f"{count} of {len(self.claims)} statements: {verdict}."
            for verdict, count in self.counts().items()
            if counts_all or verdict in NEUTRAL
        )
        decisive = [claim for claim in self.claims if claim.verdict == self.verdict]
        if self.verdict == "agrees":
            return (
                f"within {max(claim.reading_error_percent for claim in decisive):.2g} %",
                *neutral,
            )
        # Dicts as ordered sets: a reason that several claims have is printed once.
        reasons = dict.fromkeys(claim.why for claim in decisive if claim.why)
        if self.verdict in ("differs", "contradicts"):
            statements = "; ".join(f"{claim.statement}: {claim.values}" for claim in decisive)
            # Reasons of several statements may share sentences.
            sentences = dict.fromkeys(
                sentence for reason in reasons for sentence in _SENTENCE_END.split(reason)
            )
            return (f"{statements}. {' '.join(sentences)}", *neutral)
        return (*reasons, *neutral)

    def counts(self) -> Counter[str]:
        """How many claims have each verdict."""
        if self.is_quick:
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
    caption: str
    """Its caption in the paper, shortened."""
    compute: Callable[[bool], Evidence]
    """Computes the evidence. The argument is `quick`: with True, networks are so small that they
    are simulated in seconds."""
    has_plot: bool = False
    """Whether the evidence has panels. Then Matplotlib is needed to write the exhibit."""

    @property
    def id(self) -> str:
        """The name of the exhibit, such as `polarfly-fig8`."""
        return f"{self.paper}-{self.kind}{self.number}"

    def row(self, evidence: Evidence) -> dict[str, Any]:
        """The exhibit with its verdict, for a list and JSON."""
        return {
            "id": self.id,
            "paper": self.paper,
            "what": self.caption,
            "verdict": evidence.verdict,
            "why": list(evidence.reasons),
            "counts": dict(evidence.counts()),
        }


def exhibits_of(
    paper: str,
    kind: str,
    captions: dict[Callable[[bool], Evidence], str],
    without_plot: Collection[int] = (),
) -> list[Exhibit]:
    """The tables or figures of a paper, in the order of their numbers from 1.

    Args:
        paper: the short name of the paper.
        kind: `table` or `fig`.
        captions: the captions, by the function that computes the evidence.
        without_plot: the numbers of the figures that have drawings of graphs and no plot.
    """
    return [
        Exhibit(
            paper,
            kind,
            number,
            caption,
            compute,
            has_plot=kind == "fig" and number not in without_plot,
        )
        for number, (compute, caption) in enumerate(captions.items(), 1)
    ]
