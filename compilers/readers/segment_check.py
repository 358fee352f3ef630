"""The check of SRv6 uSIDs: the switches' rows, and every carrier of every host, followed.

A carrier is followed by the switches' own rows, read from text, over the cables of the build. The
switches it visits and its weight have to be those of the tables: the first port of the class with
its share, and minimally from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from compilers.readers.difference_list import DifferenceList
from compilers.readers.emitted_report import EmittedReport
from compilers.readers.segment_text import (
    CROSS,
    DECAPSULATE,
    END,
    VIA,
    HostSegments,
    Segment,
    SegmentTable,
    Usids,
    read_batch,
    read_frr_segments,
    read_host,
    read_sonic_segments,
)
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.tables.walk import Walker

LONGEST = 16
"""Switches on a way, beyond which it has no end."""
HOSTS = "hosts"
SONIC_SHARED = "Vlan2"
Path_ = tuple[int, ...]
Progress = Callable[[int, int], None] | None


def check_segments(build: Build, folder: Path, progress: Progress = None) -> EmittedReport:
    """Compare the files of target srv6 with the tables.

    Args:
        build: of one plane.
        folder: that of all switches, with hosts/ beside them.
        progress: called with (switches done, all switches).
    """
    found = DifferenceList()
    tables: dict[int, SegmentTable] = {}
    for vertex in np.flatnonzero(build.topology.present).tolist():
        here = folder / build.wiring.names[vertex]
        try:
            tables[vertex] = read_batch(here / "srv6.batch", found)
            _agree(tables[vertex], read_frr_segments(here / "srv6.conf", found), found)
        except (OSError, UnicodeDecodeError) as error:
            found.add(Path(getattr(error, "filename", here)), 0, "cannot be read", "a file of SIDs")
    check = SegmentCheck(build, tables, found)
    check.switches()
    pairs, delivered = check.hosts(folder / HOSTS, progress)
    return EmittedReport("srv6", len(tables), pairs, delivered, found.count, tuple(found.examples))


def check_sonic_segments(build: Build, folder: Path) -> DifferenceList:
    """What the uSIDs in CONFIG_DB say otherwise than the tables; hosts' files are target srv6's."""
    found = DifferenceList()
    tables = {}
    for vertex in np.flatnonzero(build.topology.present).tolist():
        file = folder / build.wiring.names[vertex] / "config_db.json"
        try:
            tables[vertex] = read_sonic_segments(file, found)
        except (OSError, LookupError, TypeError, ValueError):
            found.add(file, 0, "no SIDs", "those of a switch")
    SegmentCheck(build, tables, found, SONIC_SHARED).switches()
    return found


def _agree(table: SegmentTable, other: SegmentTable, found: DifferenceList) -> None:
    """Both files of a switch say the same."""
    if table.rows == other.rows:
        return
    for usids in table.rows.keys() | other.rows.keys():
        rows = table.rows.get(usids), other.rows.get(usids)
        if rows[0] != rows[1]:
            says, should = (_row(usids, row) for row in reversed(rows))
            found.add(other.file, other.lines.get(usids, 0), says, f"{should} in {table.file.name}")


def _row(usids: Usids, row: Segment | None) -> str:
    """A row in words."""
    name = ":".join(f"{usid:x}" for usid in usids)
    words = (row.action, row.address, row.interface) if row else ("nothing",)
    return " ".join((name, *filter(None, words)))


class SegmentCheck:
    """The comparison of the SIDs of a fabric; what differs goes to `found`."""

    def __init__(
        self,
        build: Build,
        tables: Mapping[int, SegmentTable],
        found: DifferenceList,
        shared: str = HOSTS,
    ) -> None:
        self.build, self.tables, self.found, self.shared = build, tables, found, shared
        order = np.arange(build.tables.switches)
        walker = Walker.of(build.tables, build.wiring.cables())
        self.cables = build.wiring.cables()
        self.egress = walker.egress(order)
        self.after = walker.next_switch(order)
        self.block = next((table.block for table in tables.values() if table.block), b"")
        self.number = [
            {name: n for n, name in enumerate(build.wiring.port_names[int(t)], 1)}
            for t in build.wiring.node_type
        ]
        self.locator: dict[int, int] = {}
        for vertex, table in tables.items():
            self._locator(vertex, table)
        self.of_vertex = {vertex: usid for usid, vertex in self.locator.items()}

    def _locator(self, vertex: int, table: SegmentTable) -> None:
        """The uSID of a switch is the one that it shifts out."""
        own = [usids[0] for usids, row in table.rows.items() if row.action == END]
        name = self.build.wiring.names[vertex]
        if len(own) != 1 or table.block != self.block or own[0] in self.locator:
            self.found.add(table.file, 0, f"{name} with {len(own)} uSIDs", "one that no other has")
        for usid in own[:1]:
            self.locator.setdefault(usid, vertex)

    def switches(self) -> None:
        """Every switch has a row for every other that carriers may name, by the tables' port."""
        neighbour: dict[str, int] = {}
        owner: dict[int, str] = {}
        for vertex, table in self.tables.items():
            crossed: list[int] = []
            said: dict[int, int] = {}
            for usids, row in table.rows.items():
                port = self.number[vertex].get(row.interface, 0)
                far = int(self.cables[vertex, port]) if port else -1
                there = self.locator.get(usids[0], -1)
                if row.action == VIA and there >= 0 and len(usids) == 1:
                    said[there] = port
                elif row.action == CROSS:
                    crossed.append(port)
                if far >= 0 and row.address:
                    first = neighbour.setdefault(row.address, far)
                    local = row.address.startswith("fe80")
                    known = owner.setdefault(far, row.address) if local else row.address
                    if first != far or known != row.address:
                        says = f"{row.address} is {self.build.wiring.names[far]}"
                        self._differ(
                            table, usids, says, "an address of one switch, the same everywhere"
                        )
                if row.action in (VIA, CROSS) and far < 0 and not self._to_host(vertex, row):
                    self._differ(table, usids, _row(usids, row), "a port with a cable")
            self._compare(vertex, table, said)
            links = self.build.wiring.port[vertex][self.build.wiring.far[vertex] >= 0]
            if sorted(crossed) != sorted(links.tolist()):
                self.found.add(table.file, 0, f"{len(crossed)} SIDs of links", f"{len(links)}")

    def _differ(self, table: SegmentTable, usids: Usids, says: str, tables: str) -> None:
        self.found.add(table.file, table.lines.get(usids, 0), says, tables)

    def _to_host(self, vertex: int, row: Segment) -> bool:
        """Whether a row leads to a host of the switch, through its only port or all of them."""
        ports = self.build.wiring.host_port[vertex]
        ports = ports[ports > 0].tolist()
        names = [self.build.wiring.port_name(vertex, port) for port in ports]
        return (
            row.interface in names
            if len(names) == 1
            else bool(names) and row.interface == self.shared
        )

    def _compare(self, vertex: int, table: SegmentTable, said: dict[int, int]) -> None:
        classes, w = self.build.tables.classes, self.build.wiring
        egress = self.egress[vertex]
        known = egress < no_route(egress)
        port = np.zeros(len(egress), np.int64)
        port[known] = classes.port[vertex, egress[known]]
        for far, out in zip(w.far[vertex].tolist(), w.port[vertex].tolist(), strict=True):
            if far >= 0 and not port[far]:
                port[far] = out
        port[vertex] = 0
        wanted = {int(there): int(port[there]) for there in np.flatnonzero(port)}
        if wanted == said:
            return
        for there in wanted.keys() | said.keys():
            if wanted.get(there) != said.get(there):
                usids = (self.of_vertex.get(there, 0),)
                ways = [
                    w.port_name(vertex, p) if p else "no port"
                    for p in (said.get(there, 0), wanted.get(there, 0))
                ]
                says = f"{w.names[vertex]} to {w.names[there]} by {ways[0]}"
                self._differ(table, usids, says, f"by {ways[1]}")

    def hosts(self, folder: Path, progress: Progress = None) -> tuple[int, int]:
        """Follow the carriers of every host whose folder is there.

        Returns:
            Pairs of switches with hosts, and those all of whose carriers arrive; where only some
            hosts were written, the pairs from their switches.
        """
        w, ends = self.build.wiring, self.build.topology.endpoints
        per = w.host_port.shape[1]
        pairs = delivered = 0
        known = {path.name for path in folder.glob("*")} if folder.is_dir() else set()
        for done, vertex in enumerate(np.flatnonzero(ends).tolist(), 1):
            numbers = [h for h, port in enumerate(w.host_port[vertex].tolist()) if port]
            names = [w.host_names[vertex * per + h] for h in numbers]
            there = [(h, name) for h, name in zip(numbers, names, strict=True) if name in known]
            if not there:
                continue
            pairs += int(ends.sum()) - 1
            arrived = [self._host(vertex, h, folder / name) for h, name in there]
            delivered += len(set.intersection(*arrived))
            if progress:
                progress(done, int(ends.sum()))
        for name in sorted(known - set(w.host_names)):
            self.found.add(folder / name, 0, "files of a host", "there is none of that name")
        if not known and ends.any():
            self.found.add(folder, 0, "no host's files", "paths for hosts")
        return pairs, delivered

    def _host(self, vertex: int, number: int, folder: Path) -> set[int]:
        """The switches to whose hosts all carriers of a host arrive."""
        a = self.build.addressing
        gateway = str(a.network6(vertex)[1])
        try:
            host = read_host(folder / "host.batch", self.found, gateway, self.block)
        except (OSError, UnicodeDecodeError):
            self.found.add(folder / "host.batch", 0, "cannot be read", "a host's paths")
            return set()
        wanted = self._wanted(vertex, number, host)
        arrived = set(np.flatnonzero(self.build.topology.endpoints).tolist()) - {vertex}
        missing = arrived - set(wanted.values())
        arrived -= missing
        for there in missing:
            if self.after[vertex, there] >= 0:
                self.found.add(host.file, 0, f"nothing to {a.network6(there)}", "paths there")
        paths = {there: self._paths(vertex, there) for there in arrived}
        for prefix, ways in host.ways.items():
            there = wanted.get(prefix, -1)
            if there < 0:
                self.found.add(host.file, host.lines[prefix], prefix, "no host elsewhere")
                continue
            followed = Counter[Path_]()
            for carrier, weight in ways:
                followed[self._follow(vertex, carrier, prefix, host.own[1:])] += weight
            if _shares(followed) != _shares(paths[there]):
                arrived.discard(there)
                says = f"{prefix} over {self._words(followed)}"
                self.found.add(host.file, host.lines[prefix], says, self._words(paths[there]))
        return arrived

    def _wanted(self, vertex: int, number: int, host: HostSegments) -> dict[str, int]:
        """The switch of every prefix: hosts that take the header off themselves, or blocks.

        By the host's own rows: one that takes it off has a prefix of its own.
        """
        a, w = self.build.addressing, self.build.wiring
        others = np.flatnonzero(self.build.topology.endpoints).tolist()
        if not host.own:
            return {str(a.network6(there)): there for there in others if there != vertex}
        row = self.tables[vertex].rows.get(host.own[:1]) if vertex in self.tables else None
        own = str(a.host6(vertex, number))
        if row is None or row.address != own or len(host.own) != 2:
            self.found.add(host.file, 0, f"a header taken off for {host.own}", f"what is for {own}")
        return {
            f"{a.host6(there, h)}/128": there
            for there in others
            if there != vertex
            for h, port in enumerate(w.host_port[there].tolist())
            if port
        }

    def _paths(self, vertex: int, there: int) -> Counter[Path_]:
        """The paths of the tables with their weights: a port of the class, then minimally."""
        classes = self.build.tables.classes
        egress = int(self.egress[vertex, there])
        paths = Counter[Path_]()
        if self.after[vertex, there] < 0:
            return paths
        ports = [int(classes.port[vertex, egress]), *classes.alternate[vertex, egress].tolist()]
        for port, weight in zip(ports, classes.weight[vertex, egress].tolist(), strict=True):
            if not port or not weight:
                continue
            path = [int(self.cables[vertex, port])]
            while path[-1] != there and len(path) < LONGEST:
                path.append(int(self.after[path[-1], there]))
            paths[tuple(path)] += weight
        return paths

    def _follow(self, vertex: int, carrier: Usids, prefix: str, off: Usids) -> Path_:
        """The switches after the first that a carrier visits until it is for this prefix.

        It ends in -1 where it does not come to that. off: what takes the header off at a host.
        """
        at, left = vertex, carrier
        path: list[int] = []
        while len(path) < LONGEST and left and at in self.tables:
            rows = self.tables[at].rows
            row = rows.get(left[:2]) or rows.get(left[:1])
            if row is None:
                break
            if row.action == END:
                left = left[1:]
                continue
            if row.action == DECAPSULATE:
                return (*path, *self._end(prefix, str(self.build.addressing.network6(at))))
            if row.action == CROSS:
                left = left[1:]
            port = self.number[at].get(row.interface, 0)
            far = int(self.cables[at, port]) if port else -1
            if far < 0:
                kept = self._to_host(at, row) and left[1:] == off and off
                host = f"{row.address}/128" if kept else ""
                return (*path, *self._end(prefix, host))
            at = far
            path.append(at)
        return (*path, -1)

    @staticmethod
    def _end(prefix: str, reached: str) -> Path_:
        return () if prefix == reached else (-1,)

    def _words(self, paths: Mapping[Path_, int]) -> str:
        names = [*self.build.wiring.names, "nowhere"]
        return " or ".join(
            f"{' '.join(names[v] for v in path)} ({weight})"
            for path, weight in sorted(paths.items())
        )


def _shares(paths: Mapping[Path_, int]) -> dict[Path_, int]:
    divisor = int(np.gcd.reduce(list(paths.values()))) if paths else 1
    return {path: weight // divisor for path, weight in paths.items()}
