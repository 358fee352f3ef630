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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.bill import Item
from compilers.cabling.cable_plan import Cables, by_port, cables_of, distance, shelved
from compilers.cabling.phases import Phases
from compilers.cabling.shuffle import Numbers, Shuffle, shuffle
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import added_clusters
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring, of_plane
from inventory.panel_types import TRUNK_FIBRES
from inventory.problems import Finding, InputError, Refused

CORD_COLUMNS = (
    *("label", "kind", "a_rack", "a", "a_port", "b_rack", "b", "b_port"),
    *("a_type", "b_type", "links", "turned", "type", "length_m"),
)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class PanelPlan(Shuffle):
    """How each of E cables (links) runs through cassettes and trunks.

    names: of the cassettes; rack: int64[C]. fibres: of a link.
    """

    cables: Cables
    wiring: Wiring
    names: tuple[str, ...]
    rack: Numbers
    fibres: int

    def __repr__(self) -> str:
        """`<PanelPlan: 8 cassettes of 2 types, 28 trunks>`."""
        counts = f"{len(self.names):,} cassettes of {len(self.types)} types"
        return f"<PanelPlan: {counts}, {len(self.ends):,} trunks>"

    @property
    def trunk_name(self) -> str:
        """The library's name of the trunks."""
        return self.cables.hardware.panels[0].trunk

    @property
    def room(self) -> int:
        """How many links a trunk holds."""
        return TRUNK_FIBRES[self.trunk_name] // self.fibres

    def trunk_label(self, trunk: int) -> str:
        """`T0012`; `P2-T0012` with several planes."""
        return f"{of_plane(self.cables.hardware.plane)}T{trunk + 1:04d}"

    def ribbon_label(self, ribbon: int) -> str:
        """`R0012`; `P2-R0012` with several planes."""
        return f"{of_plane(self.cables.hardware.plane)}R{ribbon + 1:04d}"

    def through(self, cable: int, backwards: bool = False) -> str:
        """What a link runs through: cassette, front port.lane, trunk:position, cassette, …."""
        ends = (1, 0) if backwards else (0, 1)
        near, far = (
            f"{self.names[self.panel[cable, s]]} {self.front[cable, s] + 1}"
            f".{self.lane[cable, s] + 1}"
            for s in ends
        )
        trunk = int(self.trunk[cable])
        if trunk < 0:
            return f"{near} > {far}"
        return f"{near} > {self.trunk_label(trunk)}:{self.position[cable, ends[0]] + 1} > {far}"

    def exchange(self, one: int, other: int) -> str:
        """What to do where two trunks are in each other's place at a cassette that both have."""
        shared = sorted(set(self.ends[one].tolist()) & set(self.ends[other].tolist()))
        if not shared:
            return f"{self._trunk_text(one)} and {self._trunk_text(other)} are exchanged"
        at = shared[0]
        plugs = (
            f"{self.trunk_label(t)} (port T{self.sockets[t][self.ends[t] == at][0] + 1})"
            for t in (one, other)
        )
        return f"at {self.names[at]} trunks {' and '.join(plugs)} are exchanged: swap their plugs"

    def _trunk_text(self, trunk: int) -> str:
        a, b = (self.names[p] for p in self.ends[trunk])
        return f"{self.trunk_label(trunk)} ({a} to {b})"

    def cassettes(self) -> dict[str, Any]:
        """`panels` of an inventory, with the types that are needed."""
        types = {name: {"front": list(rows)} for name, rows in self.types}
        return {"panels": {"trunk": self.trunk_name, "types": types}}

    def of_types(self) -> PanelPlan:
        """The plan with the names of the inventory's types, where cassettes are of these."""
        given = {f.front: f.name for f in self.cables.hardware.panels}
        taken = set(given.values())
        named = tuple(
            (given.get(rows, f"{name}-new" if name in taken else name), rows)
            for name, rows in self.types
        )
        return replace(self, types=named)

    def unknown_types(self) -> Iterator[Finding]:
        """Findings for cassettes of none of the types that the inventory has, if it has some."""
        given = {f.front: f.name for f in self.cables.hardware.panels if f.front}
        for t, (_, needed) in enumerate(self.types if given else ()):
            if needed not in given:
                yield _unknown(self.names[int(np.argmax(self.kind == t))], needed, given)

    def ribbon(self) -> Numbers:
        """int64[E, 2]: the ribbon at both ends of each link, the place of its cord in `cords`."""
        at = np.stack((self.panel.ravel(), self.front.ravel(), self.cables.ends.ravel()))
        found: Numbers = np.unique(at, axis=1, return_inverse=True)[1].reshape(-1, 2)
        return found

    def first_cables(self, phase: NDArray[np.integer]) -> Numbers:
        """Of each cord in the order of `cords` the cable in it that is plugged in first."""
        between = np.flatnonzero(self.trunk >= 0)
        ribbon = self.ribbon().ravel()
        cable = np.concatenate((np.repeat(np.arange(len(self.cables)), 2), between))
        cord = np.concatenate((ribbon, ribbon.max(initial=-1) + 1 + self.trunk[between]))
        last = np.argsort(-phase[cable].astype(np.int64), kind="stable")
        found = np.zeros(int(cord.max(initial=-1)) + 1, np.int64)
        found[cord[last]] = cable[last]
        return found

    def of_phase(self, phases: Phases, phase: int) -> dict[str, list[str]]:
        """The names of the cassettes, ribbons and trunks of a phase of the installation."""
        cassettes = np.flatnonzero(phases.rack[self.rack] == phase).tolist()
        cords = phases.cable[self.first_cables(phases.cable)] == phase
        ribbons = np.flatnonzero(cords[: len(cords) - len(self.ends)]).tolist()
        trunks = np.flatnonzero(cords[len(cords) - len(self.ends) :]).tolist()
        return {
            "cassettes": [self.names[p] for p in cassettes],
            "ribbons": [self.ribbon_label(i) for i in ribbons],
            "trunks": [self.trunk_label(t) for t in trunks],
        }

    def _ribbons(self) -> tuple[Numbers, ...]:
        """Of each ribbon the cassette, front port, switch, and links."""
        _, first, count = np.unique(self.ribbon(), return_index=True, return_counts=True)
        switch = self.cables.ends.ravel()[first].astype(np.int64)
        return self.panel.ravel()[first], self.front.ravel()[first], switch, count

    def cords(self) -> Iterator[tuple[Any, ...]]:
        """Rows of `CORD_COLUMNS`: what is plugged by hand, ribbons and then trunks."""
        known, wiring = self.cables.hardware, self.wiring
        panel, front, switch, links = self._ribbons()
        types = [self.types[kind][0] for kind in self.kind.tolist()]
        last: dict[tuple[int, int], tuple[str, str]] = {}
        by = np.stack((self.cables.ends, self.panel, self.lane, self.cables.ports)).reshape(4, -1)
        for v, p, _, port in sorted(by.T.tolist()):
            name = plug_name(wiring, self.cables, v, port)
            last[v, p] = last.get((v, p), (name, ""))[0], name
        racks: Numbers = np.stack((known.rack[switch], self.rack[panel]), axis=1).astype(np.int64)
        kind, length = self._stock(racks, known.unit[switch])
        for i, (v, p, f) in enumerate(
            zip(switch.tolist(), panel.tolist(), front.tolist(), strict=True)
        ):
            yield (
                self.ribbon_label(i),
                *("ribbon", known.rack_names[racks[i, 0]], wiring.names[v]),
                " to ".join(last[v, p]),
                *(known.rack_names[racks[i, 1]], self.names[p], f"F{f + 1}"),
                *(wiring.type_names[wiring.node_type[v]], types[p], int(links[i]), ""),
                *(kind[i], length[i]),
            )
        racks = self.rack[self.ends]
        links = np.bincount(self.trunk[self.trunk >= 0])
        kind, length = self._stock(racks)
        for t, ((a, b), (i, k)) in enumerate(
            zip(self.ends.tolist(), self.sockets.tolist(), strict=True)
        ):
            yield (
                *(self.trunk_label(t), "trunk", known.rack_names[racks[t, 0]], self.names[a]),
                *(f"T{i + 1}", known.rack_names[racks[t, 1]], self.names[b], f"T{k + 1}"),
                *(types[a], types[b], int(links[t])),
                *("reversed" if self.turned[t] else "straight", kind[t], length[t]),
            )

    @staticmethod
    def labels(rows: Iterable[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
        """Two labels for each of these cords, as the sheet of labels takes them."""
        for row in rows:
            cord = dict(zip(CORD_COLUMNS, row, strict=True))
            ends = [" ".join(cord[f"{end}{w}"] for w in ("_rack", "", "_port")) for end in "ab"]
            for near, far in (ends, ends[::-1]):
                facts = {"bundle": cord["turned"], "length": f"{cord['length_m']:g}", "colour": ""}
                yield {"label": cord["label"], "near": near, "far": far, **facts}

    def _stock(
        self, racks: NDArray[np.integer], unit: NDArray[np.integer] | None = None
    ) -> tuple[list[str], list[float]]:
        """Names of types and lengths in stock; cassettes are at the top of their racks."""
        known = self.cables.hardware
        top = known.rack_units[racks].astype(np.int64)
        if unit is not None:
            top[:, 0] = unit
        kind, length = shelved(known, distance(known, racks, top))
        names = [entry["name"] for entry in self.cables.kinds()]
        return [names[t] if t >= 0 else "" for t in kind.tolist()], length.tolist()

    def trunk_length(self) -> NDArray[np.float64]:
        """float64[T]: metres of each trunk."""
        return np.array(self._stock(self.rack[self.ends])[1], np.float64)

    def items(self) -> Iterator[Item]:
        """Lines of the bill: cassettes by type, ribbons and trunks by length.

        A ribbon of more links than a trunk holds is bought as several.
        """
        parts = {facts.name: facts.part_number for facts in self.cables.hardware.panels}
        for t, (name, rows) in enumerate(self.types):
            behind = {w.split(".")[0] for text in rows for w in text.split() if w[0] == "T"}
            plural = "s" * (len(behind) != 1)
            detail = f"{len(rows)} ports in front, {len(behind)} trunk{plural} behind"
            quantity = int((self.kind == t).sum())
            yield Item("cassette", name, f"{parts.get(name, '')} {detail}".strip(), quantity)
        at = {word: i for i, word in enumerate(CORD_COLUMNS)}
        made = Counter[tuple[str, str]]()
        for row in self.cords():
            detail = f"{row[at['turned']]} {row[at['length_m']]:g} m".strip()
            made[row[at["kind"]], detail] += -(-row[at["links"]] // self.room)
        for (kind, detail), quantity in sorted(made.items()):
            yield Item(kind, self.trunk_name, detail, quantity)

    def summary(self) -> dict[str, Any]:
        """Counts beside direct cables, and beside a non-blocking fat tree of equal hosts.

        The fat tree has two levels, of the least even radix r with r²/2 hosts at least, and a cable
        a host above its leaves. A plug is one end; a ribbon of several trunks' fibres has as many.
        """
        *_, links = self._ribbons()
        ribbons, trunks = int((-(-links // self.room)).sum()), len(self.ends)
        hosts = int(np.count_nonzero(self.wiring.host_port))
        return {
            "trunk": self.trunk_name,
            "cassettes": len(self.names),
            "types": len(self.types),
            "least_types": self.least,
            "trunks": trunks,
            "reversed_trunks": int(self.turned.sum()),
            "ribbons": ribbons,
            "plugs": 2 * (ribbons + trunks),
            "plugs_of_direct_cables": 2 * len(self.cables),
            "plugs_with_single_ports": len(self.cables) * 2 + ribbons + 2 * trunks,
            "hosts": hosts,
            "fat_tree_radix": 2 * int(np.ceil((hosts / 2) ** 0.5)),
            "fat_tree_plugs": 2 * hosts,
        }


def panel_plan(topology: Topology, wiring: Wiring, known: Hardware) -> PanelPlan | None:
    """The cassettes, trunks and lanes of a fabric; None where its links run through no cassette.

    Raises:
        InputError: links or switches are missing.
        Refused: a link needs more fibres than a trunk has.
    """
    if not known.panels:
        return None
    if len(known.cable_number):
        given, todo = "one with links missing", "compile it without them for the panels"
        raise InputError.of("a whole fabric for panels", given, todo, key="panels")
    cables = cables_of(wiring, known)
    stage = topology.coordinates[:, -1].astype(np.int64)
    if not added_clusters(topology)[1]:
        stage = np.zeros(topology.graph.order, np.int64)
    fibres = int(known.cabling["cores"] * max(cables.lanes(wiring).max(initial=1), 1))
    trunk = known.panels[0].trunk
    if not (room := TRUNK_FIBRES[trunk] // fibres):
        required = f"a trunk of {fibres} fibres at least, as a link has"
        raise Refused(Finding(("panels", "trunk"), required, trunk, "name a larger one"))
    kind = wiring.node_type[cables.ends]
    place = by_port(known, wiring, "plug")
    plug = place[kind, cables.ports] * place.shape[1] + cables.ports
    found = shuffle(cables, plug, stage, room)
    seat = np.lexsort((known.unit, known.rack, known.cluster))
    rack = known.rack[seat[np.searchsorted(known.cluster[seat], found.home)]].astype(np.int64)
    count, names = Counter[int](), list[str]()
    for c in found.home.tolist():
        count[c] += 1
        names.append(f"{of_plane(known.plane)}{known.cluster_names[c]}-P{count[c]}")
    own = {
        "cables": cables,
        "wiring": wiring,
        "names": tuple(names),
        "rack": rack,
        "fibres": fibres,
    }
    whole: dict[str, Any] = {f.name: getattr(found, f.name) for f in fields(found)} | own
    return PanelPlan(**whole).of_types()


def layer1(wiring: Wiring, cables: Cables, plan: PanelPlan | None, u: int, v: int) -> Iterator[str]:
    """A line for each cable of a link: port, what it runs through, and port."""
    for e in np.flatnonzero((np.sort(cables.ends, axis=1) == sorted((u, v))).all(axis=1)).tolist():
        back = int(cables.ends[e, 0]) != u
        ends = zip((u, v), cables.ports[e, :: -1 if back else 1].tolist(), strict=True)
        near, far = (f"{wiring.names[n]} {plug_name(wiring, cables, n, p)}" for n, p in ends)
        yield " > ".join((near, *([plan.through(e, back)] if plan else ()), far))


def plug_name(wiring: Wiring, cables: Cables, vertex: int, port: int) -> str:
    """A port, and in brackets its connector and lane where fibres are shuffled inside the box."""
    facts = cables.hardware.types[wiring.node_type[vertex]]
    inside = facts.plug and facts.plug[port - 1]
    return wiring.port_name(vertex, port) + f" ({facts.label[port - 1]})" * bool(inside)


def _unknown(cassette: str, needed: tuple[str, ...], given: dict[tuple[str, ...], str]) -> Finding:
    """The front port at which the nearest type differs."""
    nearest = max(given, key=lambda rows: sum(map(str.__eq__, needed, rows)))
    here, there = next(
        (a, b) for a, b in zip_longest(needed, nearest, fillvalue="not there") if a != b
    )
    front = next(n for n, a in enumerate([*needed, ""], 1) if a != [*nearest, *needed][n - 1])
    return Finding(
        ("panels", "types", given[nearest], "front"),
        f"a type for cassette {cassette}: front port {front} is {here}",
        there,
        "`cables BUILD --format cassettes`, of a build without `types`, prints what is needed",
    )
