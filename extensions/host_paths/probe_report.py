"""Read reports of probes: CSV with columns `probe` and `result` (ok or lost), or JSON of the same.

A probe is a packet that a host sends along one path. Its *carrier* is the IPv6 destination whose
uSIDs steer it along the path. A report may have the carriers in a column `sids`, as the list of
probes has them; then a report of another build is recognised. `polarfab hosts localise` reads it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from inventory.problems import InputError, Problem, few, shown

RESULTS = ("ok", "lost")
"""What a report says of a probe."""
MOST_DIGITS = 9
"""The most digits of the number of a probe. A longer one would be slow to read, and is none."""
_TAKE_PROBES_OF_BUILD = (
    "take the probes that `polarfab hosts localise BUILD` prints for it, with the same `set`"
)
"""What to do with a report of another build."""
_WRITE_COLUMNS = "write the columns probe,result, a line a probe: 17,lost"
"""What to do with a file of another form."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """Which probes were lost, and which arrived."""

    lost: frozenset[int]
    """The numbers of the probes that were lost."""
    arrived: frozenset[int]
    """The numbers of the probes that arrived."""

    @classmethod
    def read(cls, file: Path, carriers: Sequence[str]) -> ProbeReport:
        """Read a file that ends in .json, or any other as CSV.

        Args:
            file: the report.
            carriers: the carriers of all probes, numbered from 0.

        Raises:
            InputError: it cannot be read, or every row that is wrong.
        """
        try:
            text = file.read_text(encoding="utf-8-sig")
            rows = list(_json(text, file) if file.suffix == ".json" else _csv(text, file))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            given = getattr(error, "strerror", None) or str(error)
            raise InputError.of("a report of probes", given, file=str(file)) from error
        if not rows:
            raise InputError.of("at least one probe", "none", _WRITE_COLUMNS, str(file))
        problems, other_carriers = list[Problem](), list[Problem]()
        results = dict[int, str]()
        for row in rows:
            number = _probe_number(row)
            problem = _problem_of_row(row, carriers)
            if problem is None and results.setdefault(number, row.result) != row.result:
                given = f"ok and lost of probe {number}"
                problem = Problem(key="probe", required="one result", given=given)
            if problem is not None:
                found = other_carriers if problem.key == "sids" else problems
                found.append(replace(problem, file=str(file), line=row.line))
        # In a report of another build all carriers differ: the first one says enough.
        problems += other_carriers[:1]
        if problems:
            raise InputError(few(problems))
        lost = frozenset(number for number, result in results.items() if result == "lost")
        return cls(lost, frozenset(results) - lost)


class _Row(NamedTuple):
    """What a report says of a probe, as text or JSON has it."""

    line: int
    """The line of the file; 0 where it is JSON."""
    probe: Any
    """The number of the probe."""
    result: Any
    """Whether it arrived, one of `RESULTS`."""
    carrier: Any
    """The carrier of the probe; "" where the report leaves it out."""


def _problem_of_row(row: _Row, carriers: Sequence[str]) -> Problem | None:
    """What is wrong with a row by itself, with the column as its key; None if nothing is."""
    number = _probe_number(row)
    if not 0 <= number < len(carriers):
        return Problem(
            key="probe",
            required=f"a probe from 0 to {len(carriers) - 1}",
            given=shown(row.probe),
            todo=_TAKE_PROBES_OF_BUILD,
        )
    if row.carrier not in ("", carriers[number]):
        return Problem(
            key="sids",
            required=f"{carriers[number]}, the carrier of probe {number}",
            given=shown(row.carrier),
            todo=_TAKE_PROBES_OF_BUILD,
        )
    if row.result not in RESULTS:
        return Problem(key="result", required="ok or lost", given=shown(row.result))
    return None


def _probe_number(row: _Row) -> int:
    """The number of the probe of a row; -1 for a text that is no number, or is too long."""
    text = str(row.probe)
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else -1


def _csv(text: str, file: Path) -> Iterator[_Row]:
    """The rows of a report in CSV."""
    reader = csv.DictReader(text.splitlines())
    columns = [str(word).strip() for word in reader.fieldnames or ()]
    if not {"probe", "result"} <= set(columns):
        given = ",".join(columns) or "an empty file"
        raise InputError.of("columns probe and result", given, _WRITE_COLUMNS, str(file), 1)
    reader.fieldnames = columns
    for row in reader:
        cells = ((row.get(word) or "").strip() for word in ("probe", "result", "sids"))
        yield _Row(reader.line_num, *cells)


def _json(text: str, file: Path) -> Iterator[_Row]:
    """The rows of a report in JSON."""
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        raise InputError.of("JSON", str(error), "", str(file), line) from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        required = 'a list such as [{"probe": 17, "result": "lost"}]'
        raise InputError.of(required, shown(rows), file=str(file))
    for row in rows:
        carrier = row.get("sids") or ""
        carrier = carrier[0] if isinstance(carrier, list) else carrier
        yield _Row(0, row.get("probe"), row.get("result"), carrier)
