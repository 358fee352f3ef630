"""The report on what was emitted, and the refusal of files that say something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from compilers.readers.emitted_forwarding import EmittedDifference, Stage
from compilers.readers.exact_text import bare, visible


@dataclass(frozen=True, slots=True, repr=False)
class EmittedReport:
    """What the check found: pairs of switches with hosts, those delivered, and what differs.

    A pair is delivered as the tables do it where its first switch sends all packets for the second
    as they say, whatever is down; carriers and LIDs are followed to the end.

    differences counts all; examples are the first of them. pairs is 0 where only some switches were
    checked. accepted: statements of the user's own. unproved: what no reader looked at, "" where
    all of it was: files may pass without it. shares: by switch and class, the ports that share
    packets from hosts, with weights, where these are not those of the tables, as some switches
    cannot do all; None: shares were not read.
    """

    target: str
    switches: int
    pairs: int
    delivered: int
    differences: int
    examples: tuple[EmittedDifference, ...] = ()
    accepted: int = 0
    unproved: str = ""
    shares: Mapping[int, Mapping[int, Stage]] | None = None

    @property
    def passed(self) -> bool:
        """Whether the files say what the tables say."""
        return not self.differences and self.delivered == self.pairs

    def also(self, more: DifferenceList) -> EmittedReport:
        """With what more was found in the same files."""
        examples = (*self.examples, *more.examples)[:EXAMPLES]
        count = self.differences + more.count
        unproved = "; ".join(filter(None, (self.unproved, more.unproved)))
        return replace(self, differences=count, examples=examples, unproved=unproved)

    def moved(self, there: Path, here: Path) -> EmittedReport:
        """The same of files that were read in another folder than where they belong."""
        examples = (
            replace(e, file=str(here / Path(e.file).relative_to(there)))
            if Path(e.file).is_relative_to(there)
            else e
            for e in self.examples
        )
        return replace(self, examples=tuple(examples))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        words = ("target", "switches", "pairs", "delivered", "differences", "accepted", "unproved")
        examples = [
            {"file": e.file, "line": e.line, "says": e.says, "tables": e.tables}
            for e in self.examples
        ]
        return {name: getattr(self, name) for name in words} | {"examples": examples}

    def __repr__(self) -> str:
        """`<EmittedReport of ovs: 57 switches, no differences>`."""
        found = f"{self.differences:,} differences" if self.differences else "no differences"
        return f"<EmittedReport of {self.target}: {self.switches:,} switches, {found}>"


class EmittedWrongError(Exception):
    """What was rendered says something else than the tables, so it does not take its place."""

    def __init__(self, report: EmittedReport) -> None:
        self.report = report
        super().__init__("\n".join(map(str, report.examples)))


UNEXPECTED = "unexpected: "
"""How a difference begins that is a statement without a place in the tables."""
LONGEST = 400
"""Letters of a text that a difference shows."""
EXAMPLES = 10
"""Differences of which place and text are reported; all are counted."""


def _short(text: str) -> str:
    """A text that fits a message: a file may be one line of any length."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


@dataclass(slots=True)
class DifferenceList:
    """How many places say something else than the tables, and the first ones.

    accept: how statements of the user's own begin, or the names of files, which are only counted.
    unproved: what was not looked at, "" where everything was.
    """

    accept: tuple[str, ...] = ()
    accepted: int = 0
    count: int = 0
    examples: list[EmittedDifference] = field(default_factory=list)
    unproved: str = ""

    def add(self, file: Path | str, line: int, says: str, tables: str = "", times: int = 1) -> None:
        """Count a difference, or several of one kind."""
        self.count += times
        if len(self.examples) < EXAMPLES:
            self.examples.append(EmittedDifference(str(file), line, _short(visible(says)), tables))

    def statement(self, file: Path | str, line: int, text: str, tables: str = "") -> None:
        """Count a statement that no reader knows, or a plain fact, unless it is accepted."""
        text = bare(text)
        own = text.startswith(self.accept) or tables.startswith(self.accept)
        if own or Path(file).name in self.accept:
            self.accepted += 1
        else:
            self.add(file, line, text if tables else f"{UNEXPECTED}{text}", tables)

    def unread(self, file: Path | str, line: int, text: str) -> None:
        """Count a line that makes no sense."""
        self.statement(file, line, text)
