"""Table I of the PolarFly paper: which networks are feasible for co-packaged systems.

`feasibility` measures each property of the table in a small network of each family, and returns its
rows and claims as `Evidence`; `polarfly_paper` lists it. A *unit* is a part of a network that can
be built and added as a whole, such as a group of a Dragonfly or a pod of a fat tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.analysis.distances import distribution
from compilers.topology.families import BASELINES, FAMILIES, build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import layout
from compilers.topology.replicated_clusters import expand
from extensions.papers.compared_network import ComparedNetwork
from extensions.papers.exhibit import Evidence, PaperClaim

RADIXES = range(8, 129)
"""The radixes for which a network of each family is looked for."""
Parameters = Mapping[str, int | str | None]
"""The parameters of a topology, as in a spec."""

# The properties of Table I, as they are in our claims.
DIRECT = "direct"
MODULAR = "modular, more than one unit"
EXPANDABLE = "expandable by units, and all cables stay"
FLEXIBLE = "flexible"
DIAMETER_2 = "diameter 2"
READINGS = {
    MODULAR: "Read as: more than one unit of switches with hosts, alike in size and links.",
    EXPANDABLE: "Read as: the next larger one has all cables of a small one in place, and its"
    " further switches with hosts are in units of their own.",
}
"""How properties are read that have no measure in the paper."""


@dataclass(frozen=True, slots=True)
class FeasibilityRow:
    """A row of Table I: the small network that is measured, and what the paper marks."""

    family: str
    """The family of the network."""
    parameters: Parameters
    """The parameters of a small member."""
    larger_parameters: Parameters
    """The parameters of the next larger member; of PolarFly, a copied fan is added instead."""
    unit_coordinate: int
    """The index of the coordinate that numbers the units of a network, such as its groups."""
    marks: tuple[str, ...]
    """The properties that are marked, as supported fully or in part: both look alike in the text.
    """


ROWS = {
    "Fat tree": FeasibilityRow(
        "fat-tree",
        {"k": 4, "pods": 4},
        larger_parameters={"k": 4, "pods": 5},
        unit_coordinate=1,
        marks=(MODULAR, EXPANDABLE, FLEXIBLE),
    ),
    "Dragonfly": FeasibilityRow(
        "dragonfly",
        {"h": 2, "groups": 5},
        larger_parameters={"h": 2, "groups": 9},
        unit_coordinate=0,
        marks=(DIRECT, MODULAR, EXPANDABLE, FLEXIBLE),
    ),
    "HyperX": FeasibilityRow(
        "hyperx",
        {"sides": "4x4"},
        larger_parameters={"sides": "4x5"},
        unit_coordinate=1,
        marks=(DIRECT, MODULAR, EXPANDABLE, FLEXIBLE, DIAMETER_2),
    ),
    "OFT": FeasibilityRow(
        "oft",
        {"q": 3},
        larger_parameters={"q": 4},
        unit_coordinate=0,
        marks=(MODULAR, FLEXIBLE, DIAMETER_2),
    ),
    "MLFM": FeasibilityRow(
        "mlfm",
        {"n": 4},
        larger_parameters={"n": 5},
        unit_coordinate=0,
        marks=(MODULAR, FLEXIBLE, DIAMETER_2),
    ),
    "Slim Fly": FeasibilityRow(
        "slimfly",
        {"q": 5},
        larger_parameters={"q": 7},
        unit_coordinate=1,
        marks=(DIRECT, MODULAR, EXPANDABLE, FLEXIBLE, DIAMETER_2),
    ),
    "PolarFly": FeasibilityRow(
        "polarfly",
        {"q": 5},
        larger_parameters={},
        unit_coordinate=0,
        marks=(DIRECT, MODULAR, EXPANDABLE, FLEXIBLE, DIAMETER_2),
    ),
}
"""The rows of Table I."""


@dataclass(frozen=True, slots=True)
class _MeasuredRow:
    """What is measured of a row of Table I."""

    is_direct: bool
    """Whether all switches have hosts."""
    units: int
    """How many units are alike in size and links."""
    links_kept: float
    """The fraction of the links that stay in the next larger network."""
    grows_by_units: bool
    """Whether the units stay as large in the next larger network, which has more of them."""
    radixes: int
    """How many of `RADIXES` have a member of the family."""
    diameter: int
    """The diameter."""

    @classmethod
    def of(cls, row: FeasibilityRow) -> _MeasuredRow:
        """Measure the small network of a row, and the next larger one."""
        topology = build_topology(row.family, row.parameters)
        if row.family == "polarfly":
            expansion = expand(topology, "fan")
            grown, before, after = expansion.topology, layout(topology).rack, expansion.layout.rack
        else:
            grown = build_topology(row.family, row.larger_parameters)
            before, after = (
                network.coordinates[:, row.unit_coordinate] for network in (topology, grown)
            )
        return cls(
            is_direct=bool(topology.endpoints.all()),
            units=_count_equal_units(topology, before),
            links_kept=share_of_links_kept(topology, grown),
            grows_by_units=_units_stay_as_large(before[topology.endpoints], after[grown.endpoints]),
            radixes=_count_radixes(row.family),
            diameter=distribution(topology).diameter or 0,
        )

    @property
    def has_property(self) -> dict[str, bool | None]:
        """Whether the network has each property; None where it is not judged.

        A network is not judged to be expandable if some of its cables stay: the paper also marks
        partial support, and does not say how many that are. Nor does it say how many radixes are
        flexible.
        """
        some_links_stay = 0 < self.links_kept < 1
        return {
            DIRECT: self.is_direct,
            MODULAR: self.units > 1,
            EXPANDABLE: None if some_links_stay else self.links_kept == 1 and self.grows_by_units,
            FLEXIBLE: None,
            DIAMETER_2: self.diameter == 2,
        }

    @property
    def reasons(self) -> dict[str, str]:
        """Why a property is not judged."""
        reasons = {
            FLEXIBLE: f"{self.radixes} of the radixes 8 to 128 have a member. The paper does not"
            " say how many are flexible, and all seven networks have a mark."
        }
        if self.has_property[EXPANDABLE] is None:
            reasons[EXPANDABLE] = (
                f"{100 * self.links_kept:.0f} % of the cables of a small one stay in the next"
                " larger one, switches matched by coordinates. Partial support has no measure, and"
                " a smaller part may have no mark."
            )
        return reasons


def feasibility(_quick: bool) -> Evidence:
    """Table I: each property is measured; full and partial support are the same here."""
    claims, rows = [], []
    for name, row in ROWS.items():
        measured = _MeasuredRow.of(row)
        reasons = measured.reasons
        claims += [
            PaperClaim(
                statement=f"{name}: {quality}",
                printed=float(quality in row.marks),
                computed=None if holds is None else float(holds),
                interpretation=READINGS.get(quality, ""),
                reason=reasons.get(quality, ""),
            )
            for quality, holds in measured.has_property.items()
        ]
        rows.append(
            (
                name,
                "yes" if measured.is_direct else "no",
                measured.units,
                measured.links_kept,
                "yes" if measured.grows_by_units else "no",
                measured.radixes,
                measured.diameter,
            )
        )
    columns = (
        "network",
        "direct",
        "units",
        "cables that stay",
        "more units, of their size",
        "radixes 8 to 128",
        "diameter",
    )
    members = "; ".join(
        ComparedNetwork(row.family, row.parameters, hosts=0).title() for row in ROWS.values()
    )
    setup = (
        "Full and partial support look alike in the text: both are support here.",
        f"Each word but flexible is measured of one small member: {members}.",
    )
    return Evidence(tuple(claims), columns=columns, rows=tuple(rows), setup=setup)


def _count_equal_units(topology: Topology, unit: NDArray[np.integer]) -> int:
    """How many units of switches with hosts are alike in size and in the links inside.

    Args:
        topology: the network.
        unit: the unit of each switch.
    """
    edges = topology.graph.edges()
    join_hosts = topology.endpoints[edges].all(axis=1)  # links between two switches with hosts
    tail_units, head_units = unit[edges[join_hosts]].T
    # By unit, the links inside it, and the switches with hosts; units without these are left out.
    links_inside = np.bincount(tail_units[tail_units == head_units], minlength=int(unit.max()) + 1)
    sizes = np.bincount(unit[topology.endpoints], minlength=len(links_inside))
    shapes = np.stack((sizes, links_inside), axis=1)[sizes > 0]
    _, units_of_shape = np.unique(shapes, axis=0, return_counts=True)
    return int(units_of_shape.max())


def _units_stay_as_large(before: NDArray[np.integer], after: NDArray[np.integer]) -> bool:
    """Whether the units of a network have as many switches in a larger one, which has more units.

    Args:
        before: the unit of each switch with hosts.
        after: the same of the larger network.
    """
    sizes_before, sizes_after = np.bincount(before), np.bincount(after)
    units_before = len(sizes_before)
    return len(sizes_after) > units_before and np.array_equal(
        sizes_before, sizes_after[:units_before]
    )


def share_of_links_kept(topology: Topology, grown: Topology) -> float:
    """The fraction of a network's links that join the same switches in a larger network."""
    same_switch = _same_switches(topology, grown)
    links_of_grown = {frozenset(link) for link in grown.graph.edges().tolist()}
    same_links = [
        frozenset(same_switch[switch] for switch in link)
        for link in topology.graph.edges().tolist()
    ]
    return sum(link in links_of_grown for link in same_links) / len(same_links)


def _same_switches(topology: Topology, grown: Topology) -> list[int]:
    """The number of each switch in a larger network; -1 for a switch that is not there.

    PolarFly is expanded, and its switches keep their numbers. In other families a switch is the
    same if it has the same kind and coordinates.
    """
    if topology.family == "polarfly":
        return list(range(topology.graph.order))
    switch_at = {place: switch for switch, place in enumerate(_kinds_and_coordinates(grown))}
    return [switch_at.get(place, -1) for place in _kinds_and_coordinates(topology)]


def _kinds_and_coordinates(network: Topology) -> list[tuple[int, ...]]:
    """The kind and the coordinates of each switch."""
    rows = np.column_stack((network.kind, network.coordinates)).tolist()
    return [tuple(row) for row in rows]


def _count_radixes(family: str) -> int:
    """How many of `RADIXES` have a design of a family."""
    family_object = FAMILIES.get(family) or BASELINES[family]
    return sum(any(True for _ in family_object.designs(radix)) for radix in RADIXES)
