"""The check of the files that OpenSM gets: cables, forwarding tables, service levels and settings.

The target opensm (`extensions.infiniband.opensm`) calls `check_subnet` after it has written the
files of a build. The check reads them back (`extensions.infiniband.subnet_text`) and compares all
that they state with the build. Then it follows a packet from every switch to every LID through the
tables and cables of the files (`extensions.infiniband.lid_walk`), and looks for credit loops.

A *LID* is the address of a port in the subnet; a host may have several, one for each of its paths.
A service level (SL) in a packet chooses its virtual lane (VL), and with lanes a fabric avoids
deadlocks. In shapes, S is the number of switches and H of hosts.
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
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Egress, local, no_route
from extensions.infiniband.lid_layers import LidLayers
from extensions.infiniband.lid_walk import LANES, LidEnd, LidEnds, LidWalk
from extensions.infiniband.subnet_text import (
    ABSENT,
    CableEnd,
    DevicePort,
    TableText,
    read_definition,
    read_policy,
    read_settings,
    read_subnet,
    read_tables,
    read_topology,
)
from extensions.lossless.layers import layers

WEIGHT_LIMIT = 256
"""Weights of virtual lanes are smaller than this."""
ROUTING_SETTINGS = ("qos", "max_op_vls", "lash", "routing", "lmc", "lfts", "sm_", "enable_quirks")
"""The beginnings of settings that change forwarding: a user cannot accept them as differences."""
SettingTest = Callable[[str, int, int], bool]
"""Whether a value is right, from the value, the number of lanes and the LIDs of a host."""
Cables = dict[tuple[int, int], CableEnd]
"""The far end of each cable of a switch, by the vertex and the port of the near end."""
Progress = Callable[[int, int], None] | None


@dataclass(frozen=True, slots=True)
class SettingRule:
    """The values that are right for a setting of opensm.conf."""

    fits: SettingTest
    """Whether a value is right."""
    expected: str
    """The right values, in words; `{}` stands for the number of lanes."""


SETTINGS = {
    "routing_engine": SettingRule(
        lambda value, *_: value == "file,no_fallback", "file,no_fallback"
    ),
    "lfts_file": SettingRule(lambda value, *_: value.endswith("/lfts.txt"), "a folder's lfts.txt"),
    "lmc": SettingRule(
        lambda value, _, lids: value == str(lids.bit_length() - 1), "that of the build"
    ),
}
"""The settings that every opensm.conf has."""
LANE_SETTINGS = {
    "qos": SettingRule(lambda value, *_: value == "TRUE", "TRUE"),
    "qos_policy_file": SettingRule(
        lambda value, *_: value.endswith("/qos-policy.conf"), "a folder's qos-policy.conf"
    ),
    "qos_max_vls": SettingRule(
        lambda value, lanes, _: is_number(value) and lanes <= exact_number(value) < LANES,
        "at least {}",
    ),
    "qos_high_limit": SettingRule(lambda value, *_: value == "255", "255"),
    "qos_vlarb_high": SettingRule(
        lambda value, *_: value == "0:0", "0:0: no lane goes before others"
    ),
    "qos_vlarb_low": SettingRule(
        lambda value, lanes, _: weighted_lanes(value) == list(range(lanes)),
        "a weight for each of {} lanes",
    ),
    "qos_sl2vl": SettingRule(
        lambda value, lanes, _: maps_levels_to_lanes(value, lanes),
        "a lane for each of {} levels",
    ),
}
"""The settings that an opensm.conf also has if there are several lanes. A port without an entry
in `qos_vlarb_low` never sends on that lane (InfiniBand Architecture Specification, volume 1,
7.6.9.2)."""


def weighted_lanes(text: str) -> list[int]:
    """The lanes of an arbitration table, `LANE:WEIGHT,…`, that have a weight; [] if malformed."""
    entries = [entry.partition(":") for entry in text.split(",")]
    if not all(is_number(lane) and is_number(weight) for lane, _, weight in entries):
        return []
    return sorted(
        exact_number(lane) for lane, _, weight in entries if 0 < exact_number(weight) < WEIGHT_LIMIT
    )


def maps_levels_to_lanes(text: str, lanes: int) -> bool:
    """Whether a list of lanes by service level gives each of the first levels its own lane."""
    by_level = text.split(",")
    are_lanes = all(is_number(lane) and exact_number(lane) < LANES for lane in by_level)
    return by_level[:lanes] == [str(lane) for lane in range(lanes)] and are_lanes


def check_subnet(
    build: Build,
    folder: Path,
    progress: Progress = None,
    layering: LidLayers | None = None,
    accept: tuple[str, ...] = (),
) -> EmittedReport:
    """Compare the files of target opensm with the tables.

    Args:
        build: the build of one plane.
        folder: where fabric.net, lfts.txt, opensm.conf and qos-policy.conf are.
        progress: called with (switches done, all switches).
        layering: the layers, if hosts have several LIDs.
        accept: the differences that the user accepts (`DifferenceList`).
    """
    differences = DifferenceList(accept)
    switches = int(build.topology.present.sum())
    pairs = delivered = 0
    try:
        check = _SubnetCheck(build, folder, differences, layering)
        check.definitions()
        check.environment()
        check.tables(progress)
        check.levels()
        counts = check.follow()
        pairs, delivered = counts.pairs, counts.delivered
        check.lanes()
    except (OSError, UnicodeDecodeError) as error:
        file = Path(getattr(error, "filename", None) or folder)
        differences.add(file, 0, "cannot be read", "a file of target opensm")
    listed = differences.count, tuple(differences.examples), differences.accepted
    return EmittedReport("opensm", switches, pairs, delivered, *listed)


@dataclass(frozen=True, slots=True)
class FollowedPairs:
    """How many pairs of switches with hosts were followed, and how many packets arrived."""

    pairs: int
    """How many ordered pairs of switches with hosts there are."""
    delivered: int
    """From how many of them packets arrive at all LIDs of the second switch's hosts."""


class _SubnetCheck:
    """The comparison of a folder with a build; what differs goes to `differences`.

    `check_subnet` calls the public methods. Each compares a file. The constructor writes the cables
    into `far`, `tables` the forwarding tables into `port`, and `levels` the service levels into
    `level`; `follow` reads these three.
    """

    def __init__(
        self, build: Build, folder: Path, differences: DifferenceList, layering: LidLayers | None
    ) -> None:
        """Read the subnet, and compare its switches and cables."""
        self.build, self.folder, self.differences = build, folder, differences
        self.layering = layering
        self.lids = len(layering.tables) if layering else 1
        """How many LIDs a host has."""
        self.file, self.policy = folder / "lfts.txt", folder / "qos-policy.conf"
        wiring = build.wiring
        present = np.flatnonzero(build.topology.present).tolist()
        self.vertex = {wiring.names[v]: v for v in present}
        self.subnet_file = folder / "fabric.net"
        self.subnet = read_subnet(self.subnet_file, differences)
        self.vertex_of = self._switches()
        """The vertex of each switch by its id in the subnet."""
        most_ports = max(len(names) for names in wiring.port_names)
        self.far = np.full((len(wiring.names), most_ports + 1), -1)
        """int64[S, ports + 1], the switch at the other end of each port's cable; -1: none."""
        self.ends = LidEnds.of(self._read_cables(), self.lids)
        self.port = np.full((len(wiring.names), len(self.ends.guid)), -1, np.int16)
        """int16[S, LIDs], the port of each switch towards each LID, by the tables' text."""
        self.level = np.zeros((0, 0), np.uint8)
        """uint8[H, H], the service level from host to host, by the policy's text."""
        self.rule_line = dict[int, int]()
        """The line of the last rule for packets from each host."""

    def _switches(self) -> dict[str, int]:
        """The vertex of every switch by its id in the subnet."""
        wiring, file = self.build.wiring, self.subnet_file
        vertex_of: dict[str, int] = {}
        for device_id, device in self.subnet.devices.items():
            if not device_id.startswith("S"):
                continue
            vertex = self.vertex.get(device.name, -1)
            if vertex < 0 or vertex in vertex_of.values():
                stated = f"switch {device.name}"
                self.differences.add(file, device.line, stated, "no such switch, or it again")
                continue
            vertex_of[device_id] = vertex
            ports = len(wiring.port_names[int(wiring.node_type[vertex])])
            if device.ports != ports:
                stated = f"switch {device.name} with {device.ports} ports"
                self.differences.add(file, device.line, stated, f"{ports}")
        for name in self.vertex.keys() - {wiring.names[v] for v in vertex_of.values()}:
            self.differences.add(file, 0, "nothing of it", f"switch {name}")
        return vertex_of

    def _read_cables(self) -> list[LidEnd]:
        """Write the cables of the subnet into `far`, and compare them.

        Returns:
            The ports that packets may be for: of all switches, and of all cabled hosts.
        """
        most_ports = self.far.shape[1] - 1
        cables: Cables = {}
        host_at: dict[str, DevicePort] = {}
        for near, cable in self.subnet.cables.items():
            back = self.subnet.cables.get(cable.far)
            if back is None or back.far != near:
                stated = f"port {near.port} to {cable.far.device}"
                expected = "a cable with two ends"
                self.differences.add(self.subnet_file, cable.line, stated, expected)
            elif near.device in self.vertex_of and 0 < near.port <= most_ports:
                vertex, far = self.vertex_of[near.device], cable.far.device
                far_name = self.subnet.devices[far].name
                end = CableEnd(DevicePort(far_name, cable.far.port), cable.line)
                cables[vertex, near.port] = end
                if far in self.vertex_of:
                    self.far[vertex, near.port] = self.vertex_of[far]
                else:
                    host_at[far] = near
        self._compare_cables(cables, self.subnet_file)
        self._compare_cables(self._topology(), self.folder / "fabric.topo")
        switches = [
            LidEnd(int(device_id.partition("-")[2], 16), vertex, 0)
            for device_id, vertex in self.vertex_of.items()
        ]
        hosts = [
            LidEnd(guid, self.vertex_of[host_at[host].device], host_at[host].port)
            for guid, host in self.subnet.hosts.items()
            if host in host_at
        ]
        return switches + hosts

    def definitions(self) -> None:
        """Compare the definitions of the systems in the topology file: switches and the adapter."""
        systems = {"adapter": ("CA", 1)}
        for names in self.build.wiring.port_names:
            systems[f"switch_{len(names)}"] = "SW", len(names)
        for name, (kind, ports) in systems.items():
            file = self.folder / f"{name}.ibnl"
            system = read_definition(file, self.differences)
            plugs = {str(port): f"P{port}" for port in range(1, ports + 1)}
            if system.node != f"{kind} {ports}" or system.plugs != plugs:
                stated = f"{system.node} with {len(system.plugs)} plugs"
                self.differences.add(file, 0, stated, f"{kind} {ports}, P1, …")

    def environment(self) -> None:
        """Compare the environment variables by which MPI jobs use several LIDs."""
        file = self.folder / "hosts.env"
        uses_levels = self.layering is not None or layers(self.build).count > 1
        expected = {
            "OMPI_MCA_btl_openib_max_lmc": str(self.lids.bit_length() - 1),
            "OMPI_MCA_btl_openib_ib_path_record_service_level": str(int(uses_levels)),
            "UCX_IB_LID_PATH_BITS": f"0-{self.lids - 1}",
            "UCX_IB_NUM_PATHS": str(self.lids),
        }
        settings = read_settings(file, self.differences, "=")
        for name in expected.keys() | settings.keys():
            value = settings.get(name, ABSENT)
            if value.text != expected.get(name, "nothing"):
                stated = f"{name}={value.text}"
                self.differences.add(file, value.line, stated, expected.get(name, "nothing"))

    def _topology(self) -> Cables:
        """The cables of the topology file, by vertex and port."""
        file = self.folder / "fabric.topo"
        cables: Cables = {}
        topology = read_topology(file, self.differences)
        wiring = self.build.wiring
        kinds = {
            name: f"switch_{len(wiring.port_names[int(wiring.node_type[v])])}"
            for name, v in self.vertex.items()
        }
        for mention in topology.mentions:
            expected = kinds.get(mention.name, "adapter")
            if mention.kind != expected:
                stated = f"{mention.name} is {mention.kind}"
                self.differences.add(file, mention.line, stated, expected)
        for near, cable in topology.cables.items():
            port, far_port = near.plug.removeprefix("P"), cable.far.plug.removeprefix("P")
            if near.system in self.vertex and is_number(port) and is_number(far_port):
                far = DevicePort(cable.far.system, exact_number(far_port))
                cables[self.vertex[near.system], exact_number(port)] = CableEnd(far, cable.line)
            else:
                stated = f"{near.system} {near.plug} -> {cable.far.system} {cable.far.plug}"
                self.differences.add(file, cable.line, stated, "no such end")
        return cables

    def _compare_cables(self, cables: Cables, file: Path) -> None:
        """Compare cables that a file lists with those of the build."""
        wiring, hosts = self.build.wiring, self.build.wiring.host_port.shape[1]
        expected: dict[tuple[int, int], DevicePort] = {}
        for v in self.vertex.values():
            for port, far, far_port in wiring.ends(v):
                expected[v, port] = DevicePort(wiring.names[far], far_port)
            for number, port in enumerate(wiring.host_port[v].tolist()):
                if port:
                    expected[v, port] = DevicePort(wiring.host_names[v * hosts + number], 1)
        nothing = DevicePort("nothing", 0)
        for vertex, port in expected.keys() | cables.keys():
            cable = cables.get((vertex, port), CableEnd(nothing, 0))
            end = expected.get((vertex, port), nothing)
            if cable.far != end:
                stated = f"port {port} of {wiring.names[vertex]} to {cable.far.device}"
                self.differences.add(file, cable.line, stated, f"to {end.device}")

    def tables(self, progress: Progress) -> None:
        """Compare the forwarding table of every switch, and write its ports into `port`."""
        switches, cables = np.arange(self.build.tables.switches), self.build.wiring.cables()
        layer_tables = self.layering.tables if self.layering else ()
        egress = [
            Fib.of(tables, cables).egress(switches) for tables in (self.build.tables, *layer_tables)
        ]
        compared: set[int] = set()
        for table in read_tables(self.file, self.differences):
            vertex = self.vertex_of.get(f"S-{table.switch:016x}", -1)
            if vertex < 0 or vertex in compared:
                stated = f"{table.switch:#x}"
                self.differences.add(self.file, table.line, stated, "one table a switch")
                continue
            compared.add(vertex)
            columns = self._columns(table)
            self.port[vertex, columns.column[columns.exists]] = table.port[columns.exists]
            of_switch = np.stack([of_layer[vertex] for of_layer in egress])
            self._compare_ports(vertex, table.line, columns.column, of_switch)
            if progress:
                progress(len(compared), len(self.vertex))
        for vertex in set(self.vertex.values()) - compared:
            name = self.build.wiring.names[vertex]
            self.differences.add(self.file, 0, "no table", f"one of {name}")

    def _columns(self, table: TableText) -> _TableColumns:
        """The LIDs that the lines of a table are for; lines for none and repeated lines differ."""
        last = len(self.ends.guid) - 1
        column = np.searchsorted(self.ends.guid, table.guid).clip(0, last)
        column = np.where(self.ends.port[column] > 0, column + table.lid % self.lids, column)
        exists = self.ends.guid[column.clip(0, last)] == table.guid
        for row in np.flatnonzero(~exists).tolist():
            line = table.line + 1 + row
            self.differences.add(self.file, line, f"{table.guid[row]:#x}", "no such port")
        _, first_row = np.unique(column, return_index=True)
        for row in np.setdiff1d(np.flatnonzero(exists), first_row).tolist():
            line, stated = table.line + 1 + row, f"{table.guid[row]:#x} again"
            self.differences.add(self.file, line, stated, "one line for each LID")
        return _TableColumns(column.clip(0, last), exists)

    def _compare_ports(
        self, vertex: int, line: int, column: NDArray[np.int64], egress: Egress
    ) -> None:
        """Compare the ports of a switch towards all LIDs with the routes.

        Args:
            vertex: the switch.
            line: the line at which its table begins.
            column: int64[n], the index of the LID of each line after that.
            egress: [1 + layers, S], its egress values, the minimal ones first.
        """
        ends = self.ends
        forwards = egress < no_route(egress)
        port = np.full(egress.shape, -1, np.int64)
        port[forwards] = self.build.tables.classes.port[vertex, egress[forwards]]
        # Packets to the LIDs of hosts are forwarded by the layers, those to switches minimally.
        layer = np.where(ends.port > 0, ends.layer + 1, 0) if self.layering else 0
        expected = port[layer, ends.vertex]
        is_local = (egress[0] == local(egress))[ends.vertex]
        expected[is_local] = ends.port[is_local]
        row = np.full(len(ends.guid), -1)
        row[column] = np.arange(len(column))
        name = self.build.wiring.names[vertex]
        for end in np.flatnonzero(self.port[vertex] != expected).tolist():
            lid = f" (LID {ends.layer[end]})" if self.layering else ""
            stated = f"{name} to {ends.guid[end]:#x}{lid} by port {self.port[vertex, end]}"
            line_of_end = line + 1 + int(row[end])
            self.differences.add(self.file, line_of_end, stated, f"by port {expected[end]}")

    def levels(self) -> None:
        """Write the service level of every pair of hosts into `level`, and its rule's line."""
        host_guids = self.ends.guid[self.ends.of_host].tolist()
        number_of = {guid: number for number, guid in enumerate(host_guids)}
        policy = read_policy(self.policy, self.differences)
        hosts = len(host_guids)
        self.level = np.full((hosts, hosts), policy.default.level, np.uint8)
        self.rule_line = dict.fromkeys(range(hosts), policy.default.line)
        # OpenSM uses the first rule that fits a pair, so the last rule is written first.
        for rule in reversed(policy.rules):
            sources = [number_of[guid] for guid in rule.source if guid in number_of]
            destinations = [number_of[guid] for guid in rule.destination if guid in number_of]
            has_strangers = len(sources) < len(rule.source) or (
                len(destinations) < len(rule.destination)
            )
            if has_strangers:
                self.differences.add(self.policy, rule.line, "a rule for a GUID", "no host has it")
            self.level[np.ix_(sources, destinations)] = rule.level
            self.rule_line |= dict.fromkeys(sources, rule.line)

    def lanes(self) -> None:
        """Compare the lane of every pair of hosts, and the settings that make lanes of levels."""
        lanes = self.layering.lanes if self.layering else layers(self.build)
        host_ends = self.ends.of_host
        vertex, guid = self.ends.vertex[host_ends], self.ends.guid[host_ends]
        expected = lanes.layer[np.ix_(vertex, vertex)]
        differs = self.level != expected
        for source in np.flatnonzero(differs.any(axis=1)).tolist():
            destination, times = int(differs[source].argmax()), int(differs[source].sum())
            pair = f"{int(guid[source]):#x} to {int(guid[destination]):#x}"
            stated = f"{pair} on lane {self.level[source, destination]}"
            lane = f"on lane {expected[source, destination]}"
            self.differences.add(self.policy, self.rule_line.get(source, 0), stated, lane, times)
        self._settings(lanes.count)

    def _settings(self, lanes: int) -> None:
        """Compare opensm.conf; a setting without a rule differs, too, as it may undo others."""
        file = self.folder / "opensm.conf"
        settings = read_settings(file, self.differences)
        rules = SETTINGS | (LANE_SETTINGS if lanes > 1 else {})
        for name in rules.keys() | settings.keys():
            value = settings.get(name, ABSENT)
            stated = f"{name} {value.text}"
            if rule := rules.get(name):
                if not rule.fits(value.text, lanes, self.lids):
                    expected = rule.expected.format(lanes)
                    self.differences.add(file, value.line, stated, expected)
            elif name.startswith(ROUTING_SETTINGS):
                self.differences.add(file, value.line, stated, "no such setting")
            else:
                self.differences.add_statement(file, value.line, stated)

    def follow(self) -> FollowedPairs:
        """Follow packets between all switches with hosts, and report credit loops."""
        walk = LidWalk(self.ends, self.far, self.port, self.level)
        delivery = walk.delivery()
        for loop in walk.credit_loops(delivery.dependencies):
            name = self.build.wiring.names[loop.vertex]
            stated = f"waits on lane {loop.lane} in a circle, one of them at {name}"
            self.differences.add(self.policy, 0, stated, "none")
        has_hosts = self.build.topology.endpoints & (self.build.wiring.host_port > 0).any(axis=1)
        delivered = delivery.arrived & has_hosts[:, None] & has_hosts
        np.fill_diagonal(delivered, False)
        switches = int(has_hosts.sum())
        return FollowedPairs(switches * (switches - 1), int(delivered.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class _TableColumns:
    """The LIDs that n lines of a table are for."""

    column: NDArray[np.int64]
    """int64[n], the index of each line's LID among all LIDs; clipped where there is no such LID."""
    exists: NDArray[np.bool_]
    """bool[n], whether there is such a LID."""
