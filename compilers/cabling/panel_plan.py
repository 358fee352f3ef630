"""Links through passive cassettes: a ribbon from each switch, trunks between clusters behind.

Every cluster has a cassette. Each of its switches has a ribbon to the front port of its place in
the rack, a lane for each link in the order of ports. The cassette joins lanes to positions of
trunks, or to each other for links inside. Which positions is free, so they are chosen for few types
of cassettes: of two clusters one *leads*, whose lanes take positions in their own order, and the
other follows. The larger kind of clusters leads; of one kind the one whose view of the pair comes
first, which both ends know. In whole PolarFly with its positions (`compilers.families.polarfly`)
the view depends on s - t, for even q on s/t alone, so all fans get one type and trunks are
straight. Where both views are the same, as in stars, positions are such that a trunk with its ends
reversed serves.

Links that an expansion adds run through cassettes of their own, so what is there stays as it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.bill import Item
from compilers.cabling.cable_plan import Cables, cables_of, distance, shelved
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import added_clusters
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring, of_plane
from inventory.panel_types import TRUNK_FIBRES
from inventory.problems import Finding, InputError, Refused

Numbers = NDArray[np.int64]
Code = tuple[int, ...]
CORD_COLUMNS = (
    *("label", "kind", "a_rack", "a", "a_port", "b_rack", "b", "b_port"),
    *("links", "turned", "type", "length_m"),
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PanelPlan:
    """C cassettes, T trunks, and how each of E cables (links) runs through them; all from 0.

    names: of the cassettes; rack: int64[C]; kind: int64[C], the type of each, an index into types.
    types: by name the words of each front port (`inventory.panel_types.CassetteType`). panel,
    front, lane: int64[E, 2], at both ends of a link. trunk: int64[E], -1 inside a cassette;
    position: int64[E, 2], on the trunk at both ends. ends, sockets: int64[T, 2], the cassettes of a
    trunk and its port behind each. turned: bool[T], position k leads to the k-th from the last one
    used. least: that any numbering of the same clusters needs as many types.
    """

    cables: Cables
    wiring: Wiring
    names: tuple[str, ...]
    rack: Numbers
    kind: Numbers
    types: tuple[tuple[str, tuple[str, ...]], ...]
    panel: Numbers
    front: Numbers
    lane: Numbers
    trunk: Numbers
    position: Numbers
    ends: Numbers
    sockets: Numbers
    turned: NDArray[np.bool_]
    least: int
    fibres: int

    def __repr__(self) -> str:
        """`<PanelPlan: 8 cassettes of 2 types, 28 trunks>`."""
        counts = f"{len(self.names):,} cassettes of {len(self.types)} types"
        return f"<PanelPlan: {counts}, {len(self.ends):,} trunks>"

    @property
    def trunk_name(self) -> str:
        """The library's name of the trunks."""
        return self.cables.hardware.panels[0].trunk

    def trunk_label(self, trunk: int) -> str:
        """`T0012`; `P2-T0012` with several planes."""
        return f"{of_plane(self.cables.hardware.plane)}T{trunk + 1:04d}"

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

    def along(self, u: int, v: int) -> Iterator[str]:
        """A line for each cable of a link: port, what it runs through, and port."""
        for e in np.flatnonzero((np.sort(self.cables.ends, axis=1) == sorted((u, v))).all(axis=1)):
            back = int(self.cables.ends[e, 0]) != u
            near, far = (
                f"{self.wiring.names[n]} {self.wiring.port_name(n, p)}"
                for n, p in zip((u, v), self.cables.ports[e, :: -1 if back else 1], strict=True)
            )
            yield f"{near} > {self.through(int(e), back)} > {far}"

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

    def first_cables(self, phase: NDArray[np.integer]) -> Numbers:
        """Of each cord in the order of `cords` the cable in it that is plugged in first."""
        cable = np.repeat(np.arange(len(self.cables)), 2)
        at = np.stack((self.panel.ravel(), self.front.ravel(), self.cables.ends.ravel()))
        cord = np.unique(at, axis=1, return_inverse=True)[1].ravel()
        ribbons = int(cord.max(initial=-1)) + 1
        between = np.flatnonzero(self.trunk >= 0)
        cable = np.concatenate((cable, between))
        cord = np.concatenate((cord, ribbons + self.trunk[between]))
        last = np.argsort(-phase[cable].astype(np.int64), kind="stable")
        found = np.zeros(ribbons + len(self.ends), np.int64)
        found[cord[last]] = cable[last]
        return found

    def _ribbons(self) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Of each ribbon the cassette, front port, switch, and links."""
        at = np.stack((self.panel.ravel(), self.front.ravel(), self.cables.ends.ravel()))
        found, count = np.unique(at, axis=1, return_counts=True)
        return found[0], found[1], found[2], count

    def cords(self) -> Iterator[tuple[Any, ...]]:
        """Rows of `CORD_COLUMNS`: what is plugged by hand, ribbons and then trunks."""
        known, wiring = self.cables.hardware, self.wiring
        panel, front, switch, links = self._ribbons()
        last: dict[tuple[int, int], tuple[str, str]] = {}
        by = np.stack((self.cables.ends, self.panel, self.lane, self.cables.ports)).reshape(4, -1)
        for v, p, _, port in sorted(by.T.tolist()):
            name = wiring.port_name(v, port)
            last[v, p] = last.get((v, p), (name, ""))[0], name
        racks: Numbers = np.stack((known.rack[switch], self.rack[panel]), axis=1).astype(np.int64)
        kind, length = self._stock(racks, known.unit[switch])
        for i, (v, p, f) in enumerate(
            zip(switch.tolist(), panel.tolist(), front.tolist(), strict=True)
        ):
            yield (
                f"{of_plane(known.plane)}R{i + 1:04d}",
                *("ribbon", known.rack_names[racks[i, 0]], wiring.names[v]),
                " to ".join(last[v, p]),
                *(known.rack_names[racks[i, 1]], self.names[p], f"F{f + 1}", int(links[i]), ""),
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
                *(int(links[t]), "reversed" if self.turned[t] else "straight", kind[t], length[t]),
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

    def items(self) -> Iterator[Item]:
        """Lines of the bill: cassettes by type, ribbons and trunks by length.

        A ribbon of more links than a trunk holds is bought as several.
        """
        room = TRUNK_FIBRES[self.trunk_name] // self.fibres
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
            made[row[at["kind"]], detail] += -(-row[at["links"]] // room)
        for (kind, detail), quantity in sorted(made.items()):
            yield Item(kind, self.trunk_name, detail, quantity)

    def summary(self) -> dict[str, Any]:
        """Counts beside direct cables, and beside a non-blocking fat tree of equal hosts.

        The fat tree has two levels, of the least even radix r with r²/2 hosts at least, and a cable
        a host above its leaves. A plug is one end; a ribbon of several trunks' fibres has as many.
        """
        *_, links = self._ribbons()
        per_trunk = TRUNK_FIBRES[self.trunk_name] // self.fibres
        ribbons, trunks = int((-(-links // per_trunk)).sum()), len(self.ends)
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
    plans = []
    for mirrored in (False, True):
        made = _Made.of(cables, stage)
        made.run(room, mirrored)
        plans.append(made.plan(wiring, fibres))
    best = min(plans, key=lambda plan: (len(plan.types), int(plan.turned.sum())))
    return best.of_types()


@dataclass(slots=True)
class _Made:
    """A plan in the making; code: int64[E, 2], front port and lane at both ends as one number.

    words: by cassette and code where a lane leads; connectors: by cassette the lanes of each
    bundle of trunks in the order of positions, with the other cassette, its cables and chunks.
    """

    cables: Cables
    names: tuple[str, ...]
    rack: Numbers
    panel: Numbers
    code: Numbers
    width: int
    words: list[dict[int, str]]
    trunk: Numbers
    position: Numbers
    ends: list[tuple[int, int]]
    sockets: list[list[int]]
    turned: list[bool]
    least: int = 0

    @classmethod
    def of(cls, cables: Cables, stage: Numbers) -> _Made:
        """Lanes by the order of ports, front ports by the order of units."""
        known = cables.hardware
        step = stage[cables.ends].max(axis=1)
        cluster = known.cluster[cables.ends].astype(np.int64)
        clusters = len(known.cluster_names)
        keys, panel = np.unique(cluster + clusters * step[:, None], return_inverse=True)
        panel = panel.reshape(-1, 2)
        home = keys % clusters
        seat = np.lexsort((known.unit, known.rack, known.cluster))
        first = np.searchsorted(known.cluster[seat], np.arange(len(known.cluster_names)))
        place = np.empty(len(seat), np.int64)
        place[seat] = np.arange(len(seat)) - first[known.cluster[seat]]
        flat = cables.ends.ravel().astype(np.int64)
        line = np.lexsort(
            (np.repeat(cables.socket, 2), cables.ports.ravel(), np.repeat(step, 2), flat)
        )
        group = np.stack((flat[line], np.repeat(step, 2)[line]))
        new = np.concatenate(([True], (group[:, 1:] != group[:, :-1]).any(axis=0)))
        starts = np.flatnonzero(new)[np.cumsum(new) - 1]
        lane = np.empty(len(flat), np.int64)
        lane[line] = np.arange(len(flat)) - starts
        width = int(lane.max(initial=0)) + 1
        count, rank = Counter[int](), list[int]()
        for c in home.tolist():
            count[c] += 1
            rank.append(count[c])
        names = tuple(
            f"{of_plane(known.plane)}{known.cluster_names[c]}-P{n}"
            for c, n in zip(home.tolist(), rank, strict=True)
        )
        by_home = known.rack[seat[first[home]]].astype(np.int64)
        code = (place[flat] * width + lane).reshape(-1, 2)
        fresh = np.full(len(cables), -1, np.int64)
        return cls(
            cables,
            names,
            by_home,
            panel,
            code,
            width,
            [{} for _ in names],
            fresh,
            np.full((len(cables), 2), -1, np.int64),
            [],
            [],
            [],
        )

    def run(self, room: int, mirrored: bool) -> None:
        """Give every link its positions: pair by pair, then number the trunks of each cassette."""
        unit = self.width if mirrored else 1
        kinds = self._kinds()
        self.least = len(set(self._sizes()))
        common = Counter(kinds)
        same = self.panel[:, 0] == self.panel[:, 1]
        for e in np.flatnonzero(same).tolist():
            p, (x, y) = int(self.panel[e, 0]), self.code[e].tolist()
            self.words[p][x], self.words[p][y] = f"F{self._word(y)}", f"F{self._word(x)}"
        behind: list[list[tuple[Code, int, int, int]]] = [[] for _ in self.names]
        low = np.sort(self.panel, axis=1)
        order = np.lexsort((low[:, 1], low[:, 0]))
        order = order[~same[order]]
        pairs, starts = np.unique(low[order], axis=0, return_index=True)
        for (a, b), which in zip(pairs.tolist(), np.split(order, starts)[1:], strict=True):
            side = (self.panel[which, 0] != a).astype(np.int64)
            x, y = (self.code[which, s].tolist() for s in (side, 1 - side))
            chosen, turned = _ordered(
                list(zip(x, y, strict=True)),
                (common[kinds[a]], kinds[a]),
                (common[kinds[b]], kinds[b]),
                unit,
            )
            chunks = _chunks(len(chosen), room, turned)
            rows = which[chosen]
            at, far = side[chosen], 1 - side[chosen]
            here, there = self.code[rows, at].tolist(), self.code[rows, far].tolist()
            if turned:
                there.reverse()
            done = 0
            for n, size in enumerate(chunks):
                t, last = len(self.ends), len(chosen) - done
                part = slice(done, done + size)
                self.trunk[rows[part]] = t
                self.position[rows[part], at[part]] = np.arange(size)
                back = np.arange(size)
                self.position[rows[part], far[part]] = back[::-1] if turned else back
                facing = there[last - size : last] if turned else there[part]
                self.ends.append((a, b))
                self.sockets.append([0, 0])
                self.turned.append(turned)
                behind[a].append((tuple(here), n, t, 0))
                whole, m = tuple(there), len(chunks) - 1 - n if turned else n
                behind[b].append((whole, m, t, 1))
                self._lead(a, here[part], t)
                self._lead(b, facing, t)
                done += size
        for p, trunks in enumerate(behind):
            number = {}
            for k, (_, _, t, end) in enumerate(
                sorted(trunks, key=lambda c: (c[0], self._peer(c, p), c[1]))
            ):
                self.sockets[t][end] = k
                number[t] = k + 1
            self.words[p] = {
                x: f"T{number[int(w[1:].split('.')[0])]}.{w.split('.')[1]}" if w[0] == "t" else w
                for x, w in self.words[p].items()
            }

    def _peer(self, connector: tuple[Code, int, int, int], panel: int) -> int:
        a, b = self.ends[connector[2]]
        return b if a == panel else a

    def _lead(self, panel: int, codes: Sequence[int], trunk: int) -> None:
        self.words[panel] |= {x: f"t{trunk}.{k}" for k, x in enumerate(codes, 1)}

    def _word(self, code: int) -> str:
        front, lane = divmod(code, self.width)
        return f"{front + 1}.{lane + 1}"

    def _inside(self) -> list[Code]:
        """By cassette, the links inside."""
        inside: dict[int, list[int]] = defaultdict(list)
        same = self.panel[:, 0] == self.panel[:, 1]
        low = np.sort(self.code[same], axis=1)
        for p, x, y in sorted(zip(self.panel[same, 0].tolist(), *low.T.tolist(), strict=True)):
            inside[p] += [x, y]
        return [tuple(inside[p]) for p in range(len(self.names))]

    def _kinds(self) -> list[Code]:
        """What cassettes of one type have alike, whatever trunks they have: lanes and insides."""
        lanes: list[set[int]] = [set() for _ in self.names]
        for p, x in zip(self.panel.ravel().tolist(), self.code.ravel().tolist(), strict=True):
            lanes[p].add(x)
        inside = self._inside()
        return [(*sorted(own), -1, *inside[p]) for p, own in enumerate(lanes)]

    def _sizes(self) -> list[tuple[int, ...]]:
        """What no numbering changes: switches, links inside, and links to each other cassette."""
        outside: list[Counter[int]] = [Counter() for _ in self.names]
        fronts: list[set[int]] = [set() for _ in self.names]
        for (p, r), (x, y) in zip(self.panel.tolist(), self.code.tolist(), strict=True):
            fronts[p].add(x // self.width)
            fronts[r].add(y // self.width)
            outside[p][r] += 1
            outside[r][p] += p != r
        return [
            (len(fronts[p]), own.pop(p, 0), *sorted(own.values())) for p, own in enumerate(outside)
        ]

    def plan(self, wiring: Wiring, fibres: int) -> PanelPlan:
        """The plan, its types numbered in the order of cassettes."""
        rows = [self._rows(p) for p in range(len(self.names))]
        types = {text: f"cassette-{n}" for n, text in enumerate(dict.fromkeys(rows), 1)}
        index = {text: t for t, text in enumerate(types)}
        front, lane = np.divmod(self.code, self.width)
        return PanelPlan(
            cables=self.cables,
            wiring=wiring,
            names=self.names,
            rack=self.rack,
            kind=np.array([index[text] for text in rows], np.int64),
            types=tuple((name, text) for text, name in types.items()),
            panel=self.panel,
            front=front,
            lane=lane,
            trunk=self.trunk,
            position=self.position,
            ends=np.array(self.ends, np.int64).reshape(-1, 2),
            sockets=np.array(self.sockets, np.int64).reshape(-1, 2),
            turned=np.array(self.turned, np.bool_),
            least=self.least,
            fibres=fibres,
        )

    def _rows(self, panel: int) -> tuple[str, ...]:
        """The words of each front port up to the last one used; a port without links is dark."""
        words = self.words[panel]
        fronts = max(words, default=0) // self.width + 1
        text = []
        for f in range(fronts):
            lanes = [words.get(f * self.width + k, "-") for k in range(self.width)]
            while len(lanes) > 1 and lanes[-1] == "-":
                lanes.pop()
            text.append(" ".join(lanes))
        return tuple(text)


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


def _ordered(
    links: list[tuple[int, int]], a: tuple[int, Code], b: tuple[int, Code], unit: int
) -> tuple[list[int], bool]:
    """The links of two cassettes in the order of positions; whether the trunk is reversed.

    a, b: how many cassettes are of the kind of each end, and the kind. unit: 1 to reverse trunks
    whose ends are alike lane by lane, or the lanes of a front port, where ports are enough.
    """
    from_a = sorted(range(len(links)), key=lambda k: links[k])
    from_b = sorted(range(len(links)), key=lambda k: links[k][::-1])
    if a != b:
        return (from_a if a > b else from_b), False
    ends = {(x // unit, y // unit): k for k, (x, y) in enumerate(links)}
    fixed = [k for (x, y), k in sorted(ends.items()) if x == y]
    alike = all((y, x) in ends for x, y in ends) and len(ends) == len(links)
    if alike and len(fixed) <= 1:
        half = [(x, y) for x, y in sorted(ends) if x < y]
        return [ends[e] for e in half] + fixed + [ends[e[::-1]] for e in half[::-1]], True
    view_a, view_b = [links[k] for k in from_a], [links[k][::-1] for k in from_b]
    return (from_a if view_a <= view_b else from_b), False


def _chunks(links: int, room: int, turned: bool) -> list[int]:
    """The links of each trunk, even and the same from either end."""
    count = -(-links // room)
    count += turned and links % 2 == 1 and count % 2 == 0
    least, more = divmod(links, count)
    sizes = [least] * count
    if more % 2:
        sizes[count // 2] += 1
    for i in range(more // 2):
        sizes[i] += 1
        sizes[-1 - i] += 1
    return sizes
