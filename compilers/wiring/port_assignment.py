"""Assignment of a node's ports to its links and hosts.

Links go to all modules of a node alike, so that one module's death costs as little as possible
(`compilers.wiring.module_spread`); within a module they come by the rack at their other end. Where
the inventory asks for `modules: filled`, links to one rack leave from as few modules as can be:
groups, the largest first, go whole into the first module with room. Without modules links take the
ports in that order. Ports chosen by hand are kept, and the other links take those that are left.

A link or a host whose port is disabled moves to a spare port, in the order in which the inventory
lists disabled ports; everything else stays. So a port that breaks later moves one cable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.topology.triangles import apex_links
from compilers.wiring.module_spread import dealt, half_turn, parted, runs, shares

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import NodeType


@dataclass(frozen=True, slots=True)
class TypePorts:
    """The ports of a node type, whose port n has entry n - 1 of each list."""

    names: tuple[str, ...]
    """The names of the ports."""
    labels: tuple[str, ...]
    """What is printed next to the ports."""
    module: tuple[int, ...]
    """The module or port block of each."""
    speed: tuple[int | None, ...]
    """Gb/s of each."""
    lanes: tuple[int | None, ...]
    """The lanes of each."""
    mtu: tuple[int | None, ...]
    """Bytes of an IP packet at each."""
    fabric: tuple[int, ...]
    """The numbers of the ports that links may take, in order."""
    host: tuple[int, ...]
    """The numbers of the ports that hosts may take, in order."""
    sockets: tuple[tuple[str, ...], ...]
    """The names of the sockets of each."""

    @property
    def parallel(self) -> tuple[int, ...]:
        """How many cables each port takes."""
        return tuple(map(len, self.sockets))

    @property
    def plugs(self) -> dict[str, tuple[int, int | None]]:
        """The port and the socket, from 0, that each name means; None: all of the port's."""
        plugs: dict[str, tuple[int, int | None]] = {}
        for n, (name, sockets) in enumerate(zip(self.names, self.sockets, strict=True), 1):
            plugs[name] = (n, None)
            if len(sockets) > 1:
                plugs |= {socket: (n, k) for k, socket in enumerate(sockets)}
        return plugs

    @classmethod
    def of(cls, node_type: NodeType) -> TypePorts:
        """The ports of a type, its blocks one after the other."""
        names: list[str] = []
        module: list[int] = []
        fabric: list[int] = []
        either: list[int] = []
        host: list[int] = []
        sockets: list[tuple[str, ...]] = []
        for block in node_type.ports:
            numbers = range(len(names) + 1, len(names) + block.total + 1)
            first = module[-1] + 1 if module else 0
            module += (first + i // (block.count * block.breakout) for i in range(block.total))
            names += block.port_names()
            sockets += block.sockets()
            if block.role in ("fabric", "any"):
                fabric += numbers
            if block.role in ("host", "any"):
                (host if block.role == "host" else either).extend(numbers)
        block_of_port = [block for block in node_type.ports for _ in range(block.total)]
        return cls(
            names=tuple(names),
            labels=tuple(node_type.labels()),
            module=tuple(module),
            speed=tuple(block.speed for block in block_of_port),
            lanes=tuple(block.lanes for block in block_of_port),
            mtu=tuple(block.mtu for block in block_of_port),
            fabric=tuple(fabric),
            # Host-only ports first: ports of either use stay free for links as long as they can.
            host=(*host, *either),
            sockets=tuple(sockets),
        )

    def hosts(self, taken: Sequence[int], count: int) -> list[int]:
        """At most `count` ports for hosts that no link takes."""
        links = set(taken)
        return [n for n in self.host if n not in links][:count]

    def spare(self, broken: int, taken: Collection[int], host: bool = False) -> int:
        """The port that does what a broken one did: of its speed, lanes, MTU and cables; 0: none.

        One of the same use before one of either, of the same module before another.
        """

        def kind(port: int) -> tuple[int | None, ...]:
            columns = (self.speed, self.lanes, self.mtu, self.parallel)
            return tuple(values[port - 1] for values in columns)

        own, other = (self.host, self.fabric) if host else (self.fabric, self.host)
        fit = [n for n in own if n not in taken and kind(n) == kind(broken)]
        elsewhere = self.module[broken - 1]
        return min(fit, key=lambda n: (n in other, self.module[n - 1] != elsewhere), default=0)

    def modular(self, links: int, hosts: int) -> dict[int, list[int]]:
        """The ports for links by module; empty where that is one module.

        Those alike to the first port for links, of its role, too. Of ports of either use as many
        are left as the hosts need. Empty, too, where that is not enough for so many links.
        """
        either = {*self.fabric} & {*self.host}
        left = max(0, hosts - len(self.host) + len(either))
        each = list(zip(self.speed, self.lanes, self.mtu, self.parallel, strict=True))
        kind = {n: (n in either, *each[n - 1]) for n in self.fabric}
        ports: dict[int, list[int]] = defaultdict(list)
        for port in self.fabric:
            if kind[port] == kind[self.fabric[0]]:
                ports[self.module[port - 1]].append(port)
        for _ in range(left if self.fabric and self.fabric[0] in either else 0):
            max(ports.values(), key=len).pop()
            ports = {module: own for module, own in ports.items() if own}
            if not ports:
                return {}
        return ports if len(ports) > 1 and sum(map(len, ports.values())) >= links else {}

    def pack(self, sizes: Sequence[int], whole: bool, pinned: Sequence[int] = ()) -> list[int]:
        """A port for each link of groups of these sizes, group by group; short if ports run out.

        A group goes whole into the first module with room for it, else into those with most room;
        where `whole` is said, the node counts as one module.
        """
        free: dict[int, list[int]] = defaultdict(list)
        for port in self.fabric:
            if port not in pinned:
                free[0 if whole else self.module[port - 1]].append(port)
        ports: list[int] = []
        for size in sizes:
            left = size
            while left and (open_modules := [m for m in free if free[m]]):
                fitting = [m for m in open_modules if len(free[m]) >= left]
                chosen = fitting[0] if fitting else max(open_modules, key=lambda m: len(free[m]))
                taken, free[chosen] = free[chosen][:left], free[chosen][left:]
                ports += taken
                left -= len(taken)
        return ports


@dataclass(frozen=True, slots=True, eq=False)
class PortGroups:
    """The links of S switches in the order in which they take ports."""

    order: NDArray[np.int64]
    """int64[S, K]: the links of each switch, group by group, the largest first."""
    sizes: NDArray[np.int32]
    """int32[S, G]: the links in each group, 0 beyond the last."""
    whole: bool
    """Whether modules do not matter to where groups go."""
    heading: NDArray[np.int32] | None = None
    """int32[S, K]: the numbers by which links go to all modules alike, whatever their group
    (`compilers.wiring.module_spread`), within one in this order; None: module by module.
    """

    @classmethod
    def single(cls, far: NDArray[np.int32]) -> PortGroups:
        """All links of a switch in one group, in their order, of which the last may be missing."""
        links = np.broadcast_to(np.arange(far.shape[1]), far.shape)
        return cls(links, np.count_nonzero(far >= 0, axis=1)[:, None].astype(np.int32), whole=True)

    @classmethod
    def of(
        cls, far: NDArray[np.int32], group: NDArray[np.int32], place: NDArray[np.int64]
    ) -> PortGroups:
        """Group each switch's links by `group` (int32[S]) of the vertex at the other end.

        Within a group they ascend by `place` (int64[S]).
        """
        present = far >= 0
        beyond = np.int32(np.iinfo(np.int32).max)
        theirs = np.where(present, group[far], beyond)
        ordered = np.sort(theirs, axis=1)
        starts = np.ones(far.shape, bool)
        starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        number = np.cumsum(starts, axis=1) - 1
        row = np.arange(len(far))[:, None]
        sizes = np.zeros(far.shape, np.int32)
        np.add.at(sizes, (np.broadcast_to(row, far.shape), number), ordered != beyond)
        rank = np.argsort(np.argsort(theirs, axis=1, kind="stable"), axis=1, kind="stable")
        size = sizes[row, number[row, rank]]
        by = np.lexsort((np.where(present, place[far], 0), theirs, -size, ~present), axis=1)
        return cls(by, np.sort(sizes, axis=1)[:, ::-1], whole=False)


def alike_rows(rows: NDArray[np.integer]) -> list[tuple[list[int], NDArray[np.int64]]]:
    """The different rows of a table, int[N, M], in the order they appear, and where each is.

    Sorting wide rows to find the same ones takes longer than all the rest of the wiring.
    """
    number: dict[bytes, int] = {}
    which = np.array([number.setdefault(row.tobytes(), len(number)) for row in rows], np.int64)
    places = [np.flatnonzero(which == n) for n in range(len(number))]
    return [(rows[place[0]].tolist(), place) for place in places]


Pins = Mapping[int, Mapping[int, int]]


def ports_of_links(
    far: NDArray[np.int32],
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
    groups: PortGroups,
    pins: Pins,
    hosts: NDArray[np.int64],
    kept: Mapping[int, Collection[int]] = MappingProxyType({}),
) -> NDArray[np.int32]:
    """int32[S, K]: the port of each link, 0 beyond the last and where ports have run out.

    Args:
        far: int32[S, K], the vertex at the other end of each link, -1 beyond the last.
        node_type: uint16[S] into types.
        types: the ports of each type.
        groups: the order in which links take ports.
        pins: by switch and link, the port that was chosen by hand.
        hosts: int64[S], how many hosts each switch has.
        kept: by switch, the ports that links leave to hosts.
    """
    port = np.zeros(far.shape, np.int32)
    shape = np.concatenate((node_type[:, None].astype(np.int32), groups.sizes), axis=1)
    for (t, *sizes), alike in alike_rows(shape):
        ports = np.array(types[t].pack([n for n in sizes if n], groups.whole), np.int32)
        port[alike[:, None], groups.order[alike, : len(ports)]] = ports
    spread = np.zeros(len(far), np.bool_)
    if groups.heading is not None:
        turn = half_turn(apex_links(far), far >= 0, groups.heading)
        spread = _spread(port, far, turn, node_type, types, groups, pins, hosts, kept)
    for switch in {**pins, **kept}:
        if spread[switch]:
            continue
        pinned, others = pins.get(switch, {}), kept.get(switch, ())
        free = [k for k in groups.order[switch].tolist() if far[switch, k] >= 0 and k not in pinned]
        sizes = _runs(groups, switch, pinned)
        ports_left = types[node_type[switch]].pack(sizes, groups.whole, (*pinned.values(), *others))
        port[switch] = 0
        port[switch, free[: len(ports_left)]] = ports_left
        port[switch, list(pinned)] = list(pinned.values())
    return port


def _spread(
    port: NDArray[np.int32],
    far: NDArray[np.int32],
    turn: NDArray[np.int64],
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
    groups: PortGroups,
    pins: Pins,
    hosts: NDArray[np.int64],
    kept: Mapping[int, Collection[int]],
) -> NDArray[np.bool_]:
    """Write the ports of switches whose links go to several modules; bool[S]: which these are."""
    present = far >= 0
    apex = apex_links(far)
    mates = (apex >= 0).any(axis=1)
    degree = np.count_nonzero(present, axis=1)
    shape = np.column_stack((node_type, degree, hosts, mates)).astype(np.int64)
    rank = np.argsort(groups.order, axis=1)
    done = np.zeros(len(far), np.bool_)
    for (t, links, ends, triangles), alike in alike_rows(shape):
        ports = types[t].modular(links, ends)
        if not ports:
            continue
        done[alike] = True
        room = [len(each) for each in ports.values()]
        share = shares(room, links, [0] * len(room))
        # A place for each link; in a graph without triangles those to one rack are separated.
        at = (turn if mates.any() else groups.order)[alike, :links]
        where = np.array((runs if triangles else dealt)(share), np.int64)
        module = np.full((len(alike), far.shape[1]), len(room))
        np.put_along_axis(module, at, where[None], axis=1)
        for row in _together(module, apex[alike]).tolist():
            module[row] = parted(module[row].tolist(), apex[alike[row]].tolist(), set())
        first = np.lexsort((rank[alike], module), axis=1)[:, :links]
        chosen = [
            p for each, count in zip(ports.values(), share, strict=True) for p in each[:count]
        ]
        port[alike[:, None], first] = np.array(chosen, np.int32)
    for switch in {**pins, **kept}:
        if done[switch]:
            pinned, others = pins.get(switch, {}), kept.get(switch, ())
            own = types[node_type[switch]].modular(int(degree[switch]), int(hosts[switch]))
            own = {m: [p for p in each if p not in others] for m, each in own.items()}
            free = [k for k in turn[switch, : degree[switch]].tolist() if k not in pinned]
            places = sum(p not in pinned.values() for each in own.values() for p in each)
            done[switch] = places >= len(free)
            if done[switch]:
                port[switch] = _around_pins(own, free, pinned, apex[switch], rank[switch])
    return done


def _together(module: NDArray[np.int64], apex: NDArray[np.int16]) -> NDArray[np.int64]:
    """The rows in which both links of a triangle are on one module."""
    other = np.take_along_axis(module, np.maximum(apex, 0).astype(np.intp), axis=1)
    return np.flatnonzero(((apex >= 0) & (other == module)).any(axis=1))


def _around_pins(
    ports: Mapping[int, Sequence[int]],
    links: Sequence[int],
    pinned: Mapping[int, int],
    apex: NDArray[np.int16],
    rank: NDArray[np.int64],
) -> NDArray[np.int32]:
    """int32[K]: the ports of a switch's links, some of which are chosen by hand.

    Args:
        ports: by module.
        links: the others, in the half turn.
        pinned: by link, the port that was chosen.
        apex: of each link.
        rank: of each link, its place within a module.
    """
    chosen = {*pinned.values()}
    free = [[p for p in each if p not in chosen] for each in ports.values()]
    at = {p: m for m, each in enumerate(ports.values()) for p in each}
    taken = [sum(at.get(p) == m for p in chosen) for m in range(len(free))]
    share = shares([len(each) for each in free], len(links), taken)
    module = [-1 - k for k in range(len(apex))]  # of no module, each of one of its own
    for k, m in zip(links, runs(share), strict=True):
        module[k] = m
    for k, p in pinned.items():
        module[k] = at.get(p, module[k])
    others = {k for k in range(len(apex)) if k not in links}
    module = parted(module, apex.tolist(), others)
    found = np.zeros(len(apex), np.int32)
    for m, each in enumerate(free):
        own = sorted((k for k in links if module[k] == m), key=lambda k: rank[k])
        found[own] = each[: len(own)]
    found[list(pinned)] = list(pinned.values())
    return found


def _runs(groups: PortGroups, switch: int, pinned: Mapping[int, int]) -> list[int]:
    """The sizes of a switch's groups without the links whose ports are chosen by hand."""
    ends = np.cumsum(groups.sizes[switch])
    position = {k: i for i, k in enumerate(groups.order[switch].tolist())}
    sizes = groups.sizes[switch].copy()
    for k in pinned:
        sizes[np.searchsorted(ends, position[k], side="right")] -= 1
    return [int(size) for size in sizes if size]


def moved_to_spares(
    port: NDArray[np.int32],
    host_port: NDArray[np.int32],
    disabled: Mapping[int, Sequence[int]],
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
    pins: Pins,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Links and hosts on ports that work, as far as there are spare ones.

    Args:
        port: int32[S, K], the port of each link.
        host_port: int32[S, P], the port of each host.
        disabled: by switch, the numbers of its disabled ports as the inventory lists them.
        node_type: uint16[S] into types.
        types: the ports of each type.
        pins: by switch and link, the port that was chosen by hand, which stays.
            Hosts are at no disabled port by hand: `pins_of_hosts` refuses it.
    """
    if not disabled:
        return port, host_port
    links, hosts = port.copy(), host_port.copy()
    for switch, broken in disabled.items():
        own = types[node_type[switch]]
        for row, fixed, host in (
            (links[switch], pins.get(switch, {}), False),
            (hosts[switch], (), True),
        ):
            for number in broken:
                place = np.flatnonzero(row == number)
                if not place.size or int(place[0]) in fixed:
                    continue
                taken = {*links[switch].tolist(), *hosts[switch].tolist(), *broken}
                if spare := own.spare(number, taken, host):
                    row[place[0]] = spare
    return links, hosts
