"""Report on an expansion: the larger build, what to add, and that no installed cable moves.

`polarfab expand` prints it. There are two expansions. Either clusters are added to a fabric
(`GrowthReport.of_clusters`, by `grow`). Or a fabric is only partly installed, and its other nodes
and cables are installed, too (`GrowthReport.of_rest`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_formats import as_csv, as_records
from compilers.cabling.cable_plan import Cables, hardware_of
from compilers.cabling.schedule_columns import ScheduleRows
from compilers.expansion.grow import GrownFabric, grow
from compilers.expansion.uninstalled_rest import UninstalledRest, uninstalled_rest
from compilers.tables.build import Build
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError

CLUSTERS = re.compile(r"([a-z]+)(?::([0-9]{1,4}))?")
"""A kind of clusters and how many: `quadric:2`, or `nucleus` for one."""
WITHOUT_MANAGEMENT = "without_management_address"
"""The name of the fact that lists new switches which have no management address, but need one."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GrowthReport:
    """The additions to a fabric."""

    build: Build
    """The build of the larger fabric."""
    facts: dict[str, Any]
    """The plan in numbers, and the table changes of each installed switch, as values for JSON.

    Every report has `fabric`, `topology`, `nodes`, `nodes_added` (names), `racks_added` (names),
    `cables`, `cables_added`, `cables_moved` and `switches`. A report on clusters also has
    `diameter`, `spares_taken`, `racks_filled`, `clusters_that_fit`, `least_ports_left` and
    `nodes_without_ports_left`; a report on a partly installed fabric also has `cables_relabelled`
    and `nodes_renamed`. `cables_slower` and `without_management_address` are there only if they
    have something to say.
    """
    rows: ScheduleRows
    """The new cables."""

    @classmethod
    def of_clusters(cls, build: Build, clusters: str, planes: Sequence[Build] = ()) -> GrowthReport:
        """Report on clusters that are added to a build.

        Args:
            build: the installed fabric.
            clusters: the kind and number of clusters: `quadric:2`, `fan:1` or `nucleus`.
            planes: the builds of other planes, whose places in racks are taken.

        Raises:
            InputError: the build cannot grow by these clusters, or lacks ports or addresses.
        """
        match = CLUSTERS.fullmatch(clusters)
        if match is None:
            todo = "write it like quadric:2, fan:1 or nucleus"
            raise InputError.of("a kind of cluster and how many", clusters, todo, key="clusters")
        grown = grow(build, match[1], int(match[2] or 1), planes)
        rows = ScheduleRows(grown.build.wiring, grown.cables, grown.added)
        return cls(grown.build, _facts_of_clusters(build, grown), rows)

    @classmethod
    def of_rest(cls, build: Build, larger: Build) -> GrowthReport:
        """Report on the nodes and cables that a partly installed fabric lacks.

        Args:
            build: the build of what is installed.
            larger: the build of the fabric with more of it installed.

        Raises:
            InputError: the builds are not of one fabric.
        """
        rest = uninstalled_rest(build, larger)
        rows = ScheduleRows(larger.wiring, rest.cables, rest.added)
        return cls(larger, _facts_of_rest(build, larger, rest), rows)

    def __repr__(self) -> str:
        """`<GrowthReport lab: 8 nodes and 40 cables to add>`."""
        nodes, cables = len(self.facts["nodes_added"]), self.facts["cables_added"]
        return f"<GrowthReport {self.build.name}: {nodes:,} nodes and {cables:,} cables to add>"

    def as_dict(self) -> dict[str, Any]:
        """The facts and the new cables, for JSON."""
        return self.facts | {"added": list(as_records(self.rows))}

    def csv(self) -> str:
        """The new cables as CSV."""
        return "".join(as_csv(self.rows))


def added_cables(reports: Sequence[GrowthReport]) -> str:
    """The new cables of all planes as CSV."""
    return "".join(as_csv(chain.from_iterable(report.rows for report in reports)))


def _facts_of_clusters(build: Build, grown: GrownFabric) -> dict[str, Any]:
    """The facts of an expansion by clusters."""
    names, first_new = grown.build.wiring.names, build.topology.graph.order
    hardware, ports_left = grown.cables.hardware, grown.ports_left.tolist()
    changes = {kind: counts.tolist() for kind, counts in grown.changes.items()}
    return {
        "fabric": build.name,
        "topology": grown.build.topology.title(),
        "nodes": len(names),
        "diameter": grown.build.topology.diameter,
        "nodes_added": list(names[first_new:]),
        "spares_taken": [spare.name for spare in grown.spare_nodes.values()],
        **_management_fact(grown.build.wiring, first_new),
        **_rack_facts(hardware, first_new, len(hardware_of(build).rack_names)),
        "cables": len(grown.cables),
        "cables_added": len(grown.added),
        **_slower_cables_fact(grown.build.wiring, grown.cables, grown.added),
        "cables_moved": grown.moved,
        "clusters_that_fit": grown.clusters_that_fit,
        "least_ports_left": min(ports_left),
        "nodes_without_ports_left": [
            name for name, left in zip(names, ports_left, strict=True) if not left
        ],
        "switches": [
            {"node": names[v], "ports_left": ports_left[v]}
            | {kind: counts[v] for kind, counts in changes.items()}
            for v in range(first_new)
        ],
    }


def _management_fact(wiring: Wiring, first_new: int) -> dict[str, list[str]]:
    """A fact for the report: the new switches without a management address; {} if there are none.

    Switches need one only if some installed switch has one.

    Args:
        wiring: the wiring of the larger fabric.
        first_new: the first new vertex; those below it are installed.
    """
    if not any(wiring.management[:first_new]):
        return {}
    new = zip(wiring.names[first_new:], wiring.management[first_new:], strict=True)
    without = [name for name, address in new if not address]
    return {WITHOUT_MANAGEMENT: without} if without else {}


def _slower_cables_fact(
    wiring: Wiring, cables: Cables, added: NDArray[np.integer]
) -> dict[str, str]:
    """A fact for the report: some added cables are slower than every installed cable.

    {} if there are no such cables.

    Args:
        wiring: the wiring of the larger fabric.
        cables: all its cables.
        added: int[A], the indexes of the added cables.
    """
    # float[T, P + 1], the speed of each port of each node type; 0: unknown.
    most_ports = max(map(len, wiring.port_names))
    speeds = np.zeros((len(wiring.port_names), most_ports + 1))
    for number, facts in enumerate(cables.hardware.types):
        speeds[number, 1 : len(facts.speed) + 1] = facts.speed
    # float[cables]: a cable has the speed of its slower end.
    speed_of_cable = speeds[wiring.node_type[cables.ends], cables.ports].min(axis=1)
    is_added = np.zeros(len(cables), np.bool_)
    is_added[added] = True
    if not is_added.any() or is_added.all():
        return {}
    slowest_added = speed_of_cable[is_added].min()
    slowest_installed = speed_of_cable[~is_added].min()
    if not 0 < slowest_added < slowest_installed:
        return {}
    count = int(np.count_nonzero(speed_of_cable[is_added] < slowest_installed))
    sentence = (
        f"{count:,} of them, with {slowest_added:g} Gbit/s; those that are there have"
        f" {slowest_installed:g}"
    )
    return {"cables_slower": sentence}


def _rack_facts(hardware: Hardware, first_new: int, old_racks: int) -> dict[str, list[str]]:
    """The racks of new nodes: old racks that are filled, and new racks.

    Args:
        hardware: the hardware of the larger fabric.
        first_new: the first new vertex.
        old_racks: how many racks were there before.
    """
    used = sorted(set(hardware.rack[first_new:].tolist()))
    return {
        "racks_filled": [hardware.rack_names[r] for r in used if r < old_racks],
        "racks_added": [hardware.rack_names[r] for r in used if r >= old_racks],
    }


def _facts_of_rest(build: Build, larger: Build, rest: UninstalledRest) -> dict[str, Any]:
    """The facts of an expansion by the rest of a fabric."""
    names, hardware = larger.wiring.names, rest.cables.hardware
    installed = build.topology.present.nonzero()[0].tolist()
    old_racks = set(hardware.rack[installed].tolist())
    racks = sorted(set(hardware.rack[rest.nodes].tolist()) - old_racks)
    return {
        "fabric": build.name,
        "topology": larger.topology.title(),
        "nodes": int(larger.topology.present.sum()),
        "nodes_added": [names[v] for v in rest.nodes.tolist()],
        "racks_added": [hardware.rack_names[r] for r in racks],
        "cables": len(rest.cables),
        "cables_added": len(rest.added),
        **_slower_cables_fact(larger.wiring, rest.cables, rest.added),
        "cables_moved": rest.moved,
        "cables_relabelled": rest.relabelled,
        "nodes_renamed": rest.renamed,
        "switches": [{"node": switch.node, **switch.counts()} for switch in rest.switches],
    }
