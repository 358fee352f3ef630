"""The check of what OpenSM gets: cables, the table of every switch, and the lane of every pair.

Every pair of hosts is followed through the tables' text and the cables of the subnet's text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.proof.layers import layers
from compilers.readers.difference_list import DifferenceList
from compilers.readers.emitted_report import EmittedReport
from compilers.readers.subnet_text import (
    SubnetText,
    read_policy,
    read_settings,
    read_subnet,
    read_tables,
)
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Egress, local, no_route
from compilers.tables.walk import MOST_HOPS, Walker

LANES = 16
SETTINGS = {"routing_engine": "file,no_fallback", "lmc": "0"}
Cables = dict[tuple[int, int], tuple[str, int, int]]
"""The name and the port at the other end, and the line, by vertex and port."""
Progress = Callable[[int, int], None] | None


def check_subnet(build: Build, folder: Path, progress: Progress = None) -> EmittedReport:
    """Compare the files of target opensm with the tables.

    Args:
        build: of one plane.
        folder: where fabric.net, lfts.txt, opensm.conf and qos-policy.conf are.
        progress: called with (switches done, all switches).
    """
    found = DifferenceList()
    switches = int(build.topology.present.sum())
    pairs = delivered = 0
    try:
        check = _SubnetCheck(build, folder, found)
        check.tables(progress)
        check.lanes()
        pairs, delivered = check.follow()
    except (OSError, UnicodeDecodeError) as error:
        file = Path(getattr(error, "filename", None) or folder)
        found.add(file, 0, "cannot be read", "a file of target opensm")
    return EmittedReport("opensm", switches, pairs, delivered, found.count, tuple(found.examples))


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    """All that packets are for: GUIDs, the vertex where each is, its port there (0: the switch)."""

    guid: NDArray[np.uint64]
    at: NDArray[np.int64]
    port: NDArray[np.int64]


class _SubnetCheck:
    """The comparison of a folder; what differs goes to `found`."""

    def __init__(self, build: Build, folder: Path, found: DifferenceList) -> None:
        self.build, self.folder, self.found = build, folder, found
        self.file = folder / "lfts.txt"
        names = build.wiring.names
        present = np.flatnonzero(build.topology.present).tolist()
        self.vertex = {names[v]: v for v in present}
        subnet = read_subnet(folder / "fabric.net", found)
        self.at = self._switches(subnet, folder / "fabric.net")
        self.far, host_at = self._cables(subnet, folder / "fabric.net")
        ends = [(guid, v, 0) for id_, v in self.at.items() for guid in [int(id_[2:], 16)]]
        ends += [(g, *host_at[i]) for g, i in subnet.guids.items() if i in host_at]
        ends.sort()
        guid, at, port = zip(*ends, strict=True) if ends else ((), (), ())
        self.ends = _Ends(np.array(guid, np.uint64), np.array(at, int), np.array(port, int))
        self.port = np.full((len(names), len(ends)), -1, np.int16)

    def _switches(self, subnet: SubnetText, file: Path) -> dict[str, int]:
        """The vertex of every switch by its id."""
        at: dict[str, int] = {}
        for id_, (name, line) in subnet.names.items():
            if id_[0] == "S" and name in self.vertex and self.vertex[name] not in at.values():
                at[id_] = self.vertex[name]
            elif id_[0] == "S":
                self.found.add(file, line, f"switch {name}", "no such switch, or it again")
        for name in self.vertex.keys() - {self.build.wiring.names[v] for v in at.values()}:
            self.found.add(file, 0, "nothing of it", f"switch {name}")
        return at

    def _cables(
        self, subnet: SubnetText, file: Path
    ) -> tuple[NDArray[np.int64], dict[str, tuple[int, int]]]:
        """int64[S, ports + 1], the vertex at each port, and where the hosts are by their ids."""
        w = self.build.wiring
        most = max(len(names) for names in w.port_names)
        far = np.full((len(w.names), most + 1), -1)
        told: Cables = {}
        host_at: dict[str, tuple[int, int]] = {}
        for (id_, port), (other, far_port, line) in subnet.cables.items():
            back = subnet.cables.get((other, far_port), ("", 0, 0))[:2]
            if back != (id_, port):
                self.found.add(file, line, f"port {port} to {other}", "a cable with two ends")
            elif id_ in self.at and 0 < port <= most:
                told[self.at[id_], port] = subnet.names[other][0], far_port, line
                if other in self.at:
                    far[self.at[id_], port] = self.at[other]
                else:
                    host_at[other] = self.at[id_], port
        self._compare_cables(told, file)
        return far, host_at

    def _compare_cables(self, told: Cables, file: Path) -> None:
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
        for end in wanted.keys() | told.keys():
            *says, line = told.get(end, ("nobody", 0, 0))
            should = wanted.get(end, ("nobody", 0))
            if tuple(says) != should:
                where = f"port {end[1]} of {w.names[end[0]]}"
                self.found.add(file, line, f"{where} to {says[0]}", f"to {should[0]}")

    def tables(self, progress: Progress) -> None:
        """Compare the table of every switch; remember what it says."""
        walker = Walker.of(self.build.tables, self.build.wiring.cables())
        egress = walker.egress(np.arange(self.build.tables.switches))
        seen: set[int] = set()
        for table in read_tables(self.file, self.found):
            vertex = self.at.get(f"S-{table.switch:016x}", -1)
            if vertex < 0 or vertex in seen:
                self.found.add(self.file, table.line, f"{table.switch:#x}", "one table a switch")
                continue
            seen.add(vertex)
            column = np.searchsorted(self.ends.guid, table.guid).clip(0, len(self.ends.guid) - 1)
            known = self.ends.guid[column] == table.guid
            for row in np.flatnonzero(~known).tolist():
                self.found.add(
                    self.file, table.line + 1 + row, f"{table.guid[row]:#x}", "no such port"
                )
            self.port[vertex, column[known]] = table.port[known]
            self._compare(vertex, table.line, column, egress[vertex])
            if progress:
                progress(len(seen), len(self.vertex))
        for vertex in set(self.vertex.values()) - seen:
            self.found.add(self.file, 0, "no table", f"one of {self.build.wiring.names[vertex]}")

    def _compare(self, vertex: int, line: int, column: NDArray[np.int64], egress: Egress) -> None:
        forwards = egress < no_route(egress)
        port = np.full(len(egress), -1, np.int64)
        port[forwards] = self.build.tables.classes.port[vertex, egress[forwards]]
        should = port[self.ends.at]
        own = egress[self.ends.at] == local(egress)
        should[own] = self.ends.port[own]
        row = np.full(len(self.ends.guid), -1)
        row[column] = np.arange(len(column))
        names = self.build.wiring.names
        for end in np.flatnonzero(self.port[vertex] != should).tolist():
            where = f"{names[vertex]} to {self.ends.guid[end]:#x}"
            says = f"{where} by port {self.port[vertex, end]}"
            self.found.add(self.file, line + 1 + int(row[end]), says, f"by port {should[end]}")

    def lanes(self) -> None:
        """Compare the lane of every pair of hosts, and the settings that make lanes of levels."""
        wanted = layers(self.build)
        host = np.flatnonzero(self.ends.port > 0)
        place = {int(self.ends.guid[e]): h for h, e in enumerate(host.tolist())}
        level = np.zeros((len(host), len(host)), np.uint8)
        file = self.folder / "qos-policy.conf"
        line = dict[int, int]()
        # The first rule that fits is used, so the last ones are written first.
        for rule in reversed(read_policy(file, self.found)):
            ends = [
                [place[g] for g in side if g in place] for side in (rule.source, rule.destination)
            ]
            if [len(side) for side in ends] != [len(rule.source), len(rule.destination)]:
                self.found.add(file, rule.line, "a rule for a GUID", "no host has it")
            level[np.ix_(*ends)] = rule.level
            line |= dict.fromkeys(ends[0], rule.line)
        at = self.ends.at[host]
        should = wanted.layer[np.ix_(at, at)]
        wrong = level != should
        for source in np.flatnonzero(wrong.any(axis=1)).tolist():
            there = int(wrong[source].argmax())
            guids = self.ends.guid[host[[source, there]]].tolist()
            says = f"{guids[0]:#x} to {guids[1]:#x} on lane {level[source, there]}"
            times = int(wrong[source].sum())
            self.found.add(
                file, line.get(source, 0), says, f"on lane {should[source, there]}", times
            )
        self._settings(wanted.count)

    def _settings(self, lanes: int) -> None:
        file = self.folder / "opensm.conf"
        said = read_settings(file, self.found)
        wanted = dict(SETTINGS)
        if lanes > 1:
            wanted["qos"] = "TRUE"
        for name, value in wanted.items():
            given, line = said.get(name, ("nothing", 0))
            if given != value:
                self.found.add(file, line, f"{name} {given}", value)
        named = {"lfts_file": "lfts.txt"} | (
            {"qos_policy_file": "qos-policy.conf"} if lanes > 1 else {}
        )
        for name, last in named.items():
            given, line = said.get(name, ("nothing", 0))
            if not given.endswith(f"/{last}"):
                self.found.add(file, line, f"{name} {given}", f"a folder's {last}")
        if lanes > 1:
            given, line = said.get("qos_sl2vl", ("", 0))
            if given.split(",")[:lanes] != [str(lane) for lane in range(lanes)]:
                self.found.add(
                    file, line, f"qos_sl2vl {given}", f"a lane for each of {lanes} levels"
                )
            given, line = said.get("qos_max_vls", ("0", 0))
            if not given.isdecimal() or not lanes <= int(given) < LANES:
                self.found.add(file, line, f"qos_max_vls {given}", f"at least {lanes}")

    def follow(self) -> tuple[int, int]:
        """Pairs of switches with hosts, and those where all hosts of the second are reached."""
        host = np.flatnonzero(self.ends.port > 0)
        at, own = self.ends.at[host], self.ends.port[host]
        port = self.port[:, host]
        usable = (port > 0) & (port < self.far.shape[1])
        switch = np.arange(len(port))[:, None]
        after = np.where(usable, self.far[switch, port.clip(0, self.far.shape[1] - 1)], -1)
        column = np.arange(len(host))
        after[at, column] = np.where(port[at, column] == own, at, -1)
        here = np.broadcast_to(switch, after.shape)
        for _ in range(MOST_HOPS):
            moved = np.where(here >= 0, after[here, column], -1)
            if (moved == here).all():
                break
            here = moved
        ends = self.build.topology.endpoints & (self.build.wiring.host_port > 0).any(axis=1)
        count = int(ends.sum())
        wanted = np.bincount(at, minlength=len(port))
        arrived = np.zeros((len(port), len(port)), np.int64)
        np.add.at(arrived.T, at, (here == at).T.astype(np.int64))
        whole = (arrived == wanted) & ends[:, None] & ends & (wanted > 0)
        np.fill_diagonal(whole, False)
        return count * (count - 1), int(whole.sum())
