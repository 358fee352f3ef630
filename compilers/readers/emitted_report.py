"""The result of comparing rendered files with the tables, and the error for files that differ.

`emitted_check` makes an `EmittedReport` of a plane. While files are compared, the differences are
counted in a `DifferenceList`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from compilers.readers.emitted_forwarding import EmittedDifference, PortSet
from compilers.readers.exact_text import bare, visible

UNEXPECTED = "unexpected: "
"""Begins the text of a difference where the tables have nothing that a statement is about."""
LONGEST = 400
"""The most characters of a text that a difference shows."""
EXAMPLES = 10
"""How many differences are reported with place and text; all are counted."""


@dataclass(frozen=True, slots=True, repr=False)
class EmittedReport:
    """The result of comparing rendered files with the tables.

    >>> EmittedReport("ovs", switches=57, pairs=3192, delivered=3192, differences=0)
    <EmittedReport of ovs: 57 switches, no differences>
    """

    target: str
    """The system that the files are for."""
    switches: int
    """How many switches were checked."""
    pairs: int
    """Ordered pairs of switches with hosts; 0 where only some switches were checked."""
    delivered: int
    """The pairs whose first switch sends all packets for the second by the ports of the tables,
    whatever is down. With explicit paths or LIDs, the pairs whose packets arrive."""
    differences: int
    """How many differences from the tables there are."""
    examples: tuple[EmittedDifference, ...] = ()
    """The first differences."""
    accepted: int = 0
    """How many statements of the user's own were accepted."""
    unproved: str = ""
    """The parts that no reader looked at, in words; "": everything was read. Files pass all the
    same."""
    checked_sources: int = 0
    """How many ports of hosts have source checks: switches take packets from these ports only with
    the host's own source address, and none with a mark or an intermediate."""
    shares: Mapping[int, Mapping[int, PortSet]] | None = None
    """The ports that share packets from hosts, with their weights, by switch and class.

    Classes whose shares are those of the tables are left out. The others are at switches that
    cannot have all alternates, or cannot have any weights. None: shares were not read."""

    @property
    def passed(self) -> bool:
        """Whether the files say what the tables say."""
        return not self.differences and self.delivered == self.pairs

    def with_differences(self, further: DifferenceList) -> EmittedReport:
        """A copy of the report that also counts further differences in the same files."""
        examples = (*self.examples, *further.examples)[:EXAMPLES]
        count = self.differences + further.count
        unproved = "; ".join(filter(None, (self.unproved, further.unproved)))
        return replace(self, differences=count, examples=examples, unproved=unproved)

    def moved(self, read_in: Path, folder: Path) -> EmittedReport:
        """A copy of the report with the paths that files have once their folder is moved.

        Args:
            read_in: the folder in which the files were read.
            folder: the folder to which they are moved.
        """
        examples = (
            replace(example, file=str(folder / Path(example.file).relative_to(read_in)))
            if Path(example.file).is_relative_to(read_in)
            else example
            for example in self.examples
        )
        return replace(self, examples=tuple(examples))

    def as_dict(self) -> dict[str, Any]:
        """The report for JSON."""
        return {
            "target": self.target,
            "switches": self.switches,
            "pairs": self.pairs,
            "delivered": self.delivered,
            "differences": self.differences,
            "accepted": self.accepted,
            "checked_sources": self.checked_sources,
            "unproved": self.unproved,
            "examples": [
                {"file": e.file, "line": e.line, "says": e.says, "tables": e.tables}
                for e in self.examples
            ],
        }

    def __repr__(self) -> str:
        count = f"{self.differences:,} differences" if self.differences else "no differences"
        return f"<EmittedReport of {self.target}: {self.switches:,} switches, {count}>"


class EmittedWrongError(Exception):
    """Rendered files differ from the tables, so they do not replace the earlier ones."""

    def __init__(self, report: EmittedReport) -> None:
        self.report = report
        """The report, with the differences."""
        super().__init__("\n".join(map(str, report.examples)))


def _short(text: str) -> str:
    """A text that fits a message: a file may be one line of any length."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


@dataclass(slots=True)
class DifferenceList:
    """Differences between files and tables: all are counted, and the first ones are listed."""

    accept: tuple[str, ...] = ()
    """Beginnings of statements that the user has added, or names of files with such statements.
    They are accepted: they count as no differences."""
    accepted: int = 0
    """How many statements were accepted."""
    count: int = 0
    """How many differences there are."""
    examples: list[EmittedDifference] = field(default_factory=list)
    """The first differences."""
    unproved: str = ""
    """The parts that no reader looked at, in words; "": everything was read."""

    def add(self, file: Path | str, line: int, says: str, tables: str = "", times: int = 1) -> None:
        """Count a difference.

        Args:
            file: the file.
            line: the line; 0 for the whole file.
            says: the statement of the file, in words.
            tables: the statement of the tables about the same thing, in words.
            times: how many differences have this text.
        """
        self.count += times
        if len(self.examples) < EXAMPLES:
            self.examples.append(EmittedDifference(str(file), line, _short(visible(says)), tables))

    def add_statement(self, file: Path | str, line: int, text: str, tables: str = "") -> None:
        """Count a statement that is unknown or states another fact, unless it is accepted."""
        text = bare(text)
        by_user = text.startswith(self.accept) or tables.startswith(self.accept)
        if by_user or Path(file).name in self.accept:
            self.accepted += 1
        else:
            self.add(file, line, text if tables else f"{UNEXPECTED}{text}", tables)

    def add_unread(self, file: Path | str, line: int, text: str) -> None:
        """Count a line that no reader understands, unless it is accepted.

        It is a statement for which the tables have no counterpart.
        """
        self.add_statement(file, line, text)
