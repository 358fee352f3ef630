"""Links through passive cassettes: a ribbon from each switch, trunks between clusters behind.

Every cluster has a cassette. Each of its switches has a ribbon to the front port of its place in
the rack, a lane for each link in the order of ports. The cassette joins lanes to positions of
trunks, or to each other for links inside. Which positions is free, so they are chosen for few types
of cassettes (`compilers.cabling.shuffle`). In whole PolarFly with its positions
(`compilers.families.polarfly`) what one cluster sees of another depends on s - t, for even q on s/t
alone, so all fans get one type and trunks are straight.

Links that an expansion adds run through cassettes of their own, so what is there stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables, by_port, cables_of
from compilers.cabling.schedule_columns import label_prefix
from compilers.cabling.shuffle import Numbers, Shuffle, shuffle
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import added_clusters
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring, of_plane
from inventory.panels import SINGLE, TRUNK_FIBRES
from inventory.problems import Finding, InputError, Refused


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PanelPlan:
    """How the links of a fabric run through cassettes and trunks."""

    shuffle: Shuffle
    """The cassettes and trunks, and the way of each link."""
    cables: Cables
    """The links, as cables from switch to switch."""
    wiring: Wiring
    names: tuple[str, ...]
    """The name of each cassette."""
    rack: Numbers
    """int64[C]: the rack of each cassette."""
    trunk_name: str
    """The kind of trunk, a name of `inventory.panels`."""
    room: int
    """How many links a trunk holds."""

    def __repr__(self) -> str:
        """`<PanelPlan: 8 cassettes of 2 types, 28 trunks>`."""
        types, trunks = len(self.shuffle.types), len(self.shuffle.ends)
        return f"<PanelPlan: {len(self.names):,} cassettes of {types} types, {trunks:,} trunks>"

    def cost(self) -> tuple[int, ...]:
        """What is kept small: types, trunks, straight and reversed ones, fibres of a trunk."""
        found, fibres = self.shuffle, TRUNK_FIBRES.get(self.trunk_name, 0)
        return len(found.types), len(found.ends), len({*found.turned.tolist()}), fibres

    def trunk_label(self, trunk: int) -> str:
        """`T0012`; `P2-T0012` with several planes."""
        return f"{label_prefix(self.cables.hardware.plane)}T{trunk + 1:04d}"

    def ribbon_label(self, ribbon: int) -> str:
        """`R0012`; `P2-R0012` with several planes."""
        return f"{label_prefix(self.cables.hardware.plane)}R{ribbon + 1:04d}"

    def through(self, cable: int, backwards: bool = False) -> str:
        """What a link runs through: cassette, front port.lane, trunk:position, cassette, …."""
        start, end = (1, 0) if backwards else (0, 1)
        near, far = self._lane_text(cable, start), self._lane_text(cable, end)
        trunk = int(self.shuffle.trunk[cable])
        if trunk < 0:
            return f"{near} > {far}"
        position = self.shuffle.position[cable, start] + 1
        return f"{near} > {self.trunk_label(trunk)}:{position} > {far}"

    def _lane_text(self, cable: int, end: int) -> str:
        at = cable, end
        name = self.names[self.shuffle.panel[at]]
        return f"{name} {self.shuffle.front[at] + 1}.{self.shuffle.lane[at] + 1}"

    def exchange(self, one: int, other: int) -> str:
        """What to do where two trunks are in each other's place at a cassette that both have."""
        ends, sockets = self.shuffle.ends, self.shuffle.sockets
        shared = sorted({*ends[one].tolist()} & {*ends[other].tolist()})
        if not shared:
            return f"{self._trunk_text(one)} and {self._trunk_text(other)} are exchanged"
        cassette = shared[0]
        plugs = (
            f"{self.trunk_label(trunk)} (port T{sockets[trunk][ends[trunk] == cassette][0] + 1})"
            for trunk in (one, other)
        )
        name = self.names[cassette]
        return f"at {name} trunks {' and '.join(plugs)} are exchanged: swap their plugs"

    def _trunk_text(self, trunk: int) -> str:
        a, b = (self.names[cassette] for cassette in self.shuffle.ends[trunk])
        return f"{self.trunk_label(trunk)} ({a} to {b})"


def panel_plan(topology: Topology, wiring: Wiring, known: Hardware) -> PanelPlan | None:
    """The cassettes, trunks and lanes of a fabric; None where its links run through no panel.

    None, too, where links are missing. Of several kinds of trunks that with the least cost is taken
    (`PanelPlan.cost`).

    Raises:
        Refused: a link needs more fibres than a trunk has.
    """
    if not known.panels or lacks_links(known):
        return None
    cables = cables_of(wiring, known)
    place = by_port(known, wiring, "plug")
    kind = wiring.node_type[cables.ends]
    plug = place[kind, cables.ports] * place.shape[1] + cables.ports
    step = _expansion_steps(topology)

    def planned(trunk: str, room: int) -> PanelPlan:
        found = shuffle(cables, plug, step, room)
        names, rack = _names(known, found.cluster), _racks(known, found.cluster)
        return PanelPlan(found, cables, wiring, names, rack, trunk, room)

    return min(starmap(planned, trunk_rooms(cables, wiring).items()), key=PanelPlan.cost)


def trunk_rooms(cables: Cables, wiring: Wiring) -> dict[str, int]:
    """By the names of the trunks in stock how many links each holds; those that hold any.

    Raises:
        Refused: none of them holds a link.
    """
    known = cables.hardware
    fibres = int(known.cabling["cores"] * max(cables.lanes(wiring).max(initial=1), 1))
    rooms = {name: 1 if name == SINGLE else TRUNK_FIBRES[name] // fibres for name in known.panels}
    if not any(rooms.values()):
        required = f"a trunk of {fibres} fibres at least, as a link has"
        given = known.panels[-1]
        raise Refused(Finding(("panels", "trunk"), required, given, "name a larger one"))
    return {name: room for name, room in rooms.items() if room}


def require_trunks(wiring: Wiring, known: Hardware) -> None:
    """Refuse panels whose trunks hold no link.

    Raises:
        Refused: a link needs more fibres than a trunk has.
    """
    if known.panels:
        trunk_rooms(cables_of(wiring, known), wiring)


def lacks_links(known: Hardware) -> bool:
    """Whether there are panels, and links that would run through them are missing."""
    return bool(known.panels) and len(known.cable_number) > 0


def require_whole(known: Hardware) -> None:
    """Refuse panels of a fabric in which links are missing.

    Raises:
        InputError: links or switches are missing.
    """
    if lacks_links(known):
        given = "one with links missing"
        todo = "leave `dead_links` and `disabled_ports` out of the inventory and compile again; or "
        todo += "leave `panels` out, for cables from switch to switch"
        raise InputError.of("a whole fabric for panels", given, todo, key="panels")


def _expansion_steps(topology: Topology) -> NDArray[np.int64]:
    """int64[S]: the number of the expansion that added each switch, 0 for the first fabric."""
    if not added_clusters(topology)[1]:
        return np.zeros(topology.graph.order, np.int64)
    return topology.coordinates[:, -1].astype(np.int64)


def _names(known: Hardware, cluster: Numbers) -> tuple[str, ...]:
    """The name of each cassette: its cluster's, and -P1, -P2, … for those of one cluster."""
    count, names = Counter[int](), []
    for c in cluster.tolist():
        count[c] += 1
        names.append(f"{of_plane(known.plane)}{known.cluster_names[c]}-P{count[c]}")
    return tuple(names)


def _racks(known: Hardware, cluster: Numbers) -> Numbers:
    """int64[C]: the rack of each cassette, that of its cluster's first switch."""
    switches = np.lexsort((known.unit, known.rack, known.cluster))
    first = np.searchsorted(known.cluster[switches], cluster)
    return known.rack[switches[first]].astype(np.int64)


def layer1(wiring: Wiring, cables: Cables, plan: PanelPlan | None, u: int, v: int) -> Iterator[str]:
    """A line for each cable of a link: port, what it runs through, and port."""
    joins = (np.sort(cables.ends, axis=1) == sorted((u, v))).all(axis=1)
    for cable in np.flatnonzero(joins).tolist():
        backwards = int(cables.ends[cable, 0]) != u
        start, end = (1, 0) if backwards else (0, 1)
        near = f"{wiring.names[u]} {plug_name(wiring, cables, cable, start)}"
        far = f"{wiring.names[v]} {plug_name(wiring, cables, cable, end)}"
        yield " > ".join([near, plan.through(cable, backwards), far] if plan else [near, far])


def plug_name(wiring: Wiring, cables: Cables, cable: int, end: int) -> str:
    """The socket at an end of a cable, 0 or 1.

    In brackets its connector and lane, where fibres are shuffled inside the box.
    """
    port = int(cables.ports[cable, end]) - 1
    facts = cables.hardware.types[wiring.node_type[cables.ends[cable, end]]]
    name: str = facts.sockets[port][cables.socket[cable]]
    if facts.plug and facts.plug[port]:
        return f"{name} ({facts.label[port]})"
    return name


def panel_summary(plan: PanelPlan) -> dict[str, Any]:
    """Counts next to direct cables, and to a non-blocking fat tree of equal hosts.

    The fat tree has two levels, of the least even radix r with r²/2 hosts at least, and a cable a
    host above its leaves. A plug is one end; a ribbon of several trunks' fibres has as many.
    """
    found, links = plan.shuffle, len(plan.cables)
    ribbons = int((-(-np.bincount(found.ribbon.ravel()) // plan.room)).sum())
    trunks = len(found.ends)
    hosts = int(np.count_nonzero(plan.wiring.host_port))
    return {
        "trunk": plan.trunk_name,
        "cassettes": len(plan.names),
        "types": len(found.types),
        "least_types": found.least,
        "trunks": trunks,
        "reversed_trunks": int(found.turned.sum()),
        "ribbons": ribbons,
        "plugs": 2 * (ribbons + trunks),
        "plugs_of_direct_cables": 2 * links,
        "plugs_with_single_ports": 2 * links + ribbons + 2 * trunks,
        "hosts": hosts,
        "fat_tree_radix": 2 * int(np.ceil((hosts / 2) ** 0.5)),
        "fat_tree_plugs": 2 * hosts,
    }
