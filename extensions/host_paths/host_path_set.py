"""The paths that a host chooses from to another host, over all planes of a fabric.

`host_paths` is a function of the library. The search is that of `path_sets`, which hosts can also
run by themselves; here the graph and the minimal paths are those of the tables. After failures, the
lost paths are replaced and all others keep their entropy values.

A *carrier* is the IPv6 destination whose uSIDs (SRv6 micro-SIDs, RFC 9800) steer a packet along a
path. The *entropy value* of a path is its index in the `HostPathSet`: hosts hash a flow to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from ipaddress import IPv4Address, ip_address
from itertools import islice, pairwise
from string import digits
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.proof.name_lookup import find_failure, find_switch
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS, Fib
from compilers.targets.options import Chosen, choose
from extensions.host_paths.path_sets import (
    CARRIER,
    HostPath,
    crosses,
    every_path,
    repaired,
    usids,
)
from extensions.host_paths.srv6 import Srv6
from extensions.host_paths.usid_blocks import (
    UsidBlock,
    block_of_plane,
    require_numbers,
    required_block,
)
from inventory.problems import InputError, at_key

LARGEST_WEIGHT = 100
"""The largest weight of a path."""


@dataclass(frozen=True, eq=False)
class TabledGraph:
    """The graph of a build, and the minimal paths of its tables."""

    build: Build
    """The build whose graph it is."""
    next_switches: dict[int, NDArray[np.int32]] = field(default_factory=dict)
    """int32[S] by destination: the next switch of every switch, once it was looked up."""

    def neighbours(self, switch: int) -> list[int]:
        """The switches that this one is cabled to, ascending."""
        far = self.build.wiring.far[switch]
        switches: list[int] = far[far >= 0].tolist()
        return switches

    def shortest(self, source: int, destination: int) -> tuple[int, ...] | None:
        """The switches of the minimal path after the source, None where the tables have none."""
        if source == destination:
            return ()
        if destination in self.neighbours(source):
            return (destination,)
        next_switch, path = self._next_switch_to(destination), [source]
        while path[-1] != destination and len(path) < MOST_HOPS:
            path.append(int(next_switch[path[-1]]))
            if path[-1] < 0:
                return None
        return tuple(path[1:]) if path[-1] == destination else None

    @cached_property
    def _fib(self) -> Fib:
        """The next hops of the tables."""
        return Fib.of(self.build.tables, self.build.wiring.far_by_port())

    def _next_switch_to(self, destination: int) -> NDArray[np.int32]:
        """int32[S]: where every switch sends packets for this one."""
        if destination not in self.next_switches:
            next_switch = self._fib.next_switch(np.array([destination]))[:, 0]
            self.next_switches[destination] = next_switch
        return self.next_switches[destination]


@dataclass(frozen=True, slots=True)
class Carriers:
    """Writes carriers, the IPv6 destinations whose uSIDs steer packets along paths.

    Their form follows the options of target srv6.
    """

    blocks: tuple[UsidBlock, ...]
    """The block of the uSIDs of every plane."""
    at_host: bool
    """Whether hosts take the outer header off; otherwise their switches do."""
    interface: str
    """The interface of hosts to the first plane."""

    @classmethod
    def of(cls, builds: Sequence[Build], options: Chosen | None) -> Carriers:
        """The carriers of a fabric with the options of target srv6.

        Raises:
            InputError: no such option or value; the fabric is too large, or has no IPv6 pool.
        """
        chosen = choose(Srv6.name, Srv6.options, options)
        for build in builds:
            require_numbers(build.tables.switches, build.wiring.host_port.shape[1])
            if build.addressing.ipv6 is None:
                raise InputError.of(
                    key="addressing.ipv6",
                    required="an IPv6 pool: carriers take IPv6 packets",
                    given="none",
                    todo='add one, for instance addressing: {ipv6: "fd00::/48"}',
                )
        first_block = required_block(chosen["block"])
        planes = range(len(builds))
        blocks = tuple(UsidBlock(block_of_plane(first_block, plane)) for plane in planes)
        return cls(blocks, chosen["decap"] == "host", chosen["interface"])

    @property
    def longest(self) -> int:
        """The most links of a path: each needs the uSID of a switch in the carrier.

        Behind these, the carrier needs room for the uSID of the host and for that of decapsulation;
        if the switch takes the outer header off, for that of decapsulation alone.
        """
        usids_at_end = 2 if self.at_host else 1
        return CARRIER - usids_at_end

    def interface_of(self, plane: int) -> str:
        """A host's interface to a plane, from 0.

        With `eth0` to plane 0, it is `eth1` to plane 1.
        """
        if not plane:
            return self.interface  # as it was chosen, also if it has no number
        name = self.interface.rstrip(digits)
        first_number = int(self.interface[len(name) :] or 0)
        return f"{name}{first_number + plane}"

    def of_path(self, plane: int, nodes: Sequence[int], host: int) -> str:
        """The carrier along a path to a host.

        Args:
            plane: the plane of the path, from 0.
            nodes: the switches of the path.
            host: the host's number at the last of them.
        """
        return self.blocks[plane].carrier(*usids(nodes, host if self.at_host else None))


@dataclass(frozen=True, slots=True)
class HostEnd:
    """An end of a path: a host, which is at the same switch in every plane."""

    switch: int
    """The vertex of its switch."""
    host: int
    """Its number at the switch, from 0."""
    name: str
    """Its name."""

    @classmethod
    def of(cls, builds: Sequence[Build], word: str | int) -> HostEnd:
        """The end that a node, a vertex, a host or an address of some plane names.

        A node stands for its first host with a port to some plane.

        Raises:
            InputError: no plane has it, or its switch has no hosts.
        """
        build, switch = _first_plane_with(builds, word)
        wiring, number = build.wiring, _host_number(build, switch, str(word))
        width = wiring.host_port.shape[1]
        named = range(width) if number is None else [number]
        hosts = [
            host
            for host in named
            if host < width and any(cls(switch, host, "").has_port(plane) for plane in builds)
        ]
        if not hosts:
            required = "a switch with hosts, or a host with a port to the fabric"
            raise InputError.of(required, str(word), "paths begin and end at hosts")
        return cls(switch, hosts[0], wiring.host_names[switch * width + hosts[0]])

    def has_port(self, plane: Build) -> bool:
        """Whether the host has a port to a plane."""
        return bool(plane.wiring.host_port[self.switch, self.host] > 0)


def _first_plane_with(builds: Sequence[Build], word: str | int) -> tuple[Build, int]:
    """The first plane that has a node, a vertex, a host or an address, and the switch it leads to.

    Raises:
        InputError: no plane has it.
    """
    for build in builds[:-1]:
        with suppress(InputError):
            return build, find_switch(build, word)
    return builds[-1], find_switch(builds[-1], word)


def _host_number(build: Build, switch: int, word: str) -> int | None:
    """The number at its switch of the host that a word names; None if it names no host.

    It names no host if it is a node's name or vertex, or the address of the switch itself.

    Args:
        build: the build of a plane.
        switch: the vertex that the word leads to.
        word: the name or the vertex of a node, the name of a host, or an address.
    """
    wiring, addressing = build.wiring, build.addressing
    if word in wiring.names or word.isdecimal():
        return None
    if word in wiring.host_names:
        return wiring.host_names.index(word) % int(wiring.host_port.shape[1])
    address = ip_address(word)
    host_address = addressing.host if isinstance(address, IPv4Address) else addressing.host6
    # The addresses of a switch's hosts are consecutive, and the switch's own comes before them.
    number = int(address) - int(host_address(switch, 0))
    return number if number >= 0 else None


@dataclass(frozen=True, slots=True, repr=False)
class HostPathSet:
    """The paths from one host to another; the index of a path is its entropy value."""

    builds: tuple[Build, ...]
    """The builds of all planes."""
    carriers: Carriers
    """How carriers are written."""
    source: HostEnd
    """The host where packets begin."""
    destination: HostEnd
    """The host that they are for."""
    paths: tuple[HostPath, ...]
    """The paths, plane by plane."""
    weights: tuple[int, ...]
    """The weight of each path."""
    dropped: tuple[tuple[int, HostPath], ...] = ()
    """The entropy value and the path of each path that failures have removed; () without failures.
    """

    def __repr__(self) -> str:
        """`<HostPathSet h0 to h12: 8 paths>`."""
        ends = f"{self.source.name} to {self.destination.name}"
        return f"<HostPathSet {ends}: {len(self.paths):,} paths>"

    def carrier(self, path: HostPath) -> str:
        """The IPv6 address that takes a packet along a path."""
        return self.carriers.of_path(path.plane, path.nodes, self.destination.host)

    def as_dict(self) -> dict[str, Any]:
        """For JSON, with the keys `source`, `destination`, `paths` and `dropped`.

        The first two are the names of the hosts. `paths` and `dropped` are lists with the keys of
        `shown` and `entropy`, those of `paths` also with `weight`.
        """
        rows = zip(self.paths, self.weights, strict=True)
        return {
            "source": self.source.name,
            "destination": self.destination.name,
            "paths": [
                {"entropy": entropy, **self.shown(path), "weight": weight}
                for entropy, (path, weight) in enumerate(rows)
            ],
            "dropped": [{"entropy": entropy, **self.shown(path)} for entropy, path in self.dropped],
        }

    def shown(self, path: HostPath) -> dict[str, Any]:
        """A path for JSON.

        The keys are `plane` (from 1), `nodes` (the names of its switches), `ports` (the one by
        which the path leaves each switch but the last), `sids` (its carrier, as a list) and
        `disjoint`.
        """
        wiring = self.builds[path.plane].wiring
        egress_ports = [
            wiring.port_name(switch, int(wiring.port[switch, wiring.far[switch] == next_switch][0]))
            for switch, next_switch in pairwise(path.nodes)
        ]
        return {
            "plane": path.plane + 1,
            "nodes": [wiring.names[node] for node in path.nodes],
            "ports": egress_ports,
            "sids": [self.carrier(path)],
            "disjoint": path.disjoint,
        }


def host_paths(
    builds: Sequence[Build],
    source: str | int,
    destination: str | int,
    count: int,
    planes: Sequence[int] = (),
    failures: Sequence[str] = (),
    options: Chosen | None = None,
) -> HostPathSet:
    """The first `count` paths from a host to another, without those that failures take.

    Args:
        builds: the build of every plane.
        source: a node, a vertex, a host or an address.
        destination: a node, a vertex, a host or an address.
        count: how many paths; fewer where there are no more.
        planes: the planes that paths may take, from 1; () for all.
        failures: nodes, and links as `A-B`. A path over one of them is replaced.
        options: the options of target srv6.

    Raises:
        InputError: a word names nothing, both ends are at one switch, or no path is left.
    """
    carriers = Carriers.of(builds, options)
    start, end = HostEnd.of(builds, source), HostEnd.of(builds, destination)
    if start.switch == end.switch:
        same_switch = f"{source} and {destination}, both at {builds[0].wiring.names[start.switch]}"
        raise InputError.of(
            "hosts of two switches", same_switch, "hosts of one switch need no path"
        )
    common_planes = _with_ports(builds, _chosen_planes(builds, planes), (start, end))
    graphs = [TabledGraph(builds[plane]) for plane in common_planes]
    # `path_sets` numbers the planes that it is given; here they get their own numbers again.
    every = every_path(graphs, start.switch, end.switch, carriers.longest)
    candidates = (path._replace(plane=common_planes[path.plane]) for path in every)
    paths = list(islice(candidates, count))  # the further ones stay in `candidates`
    path_set = HostPathSet(
        builds=tuple(builds),
        carriers=carriers,
        source=start,
        destination=end,
        paths=tuple(paths),
        weights=_weights(builds[0], paths),
    )
    return _without_failures(path_set, candidates, failures) if failures else path_set


def _without_failures(
    path_set: HostPathSet, candidates: Iterable[HostPath], failures: Sequence[str]
) -> HostPathSet:
    """The path set with other paths in the places of those that failures take.

    Args:
        path_set: the set without failures.
        candidates: further paths of the pair, in their order.
        failures: nodes, and links as `A-B`.

    Raises:
        InputError: a word names nothing, or no path is left.
    """
    failed = [element for word in failures for element in _failed_elements(path_set.builds, word)]

    def lost(path: HostPath) -> bool:
        """Whether a path needs what has failed."""
        return any(crosses(path, element.plane, element.vertices) for element in failed)

    live = repaired(path_set.paths, candidates, lost)
    if not live:
        required = f"a path from {path_set.source.name} to {path_set.destination.name} that lives"
        raise InputError.of(required, f"{' and '.join(failures)} down", key="fail")
    return replace(
        path_set,
        paths=tuple(live),
        weights=_weights(path_set.builds[0], live),
        dropped=tuple((entropy, path) for entropy, path in enumerate(path_set.paths) if lost(path)),
    )


def _chosen_planes(builds: Sequence[Build], requested: Sequence[int]) -> list[int]:
    """The planes that are asked for, from 0; all if none is named.

    Raises:
        InputError: there is no such plane.
    """
    if wrong := [plane for plane in requested if not 1 <= plane <= len(builds)]:
        required = f"planes from 1 to {len(builds)}" if len(builds) > 1 else "1, the only plane"
        raise InputError.of(required, ", ".join(map(str, wrong)), key="planes")
    return sorted({plane - 1 for plane in requested}) or list(range(len(builds)))


def _with_ports(
    builds: Sequence[Build], planes: Sequence[int], ends: Sequence[HostEnd]
) -> list[int]:
    """Those of the planes to which both hosts have a port.

    Raises:
        InputError: there are none.
    """
    common = [plane for plane in planes if all(end.has_port(builds[plane]) for end in ends)]
    if not common:
        given = f"{ends[0].name} and {ends[1].name} with none in common"
        raise InputError.of("two hosts with ports to one plane", given, key="planes")
    return common


def _weights(build: Build, paths: Sequence[HostPath]) -> tuple[int, ...]:
    """The weight of each path: the minimal paths together get the minimal share of the build.

    Minimal are the shortest ones among the edge-disjoint paths. With a share p of minimal traffic,
    m minimal paths of weight a and n others of weight b have to fulfil m·a / (m·a + n·b) = p. So
    a / b = p·n / (m·(1 - p)), rounded to whole numbers up to LARGEST_WEIGHT. Without a minimal
    share all paths have the same weight.
    """
    minimal_share = build.forwarding.minimal_share
    fewest_nodes = min((len(path.nodes) for path in paths), default=0)
    minimal = [path.disjoint and len(path.nodes) == fewest_nodes for path in paths]
    longer = len(minimal) - sum(minimal)
    ratio = Fraction(1)
    if minimal_share is not None and 0 < minimal_share < 1 and longer:
        ratio = minimal_share * longer / (sum(minimal) * (1 - minimal_share))
    limited = min(max(ratio, Fraction(1, LARGEST_WEIGHT)), Fraction(LARGEST_WEIGHT))
    # a is at most LARGEST_WEIGHT too, if b is at most that divided by the ratio.
    weight = limited.limit_denominator(int(LARGEST_WEIGHT / max(limited, Fraction(1))))
    return tuple(weight.numerator if is_minimal else weight.denominator for is_minimal in minimal)


class _FailedElement(NamedTuple):
    """A link or node of one plane that has failed."""

    plane: int
    """The plane, from 0."""
    vertices: tuple[int, ...]
    """Both ends of a link, or the node, as `path_sets.crosses` takes them."""


def _failed_elements(builds: Sequence[Build], word: str) -> list[_FailedElement]:
    """The link or node that a word names, in each plane that has it.

    Raises:
        InputError: no plane has a link or node of this name.
    """
    elements: list[_FailedElement] = []
    first_error = None
    for plane, build in enumerate(builds):
        try:
            with at_key("fail"):
                element = find_failure(build, word)
        except InputError as error:
            first_error = first_error or error
            continue
        link_ends = build.wiring.link_ends().tolist()
        # Elements are numbered: links first, then switches.
        is_link = element < len(link_ends)
        vertices = tuple(link_ends[element]) if is_link else (element - len(link_ends),)
        elements.append(_FailedElement(plane, vertices))
    if first_error and not elements:
        raise first_error
    return elements
