"""Compute the tables of the papers by our formulas, and compare them with the printed values.

The networks of each table and its printed values are in `papers.yaml`, word for word.
`table_evidence` makes each cell a claim of an exhibit.

Three kinds of text explain a cell, and each has one name from `papers.yaml` to the claim:

- a *correction* says what is right where the paper is wrong;
- an *interpretation* says how a printed value is read, or what our value takes from the paper;
- a *reason* says why our value is another one, or why there is none.

The notes of `papers.yaml` are of all three kinds. Interpretations and reasons that follow from how
a network is made are written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, TypedDict

from compilers.evaluation.comparison.candidates import Candidate
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.graph_shapes import structural_values
from extensions.papers.network_quantities import (
    QUANTITIES,
    NetworkEntry,
    configuration,
    subscription,
)
from inventory.problems import InputError, not_among
from inventory.yamlfile import read

SOURCE = Path(__file__).with_name("papers.yaml")
"""The file with the printed tables."""


class TableData(TypedDict, total=False):
    """A table as `papers.yaml` has it.

    A note begins with its *head*, which tells the cells that it is on: a network, a quantity, or
    both, such as `SF, cables: …`.
    """

    title: str
    """The caption of the table."""
    networks: dict[str, NetworkEntry]
    """The networks, by row."""
    priced_as_hosts: int
    """For how many hosts optical cables are priced; without this key for the network's own hosts.
    """
    printed: dict[str, dict[str, list[str]]]
    """Of the table of formulas: by network and quantity the printed formula and its number."""
    corrections: list[str]
    """Notes on networks and cells of the paper that are wrong."""
    interpretations: list[str]
    """Notes on how printed values are read."""
    reasons: list[str]
    """Notes on why our values are others."""


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
    """Whether a value is computed, and it differs from the printed one by more than rounding."""
    interpretation: str = ""
    """How the printed value is read, or what our value takes from the paper."""
    reason: str = ""
    """Why ours is another value, or why there is none."""
    is_input: bool = False
    """Whether our value was taken from the paper as an input."""


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
    """Those of `papers.yaml`, with their heads (`TableData`)."""

    @property
    def columns(self) -> list[str]:
        """The heads of the columns; that of the rows' names, which come first, is empty."""
        return ["", *self._column_heads()]

    @property
    def rows(self) -> list[list[str]]:
        """Text cells: the computed value, and the printed one next to it where they differ."""
        networks, quantities = self._networks(), self._quantities()
        text_at = {(cell.network, cell.quantity): _text_of(cell) for cell in self.cells}
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
    data: TableData = tables[name]
    cells = _cells_of_formulas(data) if "printed" in data else _cells_of_designs(data)
    return PaperTable(name, data["title"], tuple(cells), tuple(data.get("corrections", ())))


def names() -> list[str]:
    """The names of all tables."""
    return list(read(SOURCE).data)


TAKEN_QUANTITY = "electrical cables"
"""The quantity that an entry of `papers.yaml` may take from the paper."""
FROM_CABLES = ("optical cables", "cost per host ($)")
"""The quantities that are computed from the number of electrical cables."""
OF_RACKS = ("electrical group", "electrical groups")
"""The quantities of racks; not computed where the number of electrical cables is the paper's."""
FROM_HOSTS = ("hosts per router", "T", "R")
"""The quantities that depend on the compute nodes of a router."""
ROUNDING_ERROR = 1e-9
"""The error of computed values by rounding."""


def rounding_of(printed: str) -> float:
    """Half a unit of the last digit of a number with decimals; whole numbers are exact."""
    digits = len(printed.partition(".")[2])
    return 0.5 * 10.0**-digits if digits else 0.0


class _NetworkInterpretations(NamedTuple):
    """Interpretations that follow from what a network's entry takes from the paper; "" for none."""

    cables: str
    """That the number of electrical cables is the paper's."""
    hosts: str
    """That routers have more compute nodes than formula (1) allows."""
    parameters: str
    """That the paper's text has lost the parameters, and ours are found by the radix."""

    @classmethod
    def of(
        cls, network: str, entry: NetworkEntry, ours: Candidate, priced_as_hosts: int | None
    ) -> Self:
        """The corrections of a network of `papers.yaml`, given the candidate made of its entry."""
        return cls(
            cables=_of_given_cables(network, entry, priced_as_hosts),
            hosts=_of_many_hosts(ours),
            parameters=_of_lost_parameters(ours) if entry.get("largest") else "",
        )

    def on_quantity(self, quantity: str) -> list[str]:
        """The corrections that are on a quantity of the network."""
        # Where parameters are lost, networks are found by their radix: it is not read, but put in.
        texts = [
            self.cables if quantity in FROM_CABLES else "",
            self.hosts if quantity in FROM_HOSTS else "",
            self.parameters if quantity != "radix" else "",
        ]
        return [text for text in texts if text]


def _cells_of_designs(data: TableData) -> Iterator[Cell]:
    """Yield the cells of a table whose networks are designs, with all that follows from them."""
    priced_as_hosts = data.get("priced_as_hosts")
    for network, entry in data["networks"].items():
        ours = configuration(entry, priced_as_hosts)
        of_network = _NetworkInterpretations.of(network, entry, ours, priced_as_hosts)
        for quantity in entry["printed"]:
            yield _cell_of_design(data, network, quantity, ours, of_network)


def _cell_of_design(
    data: TableData,
    network: str,
    quantity: str,
    ours: Candidate,
    of_network: _NetworkInterpretations,
) -> Cell:
    """The cell of a network and a quantity.

    Args:
        data: the table in `papers.yaml`.
        network: the row of the cell.
        quantity: the column of the cell.
        ours: the network that is made of its entry.
        of_network: the interpretations that follow from its entry.
    """
    entry = data["networks"][network]
    printed = str(entry["printed"][quantity])
    if quantity == "subscription":
        value = subscription(ours, entry.get("utilisation"))
    else:
        value = QUANTITIES[quantity](ours)
    interpretations = [
        *_notes_on_cell(data.get("interpretations", ()), network, quantity),
        *of_network.on_quantity(quantity),
    ]
    reasons = _notes_on_cell(data.get("reasons", ()), network, quantity)
    are_cables_put_in = bool(of_network.cables) and quantity == TAKEN_QUANTITY
    is_radix_put_in = bool(of_network.parameters) and quantity == "radix"
    # Jellyfish is made of the paper's routers and radix, and has no other quantity in the table.
    is_size_put_in = entry["family"] == "jellyfish"
    if is_radix_put_in:
        reasons = ["Put in: the text has lost the parameters, and ours are of this radix."]
    if of_network.cables and quantity in OF_RACKS:
        reasons = [f"The paper does not describe its partition. Ours has {value:,}."]
        value = None
    rounding = rounding_of(printed) + ROUNDING_ERROR
    return Cell(
        network=network,
        quantity=quantity,
        computed=value,
        printed=printed,
        differs=value is not None and abs(value - float(printed)) > rounding,
        interpretation=" ".join(interpretations),
        reason=" ".join(reasons),
        is_input=are_cables_put_in or is_radix_put_in or is_size_put_in,
    )


def _notes_on_cell(notes: Sequence[str], network: str, quantity: str) -> list[str]:
    """The notes of a table that are on a cell, without their heads (`TableData`)."""
    heads = (network, f"{network}, {quantity}", quantity)
    parted_notes = (note.partition(": ") for note in notes)
    return [text for head, _, text in parted_notes if head in heads]


def _of_many_hosts(network: Candidate) -> str:
    """The interpretation where formula (1) allows fewer compute nodes a router; else ""."""
    allowed = network.full_throughput_hosts
    if allowed is None or network.hosts <= allowed + ROUNDING_ERROR:
        return ""
    return (
        f"Formula (1) allows {allowed:.2f} compute nodes a router. Read as: up to half a per cent"
        " too many is accepted."
    )


def _of_lost_parameters(network: Candidate) -> str:
    """The interpretation of a network whose parameters the paper's text has lost."""
    parameters = ", ".join(f"{name} {value}" for name, value in network.design.parameters.items())
    return (
        "The text has lost its parameters. Read as the largest of its radix and of diameter 3:"
        f" {parameters}."
    )


def _of_given_cables(network: str, entry: NetworkEntry, priced_as_hosts: int | None) -> str:
    """The interpretation where the entry gives the paper's number of electrical cables; else ""."""
    if "electrical" not in entry:
        return ""
    by_our_racks = entry.copy()
    del by_our_racks["electrical"]
    ours = configuration(by_our_racks, priced_as_hosts).electrical
    return (
        f"The number of electrical cables of {network} is the paper's, {entry['electrical']:,},"
        " because it does not say which routers share a rack."
        f" Our racks of {network} have {ours:,}."
    )


def _cells_of_formulas(data: TableData) -> Iterator[Cell]:
    """Yield the cells of the table of formulas, with our numbers of `graph_shapes`."""
    for network, printed in data["printed"].items():
        computed = structural_values(network)
        for quantity, (formula, number) in printed.items():
            text = f"{formula} = {float(number):,.8g}"
            yield Cell(
                network=network,
                quantity=quantity,
                computed=computed.get(quantity),
                printed=text,
                differs=False,  # the exhibit compares the printed formulas, at the example
            )


def _computed_text(cell: Cell) -> str:
    """The computed value with as many digits as the printed one; a dash if there is none."""
    if cell.computed is None:
        return "–"
    if "=" not in cell.printed:
        digits = len(cell.printed.partition(".")[2])
        return f"{cell.computed:,.{digits}f}"
    # A cell of the table of formulas, which prints numbers such as "12.8888": two digits are shown.
    return f"{cell.computed:,.2f}".rstrip("0").rstrip(".")


def _text_of(cell: Cell) -> str:
    """The computed value and, where they differ, the printed one beside it."""
    computed = _computed_text(cell)
    return f"{computed} (printed {cell.printed})" if cell.differs else computed


def table_evidence(name: str) -> Evidence:
    """Each cell of a table as a claim; `name` is that of the table in `papers.yaml`."""
    table = paper_table(name)
    claims = tuple(_claim(table, cell) for cell in table.cells)
    return Evidence(claims, columns=tuple(table.columns), rows=tuple(map(tuple, table.rows)))


def _claim(table: PaperTable, cell: Cell) -> PaperClaim:
    """The claim that the computed value of a cell is the printed one."""
    # A cell of the table of formulas prints "formula = number".
    number = cell.printed.rpartition("= ")[2].replace(",", "")
    # An interpretation tells how a value is read, not why ours is another one. So without a reason
    # the claim has none, and says "not explained". With one, the interpretation is part of it.
    reason = f"{cell.reason} {cell.interpretation}".rstrip() if cell.reason else ""
    return PaperClaim(
        statement=f"{cell.network}: {cell.quantity}",
        printed=float(number),
        computed=cell.computed,
        rounding=rounding_of(number),
        interpretation=cell.interpretation,
        is_input=cell.is_input,
        correction=_correction_of_cell(table, cell),
        reason=reason,
    )


def _correction_of_cell(table: PaperTable, cell: Cell) -> str:
    """The corrections on a cell alone, or else those on its whole network; "" if there are none."""
    short_name = cell.network.partition("(")[2].rstrip(")")  # of "PolarStar with Paley (PS-Pal)"
    networks = (cell.network, short_name)
    cells = [f"{network}, {cell.quantity}" for network in networks]
    on_cell = [note for note in table.corrections if note.partition(":")[0] in cells]
    on_network = [note for note in table.corrections if note.partition(":")[0] in networks]
    return " ".join(on_cell or on_network)
