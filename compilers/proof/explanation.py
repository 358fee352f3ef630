"""`explain`: the paths between two switches, their weights, and what failures do to them.

`explain` follows single packets through the tables (`compilers.forwarding.single_packets`) and
returns an `Explanation`. Switches and failed elements that users name are found by
`compilers.proof.name_lookup`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np

from compilers.forwarding.single_packets import DELIVERED, DROPPED, Path, SinglePackets
from compilers.proof.lossless.channels import channels_along
from compilers.tables.build import Build
from compilers.tables.fib import FAULTS, LOOPED, MISDELIVERED
from inventory.problems import InputError


@dataclass(frozen=True, slots=True)
class Hop:
    """One link of a path, between two switches."""

    switch: int
    """The vertex that the packet leaves."""
    port: int
    """The port by which it leaves."""
    next_switch: int
    """The vertex that it comes to."""
    next_port: int
    """The port by which it comes in."""
    channel: int
    """The virtual channel that it takes on the link."""

    def as_dict(self, build: Build) -> dict[str, Any]:
        """The nodes and ports by name."""
        wiring = build.wiring
        return {
            "node": wiring.names[self.switch],
            "port": wiring.port_name(self.switch, self.port),
            "next_node": wiring.names[self.next_switch],
            "next_port": wiring.port_name(self.next_switch, self.next_port),
            "channel": self.channel,
        }


@dataclass(frozen=True, slots=True)
class FailingPath:
    """A path that a packet may take while elements are down, and whether it arrives."""

    path: tuple[int, ...]
    """The vertices on it."""
    fault: str
    """Why the packet does not arrive; "" if it does."""


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """The minimal path between two switches and the alternates, as vertices."""

    source: int
    """The vertex where packets begin."""
    destination: int
    """The vertex that they are for."""
    minimal: tuple[int, ...]
    """The vertices of the minimal path."""
    hops: tuple[Hop, ...]
    """The links of the minimal path."""
    fault: str
    """Why packets on the minimal path do not arrive; "" if they do."""
    alternates: tuple[tuple[int, ...], ...]
    """The vertices of each alternate path."""
    weights: tuple[int, ...]
    """The weight of the minimal path, then that of each alternate."""
    failing: tuple[FailingPath, ...] = ()
    """The paths of packets under failures."""
    intermediates: tuple[int, ...] = ()
    """The intermediate of each alternate, if packets go by intermediates; else empty."""

    def __repr__(self) -> str:
        """`<Explanation 0 to 12: 2 links, 6 alternates>`."""
        counts = f"{len(self.hops)} links, {len(self.alternates)} alternates"
        return f"<Explanation {self.source} to {self.destination}: {self.fault or counts}>"

    @property
    def passed(self) -> bool:
        """Whether packets arrive on the minimal path, and on every path under the failures."""
        return not self.fault and not any(case.fault for case in self.failing)

    def as_dict(self, build: Build) -> dict[str, Any]:
        """The explanation as values for JSON.

        Args:
            build: the build that was explained, for names.
        """
        return {
            "source": self.source,
            "destination": self.destination,
            "minimal": self.minimal,
            "alternates": self.alternates,
            "alternate_channels": self._channels(build),
            "intermediates": self.intermediates,
            "weights": self.weights,
            "hops": [hop.as_dict(build) for hop in self.hops],
            "fault": self.fault or None,
            "failing": [asdict(case) | {"fault": case.fault or None} for case in self.failing],
        }

    def _channels(self, build: Build) -> list[list[int]]:
        """The virtual channel of each link of each alternate."""
        if not self.intermediates:
            return [channels_along(build, path) for path in self.alternates]
        paths = zip(self.alternates, self.intermediates, strict=True)
        return [_channels_over(build, path, intermediate) for path, intermediate in paths]


def _channels_over(build: Build, path: tuple[int, ...], intermediate: int) -> list[int]:
    """The virtual channel of each link of a path over an intermediate.

    The second leg uses the channels after the last one of the first leg.
    """
    index = path.index(intermediate)
    first_leg = channels_along(build, path[: index + 1])
    second_leg = channels_along(build, path[index:])
    next_channel = first_leg[-1] + 1 if first_leg else 0
    return [*first_leg, *(next_channel + channel for channel in second_leg)]


def explain(build: Build, source: int, destination: int, dead: Sequence[int] = ()) -> Explanation:
    """Follow packets from one switch to another through the tables.

    Args:
        build: its tables and wiring.
        source: the vertex where packets begin.
        destination: the vertex that they are for.
        dead: the failed elements, from `find_failures`.

    Raises:
        InputError: the destination carries no hosts, so it has no addresses.
    """
    _require_hosts(build, destination)
    packets = SinglePackets(build, destination)
    minimal_path = packets.minimal_path(source)
    minimal = tuple(minimal_path.switches)
    alternates = _Alternates((), ())
    if source != destination:
        alternates = _alternates_of(packets, source, minimal)
    failing: tuple[FailingPath, ...] = ()
    if dead:
        with_failures = SinglePackets.with_failures(build, destination, tuple(dead))
        failing = tuple(_failing_paths(with_failures, source))
    return Explanation(
        source=source,
        destination=destination,
        minimal=minimal,
        hops=_hops(build, minimal),
        fault=FAULTS.get(minimal_path.links_or_fault, ""),
        alternates=alternates.paths,
        weights=alternates.weights,
        failing=failing,
        intermediates=alternates.intermediates,
    )


def _require_hosts(build: Build, switch: int) -> None:
    """Pass if a switch has hosts.

    Raises:
        InputError: it has none, so it has no addresses.
    """
    topology = build.topology
    if not topology.endpoints[switch]:
        kind = topology.kinds[topology.kind[switch]]
        raise InputError.of(
            required="a destination with hosts",
            given=f"{build.wiring.names[switch]}, a {kind}",
            todo="packets are addressed to hosts only; choose a switch that has some",
        )


def _hops(build: Build, path: Sequence[int]) -> tuple[Hop, ...]:
    """The links of a path of switches, with their channels."""
    channels = channels_along(build, path)
    links = zip(pairwise(path), channels, strict=True)
    return tuple(_hop(build, *ends, channel) for ends, channel in links)


def _hop(build: Build, switch: int, next_switch: int, channel: int) -> Hop:
    """The link from a switch to the next one on a path."""
    wiring = build.wiring
    link = int(np.flatnonzero(wiring.far[switch] == next_switch)[0])
    return Hop(
        switch=switch,
        port=int(wiring.port[switch, link]),
        next_switch=next_switch,
        next_port=int(wiring.far_port[switch, link]),
        channel=channel,
    )


@dataclass(frozen=True, slots=True)
class _Alternates:
    """The alternates to a minimal path."""

    paths: tuple[tuple[int, ...], ...]
    """The vertices of each alternate."""
    weights: tuple[int, ...]
    """The weight of the minimal path, then that of each alternate; empty if the source is the
    destination, or has no route."""
    intermediates: tuple[int, ...] = ()
    """The intermediate of each alternate, if packets go by intermediates; else empty."""


def _alternates_of(packets: SinglePackets, source: int, minimal: tuple[int, ...]) -> _Alternates:
    """The alternates from a switch.

    Args:
        packets: to the destination, with nothing failed.
        source: the switch.
        minimal: the switches of the minimal path.
    """
    forwarding = packets.build.forwarding
    if forwarding.every_hop:
        return _path_alternates(packets, source, minimal)
    if forwarding.intermediates:
        return _intermediate_alternates(packets, source, minimal)
    return _first_link_alternates(packets, source, minimal)


def _path_alternates(packets: SinglePackets, source: int, minimal: tuple[int, ...]) -> _Alternates:
    """The alternates, if packets choose among next hops at every switch."""
    fraction_of_path = {path.switches: path.share for path in packets.paths(source)}
    fractions = fraction_of_path.pop(minimal, Fraction(0)), *fraction_of_path.values()
    return _Alternates(tuple(fraction_of_path), _whole_numbers(fractions))


def _intermediate_alternates(
    packets: SinglePackets, source: int, minimal: tuple[int, ...]
) -> _Alternates:
    """The alternates, if packets go by intermediates.

    Each intermediate has weight 1. The path over some intermediates is the minimal path, whose
    weight is the number of these intermediates.
    """
    path_over = {
        intermediate: path.switches for intermediate, path in packets.intermediate_paths(source)
    }
    alternates = {node: path for node, path in path_over.items() if path != minimal}
    return _Alternates(
        paths=tuple(alternates.values()),
        weights=(len(path_over) - len(alternates), *(1 for _ in alternates)),
        intermediates=tuple(alternates),
    )


def _first_link_alternates(
    packets: SinglePackets, source: int, minimal: tuple[int, ...]
) -> _Alternates:
    """The alternates, if the first switch chooses a link, and other switches choose nothing."""
    weight_of_link = packets.weights_of(source)
    if not weight_of_link:
        return _Alternates((), ())
    paths = list(packets.paths(source))
    # The weight of a first link is divided among the paths over it (a marked packet has several).
    weights = _whole_numbers([weight_of_link[path.first_link] * path.share for path in paths])
    by_path = [(path.switches, weight) for path, weight in zip(paths, weights, strict=True)]
    of_minimal = sum(weight for switches, weight in by_path if switches == minimal)
    alternates = [(switches, weight) for switches, weight in by_path if switches != minimal]
    return _Alternates(
        paths=tuple(switches for switches, _ in alternates),
        weights=(of_minimal, *(weight for _, weight in alternates)),
    )


def _whole_numbers(fractions: Sequence[Fraction]) -> tuple[int, ...]:
    """Whole numbers in the ratio of fractions.

    >>> _whole_numbers([Fraction(1, 2), Fraction(1, 3)])
    (3, 2)
    """
    scale = lcm(*(fraction.denominator for fraction in fractions))
    return tuple(int(fraction * scale) for fraction in fractions)


def _failing_paths(packets: SinglePackets, source: int) -> Iterator[FailingPath]:
    """Yield every path of a host's packets while elements are down.

    If the source or the destination itself is down, there is one path that ends at the source.
    """
    destination = packets.destination
    for switch in (source, destination):
        if switch in packets.failed_switches:
            yield FailingPath((source,), f"switch {packets.build.wiring.names[switch]} is down")
            return
    paths = packets.paths(source)
    if packets.build.forwarding.intermediates and source != destination:
        # Several intermediates may lie on one path.
        paths = iter(dict.fromkeys(path for _, path in packets.intermediate_paths(source)))
    for path in paths:
        yield FailingPath(path.switches, _fault(path, destination))


def _fault(path: Path, destination: int) -> str:
    """Why packets on a path do not arrive, in words; "" if they do."""
    if path.outcome == DELIVERED:
        return "" if path.switches[-1] == destination else FAULTS[MISDELIVERED]
    return "lost: no port is left" if path.outcome == DROPPED else FAULTS[LOOPED]
