"""The check of rendered SRv6 files: the segment routes of switches, and every carrier of hosts.

Each carrier of a host is followed from switch to switch, by the rows that were read from the
switches' files, over the cables of the build (`segment_paths`). The switches that it visits, and
its weight, have to be those of the tables: first a port of the egress class with its share, and
minimally from there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_report import DifferenceList, EmittedReport
from compilers.readers.exact_text import bare, exact_lines, read_exact
from compilers.readers.script_text import unlike_file
from compilers.readers.text_lines import Integers
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import no_route
from extensions.host_paths.segment_paths import LONGEST, Paths, SegmentPaths
from extensions.host_paths.segment_text import (
    CROSS,
    END,
    VIA,
    HostSegments,
    Segment,
    SegmentTable,
    Usids,
    read_host,
    read_segments,
    read_sonic_segments,
)

HOSTS = "hosts"
"""The folder of the hosts' folders."""
BRIDGE, SONIC_VLAN = "hosts", "Vlan2"
"""The interface of several hosts of a switch, on Linux and on SONiC."""
SEGMENTS_ON = re.compile(r"^net/ipv6/conf/(\S+)/seg6_enabled = 1$", re.MULTILINE)
"""The setting that has an interface of Linux take packets with segments."""
Route = tuple[int, ...]
"""The switches of a path, behind the source; -1 at the end of a path that is lost."""
Progress = Callable[[int, int], None] | None
"""Called with (switches done, all switches); None: nobody asks."""


def check_segments(
    build: Build, _: object, folder: Path, progress: Progress, accept: tuple[str, ...]
) -> EmittedReport:
    """Compare the files of target srv6 with the tables; see `Target.fabric_check`."""
    differences = DifferenceList(accept)
    tables: dict[int, SegmentTable] = {}
    for vertex in np.flatnonzero(build.topology.present).tolist():
        of_switch = folder / build.wiring.names[vertex]
        try:
            tables[vertex] = read_segments(of_switch / "srv6.batch", differences)
            _check_settings(build, vertex, of_switch / "srv6-sysctl.conf", differences)
            for_frr = read_segments(of_switch / "srv6.conf", differences)
            _compare_files(tables[vertex], for_frr, differences)
        except (OSError, UnicodeDecodeError) as error:
            file = Path(getattr(error, "filename", of_switch))
            differences.add(file, 0, "cannot be read", "a file of SIDs")
    check = SegmentCheck(build, tables, differences)
    check.switches()
    pairs = check.hosts(folder / HOSTS, progress)
    return EmittedReport(
        "srv6",
        switches=len(tables),
        pairs=pairs.all,
        delivered=pairs.delivered,
        differences=differences.count,
        examples=tuple(differences.examples),
        accepted=differences.accepted,
    )


def _check_settings(build: Build, vertex: int, file: Path, differences: DifferenceList) -> None:
    """Compare the settings of a kernel, without which it drops packets with segments."""
    wiring = build.wiring
    names = wiring.port_names[int(wiring.node_type[vertex])]
    hosts = [names[port - 1] for port in wiring.host_port[vertex].tolist() if port]
    ports = [names[port - 1] for port in wiring.port[vertex][wiring.far[vertex] >= 0].tolist()]
    interfaces = ["all", *ports, *(hosts if len(hosts) < 2 else [BRIDGE])]
    expected = {f"net/ipv6/conf/{name}/seg6_enabled = 1" for name in interfaces}
    expected.add("net/ipv6/conf/all/forwarding = 1")
    missing = set(expected)
    for line, text in enumerate(exact_lines(read_exact(file)), 1):
        if text in expected:
            missing.discard(text)
        elif bare(text) and bare(text)[0] not in "#;":
            differences.unread(file, line, text)
    for text in sorted(missing):
        differences.add(file, 0, "nothing of it", text)


def check_sonic_segments(build: Build, folder: Path) -> DifferenceList:
    """Compare the segment routes in CONFIG_DB of all switches with the tables.

    The files of hosts are those of target srv6, and are checked there.
    """
    differences = DifferenceList()
    tables = {}
    for vertex in np.flatnonzero(build.topology.present).tolist():
        file = folder / build.wiring.names[vertex] / "config_db.json"
        try:
            tables[vertex] = read_sonic_segments(file, differences)
        except (OSError, LookupError, TypeError, ValueError):
            differences.add(file, 0, "no SIDs", "those of a switch")
    SegmentCheck(build, tables, differences, SONIC_VLAN).switches()
    return differences


def _compare_files(
    expected: SegmentTable, table: SegmentTable, differences: DifferenceList
) -> None:
    """Note where the second file of a switch differs from the first."""
    if expected.rows == table.rows:
        return
    for usids in expected.rows.keys() | table.rows.keys():
        row, expected_row = table.rows.get(usids), expected.rows.get(usids)
        if row != expected_row:
            tables = f"{_row_text(usids, expected_row)} in {expected.file.name}"
            differences.add(table.file, table.lines.get(usids, 0), _row_text(usids, row), tables)


def _row_text(usids: Usids, row: Segment | None) -> str:
    """A segment route in words."""
    name = ":".join(f"{usid:x}" for usid in usids)
    words = (row.action, row.address, row.interface) if row else ("nothing",)
    return " ".join((name, *filter(None, words)))


class CheckedPairs(NamedTuple):
    """How many ordered pairs of switches with hosts were checked."""

    all: int
    """The pairs that were checked."""
    delivered: int
    """The pairs between which all carriers arrive as by the tables."""


@dataclass(frozen=True, slots=True, eq=False)
class FirstHops:
    """The neighbours of a switch to which its hosts send packets, by the tables."""

    neighbours: Integers
    """int64[N], ascending."""
    weights: Integers
    """int64[S, N]: the weight of each neighbour for each destination."""


class SegmentCheck:
    """The comparison of a fabric's segment routes with its tables.

    Args:
        build: the tables.
        tables: the segment routes of each switch, by vertex.
        differences: gets what differs.
        shared: the interface of several hosts of a switch.
    """

    def __init__(
        self,
        build: Build,
        tables: Mapping[int, SegmentTable],
        differences: DifferenceList,
        shared: str = BRIDGE,
    ) -> None:
        self.build, self.tables, self.differences, self.shared = build, tables, differences, shared
        order = np.arange(build.tables.switches)
        fib = Fib.of(build.tables, build.wiring.cables())
        self.cables = build.wiring.cables()
        """int[S, ports + 1]: the switch behind each port; -1: none."""
        self.egress = fib.egress(order)
        """int[S, S]: the egress class of each switch for each destination."""
        self.after = fib.next_switch(order)
        """int[S, S]: the next switch from each switch to each destination."""
        self.block = next((table.block for table in tables.values() if table.block), b"")
        """The first 32 bits of all uSIDs, by the first file."""
        self.number = [
            {name: n for n, name in enumerate(build.wiring.port_names[int(t)], 1)}
            for t in build.wiring.node_type
        ]
        """The number of each port, by vertex and name."""
        self.switch_of: dict[str, int] = {}
        """The switch for which each next hop's address stands."""
        self.link_local: dict[int, str] = {}
        """The link-local address of each switch."""
        self.locator: dict[int, int] = {}
        """The switch of each uSID."""
        for vertex, table in tables.items():
            self._add_locator(vertex, table)
        self.usid_of = {vertex: usid for usid, vertex in self.locator.items()}
        """The uSID of each switch."""
        addressing = build.addressing
        self.paths = SegmentPaths(
            tables,
            self.cables.astype(np.int64),
            self.number,
            {vertex: self._host_interface(vertex) for vertex in tables},
            [str(addressing.network6(vertex)) for vertex in order.tolist()]
            if addressing.ipv6
            else [],
        )

    def _add_locator(self, vertex: int, table: SegmentTable) -> None:
        """Note the uSID of a switch, the one that it shifts out; it has to have exactly one."""
        shifted = [usids[0] for usids, row in table.rows.items() if row.action == END]
        name = self.build.wiring.names[vertex]
        if len(shifted) != 1 or table.block != self.block or shifted[0] in self.locator:
            self.differences.add(
                table.file, 0, f"{name} with {len(shifted)} uSIDs", "one that no other has"
            )
        for usid in shifted[:1]:
            self.locator.setdefault(usid, vertex)

    def switches(self) -> None:
        """Compare the segment routes of all switches.

        Each switch has one for every other switch that carriers may name, by the port of the
        tables, and one for each of its links.
        """
        for vertex, table in self.tables.items():
            port_to: dict[int, int] = {}
            crossed: list[int] = []
            host_interface = self._host_interface(vertex)
            for usids, row in table.rows.items():
                port = self.number[vertex].get(row.interface, 0)
                far = int(self.cables[vertex, port]) if port else -1
                destination = self.locator.get(usids[0], -1)
                if row.action == VIA and destination >= 0 and len(usids) == 1:
                    port_to[destination] = port
                elif row.action == CROSS:
                    crossed.append(port)
                self._check_next_hop(table, usids, row, far)
                to_hosts = row.interface == host_interface
                if row.action in (VIA, CROSS) and far < 0 and not to_hosts:
                    self._differ(table, usids, _row_text(usids, row), "a port with a cable")
            self._compare_ports(vertex, table, port_to)
            links = self.build.wiring.port[vertex][self.build.wiring.far[vertex] >= 0]
            if sorted(crossed) != sorted(links.tolist()):
                sids = f"{len(crossed)} SIDs of links"
                self.differences.add(table.file, 0, sids, f"{len(links)}")

    def _check_next_hop(self, table: SegmentTable, usids: Usids, row: Segment, far: int) -> None:
        """Note an address that stands for two switches, or a second link-local one of a switch."""
        if far < 0 or not row.address:
            return
        switch = self.switch_of.setdefault(row.address, far)
        address = row.address
        if address.startswith("fe80"):
            address = self.link_local.setdefault(far, address)
        if switch != far or address != row.address:
            says = f"{row.address} is {self.build.wiring.names[far]}"
            self._differ(table, usids, says, "an address of one switch, the same everywhere")

    def _differ(self, table: SegmentTable, usids: Usids, says: str, tables: str) -> None:
        """Note a difference at the line of a segment route."""
        self.differences.add(table.file, table.lines.get(usids, 0), says, tables)

    def _host_interface(self, vertex: int) -> str:
        """The interface to the hosts of a switch: the only port, or the shared one; "" for none."""
        ports = self.build.wiring.host_port[vertex]
        names = [self.build.wiring.port_name(vertex, port) for port in ports[ports > 0].tolist()]
        if not names:
            return ""
        return names[0] if len(names) == 1 else self.shared

    def _compare_ports(self, vertex: int, table: SegmentTable, port_to: dict[int, int]) -> None:
        """Compare the port to each switch with that of the tables.

        Args:
            vertex: of the switch.
            table: its segment routes.
            port_to: their port to each other switch.
        """
        classes, wiring = self.build.tables.classes, self.build.wiring
        egress = self.egress[vertex]
        forwards = egress < no_route(egress)
        port = np.zeros(len(egress), np.int64)
        port[forwards] = classes.port[vertex, egress[forwards]]
        # A neighbour without hosts has no route, but carriers may name it.
        for far, link_port in zip(
            wiring.far[vertex].tolist(), wiring.port[vertex].tolist(), strict=True
        ):
            if far >= 0 and not port[far]:
                port[far] = link_port
        port[vertex] = 0
        expected = {int(switch): int(port[switch]) for switch in np.flatnonzero(port)}
        if expected == port_to:
            return

        def port_name(number: int) -> str:
            """The name of a port; 0 is no port."""
            return wiring.port_name(vertex, number) if number else "no port"

        for switch in expected.keys() | port_to.keys():
            if expected.get(switch) != port_to.get(switch):
                usids = (self.usid_of.get(switch, 0),)
                by = port_name(port_to.get(switch, 0))
                says = f"{wiring.names[vertex]} to {wiring.names[switch]} by {by}"
                self._differ(table, usids, says, f"by {port_name(expected.get(switch, 0))}")

    def hosts(self, folder: Path, progress: Progress = None) -> CheckedPairs:
        """Follow the carriers of every host that has a folder.

        Where only some hosts have one, only pairs from their switches are counted.

        Args:
            folder: the folder in which the hosts have theirs.
            progress: called with (switches done, all switches).
        """
        wiring, endpoints = self.build.wiring, self.build.topology.endpoints
        hosts_a_switch = wiring.host_port.shape[1]
        pairs = delivered = 0
        folders = {path.name for path in folder.glob("*")} if folder.is_dir() else set()
        check = self._over_intermediates if self.build.forwarding.intermediates else self._host
        for done, vertex in enumerate(np.flatnonzero(endpoints).tolist(), 1):
            names = {
                number: wiring.host_names[vertex * hosts_a_switch + number]
                for number, port in enumerate(wiring.host_port[vertex].tolist())
                if port
            }
            written = {number: name for number, name in names.items() if name in folders}
            if not written:
                continue
            pairs += int(endpoints.sum()) - 1
            hops = self._first_hops(vertex)
            arrived = [
                check(vertex, number, folder / name, hops) for number, name in written.items()
            ]
            delivered += int(np.logical_and.reduce(arrived).sum())
            if progress:
                progress(done, int(endpoints.sum()))
        for name in sorted(folders - set(wiring.host_names)):
            self.differences.add(folder / name, 0, "files of a host", "there is none of that name")
        if not folders and endpoints.any():
            self.differences.add(folder, 0, "no host's files", "paths for hosts")
        return CheckedPairs(pairs, delivered)

    def _first_hops(self, vertex: int) -> FirstHops:
        """The neighbours to which hosts of a switch send packets, by the tables."""
        classes, wiring = self.build.tables.classes, self.build.wiring
        neighbours = np.unique(wiring.far[vertex][wiring.far[vertex] >= 0]).astype(np.int64)
        routed = self.egress[vertex] < no_route(self.egress)
        destination = np.flatnonzero(routed & (self.after[vertex] >= 0))
        egress = self.egress[vertex, destination].astype(np.int64)
        ports = np.column_stack((classes.port[vertex], classes.alternate[vertex]))[egress]
        row, column = np.nonzero((ports > 0) & (classes.weight[vertex][egress] > 0))
        slot = np.searchsorted(neighbours, self.cables[vertex, ports[row, column]])
        weights = np.zeros((len(self.after), len(neighbours)), np.int64)
        np.add.at(weights, (destination[row], slot), classes.weight[vertex][egress][row, column])
        return FirstHops(neighbours, weights)

    def _host(self, vertex: int, number: int, folder: Path, hops: FirstHops) -> NDArray[np.bool_]:
        """bool[S]: the switches to whose hosts all carriers of a host arrive.

        Args:
            vertex: of the host's switch.
            number: of the host there.
            folder: of the host.
            hops: the neighbours to which hosts of the switch send packets, by the tables.
        """
        arrived = self.build.topology.endpoints.copy()
        arrived[vertex] = False
        if (host := self._read(vertex, folder)) is None:
            return np.zeros_like(arrived)
        switch_of = self._expected_prefixes(vertex, number, host)
        for prefix in switch_of.keys() - set(host.prefix):
            arrived[switch_of[prefix]] = False
            if self.after[vertex, switch_of[prefix]] >= 0:
                self.differences.add(host.file, 0, f"nothing to {prefix}", "paths there")
        destination = np.array([switch_of.get(prefix, -1) for prefix in host.prefix], np.int64)
        for row in np.flatnonzero(destination < 0).tolist():
            self.differences.add(host.file, host.line[row], host.prefix[row], "no host elsewhere")
        paths = self.paths.follow(vertex, host.usids, host.own)
        first = paths.switches[:, 0]
        slot = np.searchsorted(hops.neighbours, first).clip(0, len(hops.neighbours) - 1)
        is_minimal = self._minimal_carriers(paths, host, destination)
        is_minimal &= hops.neighbours[slot] == first
        weights = np.zeros((len(destination), len(hops.neighbours)), np.int64)
        np.add.at(weights, (host.route[is_minimal], slot[is_minimal]), host.weight[is_minimal])
        wrong = (_lowest(weights) != _lowest(hops.weights)[destination]).any(axis=1)
        wrong[host.route[~is_minimal]] = True
        for row in np.flatnonzero(wrong & (destination >= 0)).tolist():
            arrived[destination[row]] = False
            actual = self._words(self._actual_paths(paths, host, is_minimal, row))
            expected = self._words(self._expected_paths(int(destination[row]), hops))
            says = f"{host.prefix[row]} over {actual}"
            self.differences.add(host.file, host.line[row], says, expected)
        return arrived

    def _read(self, vertex: int, folder: Path) -> HostSegments | None:
        """Read the paths of a host, from its folder; None: they cannot be read."""
        gateway = str(self.build.addressing.network6(vertex)[1])
        try:
            interface = _host_interface(folder, self.differences)
            return read_host(
                folder / "host.batch", self.differences, gateway, interface, self.block
            )
        except (OSError, UnicodeDecodeError):
            self.differences.add(folder / "host.batch", 0, "cannot be read", "a host's paths")
            return None

    def _over_intermediates(
        self,
        vertex: int,
        number: int,  # noqa: ARG002
        folder: Path,
        hops: FirstHops,  # noqa: ARG002
    ) -> NDArray[np.bool_]:
        """bool[S]: the switches to whose hosts packets arrive, where hosts choose intermediates.

        A host has one route for all hosts of the fabric, with a carrier of weight 1 for each
        intermediate, which takes the header off; the routes of switches lead on from there. The
        arguments are those of `_host`.
        """
        endpoints = self.build.topology.endpoints
        none = np.zeros(len(endpoints), np.bool_)
        if (host := self._read(vertex, folder)) is None:
            return none
        paths = self.paths.follow(vertex, host.usids, ())
        rows = zip(
            host.route.tolist(),
            paths.reached.tolist(),
            host.weight.tolist(),
            paths.switches.tolist(),
            strict=True,
        )
        carriers = Counter(
            (
                host.prefix[route],
                self.paths.names[name],
                weight,
                self._minimal_end(vertex, switches),
            )
            for route, name, weight, switches in rows
        )
        pool = str(self.build.addressing.ipv6)
        expected = Counter((pool, block, 1, switch) for block, switch in self.blocks.items())
        if carriers == expected and not host.own:
            others: NDArray[np.bool_] = endpoints.copy()
            others[vertex] = False
            return others
        says = f"{len(host.prefix)} routes, {len(host.usids)} carriers"
        wrong = sorted(map(str, ((carriers - expected) + (expected - carriers))))
        if wrong:
            says += f", such as {wrong[0]}"
        line = host.line[0] if host.line else 0
        self.differences.add(
            host.file, line, says, f"{pool} over each of {len(expected)} switches alike"
        )
        return none

    def _minimal_end(self, vertex: int, switches: list[int]) -> int:
        """The switch where a path ends, -1 for a path that is not minimal.

        Args:
            vertex: where it begins.
            switches: its other switches, -1 behind the last.
        """
        walked = [vertex, *(switch for switch in switches if switch >= 0)]
        steps = pairwise(walked)
        return walked[-1] if all(self.after[a, walked[-1]] == b for a, b in steps) else -1

    def _minimal_carriers(
        self, paths: Paths, host: HostSegments, destination: Integers
    ) -> NDArray[np.bool_]:
        """bool[n]: the carriers that end at their destination, minimally behind the first switch.

        Args:
            paths: where the carriers lead.
            host: their routes.
            destination: int64[P], the switch of each route's prefix, -1: none.
        """
        end = destination[host.route]
        names = np.array(self.paths.names, object)[paths.reached]
        prefixes = np.array([*host.prefix, ""], object)[host.route]
        is_minimal: NDArray[np.bool_] = (names == prefixes) & (end >= 0)
        switch = paths.switches[:, 0]
        is_minimal &= switch >= 0
        for ahead in paths.switches.T[1:]:
            moved = ahead >= 0
            is_minimal &= ~moved | (self.after[switch, end] == ahead)
            switch = np.where(moved, ahead, switch)
        is_minimal &= switch == end
        return is_minimal

    def _actual_paths(
        self, paths: Paths, host: HostSegments, is_minimal: NDArray[np.bool_], row: int
    ) -> dict[Route, int]:
        """The paths that the carriers of a route take, with their weights."""
        weights = Counter[Route]()
        for carrier in np.flatnonzero(host.route == row).tolist():
            path = [switch for switch in paths.switches[carrier].tolist() if switch >= 0]
            end = () if is_minimal[carrier] or paths.reached[carrier] else (-1,)
            weights[(*path, *end)] += int(host.weight[carrier])
        return weights

    def _expected_paths(self, destination: int, hops: FirstHops) -> dict[Route, int]:
        """The paths of the tables, with their weights: a first hop, then minimally."""
        paths = {}
        for slot in np.flatnonzero(hops.weights[destination]).tolist():
            path = [int(hops.neighbours[slot])]
            while path[-1] != destination and len(path) < LONGEST:
                path.append(int(self.after[path[-1], destination]))
            paths[tuple(path)] = int(hops.weights[destination, slot])
        return paths

    def _expected_prefixes(self, vertex: int, number: int, host: HostSegments) -> dict[str, int]:
        """The prefixes to which a host has to have paths, each with its switch.

        Where the host takes headers off itself, as its own prefix shows, others do so too, and each
        host of other switches is a prefix; else each block of hosts is one.
        """
        if not host.own:
            return {text: switch for text, switch in self.blocks.items() if switch != vertex}
        row = self.tables[vertex].rows.get(host.own[:1]) if vertex in self.tables else None
        address = str(self.build.addressing.host6(vertex, number))
        if row is None or row.address != address or len(host.own) != 2:
            self.differences.add(
                host.file, 0, f"a header taken off for {host.own}", f"what is for {address}"
            )
        return {text: switch for text, switch in self.single_hosts.items() if switch != vertex}

    @cached_property
    def blocks(self) -> dict[str, int]:
        """The switch of every block of hosts."""
        addressing = self.build.addressing
        return {
            str(addressing.network6(v)): v
            for v in np.flatnonzero(self.build.topology.endpoints).tolist()
        }

    @cached_property
    def single_hosts(self) -> dict[str, int]:
        """The switch of every host's prefix of one address."""
        addressing, ports = self.build.addressing, self.build.wiring.host_port
        places = zip(*(axis.tolist() for axis in np.nonzero(ports)), strict=True)
        return {f"{addressing.host6(vertex, number)}/128": vertex for vertex, number in places}

    def _words(self, paths: Mapping[Route, int]) -> str:
        """Paths by the names of their switches, with their weights."""
        names = [*self.build.wiring.names, "nowhere"]
        return " or ".join(
            f"{' '.join(names[v] for v in path)} ({weight})"
            for path, weight in sorted(paths.items())
        )


def _host_interface(folder: Path, differences: DifferenceList) -> str:
    """The interface that a host's settings name; other lines of its scripts are differences."""
    setting = SEGMENTS_ON.search(read_exact(folder / "host-sysctl.conf"))
    variables = {"host": folder.name, "interface": setting[1] if setting else ""}
    for name in ("host-sysctl.conf", "load.sh"):
        for line, text in unlike_file(folder / name, f"srv6/{name}.j2", **variables):
            differences.unread(folder / name, line, text)
    return variables["interface"]


def _lowest(shares: Integers) -> Integers:
    """Rows of weights, divided by their greatest common divisor."""
    lowest: Integers = shares // np.gcd.reduce(shares, axis=1, initial=0)[:, None].clip(1)
    return lowest
