"""Plan links through passive cassettes: ribbons from switches, and trunks between clusters.

Every cluster has a cassette. A ribbon leads from each of its switches to a front port of the
cassette, and has a lane for each link of the switch, in the order of ports. Front ports are in the
order of switches in the rack. Behind the cassette are trunks to other cassettes. Inside, the
cassette joins a lane to a position of a trunk, or to another lane if the link stays in the cluster.
`compilers.cabling.shuffle` chooses the positions so that few types of cassettes are needed.

In a whole PolarFly one type serves all fans, and trunks are straight: the links from fan s to fan t
depend only on s - t (for even q on s/t), where s and t are the fans' numbers
(`compilers.families.polarfly`).

Links that an expansion adds run through cassettes of their own, so that installed cassettes stay as
they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_names import label_prefix
from compilers.cabling.cable_plan import Cables, by_port, cables_of
from compilers.cabling.connectors import Numbers
from compilers.cabling.shuffle import Shuffle, shuffle
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import added_clusters
from compilers.wiring.hardware import Hardware
from compilers.wiring.plane_numbers import plane_prefix
from compilers.wiring.wiring import Wiring
from inventory.panels import SINGLE, TRUNK_FIBRES
from inventory.problems import Finding, InputError, Refused


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PanelPlan:
    """How the links of a fabric run through cassettes and trunks."""

    shuffle: Shuffle
    """The cassettes and trunks, and the way of each link through them."""
    cables: Cables
    """The links, as cables from switch to switch."""
    wiring: Wiring
    """The ports of links and hosts."""
    names: tuple[str, ...]
    """The name of each cassette."""
    rack: Numbers
    """int64[C], the rack of each cassette."""
    trunk_name: str
    """The kind of trunk: a key of `inventory.panels.TRUNK_FIBRES`, or SINGLE."""
    room: int
    """How many links a trunk holds."""

    def __repr__(self) -> str:
        """`<PanelPlan: 8 cassettes of 2 types, 28 trunks>`."""
        types, trunks = len(self.shuffle.types), len(self.shuffle.ends)
        return f"<PanelPlan: {len(self.names):,} cassettes of {types} types, {trunks:,} trunks>"

    def cost(self) -> tuple[int, ...]:
        """Return what makes a plan costly, the most important first, to compare plans.

        That is the number of types of cassettes, of trunks, of directions of trunks (straight,
        reversed), and of fibres in a trunk.
        """
        types, trunks = len(self.shuffle.types), len(self.shuffle.ends)
        directions = len({*self.shuffle.is_reversed.tolist()})
        return types, trunks, directions, TRUNK_FIBRES.get(self.trunk_name, 0)

    def trunk_label(self, trunk: int) -> str:
        """The label of a trunk: `T0012`, or `P2-T0012` with several planes."""
        return f"{label_prefix(self.cables.hardware.plane)}T{trunk + 1:04d}"

    def ribbon_label(self, ribbon: int) -> str:
        """The label of a ribbon: `R0012`, or `P2-R0012` with several planes."""
        return f"{label_prefix(self.cables.hardware.plane)}R{ribbon + 1:04d}"

    def through(self, cable: int, backwards: bool = False) -> str:
        """The way of a link in words: `C0-P1 3.2 > T0012:5 > C1-P1 4.1`.

        That is a cassette with front port and lane, a trunk with the position on it, and the
        cassette at the other end. A link inside a cassette has no trunk.

        Args:
            cable: the number of the link, an index into `cables`.
            backwards: whether the way begins at the second end.
        """
        start, end = _end_order(backwards)
        near, far = self._lane_text(cable, start), self._lane_text(cable, end)
        trunk = int(self.shuffle.trunk[cable])
        if trunk < 0:
            return f"{near} > {far}"
        position = self.shuffle.position[cable, start] + 1
        return f"{near} > {self.trunk_label(trunk)}:{position} > {far}"

    def _lane_text(self, cable: int, end: int) -> str:
        """The cassette, front port and lane at an end of a link: `C0-P1 3.2`."""
        name = self.names[self.shuffle.cassette[cable, end]]
        front, lane = self.shuffle.front_port[cable, end] + 1, self.shuffle.lane[cable, end] + 1
        return f"{name} {front}.{lane}"

    def exchange(self, first: int, second: int) -> str:
        """What to do if two trunks are plugged in each other's place, in words."""
        ends = self.shuffle.ends
        shared = sorted({*ends[first].tolist()} & {*ends[second].tolist()})
        if not shared:
            return f"{self._trunk_text(first)} and {self._trunk_text(second)} are exchanged"
        cassette = shared[0]
        plugs = f"{self._plug_text(first, cassette)} and {self._plug_text(second, cassette)}"
        return f"at {self.names[cassette]} trunks {plugs} are exchanged: swap their plugs"

    def _plug_text(self, trunk: int, cassette: int) -> str:
        """A trunk, and its port behind a cassette: `T0012 (port T3)`."""
        at_cassette = self.shuffle.ends[trunk] == cassette
        port = self.shuffle.rear_ports[trunk][at_cassette][0] + 1
        return f"{self.trunk_label(trunk)} (port T{port})"

    def _trunk_text(self, trunk: int) -> str:
        """A trunk, and the cassettes at its ends: `T0012 (C0-P1 to C1-P1)`."""
        a, b = (self.names[cassette] for cassette in self.shuffle.ends[trunk])
        return f"{self.trunk_label(trunk)} ({a} to {b})"


def panel_plan(topology: Topology, wiring: Wiring, hardware: Hardware) -> PanelPlan | None:
    """Plan the cassettes, trunks and lanes of a fabric.

    Of several kinds of trunks in stock, the one whose plan has the least `PanelPlan.cost` is taken.

    Args:
        topology: says which links an expansion added.
        wiring: the ports of links.
        hardware: the clusters and racks, and the trunks in stock.

    Returns:
        The plan; None if the inventory has no panels, or if links are missing.

    Raises:
        Refused: a link needs more fibres than a trunk has.
    """
    if not hardware.panels or lacks_links(hardware):
        return None
    cables = cables_of(wiring, hardware)
    lane_key, expansion = _lane_keys(cables, wiring), _expansions(topology)
    plans = []
    for trunk, room in trunk_rooms(cables, wiring).items():
        assignment = shuffle(cables, lane_key, expansion, room)
        plan = PanelPlan(
            shuffle=assignment,
            cables=cables,
            wiring=wiring,
            names=_cassette_names(hardware, assignment.cluster),
            rack=_cassette_racks(hardware, assignment.cluster),
            trunk_name=trunk,
            room=room,
        )
        plans.append(plan)
    return min(plans, key=PanelPlan.cost)


def _lane_keys(cables: Cables, wiring: Wiring) -> NDArray[np.int64]:
    """The numbers by which the lanes of a switch are sorted, int64[E, 2], for both ends of links.

    Lanes are sorted by the places of plugs on the face plate, then by ports.
    """
    # int64[types, ports + 1], the position of each port on the face plate.
    position = by_port(cables.hardware, wiring, "plug")
    node_type = wiring.node_type[cables.ends]
    keys: NDArray[np.int64] = position[node_type, cables.ports] * position.shape[1] + cables.ports
    return keys


def trunk_rooms(cables: Cables, wiring: Wiring) -> dict[str, int]:
    """How many links each kind of trunk in stock holds; kinds that hold none are left out.

    Raises:
        Refused: none of them holds a link.
    """
    hardware = cables.hardware
    trunks_in_stock = hardware.panels
    most_lanes = max(int(cables.lanes(wiring).max(initial=1)), 1)
    fibres = hardware.cabling["cores"] * most_lanes
    rooms = {
        trunk: 1 if trunk == SINGLE else TRUNK_FIBRES[trunk] // fibres for trunk in trunks_in_stock
    }
    if not any(rooms.values()):
        required = f"a trunk of {fibres} fibres at least, as a link has"
        largest = trunks_in_stock[-1]
        raise Refused(Finding(("panels", "trunk"), required, largest, "name a larger one"))
    return {trunk: room for trunk, room in rooms.items() if room}


def require_trunks(wiring: Wiring, hardware: Hardware) -> None:
    """Pass if some trunk in stock holds a link, or if there are no panels.

    Raises:
        Refused: a link needs more fibres than a trunk has.
    """
    if hardware.panels:
        trunk_rooms(cables_of(wiring, hardware), wiring)


def lacks_links(hardware: Hardware) -> bool:
    """Whether there are panels, and links that would run through them are missing."""
    # A whole fabric stores no numbers of cables, as its labels are 1, 2, … without a gap.
    labels_have_gaps = len(hardware.cable_number) > 0
    return bool(hardware.panels) and labels_have_gaps


def require_whole(hardware: Hardware) -> None:
    """Pass if a fabric has no panels, or if no link is missing.

    Raises:
        InputError: there are panels, and links or switches are missing.
    """
    if lacks_links(hardware):
        todo = (
            "leave `dead_links` and `disabled_ports` out of the inventory and compile again; or "
            "leave `panels` out, for cables from switch to switch"
        )
        required, given = "a whole fabric for panels", "one with links missing"
        raise InputError.of(required, given, todo, key="panels")


def _expansions(topology: Topology) -> NDArray[np.int64]:
    """The number of the expansion that added each switch, int64[S]; 0 for the first fabric."""
    if not added_clusters(topology)[1]:
        return np.zeros(topology.graph.order, np.int64)
    return topology.coordinates[:, -1].astype(np.int64)


def _cassette_names(hardware: Hardware, cluster: Numbers) -> tuple[str, ...]:
    """The name of each cassette: that of its cluster, with -P1, -P2, … within a cluster.

    Args:
        hardware: the names of clusters.
        cluster: int64[C], the cluster of each cassette.
    """
    count, names = Counter[int](), []
    for number in cluster.tolist():
        count[number] += 1
        cluster_name = f"{plane_prefix(hardware.plane)}{hardware.cluster_names[number]}"
        names.append(f"{cluster_name}-P{count[number]}")
    return tuple(names)


def _cassette_racks(hardware: Hardware, cluster: Numbers) -> Numbers:
    """The rack of each cassette, int64[C]: that of the first switch of its cluster."""
    switches = np.lexsort((hardware.unit, hardware.rack, hardware.cluster))
    first = np.searchsorted(hardware.cluster[switches], cluster)
    return hardware.rack[switches[first]].astype(np.int64)


def layer1(wiring: Wiring, cables: Cables, plan: PanelPlan | None, u: int, v: int) -> Iterator[str]:
    """Yield a line for each cable of a link: port, what it runs through, and port.

    Args:
        wiring: the names of nodes.
        cables: all cables.
        plan: how they run through panels; None: they do not.
        u: the switch where the lines begin.
        v: the switch where they end.
    """
    is_between = (np.sort(cables.ends, axis=1) == sorted((u, v))).all(axis=1)
    for cable in np.flatnonzero(is_between).tolist():
        backwards = int(cables.ends[cable, 0]) != u
        start, end = _end_order(backwards)
        near = f"{wiring.names[u]} {plug_name(wiring, cables, cable, start)}"
        far = f"{wiring.names[v]} {plug_name(wiring, cables, cable, end)}"
        yield " > ".join([near, plan.through(cable, backwards), far] if plan else [near, far])


def _end_order(backwards: bool) -> tuple[int, int]:
    """The ends of a cable, 0 and 1, in the order in which it is followed."""
    return (1, 0) if backwards else (0, 1)


def plug_name(wiring: Wiring, cables: Cables, cable: int, end: int) -> str:
    """The name of the socket at an end of a cable.

    If fibres are shuffled inside the switch, the label of the port (connector and lane) follows in
    brackets.

    Args:
        wiring: the types of nodes.
        cables: all cables.
        cable: the index of the cable.
        end: 0 or 1.
    """
    port = int(cables.ports[cable, end]) - 1
    facts = cables.hardware.types[wiring.node_type[cables.ends[cable, end]]]
    name: str = facts.sockets[port][cables.socket[cable]]
    if facts.plug and facts.plug[port]:
        return f"{name} ({facts.label[port]})"
    return name


def panel_summary(plan: PanelPlan) -> dict[str, Any]:
    """The counts of a plan, compared with direct cables and with a fat tree.

    The fat tree is non-blocking, with two levels and at least as many hosts: its switches have the
    least even radix r with r²/2 hosts, and one cable for each host above the leaves. A plug is one
    end of a cable, ribbon or trunk; a ribbon with more links than a trunk holds counts as several.
    """
    assignment, links = plan.shuffle, len(plan.cables)
    lanes_of_ribbon = np.bincount(assignment.ribbon.ravel())
    ribbons = int((-(-lanes_of_ribbon // plan.room)).sum())
    trunks = len(assignment.ends)
    hosts = int(np.count_nonzero(plan.wiring.host_port))
    # r²/2 hosts for the least even r: r is twice the root of hosts / 2, rounded up.
    fat_tree_radix = 2 * int(np.ceil((hosts / 2) ** 0.5))
    return {
        "trunk": plan.trunk_name,
        "cassettes": len(plan.names),
        "types": len(assignment.types),
        "least_types": assignment.fewest_types,
        "trunks": trunks,
        "reversed_trunks": int(assignment.is_reversed.sum()),
        "ribbons": ribbons,
        "plugs": 2 * (ribbons + trunks),
        "plugs_of_direct_cables": 2 * links,
        # A ribbon that fans out at its switch has a plug for each link there.
        "plugs_with_single_ports": 2 * links + ribbons + 2 * trunks,
        "hosts": hosts,
        "fat_tree_radix": fat_tree_radix,
        "fat_tree_plugs": 2 * hosts,
    }
