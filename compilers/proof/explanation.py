"""`explain`: the paths between two switches, their weights, and what failures do to them.

`explain` follows single packets through the tables (`compilers.forwarding.single_packets`) and
returns an `Explanation`. The functions `find_switch` and `find_failures` turn what a user writes,
such as `3-8` or `module:A/0`, into switches and failed elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from ipaddress import ip_address
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np

from compilers.forwarding.single_packets import DROPPED, HOME, Path, SinglePackets
from compilers.proof.failures.risk_cases import elements
from compilers.proof.lossless.channels import channels_along
from compilers.tables.build import Build
from compilers.tables.fib import FAULTS, LOOPED, MISDELIVERED
from compilers.wiring.shared_risk import GROUP_KINDS, rack_in_words, resolve_name
from inventory.problems import InputError, did_you_mean


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

    def named(self, build: Build) -> dict[str, Any]:
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
class Failing:
    """A path that a packet may take under failures."""

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
    failing: tuple[Failing, ...] = ()
    """The paths of packets under failures."""
    intermediates: tuple[int, ...] = ()
    """The intermediate of each alternate, if packets go by intermediates; else empty."""

    def __repr__(self) -> str:
        """`<Explanation 0 to 12: 2 links, 6 alternates>`."""
        links = self.fault or f"{len(self.hops)} links, {len(self.alternates)} alternates"
        return f"<Explanation {self.source} to {self.destination}: {links}>"

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
            "hops": [hop.named(build) for hop in self.hops],
            "fault": self.fault or None,
            "failing": [asdict(case) | {"fault": case.fault or None} for case in self.failing],
        }

    def _channels(self, build: Build) -> list[list[int]]:
        """The virtual channel of each link of each alternate."""
        if not self.intermediates:
            return [channels_along(build, path) for path in self.alternates]
        paths = zip(self.alternates, self.intermediates, strict=True)
        return [channels_over(build, path, via) for path, via in paths]


def channels_over(build: Build, path: tuple[int, ...], via: int) -> list[int]:
    """The virtual channel of each link of a path over an intermediate.

    The second leg uses the channels after the last one of the first leg.
    """
    place = path.index(via)
    first_leg = channels_along(build, path[: place + 1])
    second_leg = channels_along(build, path[place:])
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
    path, outcome = packets.minimal(source)
    failed = SinglePackets.under(build, destination, tuple(dead))
    explanation = Explanation(
        source=source,
        destination=destination,
        minimal=tuple(path),
        hops=_hops(build, path),
        fault=FAULTS.get(outcome, ""),
        alternates=(),
        weights=(),
        failing=tuple(_under_failures(failed, source)) if dead else (),
    )
    if source == destination:
        return explanation
    if build.forwarding.every_hop:
        alternates_of = _over_all_paths
    elif build.forwarding.intermediates:
        alternates_of = _over_intermediates
    else:
        alternates_of = _over_links
    return replace(explanation, **alternates_of(packets, source, explanation.minimal))


def _over_links(packets: SinglePackets, source: int, minimal: tuple[int, ...]) -> dict[str, Any]:
    """`alternates` and `weights` of an explanation, if hosts' packets choose a first link."""
    paths, weights = list(packets.paths(source)), packets.weights_of(source)
    alternates = [path.switches for path in paths if weights and path.switches != minimal]
    return {"alternates": tuple(alternates), "weights": _whole_weights(weights, minimal, paths)}


def _over_intermediates(
    packets: SinglePackets, source: int, minimal: tuple[int, ...]
) -> dict[str, Any]:
    """`alternates`, `weights` and `intermediates`, if packets go by intermediates.

    Each intermediate has weight 1. The path over some intermediates is the minimal path, whose
    weight is the number of these intermediates.
    """
    path_over = {via: path.switches for via, path in packets.over_intermediates(source)}
    alternates = {via: path for via, path in path_over.items() if path != minimal}
    return {
        "alternates": tuple(alternates.values()),
        "weights": (len(path_over) - len(alternates), *(1 for _ in alternates)),
        "intermediates": tuple(alternates),
    }


def _hops(build: Build, path: Sequence[int]) -> tuple[Hop, ...]:
    """The links of a path of switches, with their channels."""
    channels = channels_along(build, path)
    return tuple(_hop(build, *ends, k) for ends, k in zip(pairwise(path), channels, strict=True))


def _over_all_paths(
    packets: SinglePackets, source: int, minimal: tuple[int, ...]
) -> dict[str, Any]:
    """`alternates` and `weights`, if packets choose among next hops at every switch."""
    fraction_of_path = {path.switches: path.part for path in packets.paths(source)}
    fractions = fraction_of_path.pop(minimal, Fraction(0)), *fraction_of_path.values()
    scale = lcm(*(fraction.denominator for fraction in fractions))
    return {
        "alternates": tuple(fraction_of_path),
        "weights": tuple(int(fraction * scale) for fraction in fractions),
    }


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


def _under_failures(packets: SinglePackets, source: int) -> Iterator[Failing]:
    """Yield every path of a host's packets while elements are down."""
    destination = packets.destination
    for switch in (source, destination):
        if switch in packets.dead_switches:
            yield Failing((source,), f"switch {packets.build.wiring.names[switch]} is down")
            return
    paths = packets.paths(source)
    if packets.build.forwarding.intermediates and source != destination:
        # Several intermediates may lie on one path.
        paths = iter(dict.fromkeys(path for _, path in packets.over_intermediates(source)))
    for path in paths:
        yield Failing(path.switches, _fault(path, destination))


def _whole_weights(
    weights: Mapping[int, int], minimal: tuple[int, ...], paths: Sequence[Path]
) -> tuple[int, ...]:
    """The weights of the minimal path and of each alternate, in whole numbers.

    Args:
        weights: the weight of each first link.
        minimal: the switches of the minimal path.
        paths: all paths, the minimal one included.
    """
    if not weights:
        return ()
    fractions = [weights[path.first_link] * path.part for path in paths]
    scale = lcm(*(fraction.denominator for fraction in fractions))
    path_weights = [
        (path.switches, int(fraction * scale))
        for path, fraction in zip(paths, fractions, strict=True)
    ]
    on_minimal = sum(weight for switches, weight in path_weights if switches == minimal)
    return on_minimal, *(weight for switches, weight in path_weights if switches != minimal)


def _fault(path: Path, destination: int) -> str:
    """Why packets on a path do not arrive, in words; "" if they do."""
    if path.outcome == HOME:
        return "" if path.switches[-1] == destination else FAULTS[MISDELIVERED]
    return "lost: no port is left" if path.outcome == DROPPED else FAULTS[LOOPED]


def find_failures(build: Build, name: str) -> tuple[int, ...]:
    """The elements of `Program` that a name stands for.

    Args:
        build: has links, nodes and groups.
        name: of a link, `A-B`, or of a node, or of a group, such as `module:A/0`
            (`compilers.wiring.shared_risk`).

    Raises:
        InputError: the build has no such link, node or group.
    """
    ends = name.split(":")
    if len(ends) == 2 and {*ends} <= {*build.wiring.names}:
        required, todo = "a node, or a link as two nodes that it joins", f"write {'-'.join(ends)}"
        raise InputError.of(required, name, todo)
    if "-" not in name and ends[0] not in GROUP_KINDS:
        todo = rack_in_words(build.hardware, name)
        return (len(build.wiring.link_ends()) + find_switch(build, name, todo=todo),)
    return elements(build, resolve_name(build.wiring, build.hardware, name))


def find_failure(build: Build, name: str) -> int:
    """The link `A-B`, or the node of this name, as one element of `Program`.

    Raises:
        InputError: there is no such node or link.
    """
    failed_elements = find_failures(build, name)
    if len(failed_elements) != 1:
        raise InputError.of("a node, or a link as two nodes that it joins, such as 3-8", name)
    return failed_elements[0]


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


def find_switch(build: Build, named: str | int, key: str = "", todo: str = "") -> int:
    """The vertex that a name, a number or an address stands for.

    Args:
        build: its nodes, hosts and addresses are searched.
        named: the name of a node, a vertex number, the name of a host, or an address.
        key: names the option or argument in the error.
        todo: what the error advises; "" to suggest a similar name.

    Raises:
        InputError: the fabric has none of these.
    """
    wiring, text = build.wiring, str(named)
    if text in wiring.names:
        return wiring.names.index(text)
    if text.isdecimal() and int(text) < len(wiring.names):
        return int(text)
    if text in wiring.host_names:
        return wiring.host_names.index(text) // int(wiring.host_port.shape[1])
    if (vertex := _by_address(build, text)) is not None:
        return vertex
    raise InputError.of(
        required="a node, a vertex number, a host or an address of the fabric",
        given=text,
        key=key,
        todo=todo
        or did_you_mean(
            text, wiring.names + wiring.host_names, f"vertices are 0..{len(wiring.names) - 1}"
        ),
    )


def _by_address(build: Build, text: str) -> int | None:
    """The vertex with an address; None if the text is no address, or no address of the fabric."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return build.addressing.vertex(address)
