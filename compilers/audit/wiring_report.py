"""The report of `check wiring`: differences from the plan, moves that repair them, or new entries.

`WiringReport.of` reads neighbour tables; `adopted` turns the cables that exist into entries of the
inventory. A *socket* is the place of one cable in a port, as a number (`socket_numbers`). JSON and
the inventory have the names of sockets under the key `port`.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from compilers.audit.adopted_cables import AdoptedCabling, adopted
from compilers.audit.merged_planes import merge_planes
from compilers.audit.neighbour_file import read_facts
from compilers.audit.resolve import resolve
from compilers.audit.socket_numbers import CableSet, SocketNumbers
from compilers.audit.wiring_audit import WiringAudit, check
from compilers.cabling.panel_plan import PanelPlan, panel_plan
from compilers.tables.build import Build
from compilers.targets.target_lookup import installed_systems
from inventory.problems import InputError

NO_TRUNK = -1
"""In place of a trunk: the socket's link does not run through cassettes."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WiringReport:
    """The audit of neighbour tables, with the names of what is in it."""

    name: str
    """The name of the fabric."""
    audit: WiringAudit
    """The differences from the plan, by the numbers of sockets."""
    sockets: SocketNumbers
    """The names of the sockets in `audit`."""
    first_vertices: tuple[int, ...] = (0,)
    """The first vertex of each plane in `audit`."""
    panels: PanelPlan | None = None
    """The cassettes of a single plane whose links run through them."""
    inventory_cables: tuple[Mapping[str, Any], ...] = ()
    """The cables of the inventory, with label, type and length."""

    @classmethod
    def of(
        cls, builds: Sequence[Build], facts: Iterable[Path], form: str | None = None
    ) -> WiringReport:
        """Compare neighbour tables with the plan of all planes.

        Args:
            builds: one a plane.
            facts: files with neighbour tables, and folders of them.
            form: the form of all of them, a key of `neighbour_forms`; None: the contents tell.

        Raises:
            InputError: a file cannot be read, or none is of a node of these builds.
        """
        wiring, hardware = merge_planes(builds)
        names = {
            system.name: [system.names(build) for build in builds]
            for system in installed_systems()
            if system.neighbours and system.neighbours.of_one_node
        }
        system_of_node = [
            system for build in builds for system in build.systems or [""] * len(build.wiring.names)
        ]
        wired = resolve(read_facts(tuple(facts), form), wiring, hardware, names, system_of_node)
        if not wired.reporters:
            required = f"a table of a node of this build: {', '.join(wiring.names[:3])}, …"
            raise InputError.of(required, "none", "files are named by the node: n12.json")
        types = hardware.types if hardware else ()
        name = " and ".join(build.name for build in builds)
        plane_sizes = (len(build.wiring.names) for build in builds[:-1])
        panels = None
        if len(builds) == 1 and hardware:
            panels = panel_plan(builds[0].topology, wiring, hardware)
        return cls(
            name=name,
            audit=check(wiring, wired, types),
            sockets=SocketNumbers(wiring, types),
            first_vertices=tuple(accumulate(plane_sizes, initial=0)),
            panels=panels,
            inventory_cables=tuple(
                cable for build in builds if build.hardware for cable in build.hardware.hand
            ),
        )

    @property
    def good(self) -> bool:
        """Whether all cables with neighbour data are as planned."""
        return self.audit.good

    def __repr__(self) -> str:
        """Such as `<WiringReport lab: 226 of 228 cables as planned, 2 moves to repair>`."""
        right = f"{len(self.audit.right):,} of {self.audit.planned:,} cables as planned"
        return f"<WiringReport {self.name}: {right}, {len(self.audit.moves)} moves to repair>"

    def as_dict(self) -> dict[str, Any]:
        """The comparison in names, for JSON."""
        audit, wired = self.audit, self.audit.wired
        names = self.sockets.wiring.names
        return {
            "planned": audit.planned,
            "right": len(audit.right),
            "missing": self._cables(audit.missing),
            "extra": self._cables(audit.extra),
            "misplaced": self._cables(audit.misplaced),
            "not_seen": len(audit.unseen),
            "absent_nodes": [names[v] for v in audit.absent],
            "wrong_places": [[names[v] for v in cycle] for cycle in audit.swapped],
            "moves": [
                {
                    "kind": move.kind,
                    "a": self._end(move.a),
                    "b": self._end(move.b),
                    "text": move.sentence(self.sockets),
                }
                for move in audit.moves
            ],
            "trunks": self.exchanged(),
            "contested": self._cables(wired.contested),
            "strangers": [self._stranger(socket, name) for socket, name in wired.strangers],
            "unknown_ports": [{"node": n, "port": p} for n, p in wired.unknown_ports],
            "other_ports": [port._asdict() for port in wired.other_ports],
            "empty_tables": [names[v] for v in wired.empty],
        }

    def _stranger(self, socket: int, neighbour: str) -> dict[str, Any]:
        """A device outside the plan at a socket, for JSON."""
        shown: dict[str, Any] = {**self._end(socket), "neighbour": neighbour}
        if socket in self.audit.planned_for_strangers:
            shown["planned"] = self._end(self.audit.planned_for_strangers[socket])
        return shown

    def exchanged(self) -> list[str]:
        """A sentence for each two trunks that are plugged in each other's place.

        All links of both trunks that were seen have to lead to the other trunk.
        """
        if self.panels is None:
            return []
        trunk_of = self._trunk_of_sockets(self.panels)
        with_right_cable = {trunk_of.get(cable[0], NO_TRUNK) for cable in self.audit.right}
        joined: dict[int, set[int]] = defaultdict(set)
        for a, b in self.audit.misplaced | self.audit.extra:
            trunk_a, trunk_b = trunk_of.get(a, NO_TRUNK), trunk_of.get(b, NO_TRUNK)
            joined[trunk_a].add(trunk_b)
            joined[trunk_b].add(trunk_a)
        sentences = []
        for trunk, others in sorted(joined.items()):
            if trunk == NO_TRUNK or trunk in with_right_cable or len(others) > 1:
                continue
            (other,) = others
            # Each two trunks are met twice, and count at the smaller number. NO_TRUNK is below all.
            if trunk < other and joined[other] == {trunk} and other not in with_right_cable:
                sentences.append(self.panels.exchange(trunk, other))
        return sentences

    def _trunk_of_sockets(self, panels: PanelPlan) -> dict[int, int]:
        """The trunk of each socket whose link runs through cassettes."""
        cables = panels.cables
        first_of_port, _ = self.sockets.local_ranges()
        # int64[E, 2] each: the two ends of every cable.
        node_type = self.sockets.wiring.node_type[cables.ends]
        socket = cables.ends * self.sockets.width + first_of_port[node_type, cables.ports]
        socket += cables.socket[:, None]
        trunk_of_end = np.repeat(panels.shuffle.trunk, 2).tolist()
        return dict(zip(socket.ravel().tolist(), trunk_of_end, strict=True))

    def adopted(self) -> AdoptedCabling:
        """The cables that exist, as entries of the inventory."""
        return adopted(self.audit, self.sockets)

    def inventory(self) -> str:
        """The cables that exist and the dead links, as YAML for an inventory."""
        import yaml

        entries = self.adopted()
        nodes = "".join(
            f"#   {name}: {self._vertex_in_words(v)}\n" for name, v in entries.vertex.items()
        )
        text = f"# Set in nodes, as these are elsewhere:\n{nodes}" if nodes else ""
        data = {"cables": _with_inventory_values(entries.cables, self.inventory_cables)}
        if entries.dead_links:
            data["dead_links"] = list(entries.dead_links)
        return text + yaml.safe_dump(data, sort_keys=False, default_flow_style=None)

    def _vertex_in_words(self, vertex: int) -> str:
        """A vertex, with its plane where there are several, in the words of the inventory."""
        plane = bisect(self.first_vertices, vertex)
        text = f"vertex {vertex - self.first_vertices[plane - 1]}"
        return f"plane {plane}, {text}" if len(self.first_vertices) > 1 else text

    def _end(self, socket: int) -> dict[str, str]:
        """An end of a cable by name, for JSON."""
        return {"node": self.sockets.node(socket), "port": self.sockets.name(socket)}

    def _cables(self, cables: CableSet) -> list[dict[str, dict[str, str]]]:
        """Cables by the names of their ends, for JSON."""
        return [{"a": self._end(a), "b": self._end(b)} for a, b in sorted(cables)]


def _with_inventory_values(
    cables: Sequence[Mapping[str, str]], inventory_cables: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The cables with the label, type and length that the inventory gives the same link.

    Each entry of the inventory is used once. Of the entries for parallel cables, the one at the
    same port is used first.
    """
    unused = defaultdict[frozenset[str], list[Mapping[str, Any]]](list)
    for entry in inventory_cables:
        unused[frozenset((entry["a"], entry["b"]))].append(entry)
    entries = []
    for cable in cables:
        candidates = unused[frozenset((cable["a"], cable["b"]))]
        ends = {(cable[end], cable[f"{end}_port"]) for end in "ab"}
        at_port = [entry for entry in candidates if (entry["a"], entry["a_port"]) in ends]
        inventory_entry = next(iter(at_port or candidates), {})
        if inventory_entry:
            candidates.remove(inventory_entry)
        values = {key: inventory_entry.get(key) for key in ("label", "type", "length")}
        entries.append({**cable, **{key: value for key, value in values.items() if value}})
    return entries
