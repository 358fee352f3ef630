"""The paths between two nodes, read from the tables that are emitted."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from itertools import pairwise

import numpy as np

from compilers.build import Build
from compilers.walk import FAULTS, Walker
from inventory.problems import InputError, Problem, nearest


@dataclass(frozen=True, slots=True)
class Hop:
    """One link of a path: out of a port of one switch, into a port of the next."""

    switch: int
    port: int
    next_switch: int
    next_port: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """The minimal path between two switches and the alternates, as lists of vertices.

    hops are the links of the minimal path; fault says what goes wrong on it, "" where nothing does.
    """

    source: int
    destination: int
    minimal: tuple[int, ...]
    hops: tuple[Hop, ...]
    fault: str
    alternates: tuple[tuple[int, ...], ...]


def explain(build: Build, source: int, destination: int) -> Explanation:
    """Follow a packet from one switch to another through the tables.

    Raises:
        InputError: the destination carries no hosts, so it has no addresses.
    """
    topology = build.topology
    if not topology.endpoints[destination]:
        raise InputError(
            Problem(
                required="a destination with hosts",
                given=f"{build.wiring.names[destination]}, "
                f"a {topology.kinds[topology.kind[destination]]}",
                todo="no packet is addressed to it; choose a switch that has some",
            )
        )
    walker = Walker.of(build.tables, build.wiring.cables())
    path, outcome = walker.path(source, destination)
    return Explanation(
        source=source,
        destination=destination,
        minimal=tuple(path),
        hops=tuple(_hop(build, u, v) for u, v in pairwise(path)),
        fault=FAULTS.get(outcome, ""),
        alternates=(),
    )


def _hop(build: Build, switch: int, after: int) -> Hop:
    wiring = build.wiring
    link = int(np.flatnonzero(wiring.far[switch] == after)[0])
    return Hop(
        switch=switch,
        port=int(wiring.port[switch, link]),
        next_switch=after,
        next_port=int(wiring.far_port[switch, link]),
    )


def find_switch(build: Build, word: str) -> int:
    """The vertex that a node's name, a vertex number, a host's name or an address stands for.

    Raises:
        InputError: nothing of the fabric is called that.
    """
    wiring = build.wiring
    if word in wiring.names:
        return wiring.names.index(word)
    if word.isdecimal() and int(word) < len(wiring.names):
        return int(word)
    if word in wiring.host_names:
        return wiring.host_names.index(word) // int(wiring.host_port.shape[1])
    if (vertex := _by_address(build, word)) is not None:
        return vertex
    near = nearest(word, wiring.names + wiring.host_names)
    raise InputError(
        Problem(
            required="a node, a vertex number, a host or an address of the fabric",
            given=word,
            todo=f"did you mean {near}?" if near else f"vertices are 0..{len(wiring.names) - 1}",
        )
    )


def _by_address(build: Build, word: str) -> int | None:
    try:
        address = ip_address(word)
    except ValueError:
        return None
    return build.addressing.vertex(address)
