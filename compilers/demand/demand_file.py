"""A demand as a file: CSV with a line per flow, or a square matrix of rates."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

import numpy as np

from compilers.demand.traffic_matrix import Traffic
from compilers.tables.build import Build
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError, Problem, did_you_mean, few, shown
from inventory.yamlfile import TextFile

FORMS = "lines of source, destination, rate, or a square matrix of rates"
MOST = 1e30
"""The highest rate: any unit has room below it, and no sum or product of rates overflows."""
Row = tuple[int, list[str]]


def read_demand(file: TextFile, wiring: Wiring) -> Traffic:
    """The flows of a file between switches; amounts in the file's own unit.

    Switches are named, or by their vertex; a host is its switch. A matrix has a row and a column
    for every switch in vertex order, or a first row and a first column with names. Rows of hosts of
    one pair of switches add up, none is there twice; what stays in a switch is left out.

    Raises:
        InputError: a line is neither, names no switch, or has no rate; or nothing is demanded.
    """
    rows = list(_rows(file))
    reader = _Reader(file, wiring)
    if not rows:
        reader.wrong(0, FORMS, "an empty file")
    elif reader.is_list(rows[0][1]):
        reader.take_list(rows)
    else:
        reader.take_matrix(rows)
    if reader.problems:
        raise InputError(few(reader.problems))
    source, destination, rate = (np.array(part) for part in (reader.source, reader.to, reader.rate))
    some = rate > 0
    traffic = Traffic.of(
        source[some].astype(np.int64), destination[some].astype(np.int64), rate[some]
    )
    if not len(traffic.source):
        reader.wrong(0, "a rate above 0 between two switches", "none")
        raise InputError(reader.problems)
    return traffic


def between_hosts(build: Build, traffic: Traffic, file: str) -> Traffic:
    """The flows between switches that are there, as parts of the largest.

    Raises:
        InputError: a switch that is there has no hosts, or there are no flows.
    """
    here, ends = build.topology.present, build.topology.endpoints
    there = here[traffic.source] & here[traffic.destination]
    source, destination = traffic.source[there], traffic.destination[there]
    both = np.concatenate((source, destination))
    required, given = "rates between switches with hosts", "those of switches that are not there"
    bare = both[~ends[both]]
    if len(bare) or not len(both):
        given = f"{build.wiring.names[bare[0]]}, which has none" if len(bare) else given
        raise InputError.of(required, given, file=file, key="demand")
    return Traffic(source, destination, traffic.amount[there] / traffic.amount[there].max())


def _rows(file: TextFile) -> Iterator[Row]:
    """Lines with their cells; those that are empty or begin with # are left out.

    Where the first has no comma, cells are between blanks.
    """
    lines = file.text.splitlines()
    said = [n for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    commas = bool(said) and "," in lines[said[0] - 1]
    for number in said:
        line = lines[number - 1]
        cells = next(csv.reader(io.StringIO(line)), []) if commas else line.split()
        yield number, [cell.strip() for cell in cells]


class _Reader:
    """Rows to flows; mistakes are collected."""

    def __init__(self, file: TextFile, wiring: Wiring) -> None:
        self.file, self.wiring = file, wiring
        self.problems: list[Problem] = []
        self.source: list[int] = []
        self.to: list[int] = []
        self.rate: list[float] = []
        ports = wiring.host_port.shape[1]
        self.numbers: dict[str, int] = {
            name: n // ports for n, name in enumerate(wiring.host_names) if name
        }
        self.numbers |= {str(n): n for n in range(len(wiring.names))}
        self.numbers |= {name: n for n, name in enumerate(wiring.names)}

    def wrong(self, line: int, required: str, given: str, todo: str = "") -> None:
        self.problems.append(Problem(required, given, todo, self.file.name, line, "demand"))

    def switch(self, line: int, name: str) -> int:
        """The switch of this name, or of a host's."""
        if (number := self.numbers.get(name)) is not None:
            return number
        todo = did_you_mean(name, self.wiring.names)
        self.wrong(line, "a switch, by name or vertex, or a host", shown(name), todo)
        return 0

    def number(self, line: int, cell: str) -> float:
        """A rate."""
        try:
            rate = float(cell)
        except ValueError:
            rate = -1.0
        if not 0 <= rate <= MOST:
            large = rate > MOST
            required = f"a rate of at most {MOST:g}" if large else "a rate of 0 or more"
            todo = "only proportions count: take a larger unit" if large else ""
            self.wrong(line, required, shown(cell), todo)
            return 0.0
        return rate

    def add(self, source: int, to: int, rate: float) -> None:
        self.source.append(source)
        self.to.append(to)
        self.rate.append(rate)

    def is_list(self, first: Sequence[str]) -> bool:
        """Whether lines are flows: this is one or their header, and names no two columns."""
        if len(first) != 3 or len(self.wiring.names) == 3:
            return False
        corner, *columns = (cell in self.numbers for cell in first)
        return corner or not all(columns)

    def take_list(self, rows: Sequence[Row]) -> None:
        """Lines of source, destination, rate; the first may be a header."""
        source, to, rate = rows[0][1]
        header = _is_header(rate) and not {source, to} <= self.numbers.keys()
        first: dict[tuple[str, str], int] = {}
        for line, cells in rows[header:]:
            if len(cells) != 3:
                self.wrong(line, "source, destination, rate", f"{len(cells)} values")
                continue
            source, to = cells[:2]
            self.add(self.switch(line, source), self.switch(line, to), self.number(line, cells[2]))
            if (before := first.setdefault((source, to), line)) != line:
                given = f"{source} to {to}, also in line {before}"
                self.wrong(line, "each pair of names once", given, "add the rates up")

    def take_matrix(self, rows: Sequence[Row]) -> None:
        """A row and a column for every switch, or those that a first row and column name."""
        order = len(self.wiring.names)
        first, head = rows[0]
        named = len(rows) == len(head) and _is_header(head[0])
        if named:
            columns = [self.switch(first, name) for name in head[1:]]
        elif len(rows) == len(head) == order:
            columns = list(range(order))
        else:
            form = f"{FORMS}, {order} by {order} or with names in the first row and column"
            self.wrong(first, form, f"{len(rows)} lines, the first of {len(head)} values")
            return
        for place, (line, cells) in enumerate(rows[named:]):
            if len(cells) != len(head):
                self.wrong(line, f"{len(head)} values", str(len(cells)))
                continue
            source = self.switch(line, cells[0]) if named else place
            for to, cell in zip(columns, cells[named:], strict=True):
                self.add(source, to, self.number(line, cell))


def _is_header(cell: str) -> bool:
    """Whether there is no number in the place of a rate."""
    try:
        float(cell)
    except ValueError:
        return True
    return False
