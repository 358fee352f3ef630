"""The check of the paths that rendered SRv6 files give to hosts.

`segment_check` calls `CarrierCheck.check` once it has compared the segment routes of switches. A
*carrier* is the IPv6 address that names a path (`segment_text`). Each carrier of a host is followed
from switch to switch, by the segment routes in the switches' files, over the cables of the build
(`segment_paths`). The switches that it visits, and its weight, have to be those of the build's
tables: first a neighbour to which the tables send packets for that destination, with its weight,
and from there the minimal path.
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

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import read_exact
from compilers.readers.script_text import differing_lines_of_file
from compilers.readers.text_lines import Integers
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import no_route
from extensions.host_paths.segment_paths import LONGEST, Paths, SegmentPaths
from extensions.host_paths.segment_text import HostSegments, read_host
from extensions.host_paths.switch_segments import SwitchSegments

SEGMENTS_ON = re.compile(r"^net/ipv6/conf/(\S+)/seg6_enabled = 1$", re.MULTILINE)
"""The setting that has an interface of Linux take packets with segments."""
Progress = Callable[[int, int], None] | None
"""Called with (switches done, all switches); None: not called."""
SwitchPath = tuple[int, ...]
"""The switches of a path after the source, in their order; -1 at the end of a path that is lost."""


class CheckedPairs(NamedTuple):
    """How many ordered pairs of switches with hosts were checked."""

    checked: int
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


class CarrierCheck:
    """The comparison of the paths of hosts with the tables.

    Args:
        segments: the segment routes of the switches, over which the paths lead.
    """

    def __init__(self, segments: SwitchSegments) -> None:
        build = segments.build
        self.build, self.tables, self.differences = build, segments.tables, segments.differences
        self.block, self.cables, self.egress = segments.block, segments.cables, segments.egress
        switches = np.arange(build.tables.switches)
        self.next_switch = Fib.of(build.tables, segments.cables).next_switch(switches)
        """int[S, S]: the next switch from each switch to each destination."""
        self.paths = SegmentPaths(
            self.tables,
            self.cables.astype(np.int64),
            segments.port_number,
            {vertex: segments.host_interface(vertex) for vertex in self.tables},
            [str(build.addressing.network6(vertex)) for vertex in switches.tolist()]
            if build.addressing.ipv6
            else [],
        )

    def check(self, folder: Path, progress: Progress = None) -> CheckedPairs:
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
        over_intermediates = self.build.forwarding.intermediates
        check_host = self._check_over_intermediates if over_intermediates else self._check_host
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
                check_host(vertex, number, folder / name, hops) for number, name in written.items()
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
        has_class = self.egress[vertex] < no_route(self.egress)
        destination = np.flatnonzero(has_class & (self.next_switch[vertex] >= 0))
        egress = self.egress[vertex, destination].astype(np.int64)
        # Ports and weights, [destination, choice]: the minimal port first, then its alternates.
        ports = np.column_stack((classes.port[vertex], classes.alternate[vertex]))[egress]
        port_weights = classes.weight[vertex][egress]
        row, column = np.nonzero((ports > 0) & (port_weights > 0))
        number = np.searchsorted(neighbours, self.cables[vertex, ports[row, column]])
        weights = np.zeros((len(self.next_switch), len(neighbours)), np.int64)
        np.add.at(weights, (destination[row], number), port_weights[row, column])
        return FirstHops(neighbours, weights)

    def _check_host(
        self, vertex: int, number: int, folder: Path, hops: FirstHops
    ) -> NDArray[np.bool_]:
        """bool[S]: the switches to whose hosts all carriers of a host arrive.

        Args:
            vertex: the vertex of the host's switch.
            number: the number of the host at its switch.
            folder: the folder of the host.
            hops: the neighbours to which hosts of the switch send packets, by the tables.
        """
        arrived = self.build.topology.endpoints.copy()
        arrived[vertex] = False
        if (host := self._read_host(vertex, folder)) is None:
            return np.zeros_like(arrived)
        switch_of = self._expected_prefixes(vertex, number, host)
        for prefix in switch_of.keys() - set(host.prefix):
            arrived[switch_of[prefix]] = False
            if self.next_switch[vertex, switch_of[prefix]] >= 0:
                self.differences.add(host.file, 0, f"nothing to {prefix}", "paths there")
        destination = np.array([switch_of.get(prefix, -1) for prefix in host.prefix], np.int64)
        for row in np.flatnonzero(destination < 0).tolist():
            self.differences.add(host.file, host.line[row], host.prefix[row], "no host elsewhere")
        paths = self.paths.follow(vertex, host.usids, host.own_usids)
        # A carrier counts if it begins at a neighbour, and is minimal from there.
        first = paths.switches[:, 0]
        neighbour = np.searchsorted(hops.neighbours, first).clip(0, len(hops.neighbours) - 1)
        is_minimal = self._minimal_carriers(paths, host, destination)
        is_minimal &= hops.neighbours[neighbour] == first
        # int64[P, N]: the weight of each neighbour for each route, summed over its carriers.
        weights = np.zeros((len(destination), len(hops.neighbours)), np.int64)
        np.add.at(weights, (host.route[is_minimal], neighbour[is_minimal]), host.weight[is_minimal])
        # Weights 2 and 2 split traffic as 1 and 1 do, so rows are compared in lowest terms.
        differs = (_lowest_terms(weights) != _lowest_terms(hops.weights)[destination]).any(axis=1)
        differs[host.route[~is_minimal]] = True
        for row in np.flatnonzero(differs & (destination >= 0)).tolist():
            arrived[destination[row]] = False
            actual = self._path_text(self._actual_paths(paths, host, is_minimal, row))
            expected = self._path_text(self._expected_paths(int(destination[row]), hops))
            stated = f"{host.prefix[row]} over {actual}"
            self.differences.add(host.file, host.line[row], stated, expected)
        return arrived

    def _read_host(self, vertex: int, folder: Path) -> HostSegments | None:
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

    def _check_over_intermediates(
        self,
        vertex: int,
        number: int,  # noqa: ARG002
        folder: Path,
        hops: FirstHops,  # noqa: ARG002
    ) -> NDArray[np.bool_]:
        """bool[S]: the switches to whose hosts packets arrive, where hosts choose intermediates.

        A host then has one route for all hosts of the fabric, with a carrier of weight 1 for each
        intermediate switch, which takes the outer header off; from there packets go by the routes
        of switches. The arguments are those of `_check_host`.
        """
        endpoints = self.build.topology.endpoints
        none = np.zeros(len(endpoints), np.bool_)
        if (host := self._read_host(vertex, folder)) is None:
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
                self.paths.prefixes[prefix_number],
                weight,
                self._minimal_end(vertex, switches),
            )
            for route, prefix_number, weight, switches in rows
        )
        pool = str(self.build.addressing.ipv6)
        expected = Counter(
            (pool, block, 1, switch) for block, switch in self.switch_of_network.items()
        )
        if carriers == expected and not host.own_usids:
            others: NDArray[np.bool_] = endpoints.copy()
            others[vertex] = False
            return others
        stated = f"{len(host.prefix)} routes, {len(host.usids)} carriers"
        unequal = sorted(map(str, ((carriers - expected) + (expected - carriers))))
        if unequal:
            stated += f", such as {unequal[0]}"
        line = host.line[0] if host.line else 0
        self.differences.add(
            host.file, line, stated, f"{pool} over each of {len(expected)} switches alike"
        )
        return none

    def _minimal_end(self, vertex: int, switches: list[int]) -> int:
        """The switch where a path ends, -1 for a path that is not minimal.

        Args:
            vertex: the switch where the path begins.
            switches: the other switches of the path, then -1.
        """
        path = [vertex, *(switch for switch in switches if switch >= 0)]
        end = path[-1]
        is_minimal = all(self.next_switch[a, end] == b for a, b in pairwise(path))
        return end if is_minimal else -1

    def _minimal_carriers(
        self, paths: Paths, host: HostSegments, destination: Integers
    ) -> NDArray[np.bool_]:
        """bool[n]: the carriers that end at their destination, minimally after their first link.

        Args:
            paths: where the carriers lead.
            host: the routes with these carriers.
            destination: int64[P], the switch of each route's prefix, -1: none.
        """
        end = destination[host.route]
        # A carrier has to end at the prefix of its route. "" is for routes without a prefix.
        reached_prefix = np.array(self.paths.prefixes, object)[paths.reached]
        route_prefix = np.array([*host.prefix, ""], object)[host.route]
        is_minimal: NDArray[np.bool_] = (reached_prefix == route_prefix) & (end >= 0)
        switch = paths.switches[:, 0]
        is_minimal &= switch >= 0
        for following in paths.switches.T[1:]:
            moves = following >= 0
            is_minimal &= ~moves | (self.next_switch[switch, end] == following)
            switch = np.where(moves, following, switch)
        is_minimal &= switch == end
        return is_minimal

    def _actual_paths(
        self, paths: Paths, host: HostSegments, is_minimal: NDArray[np.bool_], row: int
    ) -> dict[SwitchPath, int]:
        """The paths that the carriers of a route take, with their weights."""
        weights = Counter[SwitchPath]()
        for carrier in np.flatnonzero(host.route == row).tolist():
            path = [switch for switch in paths.switches[carrier].tolist() if switch >= 0]
            end = () if is_minimal[carrier] or paths.reached[carrier] else (-1,)
            weights[(*path, *end)] += int(host.weight[carrier])
        return weights

    def _expected_paths(self, destination: int, hops: FirstHops) -> dict[SwitchPath, int]:
        """The paths of the tables, with their weights: a first hop, then minimally."""
        paths = {}
        for number in np.flatnonzero(hops.weights[destination]).tolist():
            path = [int(hops.neighbours[number])]
            while path[-1] != destination and len(path) < LONGEST:
                path.append(int(self.next_switch[path[-1], destination]))
            paths[tuple(path)] = int(hops.weights[destination, number])
        return paths

    def _expected_prefixes(self, vertex: int, number: int, host: HostSegments) -> dict[str, int]:
        """The prefixes to which a host has to have paths, each with its switch.

        Where this host takes outer headers off itself (it has uSIDs of its own), all hosts do so,
        and each host of another switch is a prefix. Else the hosts of each switch are one prefix.
        """
        if not host.own_usids:
            return {
                text: switch for text, switch in self.switch_of_network.items() if switch != vertex
            }
        usids = host.own_usids
        row = self.tables[vertex].rows.get(usids[:1]) if vertex in self.tables else None
        address = str(self.build.addressing.host6(vertex, number))
        if row is None or row.address != address or len(usids) != 2:
            self.differences.add(
                host.file, 0, f"a header taken off for {usids}", f"what is for {address}"
            )
        return {
            text: switch for text, switch in self.switch_of_host_prefix.items() if switch != vertex
        }

    @cached_property
    def switch_of_network(self) -> dict[str, int]:
        """By the prefix of the hosts of a switch, the switch; for each switch with hosts."""
        addressing = self.build.addressing
        return {
            str(addressing.network6(v)): v
            for v in np.flatnonzero(self.build.topology.endpoints).tolist()
        }

    @cached_property
    def switch_of_host_prefix(self) -> dict[str, int]:
        """By the prefix of one host, its address, the switch of the host."""
        addressing, ports = self.build.addressing, self.build.wiring.host_port
        places = zip(*(axis.tolist() for axis in np.nonzero(ports)), strict=True)
        return {f"{addressing.host6(vertex, number)}/128": vertex for vertex, number in places}

    def _path_text(self, paths: Mapping[SwitchPath, int]) -> str:
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
        for line, text in differing_lines_of_file(folder / name, f"srv6/{name}.j2", **variables):
            differences.add_unread(folder / name, line, text)
    return variables["interface"]


def _lowest_terms(weights: Integers) -> Integers:
    """Rows of weights, each divided by the greatest common divisor of the row."""
    divisor = np.gcd.reduce(weights, axis=1, initial=0)[:, None].clip(1)
    lowest: Integers = weights // divisor
    return lowest
