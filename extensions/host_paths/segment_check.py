"""The check of SRv6 uSIDs: the switches' rows, and every carrier of every host, followed.

A carrier is followed by the switches' own rows, read from text, over the cables of the build. The
switches it visits and its weight have to be those of the tables: the first port of the class with
its share, and minimally from there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path

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
SONIC_SHARED = "Vlan2"
SHARED = "hosts"
"""The bridge of several hosts."""
SEGMENTS_ON = re.compile(r"^net/ipv6/conf/(\S+)/seg6_enabled = 1$", re.MULTILINE)
Path_ = tuple[int, ...]
Progress = Callable[[int, int], None] | None


def check_segments(
    build: Build, _: object, folder: Path, progress: Progress, accept: tuple[str, ...]
) -> EmittedReport:
    """Compare the files of target srv6 with the tables; see `Target.fabric_check`."""
    differences = DifferenceList(accept)
    tables: dict[int, SegmentTable] = {}
    for vertex in np.flatnonzero(build.topology.present).tolist():
        here = folder / build.wiring.names[vertex]
        try:
            tables[vertex] = read_segments(here / "srv6.batch", differences)
            _settings(build, vertex, here / "srv6-sysctl.conf", differences)
            _agree(tables[vertex], read_segments(here / "srv6.conf", differences), differences)
        except (OSError, UnicodeDecodeError) as error:
            differences.add(
                Path(getattr(error, "filename", here)), 0, "cannot be read", "a file of SIDs"
            )
    check = SegmentCheck(build, tables, differences)
    check.switches()
    pairs, delivered = check.hosts(folder / HOSTS, progress)
    facts = pairs, delivered, differences.count, tuple(differences.examples), differences.accepted
    return EmittedReport("srv6", len(tables), *facts)


def _settings(build: Build, vertex: int, file: Path, differences: DifferenceList) -> None:
    """Without these settings of the kernel packets with SIDs are dropped."""
    w = build.wiring
    names = w.port_names[int(w.node_type[vertex])]
    hosts = [names[port - 1] for port in w.host_port[vertex].tolist() if port]
    ports = [names[port - 1] for port in w.port[vertex][w.far[vertex] >= 0].tolist()]
    taking = ["all", *ports, *(hosts if len(hosts) < 2 else [SHARED])]
    wanted = {f"net/ipv6/conf/{name}/seg6_enabled = 1" for name in taking}
    wanted.add("net/ipv6/conf/all/forwarding = 1")
    said = set()
    for line, text in enumerate(exact_lines(read_exact(file)), 1):
        if text in wanted:
            said.add(text)
        elif bare(text) and bare(text)[0] not in "#;":
            differences.unread(file, line, text)
    for text in sorted(wanted - said):
        differences.add(file, 0, "nothing of it", text)


def check_sonic_segments(build: Build, folder: Path) -> DifferenceList:
    """What the uSIDs in CONFIG_DB say otherwise than the tables; hosts' files are target srv6's."""
    differences = DifferenceList()
    tables = {}
    for vertex in np.flatnonzero(build.topology.present).tolist():
        file = folder / build.wiring.names[vertex] / "config_db.json"
        try:
            tables[vertex] = read_sonic_segments(file, differences)
        except (OSError, LookupError, TypeError, ValueError):
            differences.add(file, 0, "no SIDs", "those of a switch")
    SegmentCheck(build, tables, differences, SONIC_SHARED).switches()
    return differences


def _agree(table: SegmentTable, other: SegmentTable, differences: DifferenceList) -> None:
    """Both files of a switch say the same."""
    if table.rows == other.rows:
        return
    for usids in table.rows.keys() | other.rows.keys():
        rows = table.rows.get(usids), other.rows.get(usids)
        if rows[0] != rows[1]:
            says, should = (_row(usids, row) for row in reversed(rows))
            differences.add(
                other.file, other.lines.get(usids, 0), says, f"{should} in {table.file.name}"
            )


def _row(usids: Usids, row: Segment | None) -> str:
    """A row in words."""
    name = ":".join(f"{usid:x}" for usid in usids)
    words = (row.action, row.address, row.interface) if row else ("nothing",)
    return " ".join((name, *filter(None, words)))


class SegmentCheck:
    """The comparison of the SIDs of a fabric; what differs goes to `differences`."""

    def __init__(
        self,
        build: Build,
        tables: Mapping[int, SegmentTable],
        differences: DifferenceList,
        shared: str = HOSTS,
    ) -> None:
        self.build, self.tables, self.differences, self.shared = build, tables, differences, shared
        order = np.arange(build.tables.switches)
        fib = Fib.of(build.tables, build.wiring.cables())
        self.cables = build.wiring.cables()
        self.egress = fib.egress(order)
        self.after = fib.next_switch(order)
        self.block = next((table.block for table in tables.values() if table.block), b"")
        self.number = [
            {name: n for n, name in enumerate(build.wiring.port_names[int(t)], 1)}
            for t in build.wiring.node_type
        ]
        self.switch_of: dict[str, int] = {}
        self.link_local: dict[int, str] = {}
        self.locator: dict[int, int] = {}
        for vertex, table in tables.items():
            self._locator(vertex, table)
        self.of_vertex = {vertex: usid for usid, vertex in self.locator.items()}
        a = build.addressing
        self.paths = SegmentPaths(
            tables,
            self.cables.astype(np.int64),
            self.number,
            {vertex: self._to_hosts(vertex) for vertex in tables},
            [str(a.network6(vertex)) for vertex in order.tolist()] if a.ipv6 else [],
        )

    def _locator(self, vertex: int, table: SegmentTable) -> None:
        """The uSID of a switch is the one that it shifts out."""
        shifted = [usids[0] for usids, row in table.rows.items() if row.action == END]
        name = self.build.wiring.names[vertex]
        if len(shifted) != 1 or table.block != self.block or shifted[0] in self.locator:
            self.differences.add(
                table.file, 0, f"{name} with {len(shifted)} uSIDs", "one that no other has"
            )
        for usid in shifted[:1]:
            self.locator.setdefault(usid, vertex)

    def switches(self) -> None:
        """Every switch has a row for every other that carriers may name, by the tables' port."""
        for vertex, table in self.tables.items():
            port_to: dict[int, int] = {}
            crossed: list[int] = []
            for usids, row in table.rows.items():
                port = self.number[vertex].get(row.interface, 0)
                far = int(self.cables[vertex, port]) if port else -1
                destination = self.locator.get(usids[0], -1)
                if row.action == VIA and destination >= 0 and len(usids) == 1:
                    port_to[destination] = port
                elif row.action == CROSS:
                    crossed.append(port)
                self._check_next_hop(table, usids, row, far)
                to_hosts = row.interface == self._to_hosts(vertex)
                if row.action in (VIA, CROSS) and far < 0 and not to_hosts:
                    self._differ(table, usids, _row(usids, row), "a port with a cable")
            self._compare(vertex, table, port_to)
            links = self.build.wiring.port[vertex][self.build.wiring.far[vertex] >= 0]
            if sorted(crossed) != sorted(links.tolist()):
                sids = f"{len(crossed)} SIDs of links"
                self.differences.add(table.file, 0, sids, f"{len(links)}")

    def _check_next_hop(self, table: SegmentTable, usids: Usids, row: Segment, far: int) -> None:
        """An address stands for one switch, and a switch has one link-local address everywhere."""
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
        self.differences.add(table.file, table.lines.get(usids, 0), says, tables)

    def _to_hosts(self, vertex: int) -> str:
        """The interface that leads to the hosts of a switch: its only port or all of them."""
        ports = self.build.wiring.host_port[vertex]
        names = [self.build.wiring.port_name(vertex, port) for port in ports[ports > 0].tolist()]
        return names[0] if len(names) == 1 else self.shared if names else ""

    def _compare(self, vertex: int, table: SegmentTable, port_to: dict[int, int]) -> None:
        """Compare the port to each switch with the port that the tables say."""
        classes, w = self.build.tables.classes, self.build.wiring
        egress = self.egress[vertex]
        forwards = egress < no_route(egress)
        port = np.zeros(len(egress), np.int64)
        port[forwards] = classes.port[vertex, egress[forwards]]
        for far, out in zip(w.far[vertex].tolist(), w.port[vertex].tolist(), strict=True):
            if far >= 0 and not port[far]:
                port[far] = out
        port[vertex] = 0
        wanted = {int(switch): int(port[switch]) for switch in np.flatnonzero(port)}
        if wanted == port_to:
            return
        for switch in wanted.keys() | port_to.keys():
            if wanted.get(switch) != port_to.get(switch):
                usids = (self.of_vertex.get(switch, 0),)
                named = [
                    w.port_name(vertex, p) if p else "no port"
                    for p in (port_to.get(switch, 0), wanted.get(switch, 0))
                ]
                says = f"{w.names[vertex]} to {w.names[switch]} by {named[0]}"
                self._differ(table, usids, says, f"by {named[1]}")

    def hosts(self, folder: Path, progress: Progress = None) -> tuple[int, int]:
        """Follow the carriers of every host whose folder is there.

        Returns:
            Pairs of switches with hosts, and those all of whose carriers arrive; where only some
            hosts were written, the pairs from their switches.
        """
        w, ends = self.build.wiring, self.build.topology.endpoints
        per = w.host_port.shape[1]
        pairs = delivered = 0
        folders = {path.name for path in folder.glob("*")} if folder.is_dir() else set()
        for done, vertex in enumerate(np.flatnonzero(ends).tolist(), 1):
            numbers = [h for h, port in enumerate(w.host_port[vertex].tolist()) if port]
            names = [w.host_names[vertex * per + h] for h in numbers]
            written = [(h, name) for h, name in zip(numbers, names, strict=True) if name in folders]
            if not written:
                continue
            pairs += int(ends.sum()) - 1
            wanted = self._shares(vertex)
            check = self._over_intermediates if self.build.forwarding.intermediates else self._host
            arrived = [check(vertex, h, folder / name, wanted) for h, name in written]
            delivered += int(np.logical_and.reduce(arrived).sum())
            if progress:
                progress(done, int(ends.sum()))
        for name in sorted(folders - set(w.host_names)):
            self.differences.add(folder / name, 0, "files of a host", "there is none of that name")
        if not folders and ends.any():
            self.differences.add(folder, 0, "no host's files", "paths for hosts")
        return pairs, delivered

    def _shares(self, vertex: int) -> tuple[Integers, Integers]:
        """int64[N], the neighbours, and int64[S, N]: the weight of each as the first on paths."""
        classes, w = self.build.tables.classes, self.build.wiring
        near = np.unique(w.far[vertex][w.far[vertex] >= 0]).astype(np.int64)
        routed = self.egress[vertex] < no_route(self.egress)
        destination = np.flatnonzero(routed & (self.after[vertex] >= 0))
        egress = self.egress[vertex, destination].astype(np.int64)
        ports = np.column_stack((classes.port[vertex], classes.alternate[vertex]))[egress]
        row, column = np.nonzero((ports > 0) & (classes.weight[vertex][egress] > 0))
        slot = np.searchsorted(near, self.cables[vertex, ports[row, column]])
        shares = np.zeros((len(self.after), len(near)), np.int64)
        np.add.at(shares, (destination[row], slot), classes.weight[vertex][egress][row, column])
        return near, shares

    def _host(
        self, vertex: int, number: int, folder: Path, wanted_shares: tuple[Integers, Integers]
    ) -> NDArray[np.bool_]:
        """bool[S]: the switches to whose hosts all carriers of a host arrive."""
        arrived = self.build.topology.endpoints.copy()
        arrived[vertex] = False
        if (host := self._read(vertex, folder)) is None:
            return np.zeros_like(arrived)
        wanted = self._wanted(vertex, number, host)
        for prefix in wanted.keys() - set(host.prefix):
            arrived[wanted[prefix]] = False
            if self.after[vertex, wanted[prefix]] >= 0:
                self.differences.add(host.file, 0, f"nothing to {prefix}", "paths there")
        destination = np.array([wanted.get(prefix, -1) for prefix in host.prefix], np.int64)
        for row in np.flatnonzero(destination < 0).tolist():
            self.differences.add(host.file, host.line[row], host.prefix[row], "no host elsewhere")
        paths = self.paths.follow(vertex, host.usids, host.own)
        near, shares = wanted_shares
        slot = np.searchsorted(near, paths.switches[:, 0]).clip(0, len(near) - 1)
        right = self._right(paths, host, destination) & (near[slot] == paths.switches[:, 0])
        weights = np.zeros((len(destination), len(near)), np.int64)
        np.add.at(weights, (host.route[right], slot[right]), host.weight[right])
        wrong = (_lowest(weights) != _lowest(shares)[destination]).any(axis=1)
        wrong[host.route[~right]] = True
        for row in np.flatnonzero(wrong & (destination >= 0)).tolist():
            arrived[destination[row]] = False
            says = f"{host.prefix[row]} over {self._words(self._given(paths, host, right, row))}"
            should = self._words(self._tabled(int(destination[row]), near, shares))
            self.differences.add(host.file, host.line[row], says, should)
        return arrived

    def _read(self, vertex: int, folder: Path) -> HostSegments | None:
        """What a host does, from its folder; None where that cannot be read."""
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
        shares: tuple[Integers, Integers],  # noqa: ARG002
    ) -> NDArray[np.bool_]:
        """bool[S]: the switches to whose hosts a host's carriers lead, by any switch with hosts.

        One route for all hosts of the fabric, with a carrier for each intermediate, all alike.
        Switches take the header off, and their own rows lead on.
        """
        ends = self.build.topology.endpoints
        none = np.zeros(len(ends), np.bool_)
        if (host := self._read(vertex, folder)) is None:
            return none
        paths = self.paths.follow(vertex, host.usids, ())
        carriers = Counter(
            (host.prefix[route], self.paths.names[name], weight, self._minimal(vertex, switches))
            for route, name, weight, switches in zip(
                *(a.tolist() for a in (host.route, paths.reached, host.weight, paths.switches)),
                strict=True,
            )
        )
        pool = str(self.build.addressing.ipv6)
        wanted = Counter((pool, block, 1, end) for block, end in self.blocks.items())
        if carriers == wanted and not host.own:
            others: NDArray[np.bool_] = ends.copy()
            others[vertex] = False
            return others
        says = f"{len(host.prefix)} routes, {len(host.usids)} carriers"
        wrong = sorted(map(str, ((carriers - wanted) + (wanted - carriers))))
        if wrong:
            says += f", such as {wrong[0]}"
        line = host.line[0] if host.line else 0
        self.differences.add(
            host.file, line, says, f"{pool} over each of {len(wanted)} switches alike"
        )
        return none

    def _minimal(self, vertex: int, switches: list[int]) -> int:
        """The switch where a path ends, -1 for one that is not minimal."""
        walked = [vertex, *(switch for switch in switches if switch >= 0)]
        steps = pairwise(walked)
        return walked[-1] if all(self.after[a, walked[-1]] == b for a, b in steps) else -1

    def _right(self, paths: Paths, host: HostSegments, destination: Integers) -> NDArray[np.bool_]:
        """bool[n]: which carriers go minimally behind the first switch, to their own end."""
        to = destination[host.route]
        names = np.array(self.paths.names, object)[paths.reached]
        prefixes = np.array([*host.prefix, ""], object)[host.route]
        right: NDArray[np.bool_] = (names == prefixes) & (to >= 0)
        here = paths.switches[:, 0]
        right &= here >= 0
        for ahead in paths.switches.T[1:]:
            moved = ahead >= 0
            right &= ~moved | (self.after[here, to] == ahead)
            here = np.where(moved, ahead, here)
        right &= here == to
        return right

    def _given(
        self, paths: Paths, host: HostSegments, right: NDArray[np.bool_], row: int
    ) -> dict[Path_, int]:
        """The paths of a route's carriers, with their weights."""
        weights = Counter[Path_]()
        for carrier in np.flatnonzero(host.route == row).tolist():
            path = [switch for switch in paths.switches[carrier].tolist() if switch >= 0]
            end = () if right[carrier] or paths.reached[carrier] else (-1,)
            weights[(*path, *end)] += int(host.weight[carrier])
        return weights

    def _tabled(self, destination: int, near: Integers, shares: Integers) -> dict[Path_, int]:
        """The paths of the tables with their weights: a port of the class, then minimally."""
        paths = {}
        for slot in np.flatnonzero(shares[destination]).tolist():
            path = [int(near[slot])]
            while path[-1] != destination and len(path) < LONGEST:
                path.append(int(self.after[path[-1], destination]))
            paths[tuple(path)] = int(shares[destination, slot])
        return paths

    def _wanted(self, vertex: int, number: int, host: HostSegments) -> dict[str, int]:
        """The switch of every prefix: hosts that take the header off themselves, or blocks.

        By the host's own rows: one that takes it off has a prefix of its own.
        """
        if not host.own:
            return {text: switch for text, switch in self.blocks.items() if switch != vertex}
        row = self.tables[vertex].rows.get(host.own[:1]) if vertex in self.tables else None
        address = str(self.build.addressing.host6(vertex, number))
        if row is None or row.address != address or len(host.own) != 2:
            self.differences.add(
                host.file, 0, f"a header taken off for {host.own}", f"what is for {address}"
            )
        return {text: switch for text, switch in self.single.items() if switch != vertex}

    @cached_property
    def blocks(self) -> dict[str, int]:
        """The switch of every block of hosts."""
        a = self.build.addressing
        return {
            str(a.network6(v)): v for v in np.flatnonzero(self.build.topology.endpoints).tolist()
        }

    @cached_property
    def single(self) -> dict[str, int]:
        """The switch of every host's own prefix."""
        a, ports = self.build.addressing, self.build.wiring.host_port
        places = zip(*(axis.tolist() for axis in np.nonzero(ports)), strict=True)
        return {f"{a.host6(vertex, number)}/128": vertex for vertex, number in places}

    def _words(self, paths: Mapping[Path_, int]) -> str:
        names = [*self.build.wiring.names, "nowhere"]
        return " or ".join(
            f"{' '.join(names[v] for v in path)} ({weight})"
            for path, weight in sorted(paths.items())
        )


def _host_interface(folder: Path, differences: DifferenceList) -> str:
    """The interface that a host's settings name; what else its scripts say is a difference."""
    setting = SEGMENTS_ON.search(read_exact(folder / "host-sysctl.conf"))
    variables = {"host": folder.name, "interface": setting[1] if setting else ""}
    for name in ("host-sysctl.conf", "load.sh"):
        for line, text in unlike_file(folder / name, f"srv6/{name}.j2", **variables):
            differences.unread(folder / name, line, text)
    return variables["interface"]


def _lowest(shares: Integers) -> Integers:
    """Rows of weights without a common divisor."""
    lowest: Integers = shares // np.gcd.reduce(shares, axis=1, initial=0)[:, None].clip(1)
    return lowest
