"""The report on a fabric as wired: differences from the plan, the repair, or what to adopt."""

from __future__ import annotations

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.audit.neighbour_file import read_facts
from compilers.audit.resolve import Pair, Pairs, PortFinder, resolve
from compilers.audit.wiring_audit import WiringAudit, check
from compilers.cabling.panel_plan import PanelPlan, panel_plan
from compilers.tables.build import Build
from compilers.targets.target_lookup import installed_systems
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WiringReport:
    """The audit of neighbour tables.

    ports: the names of the ports in `audit`. starts: the first vertex of each plane in there.
    plan: the cassettes of one plane whose links run through them.
    """

    name: str
    audit: WiringAudit
    ports: PortFinder
    starts: tuple[int, ...] = (0,)
    plan: PanelPlan | None = None

    @classmethod
    def of(
        cls, builds: Sequence[Build], facts: Iterable[Path], form: str | None = None
    ) -> WiringReport:
        """Compare neighbour tables with the plan of all planes.

        Args:
            builds: one a plane.
            facts: files with neighbour tables, and folders of them.
            form: the format of all of them; None to tell it from their content.

        Raises:
            InputError: a file cannot be read, or none is of a node of these builds.
        """
        wiring, hardware = merged(builds)
        names = {
            system.name: [system.names(build) for build in builds]
            for system in installed_systems()
            if system.neighbours and system.neighbours.of_one_node
        }
        wired = resolve(read_facts(tuple(facts), form), wiring, hardware, names)
        if not wired.reporters:
            required = f"a table of a node of this build: {', '.join(wiring.names[:3])}, …"
            raise InputError.of(required, "none", "files are named by the node: n12.json")
        types = hardware.types if hardware else ()
        name = " and ".join(build.name for build in builds)
        starts = tuple(accumulate((len(b.wiring.names) for b in builds[:-1]), initial=0))
        known = builds[0].hardware if len(builds) == 1 else None
        plan = panel_plan(builds[0].topology, wiring, known) if known else None
        return cls(name, check(wiring, wired, types), PortFinder(wiring, types), starts, plan)

    @property
    def good(self) -> bool:
        """Whether all cables with neighbour data are as planned."""
        return self.audit.good

    def __repr__(self) -> str:
        """`<WiringReport lab: 226 of 228 cables as planned, 2 moves to repair>`."""
        right = f"{len(self.audit.right):,} of {self.audit.planned:,} cables as planned"
        return f"<WiringReport {self.name}: {right}, {len(self.audit.moves)} moves to repair>"

    def as_dict(self) -> dict[str, Any]:
        """The comparison in names, for JSON."""
        found, ports = self.audit, self.ports
        names = ports.wiring.names
        return {
            "planned": found.planned,
            "right": len(found.right),
            "missing": self._cables(found.missing),
            "extra": self._cables(found.extra),
            "misplaced": self._cables(found.misplaced),
            "not_seen": len(found.unseen),
            "absent_nodes": [names[v] for v in found.absent],
            "wrong_places": [[names[v] for v in cycle] for cycle in found.rounds],
            "moves": [
                {
                    "kind": move.kind,
                    "a": self._end(move.a),
                    "b": self._end(move.b),
                    "text": move.sentence(ports),
                }
                for move in found.moves
            ],
            "trunks": self.exchanged(),
            "contested": self._cables(found.wired.contested),
            "strangers": [
                {**self._end(p), "neighbour": n}
                | ({"planned": self._end(found.foreign[p])} if p in found.foreign else {})
                for p, n in found.wired.strangers
            ],
            "unknown_ports": [{"node": n, "port": p} for n, p in found.wired.unknown_ports],
            "other_ports": [
                {"node": node, "port": port, "neighbour": neighbour}
                for node, port, neighbour in found.wired.other_ports
            ],
            "empty_tables": [names[v] for v in found.wired.empty],
        }

    def exchanged(self) -> list[str]:
        """A sentence for each two trunks in each other's place: all links seen of both say so."""
        if self.plan is None:
            return []
        plan, cables = self.plan, self.plan.cables
        first, _ = self.ports.first()
        kind = self.ports.wiring.node_type[cables.ends]
        number = cables.ends * self.ports.width + first[kind, cables.ports]
        number += cables.socket[:, None]
        of_link = np.repeat(plan.shuffle.trunk, 2).tolist()
        trunk = dict(zip(number.ravel().tolist(), of_link, strict=True))
        right = {trunk.get(pair[0], -1) for pair in self.audit.right}
        met: dict[int, set[int]] = defaultdict(set)
        for a, b in self.audit.misplaced | self.audit.extra:
            one, other = trunk.get(a, -1), trunk.get(b, -1)
            met[one].add(other)
            met[other].add(one)
        return [
            plan.exchange(one, other)
            for one, others in sorted(met.items())
            for other in others
            if 0 <= one < other and others == {other} and met[other] == {one}
            if not right & {one, other}
        ]

    def adopted(self) -> Adopted:
        """The fabric as wired, as inventory entries."""
        return adopted(self.audit, self.ports)

    def inventory(self) -> str:
        """YAML for an inventory: the present cables and the dead links."""
        import yaml

        taken = self.adopted()
        nodes = "".join(f"#   {name}: {self._place(v)}\n" for name, v in taken.vertex.items())
        text = f"# Set in nodes, as these are elsewhere:\n{nodes}" if nodes else ""
        data = {"cables": list(taken.cables)}
        if taken.dead_links:
            data["dead_links"] = list(taken.dead_links)
        return text + yaml.safe_dump(data, sort_keys=False, default_flow_style=None)

    def _place(self, vertex: int) -> str:
        """The vertex, and of several planes the plane, as a node of the inventory has them."""
        plane = bisect(self.starts, vertex)
        of_plane = f"plane {plane}, " * (len(self.starts) > 1)
        return f"{of_plane}vertex {vertex - self.starts[plane - 1]}"

    def _end(self, port: int) -> dict[str, str]:
        return {"node": self.ports.node(port), "port": self.ports.name(port)}

    def _cables(self, pairs: Pairs) -> list[dict[str, dict[str, str]]]:
        return [{"a": self._end(a), "b": self._end(b)} for a, b in sorted(pairs)]


def merged(builds: Sequence[Build]) -> tuple[Wiring, Hardware | None]:
    """One wiring of all planes, their vertices plane by plane: a plug may be in the wrong plane.

    Planes have the same node types. Of the hardware, only the names of nodes and ports are merged.
    """
    if len(builds) == 1:
        return builds[0].wiring, builds[0].hardware
    parts = [build.wiring for build in builds]
    first = np.cumsum([0, *(len(part.names) for part in parts)]).tolist()
    far = [np.where(w.far >= 0, w.far + start, -1) for w, start in zip(parts, first, strict=False)]
    wiring = Wiring(
        names=tuple(name for part in parts for name in part.names),
        management=tuple(address for part in parts for address in part.management),
        host_names=tuple(name for part in parts for name in part.host_names),
        datapath_id=np.concatenate([part.datapath_id for part in parts]),
        port=_stacked([part.port for part in parts], 0),
        far=_stacked(far, -1),
        far_port=_stacked([part.far_port for part in parts], 0),
        host_port=_stacked([part.host_port for part in parts], 0),
        node_type=np.concatenate([part.node_type for part in parts]),
        type_names=parts[0].type_names,
        port_names=parts[0].port_names,
    )
    known = [build.hardware for build in builds if build.hardware]
    if len(known) < len(builds):
        return wiring, None
    serial = tuple(text for part in known for text in part.serial)
    guid = tuple(text for part in known for text in part.guid)
    return wiring, replace(known[0], serial=serial, guid=guid)


def _stacked(parts: Sequence[NDArray[np.int32]], beyond: int) -> NDArray[np.int32]:
    """All rows, padded to the widest; a damaged plane may have fewer columns."""
    widest = max(part.shape[1] for part in parts)
    padded = [
        np.pad(part, ((0, 0), (0, widest - part.shape[1])), constant_values=beyond)
        for part in parts
    ]
    return np.concatenate(padded).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Adopted:
    """Inventory entries for the fabric as wired, as plain data.

    vertex: of the nodes that are elsewhere. cables: those of each link that exists. dead_links:
    the other links; a link exists if all its parallel cables run, socket to socket, between two
    ports. useless: cables between nodes that the fabric does not join, or the wrong number of
    cables for a link.
    """

    vertex: dict[str, int]
    cables: tuple[dict[str, str], ...]
    dead_links: tuple[dict[str, str], ...]
    useless: tuple[Pair, ...]


def adopted(found: WiringAudit, ports: PortFinder) -> Adopted:
    """The present cables that serve links of the fabric.

    Plugs exchanged at one node keep all links, and so do nodes in each other's place. Links that
    were not planned are useless, and the planned links are missing instead. Cables without
    neighbour data are taken to be as planned.
    """
    names = list(ports.wiring.names)
    moved = {}
    for cycle in found.rounds:
        for node, place in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            moved[ports.wiring.names[node]] = place
    for name, place in moved.items():
        names[place] = name
    planned = ports.planned()
    parallel = Counter(_link(pair, ports) for pair in planned)
    candidates: dict[tuple[Pair, Pair], list[Pair]] = defaultdict(list)
    for pair in sorted(found.wired.cables | found.unseen):
        candidates[_link(pair, ports), ports.between(pair)].append(pair)
    serving: dict[Pair, list[Pair]] = {}
    # Cables as planned win over others for the same link.
    for (link, _), cables in sorted(
        candidates.items(), key=lambda item: planned.isdisjoint(item[1])
    ):
        if link not in serving and len(cables) == parallel.get(link):
            serving[link] = cables
    served = {pair for cables in serving.values() for pair in cables}
    useless = (found.wired.cables | found.unseen) - served
    links = set(parallel)
    return Adopted(
        vertex=moved,
        cables=tuple(_cable(pair, ports, names) for pair in sorted(served)),
        dead_links=tuple({"a": names[u], "b": names[v]} for u, v in sorted(links - set(serving))),
        useless=tuple(sorted(useless)),
    )


def _link(pair: Pair, ports: PortFinder) -> Pair:
    u, v = sorted(map(ports.vertex, pair))
    return u, v


def _cable(pair: Pair, ports: PortFinder, names: list[str]) -> dict[str, Any]:
    (a, b) = pair
    return {
        "a": names[ports.vertex(a)],
        "a_port": ports.name(a),
        "b": names[ports.vertex(b)],
        "b_port": ports.name(b),
    }
