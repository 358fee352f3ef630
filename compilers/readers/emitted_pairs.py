"""Every pair followed through what was emitted, over every way that its packets may take.

A packet in transit goes first to a port that depends on where it came in only if it came in on
that very port. So two ports for each destination say where packets go from a switch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build

DESTINATIONS_AT_ONCE = 512
Ports = NDArray[np.uint16]


@dataclass(slots=True)
class HostWays:
    """The ports that packets from hosts share, while a switch is compared.

    sets: of ports; chosen: uint16[D], which of them for each destination.
    """

    sets: dict[tuple[int, ...], int]
    chosen: Ports

    @classmethod
    def none(cls, destinations: int) -> HostWays:
        """Nothing is known yet."""
        return cls({(): 0}, np.zeros(destinations, np.uint16))

    def enter(self, kind: NDArray[np.int64], ports: Sequence[Sequence[int]]) -> None:
        """The ports of one more host by the kind of destination; several hosts' are put together.

        Args:
            kind: int64[D], of each destination.
            ports: of each kind.
        """
        code, which = np.unique(kind * len(self.sets) + self.chosen, return_inverse=True)
        sets, number = list(self.sets), []
        for each, before in zip(*(part.tolist() for part in divmod(code, len(sets))), strict=True):
            both = tuple(sorted({*sets[before], *ports[each]}))
            number.append(self.sets.setdefault(both, len(self.sets)))
        self.chosen = np.array(number, np.uint16)[which]


@dataclass(frozen=True, slots=True, eq=False)
class SwitchWays:
    """Where packets of one address family go first at a switch.

    port, back: uint16[S], the port for each destination, and that of packets that came in there.
    sets: the ports that packets from hosts share; chosen: uint16[S], which of them.
    """

    port: Ports
    back: Ports
    sets: tuple[tuple[int, ...], ...]
    chosen: Ports

    @classmethod
    def by_family(
        cls, ports: Sequence[int], transit: Ports, hosts: HostWays, families: int
    ) -> tuple[SwitchWays, ...]:
        """What was read of a switch.

        Args:
            ports: P ports where packets come in, ascending.
            transit: uint16[P, F * S], the port for each destination, 0: none.
            hosts: packets from hosts.
            families: F.
        """
        sets = tuple(hosts.sets)
        parts = np.split(transit, families, axis=1), np.split(hosts.chosen, families)
        return tuple(
            cls(*_two_ports(ports, way), sets, chosen) for way, chosen in zip(*parts, strict=True)
        )


def _two_ports(ports: Sequence[int], transit: Ports) -> tuple[Ports, Ports]:
    """uint16[S] twice: the port for each destination, and that of packets that came in there.

    Of packets that come in on three ports those of two go to the same, the port looked for. Of two
    ports either does where both lead on; a packet that is dropped came in on it.
    """
    if not ports:
        none = np.zeros(transit.shape[1], np.uint16)
        return none, none
    first, *more = transit[:3]
    port = first
    if len(more) == 1:
        port = np.where(first == 0, more[0], first)
    elif more:
        port = np.where((first == more[0]) | (first == more[1]), first, more[0])
    place = np.minimum(np.searchsorted(ports, port), len(ports) - 1)
    back = transit[place, np.arange(len(port))]
    back = np.where(np.array(ports)[place] == port, back, port).astype(np.uint16)
    return port, port if np.array_equal(port, back) else back  # 16,000 switches are kept


def delivered_pairs(
    build: Build, ways: Mapping[int, tuple[SwitchWays, ...]], families: int
) -> tuple[int, int]:
    """How many ordered pairs of switches with hosts there are, and how many are delivered.

    A pair is delivered if every way that its packets may take leads there, in every family.

    Args:
        build: for cables and hosts.
        ways: of every switch, by family; none where its files could not be read.
        families: how many there are.
    """
    hosts = (build.wiring.host_port > 0).any(axis=1)
    ends = np.flatnonzero(build.topology.endpoints & hosts)
    order = build.tables.switches
    delivered = 0
    far, far_port = _cables(build)
    for first in range(0, len(ends), DESTINATIONS_AT_ONCE):
        block = ends[first : first + DESTINATIONS_AT_ONCE]
        good = np.zeros((order, len(block)), np.bool_)
        good[ends] = True
        for family in range(families):
            good &= _arrives(ways, family, block, far, far_port)
        good[block, np.arange(len(block))] = False
        delivered += int(np.count_nonzero(good))
    return len(ends) * max(len(ends) - 1, 0), delivered


def _arrives(
    ways: Mapping[int, tuple[SwitchWays, ...]],
    family: int,
    block: NDArray[np.intp],
    far: NDArray[np.int64],
    far_port: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """bool[S, D]: whether packets from hosts of each switch get to each destination."""
    order, width = len(far), len(block)
    column = np.arange(width)
    ports = np.zeros((2, order, width), np.int64)
    for vertex, each in ways.items():
        if each:
            ports[0, vertex] = each[family].port[block]
            ports[1, vertex] = each[family].back[block]

    def reached(vertex: NDArray[np.int64], port: NDArray[np.int64]) -> NDArray[np.int64]:
        """The state behind a port: back or not, switch, destination, in one number; -1: nobody."""
        there = far[vertex, port]
        back = ports[0, there, column] == far_port[vertex, port]
        state: NDArray[np.int64] = (back * order + there) * width + column
        return np.where(there >= 0, state, -1)

    ahead = reached(np.arange(order)[:, None], ports)
    good = np.zeros((2, order, width), np.bool_)
    good[:, block, column] = True
    while True:
        further = good | ((ahead >= 0) & good.ravel()[ahead])
        if (further == good).all():
            break
        good = further
    arrives = np.zeros((order, width), np.bool_)
    for switch, families in ways.items():
        if not families:
            continue
        of_family = families[family]
        widest = max(1, *map(len, of_family.sets))
        # A set repeats its last port up to the width; without any there is no way.
        out = np.array(
            [(*some, *some[-1:] * widest, *[0] * widest)[:widest] for some in of_family.sets]
        )[of_family.chosen[block]]
        there = far[switch, out]
        back = ports[0, there, column[:, None]] == far_port[switch, out]
        led = (there >= 0) & good[back.astype(np.intp), there, column[:, None]]
        arrives[switch] = led.all(axis=1)
    return arrives


def _cables(build: Build) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """int64[S, ports + 1] twice: the switch and the port at the other end, -1 and 0: none."""
    w = build.wiring
    widest = max(len(names) for names in w.port_names)
    far = np.full((len(w.names), widest + 1), -1, np.int64)
    port = np.zeros_like(far)
    switch, link = np.nonzero(w.far >= 0)
    far[switch, w.port[switch, link]] = w.far[switch, link]
    port[switch, w.port[switch, link]] = w.far_port[switch, link]
    return far, port
