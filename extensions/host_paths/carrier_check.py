"""The check of the paths that rendered SRv6 files give to hosts.

`segment_check` calls `CarrierCheck.check` once it has compared the segment routes of switches. A
*carrier* (a uSID carrier, RFC 9800) is the IPv6 address that names a path by uSIDs
(`carrier_parts`). A route of a host balances packets over several carriers by weight.

Each carrier of a host is followed from switch to switch, by the segment routes in the switches'
files, over the cables of the build (`segment_paths`). Where it leads is compared with the tables:

- First comes a neighbour to which the tables send packets of hosts for that destination. The
  carriers by each neighbour have to have its weight.
- From there on a path has to be minimal.
- In a fabric with intermediates (Valiant's routing), a carrier has to lead to an intermediate on a
  minimal path instead.
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
from extensions.host_paths.host_segment_text import HostSegments, read_host
from extensions.host_paths.segment_paths import MOST_SWITCHES, Paths, SegmentPaths
from extensions.host_paths.switch_segments import SwitchSegments

SEGMENTS_ON = re.compile(r"^net/ipv6/conf/(\S+)/seg6_enabled = 1$", re.MULTILINE)
"""The setting that has an interface of Linux take packets with segments."""
LOST = -1
"""The end of a path on which no row of a switch matches a packet, in place of a switch."""
Progress = Callable[[int, int], None] | None
"""Called with (switches done, all switches); None: not called."""
SwitchPath = tuple[int, ...]
"""The switches of a path after the source, in their order; `LOST` at the end of one that is lost.
"""


class CheckedPairs(NamedTuple):
    """How many ordered pairs of switches with hosts were checked."""

    checked: int
    """The pairs that were checked."""
    delivered: int
    """The pairs between which all carriers arrive as by the tables."""


class _CheckedHost(NamedTuple):
    """A host whose paths are checked."""

    vertex: int
    """The vertex of its switch."""
    number: int
    """Its number at the switch."""
    folder: Path
    """Its folder of rendered files."""


@dataclass(frozen=True, slots=True, eq=False)
class _FirstHops:
    """The neighbours of a switch to which the tables send packets of its hosts."""

    neighbours: Integers
    """int64[N], ascending."""
    weights: Integers
    """int64[S, N]: the weight of each neighbour for each destination; 0: none."""


@dataclass(frozen=True, slots=True, eq=False)
class _FollowedCarriers:
    """The n carriers of a host, and where they lead."""

    host: HostSegments
    """The routes of the host, and their carriers."""
    destination: Integers
    """int64[P], the switch of each route's prefix, -1 for a prefix to which no path is expected."""
    paths: Paths
    """The path of each carrier."""
    is_minimal: NDArray[np.bool_]
    """bool[n]: the carriers that begin at a neighbour, and lead from there minimally to the
    destination of their route."""


class _PathToIntermediate(NamedTuple):
    """A carrier of a host that chooses among intermediates, and where it leads."""

    route: str
    """The prefix of its route."""
    reached: str
    """The prefix of the hosts of the switch that takes the outer header off."""
    weight: int
    """The weight of the carrier."""
    end: int
    """The switch where a minimal path ends, -1 for a path that is not minimal."""


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
            segments.host_interfaces,
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
        endpoints = self.build.topology.endpoints
        folders = {path.name for path in folder.glob("*")} if folder.is_dir() else set()
        pairs = delivered = 0
        for done, vertex in enumerate(np.flatnonzero(endpoints).tolist(), 1):
            hosts = self._hosts_with_folders(vertex, folder, folders)
            if not hosts:
                continue
            pairs += int(endpoints.sum()) - 1
            # A pair of switches counts as delivered if the carriers of all hosts arrive.
            delivered += int(np.logical_and.reduce(self._arrivals(vertex, hosts)).sum())
            if progress:
                progress(done, int(endpoints.sum()))
        for name in sorted(folders - set(self.build.wiring.host_names)):
            self.differences.add(folder / name, 0, "files of a host", "there is none of that name")
        if not folders and endpoints.any():
            self.differences.add(folder, 0, "no host's files", "paths for hosts")
        return CheckedPairs(pairs, delivered)

    def _hosts_with_folders(
        self, vertex: int, folder: Path, folders: set[str]
    ) -> list[_CheckedHost]:
        """The hosts at a switch that have a folder.

        Args:
            vertex: the switch.
            folder: the folder in which the hosts have theirs.
            folders: the names of these.
        """
        wiring = self.build.wiring
        first = vertex * wiring.host_port.shape[1]
        return [
            _CheckedHost(vertex, number, folder / wiring.host_names[first + number])
            for number, port in enumerate(wiring.host_port[vertex].tolist())
            if port and wiring.host_names[first + number] in folders
        ]

    def _arrivals(self, vertex: int, hosts: list[_CheckedHost]) -> list[NDArray[np.bool_]]:
        """For each host of a switch, bool[S]: the switches to whose hosts all carriers arrive."""
        if self.build.forwarding.intermediates:
            return [self._check_over_intermediates(host) for host in hosts]
        first_hops = self._first_hops(vertex)
        return [self._check_host(host, first_hops) for host in hosts]

    def _first_hops(self, vertex: int) -> _FirstHops:
        """The neighbours to which the tables send packets of a switch's hosts."""
        classes, wiring = self.build.tables.classes, self.build.wiring
        neighbours = np.unique(wiring.far[vertex][wiring.far[vertex] >= 0]).astype(np.int64)
        has_class = self.egress[vertex] < no_route(self.egress)
        destination = np.flatnonzero(has_class & (self.next_switch[vertex] >= 0))
        egress = self.egress[vertex, destination].astype(np.int64)
        # Ports and weights, [destination, choice]: the minimal port first, then its alternates.
        ports = np.column_stack((classes.port[vertex], classes.alternate[vertex]))[egress]
        port_weights = classes.weight[vertex][egress]
        row, choice = np.nonzero((ports > 0) & (port_weights > 0))
        column = np.searchsorted(neighbours, self.cables[vertex, ports[row, choice]])
        weights = np.zeros((len(self.next_switch), len(neighbours)), np.int64)
        np.add.at(weights, (destination[row], column), port_weights[row, choice])
        return _FirstHops(neighbours, weights)

    def _check_host(self, checked: _CheckedHost, first_hops: _FirstHops) -> NDArray[np.bool_]:
        """bool[S]: the switches to whose hosts all carriers of a host arrive."""
        arrived = self.build.topology.endpoints.copy()
        arrived[checked.vertex] = False
        host = self._read_host(checked)
        if host is None:
            return np.zeros_like(arrived)
        switch_of_prefix = self._expected_prefixes(checked, host)
        arrived[self._compare_prefixes(checked.vertex, host, switch_of_prefix)] = False
        destination = [switch_of_prefix.get(prefix, -1) for prefix in host.prefix]
        followed = self._followed(checked.vertex, host, np.array(destination, np.int64), first_hops)
        for route in self._differing_routes(followed, first_hops):
            arrived[followed.destination[route]] = False
            self._report_route(followed, first_hops, route)
        return arrived

    def _read_host(self, checked: _CheckedHost) -> HostSegments | None:
        """Read the paths of a host, from its folder; None: they cannot be read."""
        gateway = str(self.build.addressing.network6(checked.vertex)[1])
        file = checked.folder / "host.batch"
        try:
            interface = _host_interface(checked.folder, self.differences)
            return read_host(file, self.differences, gateway, interface, self.block)
        except (OSError, UnicodeDecodeError):
            self.differences.add(file, 0, "cannot be read", "a host's paths")
            return None

    def _expected_prefixes(self, checked: _CheckedHost, host: HostSegments) -> dict[str, int]:
        """The prefixes to which a host has to have paths, each with its switch.

        Where this host takes outer headers off itself (it has uSIDs of its own), all hosts do so,
        and each host of another switch is a prefix. Else the hosts of each switch are one prefix.
        """
        if host.own_usids:
            self._check_own_usids(checked, host)
        switch_of_prefix = self.switch_of_host if host.own_usids else self.switch_of_network
        return {
            prefix: switch
            for prefix, switch in switch_of_prefix.items()
            if switch != checked.vertex
        }

    def _check_own_usids(self, checked: _CheckedHost, host: HostSegments) -> None:
        """Note a host that takes headers off for uSIDs that do not lead to it.

        There have to be two: that of the host, which its switch sends to the host's address, and
        that of decapsulation.
        """
        usids, vertex = host.own_usids, checked.vertex
        to_host = self.tables[vertex].rows.get(usids[:1]) if vertex in self.tables else None
        address = str(self.build.addressing.host6(vertex, checked.number))
        if to_host is None or to_host.address != address or len(usids) != 2:
            self.differences.add(
                host.file, 0, f"a header taken off for {usids}", f"what is for {address}"
            )

    def _compare_prefixes(
        self, vertex: int, host: HostSegments, switch_of_prefix: Mapping[str, int]
    ) -> list[int]:
        """Note missing routes of a host, and routes to what is no host elsewhere.

        Returns:
            The switches of the prefixes to which the host has no route.
        """
        missing = switch_of_prefix.keys() - set(host.prefix)
        for prefix in missing:
            # Where the tables have no route either, a host needs none.
            if self.next_switch[vertex, switch_of_prefix[prefix]] >= 0:
                self.differences.add(host.file, 0, f"nothing to {prefix}", "paths there")
        for prefix, line in zip(host.prefix, host.line, strict=True):
            if prefix not in switch_of_prefix:
                self.differences.add(host.file, line, prefix, "no host elsewhere")
        return [switch_of_prefix[prefix] for prefix in missing]

    def _followed(
        self, vertex: int, host: HostSegments, destination: Integers, first_hops: _FirstHops
    ) -> _FollowedCarriers:
        """Follow the carriers of a host.

        Args:
            vertex: the switch of the host.
            host: its routes and carriers.
            destination: int64[P], the switch of each route's prefix, -1: none.
            first_hops: the neighbours to which the tables send its packets.
        """
        paths = self.paths.follow(vertex, host.usids, host.own_usids)
        is_minimal = self._are_minimal(paths, host, destination)
        is_minimal &= np.isin(paths.switches[:, 0], first_hops.neighbours)
        return _FollowedCarriers(host, destination, paths, is_minimal)

    def _are_minimal(
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

    def _differing_routes(self, followed: _FollowedCarriers, first_hops: _FirstHops) -> list[int]:
        """The routes whose carriers are not minimal, or have not the weights of the tables."""
        host, is_minimal = followed.host, followed.is_minimal
        first = followed.paths.switches[is_minimal, 0]
        neighbour = np.searchsorted(first_hops.neighbours, first)
        # int64[P, N]: the weight of each neighbour for each route, summed over its carriers.
        weights = np.zeros((len(host.prefix), len(first_hops.neighbours)), np.int64)
        np.add.at(weights, (host.route[is_minimal], neighbour), host.weight[is_minimal])
        # Weights 2 and 2 split traffic as 1 and 1 do, so rows are compared in lowest terms.
        expected = _lowest_terms(first_hops.weights)[followed.destination]
        differs = (_lowest_terms(weights) != expected).any(axis=1)
        differs[host.route[~is_minimal]] = True
        routes: list[int] = np.flatnonzero(differs & (followed.destination >= 0)).tolist()
        return routes

    def _report_route(
        self, followed: _FollowedCarriers, first_hops: _FirstHops, route: int
    ) -> None:
        """Note the paths of a route beside those of the tables."""
        host, destination = followed.host, int(followed.destination[route])
        stated = self._path_text(_stated_paths(followed, route))
        expected = self._path_text(self._expected_paths(destination, first_hops))
        line, prefix = host.line[route], host.prefix[route]
        self.differences.add(host.file, line, f"{prefix} over {stated}", expected)

    def _expected_paths(self, destination: int, first_hops: _FirstHops) -> dict[SwitchPath, int]:
        """The paths of the tables, with their weights: a first hop, then minimally."""
        paths = {}
        for column in np.flatnonzero(first_hops.weights[destination]).tolist():
            path = [int(first_hops.neighbours[column])]
            while path[-1] != destination and len(path) < MOST_SWITCHES:
                path.append(int(self.next_switch[path[-1], destination]))
            paths[tuple(path)] = int(first_hops.weights[destination, column])
        return paths

    def _path_text(self, paths: Mapping[SwitchPath, int]) -> str:
        """Paths by the names of their switches, with their weights."""
        names = [*self.build.wiring.names, "nowhere"]  # the last name is that of `LOST`
        return " or ".join(
            f"{' '.join(names[v] for v in path)} ({weight})"
            for path, weight in sorted(paths.items())
        )

    def _check_over_intermediates(self, checked: _CheckedHost) -> NDArray[np.bool_]:
        """bool[S]: the switches to whose hosts packets arrive, where hosts choose intermediates.

        A host then has one route for all hosts of the fabric, with a carrier of weight 1 for each
        intermediate switch, which takes the outer header off; from there packets go by the routes
        of switches.
        """
        arrived: NDArray[np.bool_] = self.build.topology.endpoints.copy()
        arrived[checked.vertex] = False
        host = self._read_host(checked)
        if host is None:
            return np.zeros_like(arrived)
        pool = str(self.build.addressing.ipv6)
        stated = self._paths_to_intermediates(checked.vertex, host)
        expected = Counter(
            _PathToIntermediate(route=pool, reached=network, weight=1, end=switch)
            for network, switch in self.switch_of_network.items()
        )
        if stated == expected and not host.own_usids:
            return arrived
        summary = f"{len(host.prefix)} routes, {len(host.usids)} carriers"
        unequal = sorted(str(tuple(path)) for path in (stated - expected) + (expected - stated))
        if unequal:
            summary += f", such as {unequal[0]}"
        line = host.line[0] if host.line else 0
        self.differences.add(
            host.file, line, summary, f"{pool} over each of {len(expected)} switches alike"
        )
        return np.zeros_like(arrived)

    def _paths_to_intermediates(
        self, vertex: int, host: HostSegments
    ) -> Counter[_PathToIntermediate]:
        """The carriers of a host, by where they lead, each as often as the host has it."""
        paths = self.paths.follow(vertex, host.usids, ())
        return Counter(
            _PathToIntermediate(
                route=host.prefix[route],
                reached=self.paths.prefixes[reached],
                weight=weight,
                end=self._minimal_end(vertex, switches),
            )
            for route, reached, weight, switches in zip(
                host.route.tolist(),
                paths.reached.tolist(),
                host.weight.tolist(),
                paths.switches.tolist(),
                strict=True,
            )
        )

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

    @cached_property
    def switch_of_network(self) -> dict[str, int]:
        """The switch by the prefix of its hosts, for each switch with hosts."""
        addressing = self.build.addressing
        return {
            str(addressing.network6(vertex)): vertex
            for vertex in np.flatnonzero(self.build.topology.endpoints).tolist()
        }

    @cached_property
    def switch_of_host(self) -> dict[str, int]:
        """The switch of each host by the prefix of the host, its address with /128."""
        addressing, ports = self.build.addressing, self.build.wiring.host_port
        return {
            f"{addressing.host6(vertex, number)}/128": vertex
            for vertex, number in np.argwhere(ports).tolist()
        }


def _stated_paths(followed: _FollowedCarriers, route: int) -> dict[SwitchPath, int]:
    """The paths that the carriers of a route take, with their weights."""
    weights = Counter[SwitchPath]()
    for carrier in np.flatnonzero(followed.host.route == route).tolist():
        path = [switch for switch in followed.paths.switches[carrier].tolist() if switch >= 0]
        if not followed.paths.reached[carrier]:
            path.append(LOST)
        weights[tuple(path)] += int(followed.host.weight[carrier])
    return weights


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
