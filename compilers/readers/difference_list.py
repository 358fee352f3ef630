"""Differences, counted; the first of them are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from compilers.readers.emitted_forwarding import EmittedDifference

UNEXPECTED = "unexpected: "
"""How a difference begins that is a statement without a place in the tables."""
EXAMPLES = 10
"""Differences of which place and text are reported; all are counted."""


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
            self.examples.append(EmittedDifference(str(file), line, says, tables))

    def statement(self, file: Path | str, line: int, text: str, tables: str = "") -> None:
        """Count a statement that no reader knows, or a plain fact, unless it is accepted."""
        text = text.strip()
        own = text.startswith(self.accept) or tables.startswith(self.accept)
        if own or Path(file).name in self.accept:
            self.accepted += 1
        else:
            self.add(file, line, text if tables else f"{UNEXPECTED}{text}", tables)

    def unread(self, file: Path | str, line: int, text: str) -> None:
        """Count a line that makes no sense."""
        self.statement(file, line, text)
