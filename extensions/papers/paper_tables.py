"""Compute the tables of the papers by our formulas, and compare them with the printed values.

The networks of each table and its printed values are in `papers.yaml`, word for word.
`table_evidence` makes each cell a claim of an exhibit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from compilers.evaluation.comparison.candidates import Candidate, candidate
from compilers.evaluation.comparison.prices import prices
from compilers.topology.families import BASELINES, FAMILIES, build_topology
from compilers.topology.family import Design
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.limits import structural_values
from inventory.problems import InputError, not_among
from inventory.yamlfile import read

SOURCE = Path(__file__).with_name("papers.yaml")
"""The file with the printed tables."""


class NetworkCounts(NamedTuple):
    """Sizes of a network, counted in its graph."""

    order: int
    """The routers."""
    degree: int
    """The largest degree of a router."""
    leaves: int
    """The routers with compute nodes."""
    leaf_degree: int
    """The largest degree of these."""
    links: int
    """The links between routers."""


def counts_of_network(network: Candidate) -> NetworkCounts:
    """Count in the graph that is built of a network, and not by the formulas of its family."""
    return counts_of_design(network.design.family, tuple(network.design.parameters.items()))


@cache
def counts_of_design(
    family: str, parameters: tuple[tuple[str, int | str | None], ...]
) -> NetworkCounts:
    """Sizes counted in the graph of a family with these parameters."""
    topology = build_topology(family, dict(parameters))
    graph, leaves = topology.graph, topology.endpoints
    return NetworkCounts(
        graph.order,
        int(graph.degrees.max()),
        int(leaves.sum()),
        int(graph.degrees[leaves].max()),
        graph.size,
    )


def _all_hosts(network: Candidate) -> int:
    """T, the compute nodes of a network."""
    return network.hosts * counts_of_network(network).leaves


def _ports(network: Candidate) -> int:
    """R, the ports of a router, of which there is one kind."""
    counts = counts_of_network(network)
    return max(counts.leaf_degree + network.hosts, counts.degree)


QUANTITIES: dict[str, Callable[[Candidate], float | None]] = {
    "routers": lambda c: counts_of_network(c).order,
    "radix": lambda c: counts_of_network(c).degree,
    "endpoints": lambda c: _all_hosts(c),
    "T": lambda c: _all_hosts(c),
    "R": lambda c: _ports(c),
    "N": lambda c: counts_of_network(c).order,
    "hosts per router": lambda c: c.hosts,
    "subscription": lambda c: subscription(c),
    "electrical group": lambda c: c.packing.size * c.hosts if c.packing else None,
    "electrical groups": lambda c: c.packing.groups if c.packing else None,
    "electrical cables": lambda c: c.electrical,
    "optical cables": lambda c: counts_of_network(c).links - c.electrical,
    "cables": lambda c: counts_of_network(c).links,
    "cost per host ($)": lambda c: c.cost.dollars,
    "power per host (W)": lambda c: c.cost.watts,
}
"""How the value of each column is computed: sizes are counted in built graphs, the rest
follows by formulas."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a table."""

    network: str
    """The row: a network."""
    quantity: str
    """The column: a quantity."""
    computed: float | None
    """Our value; None where there is none."""
    printed: str
    """The value as the paper prints it."""
    differs: bool
    """Whether there are both, and they differ by more than rounding."""
    interpretation: str = ""
    """How the printed value is read, or what our value takes from the paper."""
    reason: str = ""
    """Why ours is another value, or why there is none."""
    taken: bool = False
    """Whether our value is the paper's, put in."""


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of a paper."""

    name: str
    """Its short name."""
    title: str
    """Its caption."""
    cells: tuple[Cell, ...]
    """Its values, row by row."""
    corrections: tuple[str, ...]
    """Why cells differ, in sentences."""

    @property
    def columns(self) -> list[str]:
        """The heads of the columns; that of the rows' names, which come first, is empty."""
        return ["", *self._column_heads()]

    @property
    def rows(self) -> list[list[str]]:
        """Text cells: the computed value, and the printed one next to it where they differ."""
        networks, quantities = self._networks(), self._quantities()
        text_at = {
            (cell.network, cell.quantity): _text_with_print(cell)
            if cell.differs
            else _computed_text(cell)
            for cell in self.cells
        }
        if self._column_heads() == networks:
            return [
                [quantity, *(text_at.get((network, quantity), "") for network in networks)]
                for quantity in quantities
            ]
        return [
            [network, *(text_at.get((network, quantity), "") for quantity in quantities)]
            for network in networks
        ]

    def as_dict(self) -> dict[str, Any]:
        """The table for JSON."""
        cells = [
            {
                "network": cell.network,
                "quantity": cell.quantity,
                "computed": cell.computed,
                "printed": cell.printed,
                "differs": cell.differs,
            }
            for cell in self.cells
        ]
        return {
            "name": self.name,
            "title": self.title,
            "cells": cells,
            "corrections": list(self.corrections),
        }

    def _networks(self) -> list[str]:
        """The networks of the cells, each once."""
        return list(dict.fromkeys(cell.network for cell in self.cells))

    def _quantities(self) -> list[str]:
        """The quantities of the cells, each once."""
        return list(dict.fromkeys(cell.quantity for cell in self.cells))

    def _column_heads(self) -> list[str]:
        """Networks or quantities, whichever are fewer: the columns."""
        networks, quantities = self._networks(), self._quantities()
        return networks if len(networks) < len(quantities) else quantities


def paper_table(name: str) -> PaperTable:
    """A table by its name, such as `polarfly-5`.

    Raises:
        InputError: the name is unknown.
    """
    tables = read(SOURCE).data
    if name not in tables:
        raise InputError(not_among(name, tables, "table"))
    data = tables[name]
    cells = _cells_of_formulas(data) if name == "projective-3" else _cells_of_designs(data)
    return PaperTable(name, data["title"], tuple(cells), tuple(data.get("corrections", ())))


def names() -> list[str]:
    """The names of all tables."""
    return list(read(SOURCE).data)


def configuration(entry: Mapping[str, Any], priced_as_hosts: int | None) -> Candidate:
    """The candidate of a network of `papers.yaml`, with hosts, cables and prices.

    Args:
        entry: the family, radix and parameters, and what the paper says of hosts and cables.
        priced_as_hosts: the number of hosts that sets the price of optical cables; None for the
            design's own.
    """
    largest = entry.get("largest", False)
    design = _design(entry["family"], entry["radix"], entry["parameters"], largest)
    return candidate(
        design,
        prices(),
        hosts=entry.get("hosts"),
        electrical=entry.get("electrical"),
        priced_as_hosts=priced_as_hosts,
    )


TAKEN_QUANTITY = "electrical cables"
"""The quantity that an entry of `papers.yaml` may take from the paper."""
FROM_CABLES = ("optical cables", "cost per host ($)")
"""The quantities that are computed from the number of electrical cables."""
OF_RACKS = ("electrical group", "electrical groups")
"""The quantities of racks; not computed where the number of electrical cables is the paper's."""
FROM_HOSTS = ("hosts per router", "T", "R")
"""The quantities that depend on the compute nodes of a router."""


def subscription(network: Candidate, utilisation: float | None = None) -> float | None:
    """The compute nodes of a router over those of formula (1), Δ·u/k̄ with the largest degree Δ.

    Args:
        network: with all its figures.
        utilisation: u, instead of the network's own.
    """
    mean, u = network.figures.mean_distance, utilisation or network.figures.utilisation
    return network.hosts * mean / (network.design.radix * u) if mean and u else None


def rounding_of(printed: str) -> float:
    """Half a unit of the last digit of a number with decimals; whole numbers are exact."""
    digits = len(printed.partition(".")[2])
    return 0.5 * 10.0**-digits if digits else 0.0


def _cells_of_designs(data: Mapping[str, Any]) -> Iterator[Cell]:
    """Yield the cells of a table whose networks are designs, with all that follows from them.

    A cell may have remarks: on how the paper is read (`readings`), and on why our value is another
    one or missing (`reasons`). Some come from `papers.yaml`; others follow from what an entry there
    takes from the paper.
    """
    for network, entry in data["networks"].items():
        ours = configuration(entry, data.get("like"))
        cable_remark, host_remark = _cable_remark(entry, data.get("like")), _host_remark(ours)
        # The paper's text has lost the parameters, and they were found by the radix.
        by_radix = bool(entry.get("largest"))
        for quantity, printed in entry["printed"].items():
            value = QUANTITIES[quantity](ours)
            is_given_radix = by_radix and quantity == "radix"
            if quantity == "subscription":
                value = subscription(ours, entry.get("utilisation"))
            readings = [
                *_notes_on_cell(data, "readings", network, quantity),
                *([cable_remark] if cable_remark and quantity in FROM_CABLES else []),
                *([host_remark] if host_remark and quantity in FROM_HOSTS else []),
                *([_remark_on_largest(ours)] if by_radix and not is_given_radix else []),
            ]
            reasons = _notes_on_cell(data, "differences", network, quantity)
            if is_given_radix:
                reasons = ["Put in: the text has lost the parameters, and ours are of this radix."]
            if cable_remark and quantity in OF_RACKS:
                reasons = [f"The paper does not describe its partition. Ours has {value:,}."]
                value = None
            rounding = rounding_of(str(printed)) + 1e-9
            yield Cell(
                network=network,
                quantity=quantity,
                computed=value,
                printed=str(printed),
                differs=value is not None and abs(value - float(printed)) > rounding,
                interpretation=" ".join(readings),
                reason=" ".join(reasons),
                taken=(bool(cable_remark) and quantity == TAKEN_QUANTITY)
                or is_given_radix
                or entry["family"] == "jellyfish",
            )


def _notes_on_cell(data: Mapping[str, Any], key: str, network: str, quantity: str) -> list[str]:
    """The notes on a cell, without their heads.

    Args:
        data: the table in `papers.yaml`.
        key: the kind of notes, `readings` or `differences`. Each is a text such as "SF, cables:
            …", with a head that is a network, a quantity, or both.
        network: the row of the cell.
        quantity: the column of the cell.
    """
    heads = (network, f"{network}, {quantity}", quantity)
    parts = (note.partition(": ") for note in data.get(key, ()))
    return [text for head, _, text in parts if head in heads]


def _host_remark(network: Candidate) -> str:
    """A remark on a network with more compute nodes a router than formula (1) allows; else ""."""
    allowed = network.full_throughput_hosts
    if allowed is None or network.hosts <= allowed + 1e-9:
        return ""
    return (
        f"Formula (1) allows {allowed:.2f} compute nodes a router. Read as: up to half a per cent"
        " too many is accepted."
    )


def _remark_on_largest(network: Candidate) -> str:
    """How a network is read whose parameters the paper's text has lost."""
    parameters = ", ".join(f"{name} {value}" for name, value in network.design.parameters.items())
    return (
        "The text has lost its parameters. Read as the largest of its radix and of diameter 3:"
        f" {parameters}."
    )


def _cable_remark(entry: Mapping[str, Any], like: int | None) -> str:
    """A remark on a network that is given the paper's number of electrical cables; else ""."""
    if "electrical" not in entry:
        return ""
    ours = configuration({**entry, "electrical": None}, like).electrical
    return (
        f"With the paper's {entry['electrical']:,} electrical cables, whose partition it does not"
        f" describe. Our racks have {ours:,}."
    )


def _cells_of_formulas(data: Mapping[str, Any]) -> Iterator[Cell]:
    """Yield the cells of the table of formulas, with the numbers that `limits` computes."""
    for network, printed in data["printed"].items():
        computed = structural_values(network)
        for quantity, (formula, number) in printed.items():
            text = f"{formula} = {float(number):,.8g}"
            yield Cell(network, quantity, computed.get(quantity), text, False)


def _design(
    family: str, radix: int, parameters: Mapping[str, int | str], largest: bool = False
) -> Design:
    """The design of a family that has a radix and all these parameters.

    Args:
        family: the name of the family.
        radix: the radix of the network.
        parameters: some parameters of the design, or all.
        largest: whether it is the largest of diameter 3 that has them, and not the first.
    """
    if family == "jellyfish":  # any order will do, so the family offers no designs
        nodes = int(parameters["nodes"])
        return BASELINES[family].design(radix, nodes, 3, {"nodes": nodes, "degree": radix})
    designs_of_radix = (FAMILIES.get(family) or BASELINES[family]).designs(radix)
    designs = (
        design for design in designs_of_radix if parameters.items() <= design.parameters.items()
    )
    if largest:
        return max(
            (design for design in designs if design.diameter == 3), key=lambda design: design.nodes
        )
    return next(designs)


def _computed_text(cell: Cell) -> str:
    """The computed value with as many digits as the printed one; a dash if there is none."""
    if cell.computed is None:
        return "–"
    digits = len(cell.printed.partition(".")[2]) if not cell.printed.count("=") else 2
    text = f"{cell.computed:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "=" in cell.printed and "." in text else text


def _text_with_print(cell: Cell) -> str:
    """The computed value and, beside it, the printed one."""
    return f"{_computed_text(cell)} (printed {cell.printed})"


def table_evidence(name: str) -> Evidence:
    """Each cell of a table as a claim; `name` is that of the table in `papers.yaml`."""
    table = paper_table(name)
    claims = tuple(_claim(table, cell) for cell in table.cells)
    return Evidence(claims, tuple(table.columns), tuple(map(tuple, table.rows)))


def _claim(table: PaperTable, cell: Cell) -> PaperClaim:
    """The claim that the computed value of a cell is the printed one."""
    text = cell.printed.rpartition("= ")[2].replace(",", "")
    reasons = (cell.reason, cell.interpretation)
    return PaperClaim(
        says=f"{cell.network}: {cell.quantity}",
        printed=float(text),
        computed=cell.computed,
        rounding=rounding_of(text),
        interpretation=cell.interpretation,
        taken=cell.taken,
        mistake=_corrections_of_cell(table, cell),
        reason=" ".join(filter(None, reasons)) if cell.reason else "",
    )


def _corrections_of_cell(table: PaperTable, cell: Cell) -> str:
    """The corrections of a table that are on a cell, those on the cell alone if there are some.

    A correction begins with its network and, if it is on one cell alone, with its quantity, too.
    """
    short_name = cell.network.partition("(")[2].rstrip(")")  # of "PolarStar with Paley (PS-Pal)"
    networks = (cell.network, short_name)
    heads = {name + end for name in networks for end in ("", f", {cell.quantity}")}
    ends_with_quantity = [f", {quantity}" for quantity in QUANTITIES]
    notes = [note for note in table.corrections if note.partition(":")[0] in heads]
    on_cell_alone = [
        note for note in notes if any(end in note.partition(":")[0] for end in ends_with_quantity)
    ]
    return " ".join(on_cell_alone or notes)
