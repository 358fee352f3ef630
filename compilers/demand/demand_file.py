"""Read a demand from a file: CSV with one flow in each line, or a square matrix of rates.

The file is what `routing.demand` of fabric.yaml names. `fitted_tables` calls `host_traffic`, and
fits weights to the `Traffic` that it returns. Simulations call `read_demand`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.tables.build import Build
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError, Problem, did_you_mean, few, shown
from inventory.yamlfile import TextFile

LIST_OR_MATRIX = "lines of source, destination, rate, or a square matrix of rates"
"""The two forms of the file, as messages name them."""
LIST_COLUMNS = ("source", "destination", "rate")
"""The cells of a line in a list of flows."""
WHOLE_FILE = 0
"""In place of the number of a line, in problems of the whole file."""
HIGHEST_RATE = 1e30
"""The highest rate: any unit has room below it, and no sum or product of rates overflows."""
REQUIRED_RATES = "rates between switches with hosts"
"""What a build needs of a demand, as messages name it."""


@dataclass(frozen=True, slots=True)
class DemandRow:
    """A line of the file, split into its cells."""

    line: int
    """The number of the line, from 1."""
    cells: list[str]
    """The text of each cell, without blanks around it."""


class _FlowInLine(NamedTuple):
    """A flow of the file."""

    source: int
    """The vertex where it enters."""
    destination: int
    """The vertex where it leaves."""
    rate: float
    """Its rate, in the file's own unit."""
    line: int
    """The number of its line."""


@dataclass(frozen=True, slots=True, eq=False)
class FileFlows:
    """The flows of a file with rates above 0 between different switches, in its order."""

    source: NDArray[np.int64]
    """int64[n], the switch where each flow enters."""
    destination: NDArray[np.int64]
    """int64[n], the switch where each flow leaves."""
    rate: NDArray[np.float64]
    """float64[n], the rate of each flow, in the file's own unit."""
    line: NDArray[np.int64]
    """int64[n], the line of each flow."""

    def traffic(self) -> Traffic:
        """Return the flows with each pair of switches once."""
        return Traffic.of(self.source, self.destination, self.rate)

    def selected(self, is_kept: NDArray[np.bool_]) -> FileFlows:
        """Return some of the flows.

        Args:
            is_kept: bool[n], which.
        """
        return FileFlows(
            source=self.source[is_kept],
            destination=self.destination[is_kept],
            rate=self.rate[is_kept],
            line=self.line[is_kept],
        )


def read_demand(file: TextFile, wiring: Wiring) -> FileFlows:
    """Read the flows of a file; their rates are in the file's own unit.

    A switch is given by its name or the number of its vertex; a host's name stands for its switch.
    A matrix has a row and a column for every switch in vertex order, or names in its first row and
    column. In a list no pair of names comes twice. Traffic within a switch is left out.

    Raises:
        InputError: a line has neither form, names no switch, or has no rate; or the file has no
            rate above 0 between two switches.
    """
    rows = list(_rows(file))
    reader = _Reader(file, wiring)
    if not rows:
        reader.add_problem(WHOLE_FILE, LIST_OR_MATRIX, "an empty file")
    elif reader.is_list(rows[0].cells):
        reader.read_list(rows)
    else:
        reader.read_matrix(rows)
    if reader.problems:
        raise InputError(few(reader.problems))
    flows = FileFlows(
        source=np.array([flow.source for flow in reader.flows], np.int64),
        destination=np.array([flow.destination for flow in reader.flows], np.int64),
        rate=np.array([flow.rate for flow in reader.flows], np.float64),
        line=np.array([flow.line for flow in reader.flows], np.int64),
    )
    flows = flows.selected((flows.rate > 0) & (flows.source != flows.destination))
    if not len(flows.source):
        reader.add_problem(rows[-1].line, "a rate above 0 between two switches", "none up to here")
        raise InputError(reader.problems)
    return flows


def host_traffic(build: Build, file: TextFile) -> Traffic:
    """Read the flows of a file between switches that are installed, with 1 as the largest amount.

    Args:
        build: says which switches are installed, and which have hosts.
        file: as in `read_demand`.

    Raises:
        InputError: the file has mistakes, an installed switch of a flow has no hosts, or no flow is
            left.
    """
    flows = read_demand(file, build.wiring)
    present, names = build.topology.present, build.wiring.names
    installed = flows.selected(present[flows.source] & present[flows.destination])
    if not len(installed.source):
        ends = np.unique(np.concatenate((flows.source, flows.destination)))
        absent = [names[v] for v in ends.tolist() if not present[v]]
        given = f"those of switches that are not there: {', '.join(absent[:5])}"
        line = int(flows.line[0])
        raise InputError.of(REQUIRED_RATES, given, file=file.name, line=line, key="demand")
    require_hosts(build, installed, file.name)
    traffic = installed.traffic()
    return replace(traffic, amount=traffic.amount / traffic.amount.max())


def require_hosts(build: Build, flows: FileFlows, file: str) -> None:
    """Pass when all switches of flows have hosts.

    Args:
        build: says which switches have hosts.
        flows: of the file.
        file: its name, for messages.

    Raises:
        InputError: some have none, with the first lines that name them.
    """
    ends = np.stack((flows.source, flows.destination), axis=1)
    flow, end = np.nonzero(~build.topology.endpoints[ends])
    lines_and_vertices = {*zip(flows.line[flow].tolist(), ends[flow, end].tolist(), strict=True)}
    problems = [
        Problem(
            required=REQUIRED_RATES,
            given=f"{build.wiring.names[vertex]}, which has none",
            file=file,
            line=line,
            key="demand",
        )
        for line, vertex in sorted(lines_and_vertices)
    ]
    if problems:
        raise InputError(few(problems))


def _rows(file: TextFile) -> Iterator[DemandRow]:
    """Yield the lines of a file, without empty lines and lines that begin with #.

    Cells are separated by commas or semicolons, whichever the first line has more of, or by blanks
    if it has neither.
    """
    lines = file.text.splitlines()
    numbers = [n for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    first_text = lines[numbers[0] - 1] if numbers else ""
    separator = max(",;", key=first_text.count)
    for number in numbers:
        line = lines[number - 1]
        reader = csv.reader(io.StringIO(line), delimiter=separator)
        cells = next(reader, []) if separator in first_text else line.split()
        yield DemandRow(number, [cell.strip() for cell in cells])


class _Reader:
    """Turns rows into flows, and collects all mistakes of the file."""

    def __init__(self, file: TextFile, wiring: Wiring) -> None:
        self.file, self.wiring = file, wiring
        self.problems: list[Problem] = []
        self.flows: list[_FlowInLine] = []
        hosts_a_switch = wiring.host_port.shape[1]
        # The vertex by the name of a host, by its own number, and by the name of its switch. Where
        # names are equal, the later of these goes before.
        self.vertices: dict[str, int] = {
            name: host // hosts_a_switch for host, name in enumerate(wiring.host_names) if name
        }
        self.vertices |= {str(vertex): vertex for vertex in range(len(wiring.names))}
        self.vertices |= {name: vertex for vertex, name in enumerate(wiring.names)}

    def add_problem(self, line: int, required: str, given: str, todo: str = "") -> None:
        """Add a mistake in a line, or in the WHOLE_FILE."""
        self.problems.append(Problem(required, given, todo, self.file.name, line, "demand"))

    def switch(self, line: int, name: str) -> int:
        """Return the vertex that a cell names; for another name add a problem, and return 0.

        With a problem no flow is used, so it does not matter which vertex this is.
        """
        if (vertex := self.vertices.get(name)) is not None:
            return vertex
        todo = did_you_mean(name, self.wiring.names)
        self.add_problem(line, "a switch, by name or vertex, or a host", shown(name), todo)
        return 0

    def rate_in(self, line: int, cell: str) -> float:
        """Return the rate in a cell; for a cell without one add a problem, and return 0."""
        try:
            rate = float(cell)
        except ValueError:
            rate = -1.0
        if not 0 <= rate <= HIGHEST_RATE:
            is_large = rate > HIGHEST_RATE
            required = f"a rate of at most {HIGHEST_RATE:g}" if is_large else "a rate of 0 or more"
            todo = "only proportions count: take a larger unit" if is_large else ""
            self.add_problem(line, required, shown(cell), todo)
            return 0.0
        return rate

    def is_list(self, first_row: Sequence[str]) -> bool:
        """Whether the file is a list of flows, by the cells of its first row.

        In a list, the first row is a flow or the header. In a matrix with names, it is an empty
        corner and the names of the columns: as many cells as in a list if there are two names. A
        file with three cells a line in a fabric of three switches is a matrix.
        """
        if len(first_row) != len(LIST_COLUMNS) or len(self.wiring.names) == len(LIST_COLUMNS):
            return False
        corner_is_switch, *columns_are_switches = (cell in self.vertices for cell in first_row)
        return corner_is_switch or not all(columns_are_switches)

    def read_list(self, rows: Sequence[DemandRow]) -> None:
        """Add flows from rows of source, destination and rate; the first row may be a header."""
        *end_names, rate = rows[0].cells
        has_header = _is_header(rate) and not self.vertices.keys() >= {*end_names}
        line_of_pair: dict[tuple[str, str], int] = {}
        for row in rows[1:] if has_header else rows:
            if len(row.cells) != len(LIST_COLUMNS):
                self.add_problem(row.line, "source, destination, rate", f"{len(row.cells)} values")
                continue
            source, destination, rate = row.cells
            self.flows.append(
                _FlowInLine(
                    source=self.switch(row.line, source),
                    destination=self.switch(row.line, destination),
                    rate=self.rate_in(row.line, rate),
                    line=row.line,
                )
            )
            first_line = line_of_pair.setdefault((source, destination), row.line)
            if first_line != row.line:
                given = f"{source} to {destination}, also in line {first_line}"
                self.add_problem(row.line, "each pair of names once", given, "add the rates up")

    def read_matrix(self, rows: Sequence[DemandRow]) -> None:
        """Add flows from a matrix, with names in its first row and column or of all switches."""
        switches = len(self.wiring.names)
        head = rows[0]
        has_names = len(rows) == len(head.cells) and _is_header(head.cells[0])
        if has_names:
            columns = [self.switch(head.line, name) for name in head.cells[1:]]
        elif len(rows) == len(head.cells) == switches:
            columns = list(range(switches))
        else:
            required = (
                f"{LIST_OR_MATRIX}, {switches} by {switches} or with names in the first row and "
                "column"
            )
            given = f"{len(rows)} lines, the first of {len(head.cells)} values"
            self.add_problem(head.line, required, given)
            return
        for number, row in enumerate(rows[1:] if has_names else rows):
            if len(row.cells) != len(head.cells):
                self.add_problem(row.line, f"{len(head.cells)} values", str(len(row.cells)))
                continue
            source = self.switch(row.line, row.cells[0]) if has_names else number
            rates = row.cells[1:] if has_names else row.cells
            for destination, cell in zip(columns, rates, strict=True):
                rate = self.rate_in(row.line, cell)
                self.flows.append(_FlowInLine(source, destination, rate, row.line))


def _is_header(cell: str) -> bool:
    """Whether a cell holds no number, where other rows have a rate."""
    try:
        float(cell)
    except ValueError:
        return True
    return False
