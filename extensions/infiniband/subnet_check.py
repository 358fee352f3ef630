"""The check of what OpenSM gets: cables, the table of every switch, and the lane of every pair.

Every pair of hosts is followed through the tables' text and the cables of the subnet's text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_report import DifferenceList, EmittedReport
from compilers.readers.exact_text import exact_number, is_number
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS, Fib
from compilers.tables.intermediate_form import Egress, local, no_route
from extensions.infiniband.lid_layers import LidLayers
from extensions.infiniband.subnet_text import (
    SubnetText,
    TableText,
    read_definition,
    read_policy,
    read_settings,
    read_subnet,
    read_tables,
    read_topology,
)
from extensions.lossless.layers import layers

LANES = 16
WEIGHTS = 256
PACKETS_AT_ONCE = 1 << 22
Cables = dict[tuple[int, int], tuple[str, int, int]]
"""The name and the port at the other end, and the line, by vertex and port."""
STEERING = ("qos", "max_op_vls", "lash", "routing", "lmc", "lfts", "sm_", "enable_quirks")
"""How settings begin that change what was proved, whatever a user accepts."""
Fits = Callable[[str, int, int], bool]
"""Whether a value is right for so many lanes, and LIDs of a host."""
SETTINGS: dict[str, tuple[Fits, str]] = {
    "routing_engine": (lambda value, *_: value == "file,no_fallback", "file,no_fallback"),
    "lfts_file": (lambda value, *_: value.endswith("/lfts.txt"), "a folder's lfts.txt"),
    "lmc": (lambda value, _, lids: value == str(lids.bit_length() - 1), "that of the build"),
}
LANE_SETTINGS: dict[str, tuple[Fits, str]] = {
    "qos": (lambda value, *_: value == "TRUE", "TRUE"),
    "qos_policy_file": (
        lambda value, *_: value.endswith("/qos-policy.conf"),
        "a folder's qos-policy.conf",
    ),
    "qos_max_vls": (
        lambda value, lanes, _: is_number(value) and lanes <= exact_number(value) < LANES,
        "at least {}",
    ),
    "qos_high_limit": (lambda value, *_: value == "255", "255"),
    "qos_vlarb_high": (lambda value, *_: value == "0:0", "0:0: no lane goes before others"),
    "qos_vlarb_low": (
        lambda value, lanes, _: arbitrated(value) == list(range(lanes)),
        "a weight for each of {} lanes",
    ),
    "qos_sl2vl": (
        lambda value, lanes, _: (
            value.split(",")[:lanes] == [str(lane) for lane in range(lanes)]
            and all(is_number(lane) and exact_number(lane) < LANES for lane in value.split(","))
        ),
        "a lane for each of {} levels",
    ),
}
"""What opensm.conf says, the second where there are several lanes: a test, and what is right. A
port without an entry in `qos_vlarb_low` never sends on that lane (InfiniBand Architecture
Specification, volume 1, 7.6.9.2)."""
Progress = Callable[[int, int], None] | None


def arbitrated(text: str) -> list[int]:
    """The lanes of a table of arbitration that have a weight."""
    entries = [entry.partition(":") for entry in text.split(",")]
    if not all(is_number(lane) and is_number(weight) for lane, _, weight in entries):
        return []
    return sorted(
        exact_number(lane) for lane, _, weight in entries if 0 < exact_number(weight) < WEIGHTS
    )


def check_subnet(
    build: Build,
    folder: Path,
    progress: Progress = None,
    several: LidLayers | None = None,
    accept: tuple[str, ...] = (),
) -> EmittedReport:
    """Compare the files of target opensm with the tables.

    Args:
        build: of one plane.
        folder: where fabric.net, lfts.txt, opensm.conf and qos-policy.conf are.
        progress: called with (switches done, all switches).
        several: the layers, if hosts have several LIDs.
        accept: see `DifferenceList`.
    """
    differences = DifferenceList(accept)
    switches = int(build.topology.present.sum())
    pairs = delivered = 0
    try:
        check = _SubnetCheck(build, folder, differences, several)
        check.definitions()
        check.environment()
        check.tables(progress)
        check.levels()
        pairs, delivered = check.follow()
        check.lanes()
    except (OSError, UnicodeDecodeError) as error:
        file = Path(getattr(error, "filename", None) or folder)
        differences.add(file, 0, "cannot be read", "a file of target opensm")
    listed = differences.count, tuple(differences.examples), differences.accepted
    return EmittedReport("opensm", switches, pairs, delivered, *listed)


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    """All that packets can be for, one LID each."""

    guid: NDArray[np.uint64]
    """uint64[n], the GUID of the LID's port."""
    at: NDArray[np.int64]
    """int64[n], the vertex of the switch, or of the host's switch."""
    port: NDArray[np.int64]
    """int64[n], the port of that switch; 0 is the switch itself."""
    layer: NDArray[np.int64]
    """int64[n], the number of the LID among those of its port."""

    @classmethod
    def of(cls, ends: list[tuple[int, int, int]], lids: int) -> _Ends:
        """Of GUIDs, vertices and ports, hosts with so many LIDs each."""
        guid, at, port = zip(*sorted(ends), strict=True) if ends else ((), (), ())
        lids_of = np.where(np.array(port, int) > 0, lids, 1)
        layer = np.arange(lids_of.sum()) - np.repeat(np.cumsum(lids_of) - lids_of, lids_of)
        return cls(
            guid=np.repeat(np.array(guid, np.uint64), lids_of),
            at=np.repeat(np.array(at, int), lids_of),
            port=np.repeat(np.array(port, int), lids_of),
            layer=layer,
        )


class _SubnetCheck:
    """The comparison of a folder; what differs goes to `differences`."""

    def __init__(
        self, build: Build, folder: Path, differences: DifferenceList, several: LidLayers | None
    ) -> None:
        self.build, self.folder, self.differences = build, folder, differences
        self.several = several
        self.lids = len(several.tables) if several else 1
        self.file, self.policy = folder / "lfts.txt", folder / "qos-policy.conf"
        names = build.wiring.names
        present = np.flatnonzero(build.topology.present).tolist()
        self.vertex = {names[v]: v for v in present}
        subnet = read_subnet(folder / "fabric.net", differences)
        self.at = self._switches(subnet, folder / "fabric.net")
        self.far, host_at = self._cables(subnet, folder / "fabric.net")
        ends = [(guid, v, 0) for id_, v in self.at.items() for guid in [int(id_[2:], 16)]]
        ends += [(g, *host_at[i]) for g, i in subnet.guids.items() if i in host_at]
        self.ends = _Ends.of(ends, self.lids)
        self.port = np.full((len(names), len(self.ends.guid)), -1, np.int16)
        self.host = np.flatnonzero((self.ends.port > 0) & (self.ends.layer == 0))
        self.level = np.zeros((0, 0), np.uint8)
        self.rule_line = dict[int, int]()

    def _switches(self, subnet: SubnetText, file: Path) -> dict[str, int]:
        """The vertex of every switch by its id."""
        w = self.build.wiring
        at: dict[str, int] = {}
        for id_, (name, line) in subnet.names.items():
            if id_[0] == "S" and name in self.vertex and self.vertex[name] not in at.values():
                at[id_] = vertex = self.vertex[name]
                ports = len(w.port_names[int(w.node_type[vertex])])
                if subnet.ports[id_] != ports:
                    says = f"switch {name} with {subnet.ports[id_]} ports"
                    self.differences.add(file, line, says, f"{ports}")
            elif id_[0] == "S":
                self.differences.add(file, line, f"switch {name}", "no such switch, or it again")
        for name in self.vertex.keys() - {self.build.wiring.names[v] for v in at.values()}:
            self.differences.add(file, 0, "nothing of it", f"switch {name}")
        return at

    def _cables(
        self, subnet: SubnetText, file: Path
    ) -> tuple[NDArray[np.int64], dict[str, tuple[int, int]]]:
        """int64[S, ports + 1], the vertex at each port, and where the hosts are by their ids."""
        w = self.build.wiring
        most = max(len(names) for names in w.port_names)
        far = np.full((len(w.names), most + 1), -1)
        listed: Cables = {}
        host_at: dict[str, tuple[int, int]] = {}
        for (id_, port), (other, far_port, line) in subnet.cables.items():
            back = subnet.cables.get((other, far_port), ("", 0, 0))[:2]
            if back != (id_, port):
                self.differences.add(file, line, f"port {port} to {other}", "a cable with two ends")
            elif id_ in self.at and 0 < port <= most:
                listed[self.at[id_], port] = subnet.names[other][0], far_port, line
                if other in self.at:
                    far[self.at[id_], port] = self.at[other]
                else:
                    host_at[other] = self.at[id_], port
        self._compare_cables(listed, file)
        self._compare_cables(self._topology(), self.folder / "fabric.topo")
        return far, host_at

    def definitions(self) -> None:
        """Compare the systems that the topology file names: of every switch, and the adapter."""
        wanted = {"adapter": ("CA", 1)} | {
            f"switch_{len(ports)}": ("SW", len(ports)) for ports in self.build.wiring.port_names
        }
        for name, (kind, ports) in wanted.items():
            file = self.folder / f"{name}.ibnl"
            node, plugs = read_definition(file, self.differences)
            should = {str(port): f"P{port}" for port in range(1, ports + 1)}
            if (node, plugs) != (f"{kind} {ports}", should):
                self.differences.add(
                    file, 0, f"{node} with {len(plugs)} plugs", f"{kind} {ports}, P1, …"
                )

    def environment(self) -> None:
        """Compare what MPI jobs learn of the LIDs."""
        file = self.folder / "hosts.env"
        several = self.several is not None or layers(self.build).count > 1
        wanted = {
            "OMPI_MCA_btl_openib_max_lmc": str(self.lids.bit_length() - 1),
            "OMPI_MCA_btl_openib_ib_path_record_service_level": str(int(several)),
            "UCX_IB_LID_PATH_BITS": f"0-{self.lids - 1}",
            "UCX_IB_NUM_PATHS": str(self.lids),
        }
        said = read_settings(file, self.differences, "=")
        for name in wanted.keys() | said.keys():
            value, line = said.get(name, ("nothing", 0))
            if value != wanted.get(name, "nothing"):
                self.differences.add(file, line, f"{name}={value}", wanted.get(name, "nothing"))

    def _topology(self) -> Cables:
        """The cables of the topology file, by vertex and port."""
        file = self.folder / "fabric.topo"
        listed: Cables = {}
        cables, mentions = read_topology(file, self.differences)
        w = self.build.wiring
        systems = {
            name: f"switch_{len(w.port_names[int(w.node_type[v])])}"
            for name, v in self.vertex.items()
        }
        for name, system, line in mentions:
            if system != (wanted := systems.get(name, "adapter")):
                self.differences.add(file, line, f"{name} is {system}", wanted)
        for (name, port), (other, far_port, line) in cables.items():
            ports = [end.removeprefix("P") for end in (port, far_port)]
            if name in self.vertex and all(map(is_number, ports)):
                listed[self.vertex[name], exact_number(ports[0])] = (
                    other,
                    exact_number(ports[1]),
                    line,
                )
            else:
                self.differences.add(
                    file, line, f"{name} {port} -> {other} {far_port}", "no such end"
                )
        return listed

    def _compare_cables(self, listed: Cables, file: Path) -> None:
        w, hosts = self.build.wiring, self.build.wiring.host_port.shape[1]
        wanted: dict[tuple[int, int], tuple[str, int]] = {}
        for v in self.vertex.values():
            ends = zip(*(c[v].tolist() for c in (w.port, w.far, w.far_port)), strict=True)
            wanted |= {(v, p): (w.names[far], far_port) for p, far, far_port in ends if far >= 0}
            wanted |= {
                (v, p): (w.host_names[v * hosts + h], 1)
                for h, p in enumerate(w.host_port[v].tolist())
                if p
            }
        for end in wanted.keys() | listed.keys():
            *says, line = listed.get(end, ("nothing", 0, 0))
            should = wanted.get(end, ("nothing", 0))
            if tuple(says) != should:
                where = f"port {end[1]} of {w.names[end[0]]}"
                self.differences.add(file, line, f"{where} to {says[0]}", f"to {should[0]}")

    def tables(self, progress: Progress) -> None:
        """Compare the table of every switch; remember what it says."""
        several = self.several.tables if self.several else ()
        everywhere, cables = np.arange(self.build.tables.switches), self.build.wiring.cables()
        egress = [
            Fib.of(classes, cables).egress(everywhere) for classes in (self.build.tables, *several)
        ]
        seen: set[int] = set()
        for table in read_tables(self.file, self.differences):
            vertex = self.at.get(f"S-{table.switch:016x}", -1)
            if vertex < 0 or vertex in seen:
                self.differences.add(
                    self.file, table.line, f"{table.switch:#x}", "one table a switch"
                )
                continue
            seen.add(vertex)
            column, has_port = self._columns(table)
            self.port[vertex, column[has_port]] = table.port[has_port]
            self._compare(
                vertex, table.line, column, np.stack([classes[vertex] for classes in egress])
            )
            if progress:
                progress(len(seen), len(self.vertex))
        for vertex in set(self.vertex.values()) - seen:
            self.differences.add(
                self.file, 0, "no table", f"one of {self.build.wiring.names[vertex]}"
            )

    def _columns(self, table: TableText) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Of each line the column of its port's LID, and whether there is such a port."""
        most = len(self.ends.guid) - 1
        column = np.searchsorted(self.ends.guid, table.guid).clip(0, most)
        column = np.where(self.ends.port[column] > 0, column + table.lid % self.lids, column)
        has_port = self.ends.guid[column.clip(0, most)] == table.guid
        for row in np.flatnonzero(~has_port).tolist():
            line = table.line + 1 + row
            self.differences.add(self.file, line, f"{table.guid[row]:#x}", "no such port")
        _, first = np.unique(column, return_index=True)
        for row in np.setdiff1d(np.flatnonzero(has_port), first).tolist():
            line = table.line + 1 + row
            self.differences.add(
                self.file, line, f"{table.guid[row]:#x} again", "one line for each LID"
            )
        return column.clip(0, most), has_port

    def _compare(self, vertex: int, line: int, column: NDArray[np.int64], egress: Egress) -> None:
        """Compare ports with the routes of a switch: [1 + layers, S], the minimal ones first."""
        ends = self.ends
        forwards = egress < no_route(egress)
        port = np.full(egress.shape, -1, np.int64)
        port[forwards] = self.build.tables.classes.port[vertex, egress[forwards]]
        table = np.where(ends.port > 0, ends.layer + 1, 0) if self.several else 0
        should = port[table, ends.at]
        local_end = (egress[0] == local(egress))[ends.at]
        should[local_end] = ends.port[local_end]
        row = np.full(len(ends.guid), -1)
        row[column] = np.arange(len(column))
        names = self.build.wiring.names
        for end in np.flatnonzero(self.port[vertex] != should).tolist():
            lid = f" (LID {ends.layer[end]})" if self.several else ""
            where = f"{names[vertex]} to {ends.guid[end]:#x}{lid}"
            says = f"{where} by port {self.port[vertex, end]}"
            self.differences.add(
                self.file, line + 1 + int(row[end]), says, f"by port {should[end]}"
            )

    def levels(self) -> None:
        """Read the service level of every pair of hosts; remember them and their lines."""
        place = {int(self.ends.guid[e]): h for h, e in enumerate(self.host.tolist())}
        rules, default = read_policy(self.policy, self.differences)
        self.level = np.full((len(self.host), len(self.host)), default.level, np.uint8)
        self.rule_line = dict.fromkeys(range(len(self.host)), default.line)
        # The first rule that fits is used, so the last ones are written first.
        for rule in reversed(rules):
            ends = [
                [place[g] for g in side if g in place] for side in (rule.source, rule.destination)
            ]
            if [len(side) for side in ends] != [len(rule.source), len(rule.destination)]:
                self.differences.add(self.policy, rule.line, "a rule for a GUID", "no host has it")
            self.level[np.ix_(*ends)] = rule.level
            self.rule_line |= dict.fromkeys(ends[0], rule.line)

    def lanes(self) -> None:
        """Compare the lane of every pair of hosts, and the settings that make lanes of levels."""
        wanted = layers(self.build) if self.several is None else self.several
        at = self.ends.at[self.host]
        should = wanted.layer[np.ix_(at, at)]
        wrong = self.level != should
        for source in np.flatnonzero(wrong.any(axis=1)).tolist():
            destination = int(wrong[source].argmax())
            guids = self.ends.guid[self.host[[source, destination]]].tolist()
            says = f"{guids[0]:#x} to {guids[1]:#x} on lane {self.level[source, destination]}"
            lane, times = f"on lane {should[source, destination]}", int(wrong[source].sum())
            self.differences.add(self.policy, self.rule_line.get(source, 0), says, lane, times)
        self._settings(wanted.count)

    def _settings(self, lanes: int) -> None:
        """Compare opensm.conf: what has no rule here is a difference, for it may undo the rest."""
        file = self.folder / "opensm.conf"
        said = read_settings(file, self.differences)
        rules = SETTINGS | (LANE_SETTINGS if lanes > 1 else {})
        for name in rules.keys() | said.keys():
            value, line = said.get(name, ("nothing", 0))
            if rule := rules.get(name):
                fits, wanted = rule
                if not fits(value, lanes, self.lids):
                    self.differences.add(file, line, f"{name} {value}", wanted.format(lanes))
            elif name.startswith(STEERING):
                self.differences.add(file, line, f"{name} {value}", "no such setting")
            else:
                self.differences.statement(file, line, f"{name} {value}")

    def follow(self) -> tuple[int, int]:
        """Pairs of switches with hosts, and those where all LIDs of the second are reached."""
        order = len(self.far)
        column = np.flatnonzero(self.ends.port > 0)
        arrived = np.zeros((order, order), np.int64)
        waits = np.zeros((LANES, *self.far.shape, self.far.shape[1]), np.bool_)
        width = max(1, PACKETS_AT_ONCE // order)
        for first in range(0, len(column), width):
            part = column[first : first + width]
            arrives = self._follow(part, waits)
            np.add.at(arrived.T, self.ends.at[part], arrives.T.astype(np.int64))
        self._cycles(waits)
        ends = self.build.topology.endpoints & (self.build.wiring.host_port > 0).any(axis=1)
        count = int(ends.sum())
        wanted = np.bincount(self.ends.at[column], minlength=order)
        whole = (arrived == wanted) & ends[:, None] & ends & (wanted > 0)
        np.fill_diagonal(whole, False)
        return count * (count - 1), int(whole.sum())

    def _follow(self, part: NDArray[np.int64], waits: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[S, n]: whether packets from each switch to some LIDs arrive; notes their waits."""
        at, host_port, port = self.ends.at[part], self.ends.port[part], self.port[:, part]
        usable = (port > 0) & (port < self.far.shape[1])
        port = np.where(usable, port, 0)
        switch, column = np.arange(len(port))[:, None], np.arange(len(part))
        after = np.where(usable, self.far[switch, port], -1)
        after[at, column] = np.where(port[at, column] == host_port, at, -1)
        lane = self._lane(part)
        here = np.broadcast_to(switch, after.shape)
        for _ in range(MOST_HOPS):
            moved = np.where(here >= 0, after[here, column], -1)
            if (moved == here).all():
                break
            source, packet = np.nonzero((moved >= 0) & (moved != at) & (lane >= 0))
            before, then = here[source, packet], moved[source, packet]
            ports = port[before, packet], port[then, packet]
            waits[lane[source, packet], before, *ports] = True
            here = moved
        arrives: NDArray[np.bool_] = here == at
        return arrives

    def _lane(self, part: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[S, n]: the level of packets from a switch's first host; -1: there is none."""
        number = np.cumsum((self.ends.port > 0) & (self.ends.layer == 0)) - 1
        vertices, first = np.unique(self.ends.at[self.host], return_index=True)
        lane = np.full((len(self.far), len(part)), -1)
        lane[vertices] = self.level[first[:, None], number[part]]
        return lane

    def _cycles(self, waits: NDArray[np.bool_]) -> None:
        """Report lanes on which waits, bool[lanes, S, ports, ports], close a cycle."""
        ports = waits.shape[-1]
        for lane in np.flatnonzero(waits.any(axis=(1, 2, 3))).tolist():
            at, out, then = np.nonzero(waits[lane])
            before, after = at * ports + out, self.far[at, out] * ports + then
            left = np.ones(len(before), np.bool_)
            while True:
                # A link that waits for none, or that none waits for, is on no cycle.
                ends = np.isin(after, before[left]) & np.isin(before, after[left]) & left
                if ends.sum() == left.sum():
                    break
                left = ends
            if left.any():
                name = self.build.wiring.names[int(at[left][0])]
                says = f"waits on lane {lane} in a circle, one of them at {name}"
                self.differences.add(self.policy, 0, says, "none")
