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
from dataclasses import dataclass, fields
from itertools import chain, pairwise, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.bill import Item
from compilers.cabling.cable_plan import Cables, by_port, cables_of, distance, shelved
from compilers.cabling.patch_panels import boxed, patched
from compilers.cabling.schedule_columns import label_prefix, labels_of
from compilers.cabling.shuffle import Numbers, Shuffle, shuffle
from compilers.cabling.stock import from_stock
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import added_clusters
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring, of_plane
from inventory.panel_types import SINGLE, TRUNK_FIBRES, straight_through
from inventory.problems import Finding, InputError, Refused

CORD_COLUMNS = (
    *("label", "kind", "a_rack", "a", "a_port", "b_rack", "b", "b_port"),
    *("a_type", "b_type", "links", "turned", "type", "length_m"),
)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class PanelPlan(Shuffle):
    """How each of E cables (links) runs through cassettes and trunks.

    names: of the cassettes; rack: int64[C]. trunk_name: the library's. room: how many links a trunk
    holds.
    """

    cables: Cables
    wiring: Wiring
    names: tuple[str, ...]
    rack: Numbers
    trunk_name: str
    room: int

    def __repr__(self) -> str:
        """`<PanelPlan: 8 cassettes of 2 types, 28 trunks>`."""
        counts = f"{len(self.names):,} {self.words[0]}s of {len(self.types)} types"
        return f"<PanelPlan: {counts}, {len(self.ends):,} trunks>"

    @property
    def patch(self) -> bool:
        """Whether the panels are patch panels."""
        return bool(self.cables.hardware.panels[0].patch)

    @property
    def words(self) -> tuple[str, str]:
        """What a panel is called, and what leads from a switch to it."""
        return ("patch panel", "cord") if self.patch else ("cassette", "ribbon")

    def cost(self) -> tuple[int, ...]:
        """What is kept small: types not in stock, types, trunks, their permutations, fibres."""
        missing, fibres = len([*self.unknown_types()]), TRUNK_FIBRES.get(self.trunk_name, 0)
        return missing, len(self.types), len(self.ends), len({*self.turned.tolist()}), fibres

    def trunk_label(self, trunk: int) -> str:
        """`T0012`; `P2-T0012` with several planes."""
        return f"{label_prefix(self.cables.hardware.plane)}T{trunk + 1:04d}"

    def ribbon_label(self, ribbon: int) -> str:
        """`R0012`; `P2-R0012` with several planes."""
        return f"{label_prefix(self.cables.hardware.plane)}R{ribbon + 1:04d}"

    def through(self, cable: int, backwards: bool = False) -> str:
        """What a link runs through: cassette, front port.lane, trunk:position, cassette, …."""
        if self.panel[cable, 0] < 0:
            return ""
        ends = (1, 0) if backwards else (0, 1)
        near, far = (
            f"{self.names[self.panel[cable, s]]} {self.front[cable, s] + 1}"
            + f".{self.lane[cable, s] + 1}" * (not self.patch)
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
        patch = {"patch": self.types[0][0]} if self.patch else {}
        return {"panels": {"trunk": self.trunk_name, **patch, "types": types}}

    def unknown_types(self) -> Iterator[Finding]:
        """Findings for cassettes of none of the types that the inventory has, if it has some."""
        given = {f.front: f.name for f in self.cables.hardware.panels if f.front}
        for t, (_, needed) in enumerate(self.types if given and not self.patch else ()):
            if needed not in given:
                yield _unknown(self.names[int(np.argmax(self.kind == t))], needed, given)

    @property
    def unused_types(self) -> list[str]:
        """The names of the types that the inventory has and no cassette is of."""
        used = {name for name, _ in self.types}
        return [f.name for f in self.cables.hardware.panels if f.name and f.name not in used]

    @property
    def loose(self) -> Numbers:
        """int64[n]: the links that are a cable from switch to switch."""
        return np.flatnonzero(self.panel[:, 0] < 0)

    @property
    def at(self) -> tuple[slice, slice, slice]:
        """Where `cords` has ribbons, or cords to patch panels, then trunks, then cables."""
        ribbons = int(self.cord.max(initial=-1)) + 1
        ends = (0, ribbons, ribbons + len(self.ends), ribbons + len(self.ends) + len(self.loose))
        first, trunks, cables = (slice(*pair) for pair in pairwise(ends))
        return first, trunks, cables

    def _halves(self) -> tuple[Numbers, Numbers]:
        """The first and last of the link ends in each ribbon, 2e and 2e + 1 of link e, by lanes."""
        cord = self.cord.ravel()
        by = np.lexsort((self.lane.ravel(), cord))[np.count_nonzero(cord < 0) :]
        starts = np.flatnonzero(np.diff(cord[by], prepend=-1))
        return by[starts], by[np.append(starts, len(by))[1:] - 1]

    def cords(self) -> Iterator[tuple[Any, ...]]:
        """Rows of `CORD_COLUMNS`: what is plugged by hand, ribbons, trunks, and then cables."""
        known, wiring = self.cables.hardware, self.wiring
        types = [self.types[kind][0] for kind in self.kind.tolist()]
        first, last = self._halves()
        each = (self.cables.ends, self.panel, self.front, self.lane)
        switch, panel, front, lane = (x.ravel()[first].astype(np.int64) for x in each)
        links = self.lane.ravel()[last] - lane + 1
        racks = np.stack((known.rack[switch], self.rack[panel]), axis=1).astype(np.int64)
        kind, length = self._stock(racks, known.unit[switch])
        for i, (v, p, f) in enumerate(np.stack((switch, panel, front), axis=1).tolist()):
            plugs = (plug_name(wiring, self.cables, int(half)) for half in (first[i], last[i]))
            ports = " to ".join(dict.fromkeys(plugs))
            yield (
                self.ribbon_label(i),
                *(
                    self.words[1],
                    known.rack_names[racks[i, 0]],
                    wiring.names[v],
                    ports,
                ),
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
        yield from self._loose_cables()

    def _loose_cables(self) -> Iterator[tuple[Any, ...]]:
        known, wiring, loose = self.cables.hardware, self.wiring, self.loose
        names = [entry["name"] for entry in self.cables.kinds()]
        for e, label in zip(loose.tolist(), labels_of(self.cables, loose), strict=True):
            u, v = self.cables.ends[e].tolist()
            plugs = (plug_name(wiring, self.cables, 2 * e + s) for s in (0, 1))
            ends = zip((u, v), plugs, strict=True)
            places = ((known.rack_names[known.rack[n]], wiring.names[n], plug) for n, plug in ends)
            yield (
                *(label, "cable", *chain.from_iterable(places)),
                *(wiring.type_names[wiring.node_type[n]] for n in (u, v)),
                *(1, "", names[self.cables.kind[e]], float(self.cables.length[e])),
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
            yield Item(self.words[0], name, f"{parts.get(name, '')} {detail}".strip(), quantity)
        made = Counter[tuple[str, str, str]]()
        for row in self.cords():
            cord = dict(zip(CORD_COLUMNS, row, strict=True))
            fibres = cord["kind"] in ("ribbon", "trunk") and self.trunk_name != SINGLE
            name = self.trunk_name if fibres else cord["type"]
            detail = f"{cord['turned']} {cord['length_m']:g} m".strip()
            made[cord["kind"], name, detail] += -(-cord["links"] // self.room)
        for item, quantity in sorted(made.items()):
            yield Item(*item, quantity)

    def summary(self) -> dict[str, Any]:
        """Counts next to direct cables, and to a non-blocking fat tree of equal hosts.

        The fat tree has two levels, of the least even radix r with r²/2 hosts at least, and a cable
        a host above its leaves. A plug is one end; a ribbon of several trunks' fibres has as many.
        """
        first, last = self._halves()
        links = self.lane.ravel()[last] - self.lane.ravel()[first] + 1
        ribbons, trunks = int((-(-links // self.room)).sum()), len(self.ends)
        hosts = int(np.count_nonzero(self.wiring.host_port))
        found = {
            "trunk": self.trunk_name,
            self.words[0].replace(" ", "_") + "s": len(self.names),
            "types": len(self.types),
            "least_types": self.least,
            "trunks": trunks,
            "reversed_trunks": int(self.turned.sum()),
            self.words[1] + "s": ribbons,
            "cables": len(self.loose),
            "plugs": 2 * (ribbons + trunks + len(self.loose)),
            "plugs_of_direct_cables": 2 * len(self.cables),
            "plugs_with_single_ports": len(self.cables) * 2 + ribbons + 2 * trunks,
            "hosts": hosts,
            "fat_tree_radix": 2 * int(np.ceil((hosts / 2) ** 0.5)),
            "fat_tree_plugs": 2 * hosts,
        }
        unlike = {"cables"}
        if self.patch:
            unlike = {"least_types", "reversed_trunks", "plugs_with_single_ports"}
        elif self.cables.hardware.panels[0].front:
            unlike = {"cables", "least_types"}
        unused = {"unused_types": self.unused_types} if self.unused_types else {}
        return {word: count for word, count in found.items() if word not in unlike} | unused


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


def panel_plan(topology: Topology, wiring: Wiring, known: Hardware) -> PanelPlan | None:
    """The panels, trunks and lanes of a fabric; None where its links run through no panel.

    None, too, where links are missing.

    Raises:
        Refused: a link needs more fibres than a trunk has, or a patch panel has behind a port.
    """
    if not known.panels or lacks_links(known):
        return None
    cables = cables_of(wiring, known)
    fibres = int(known.cabling["cores"] * max(cables.lanes(wiring).max(initial=1), 1))
    names = known.panels[0].trunk.split()
    rooms = {n: 1 if n == SINGLE else TRUNK_FIBRES[n] // fibres for n in names}
    if not any(rooms.values()):
        required = f"a trunk of {fibres} fibres at least, as a link has"
        raise Refused(Finding(("panels", "trunk"), required, names[-1], "name a larger one"))
    plans = [_planned(topology, wiring, cables, n, room) for n, room in rooms.items() if room]
    return min(plans, key=PanelPlan.cost)


def _planned(
    topology: Topology, wiring: Wiring, cables: Cables, trunk: str, room: int
) -> PanelPlan:
    """The panels with trunks of this name, which hold `room` links."""
    known, given = cables.hardware, cables.hardware.panels[0]
    stage = topology.coordinates[:, -1].astype(np.int64)
    if not added_clusters(topology)[1]:
        stage = np.zeros(topology.graph.order, np.int64)
    if given.patch:
        front = given.front or straight_through(given.patch[0], room)
        found = patched(cables, stage, given.name, front)
        most = max(int(text.split(".")[1]) for text in front if text != "-")
        if most > room:
            required = f"at most {room} positions at a port behind, as trunk {trunk} holds"
            raise Refused(Finding(("panels", "types", given.name, "front"), required, str(most)))
        rack, stems = found.home, known.rack_names
    else:
        kind = wiring.node_type[cables.ends]
        place = by_port(known, wiring, "plug")
        plug = place[kind, cables.ports] * place.shape[1] + cables.ports
        boxes = family_of(topology.family).boxes(topology)
        if boxes and len(boxes.trunk) == len(cables):
            found = boxed(cables, boxes, room)
        else:
            found = shuffle(cables, plug, stage, room)
        if given.front:
            step = np.zeros(len(found.home), np.int64)
            step[found.panel] = stage[cables.ends].max(axis=1)[:, None]
            stock = [(facts.name, facts.front) for facts in known.panels]
            found = from_stock(found, stock, step, room)
        seat = np.lexsort((known.unit, known.rack, known.cluster))
        rack = known.rack[seat[np.searchsorted(known.cluster[seat], found.home)]].astype(np.int64)
        stems = tuple(f"{of_plane(known.plane)}{name}" for name in known.cluster_names)
    count, names = Counter[int](), list[str]()
    for c in found.home.tolist():
        count[c] += 1
        names.append(f"{stems[c]}-P{count[c]}")
    own = {"cables": cables, "wiring": wiring, "names": tuple(names), "rack": rack}
    whole: dict[str, Any] = {f.name: getattr(found, f.name) for f in fields(found)} | own
    return PanelPlan(**whole, trunk_name=trunk, room=room)


def layer1(wiring: Wiring, cables: Cables, plan: PanelPlan | None, u: int, v: int) -> Iterator[str]:
    """A line for each cable of a link: port, what it runs through, and port."""
    for e in np.flatnonzero((np.sort(cables.ends, axis=1) == sorted((u, v))).all(axis=1)).tolist():
        back = int(cables.ends[e, 0]) != u
        halves = zip((u, v), (2 * e + back, 2 * e + 1 - back), strict=True)
        near, far = (f"{wiring.names[n]} {plug_name(wiring, cables, h)}" for n, h in halves)
        yield " > ".join(filter(None, (near, plan.through(e, back) if plan else "", far)))


def plug_name(wiring: Wiring, cables: Cables, half: int) -> str:
    """The socket at an end of a cable, 2e or 2e + 1 of cable e.

    In brackets its connector and lane, where fibres are shuffled inside the box.
    """
    cable, end = divmod(half, 2)
    port = int(cables.ports[cable, end]) - 1
    facts = cables.hardware.types[wiring.node_type[cables.ends[cable, end]]]
    inside = facts.plug and facts.plug[port]
    name: str = facts.sockets[port][cables.socket[cable]]
    return name + f" ({facts.label[port]})" * bool(inside)


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
        "polarfab cables FABRIC --format cassettes without `types` prints what is needed",
    )
