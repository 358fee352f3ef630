"""Neighbour facts as cables between ports of the plan, with the noise that tables have set aside.

A port of vertex v with the number p is v·W + p, W one more than the ports of the largest type, so
that both sides are arrays of pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.hardware import Hardware
from compilers.wiring import Wiring
from inventory.aswired.facts import End, Facts

Pair = tuple[int, int]
Pairs = frozenset[Pair]


@dataclass(frozen=True, slots=True)
class Wired:
    """What is cabled.

    cables: pairs of ports, the smaller first. reporters: vertices whose own tables were read.
    contested: cables that were seen at a port where a likelier one was seen, too. strangers: port
    and neighbour, where this is no node of the plan and the port is not a host's; unknown_ports:
    node and port of the plan's nodes that their types do not have.
    """

    cables: Pairs
    reporters: frozenset[int]
    contested: Pairs
    strangers: tuple[tuple[int, str], ...]
    unknown_ports: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a plan by number, and back to names."""

    wiring: Wiring

    @property
    def width(self) -> int:
        """W."""
        return 1 + max(map(len, self.wiring.port_names))

    def planned(self) -> Pairs:
        """The plan's cables."""
        w = self.wiring
        switch, link = np.nonzero(w.far > np.arange(len(w.far))[:, None])
        here = switch * self.width + w.port[switch, link]
        there = w.far[switch, link].astype(np.int64) * self.width + w.far_port[switch, link]
        return frozenset(zip(here.tolist(), there.tolist(), strict=True))

    def of_hosts(self) -> frozenset[int]:
        """The ports that hosts have."""
        switch, host = np.nonzero(self.wiring.host_port)
        ports: NDArray[np.int64] = switch * self.width + self.wiring.host_port[switch, host]
        return frozenset(ports.tolist())

    def vertex(self, port: int) -> int:
        """The vertex that has the port."""
        return port // self.width

    def node(self, port: int) -> str:
        """The name of the node that has the port."""
        return self.wiring.names[port // self.width]

    def name(self, port: int) -> str:
        """The port's name at its node."""
        return self.wiring.port_name(*divmod(port, self.width))


def resolve(facts: Facts, wiring: Wiring, hardware: Hardware | None = None) -> Wired:
    """The cables that facts tell of.

    Names match whatever their case, with or without a domain; nodes also by management address,
    serial number, GUID and datapath id, ports also by label. Of several neighbours at a port the
    one counts that sees the port, too; then the planned one.

    Args:
        facts: what was seen.
        wiring: the plan.
        hardware: knows serial numbers, GUIDs and labels, where an inventory gave them.
    """
    book, ports = _Book(wiring, hardware), Ports(wiring)
    hosts = ports.of_hosts()
    seen: Counter[tuple[int, int]] = Counter()
    strangers: dict[tuple[int, str], None] = {}
    unknown: dict[tuple[str, str], None] = {}
    for near, far in facts.seen:
        u, v = book.vertex(near.nodes), book.vertex(far.nodes)
        if u is None:
            continue
        p = book.port(u, near)
        if p is None:
            unknown[wiring.names[u], near.ports[0]] = None
            continue
        here = u * ports.width + p
        if v is None:
            if here not in hosts:
                strangers[here, far.nodes[0]] = None
            continue
        r = book.port(v, far)
        if r is None:
            unknown[wiring.names[v], far.ports[0]] = None
        elif (there := v * ports.width + r) != here:
            seen[here, there] += 1
    reporters = {u for nodes in facts.reporters if (u := book.vertex(nodes)) is not None}
    cables, contested = likeliest(seen, ports.planned())
    return Wired(cables, frozenset(reporters), contested, tuple(strangers), tuple(unknown))


def likeliest(seen: Counter[tuple[int, int]], planned: Pairs) -> tuple[Pairs, Pairs]:
    """One cable a port, and those that found a port taken."""
    ways = Counter((min(pair), max(pair)) for pair in seen)
    order = sorted(ways, key=lambda pair: (-ways[pair], pair not in planned, pair))
    taken: set[int] = set()
    cables, contested = set(), set()
    for pair in order:
        if taken.isdisjoint(pair):
            cables.add(pair)
            taken.update(pair)
        else:
            contested.add(pair)
    return frozenset(cables), frozenset(contested)


class _Book:
    """Words for nodes and ports to their numbers."""

    def __init__(self, wiring: Wiring, hardware: Hardware | None) -> None:
        self.nodes: dict[str, int] = {}
        kinds = [(f"dpid:{d:#x}" for d in wiring.datapath_id.tolist()), wiring.management]
        kinds += [hardware.guid, hardware.serial] if hardware else []
        for column in (*kinds, wiring.names):
            self.nodes |= {text.lower(): v for v, text in enumerate(column) if text}
        self.ports: list[dict[str, int]] = []
        for t, names in enumerate(wiring.port_names):
            labels = hardware.types[t].label if hardware else ()
            known = {f"#{n}": n for n in range(1, len(names) + 1)}
            for column in (labels, names):
                known |= {text.lower(): n for n, text in enumerate(column, 1)}
            self.ports.append(known)
        self.node_type: list[int] = wiring.node_type.tolist()

    def vertex(self, nodes: tuple[str, ...]) -> int | None:
        """The vertex that the first known word names."""
        for word in nodes:
            for name in _shorter(word.lower()):
                if name in self.nodes:
                    return self.nodes[name]
        return None

    def port(self, vertex: int, end: End) -> int | None:
        """The number of the port that the first known word names."""
        known = self.ports[self.node_type[vertex]]
        return next((known[word.lower()] for word in end.ports if word.lower() in known), None)


def _shorter(name: str) -> Iterator[str]:
    """The name, then without one part of its domain after the other."""
    while name:
        yield name
        name = name.rpartition(".")[0]
