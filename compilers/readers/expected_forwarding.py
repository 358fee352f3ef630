"""Expected forwarding: what the tables say of one switch, in the form that readers have.

This is the rule of `Classes`, spelt out once more: it shares no code with the emitters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_forwarding import MARKED, Chain
from compilers.readers.expected_carried import CARRIED
from compilers.readers.expected_facts import FACTS
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.wiring.addressing import format_mac

Value = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Ability:
    """What a switch can do of the tables: all, or less where that is said.

    repairs: it tries several ports in order; without, a packet has the first one only. most_ports:
    the most ports that share the packets of a class, the minimal port and the heaviest alternates.
    """

    repairs: bool = True
    most_ports: int | None = None

    def shared(self, ports: list[int], weights: list[int]) -> dict[int, int]:
        """{port: weight} of packets from hosts, the minimal port first."""
        weighted = [(p, w) for p, w in zip(ports, weights, strict=True) if p and w]
        if self.most_ports is not None and len(weighted) > self.most_ports:
            alternates = [one for one in weighted if one[0] != ports[0]]
            most = sorted(alternates, key=lambda one: -one[1])[: self.most_ports - 1]
            weighted = [one for one in weighted if one[0] == ports[0] or one in most]
        return dict(weighted)


ALL = Ability()


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedSwitch:
    """One switch by the tables.

    egress: int64[S], its class for each destination, -1 where it has none. order, bounce:
    int64[C + 1, M], the ports in transit of each class, and those of a packet that came in on the
    first of them; 0 beyond the last, and in the last row, which is of no class. entering: of
    each class {port: weight} of packets from hosts. plain: there are no alternates and no repair.
    weighted: int64[C + 1, 1 + A], where packets in transit are shared, too, the ports of classes
    with several.
    """

    egress: NDArray[np.int64]
    order: NDArray[np.int64]
    bounce: NDArray[np.int64]
    entering: list[dict[int, int]]
    plain: bool
    repairs: bool = True
    weighted: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, build: Build, vertex: int, able: Ability = ALL) -> ExpectedSwitch:
        """What the tables say of a switch."""
        c = build.tables.classes
        used = zip(
            np.column_stack((c.port[vertex], c.alternate[vertex])).tolist(),
            c.weight[vertex].tolist(),
            strict=True,
        )
        order = np.column_stack((c.port[vertex], c.protection[vertex]))
        order = order if able.repairs else order[:, :1]
        width = max(order.shape[1], c.bounce.shape[2])
        return cls(
            egress=_egress(build, vertex),
            order=_to_the_left(_widened(order, width)),
            bounce=_widened(c.bounce[vertex], width),
            entering=[_marked(build, weighted[0][0], able.shared(*weighted)) for weighted in used],
            plain=not (c.alternate.shape[2] or c.protection.shape[2] or c.bounce.shape[2]),
            repairs=able.repairs,
            weighted=_several(
                np.column_stack((c.port[vertex], c.alternate[vertex])), c.weight[vertex]
            )
            if build.forwarding.every_hop
            else None,
        )

    def from_hosts(self, egress: int) -> Chain:
        """What a class does with packets from hosts."""
        order = tuple(((port, 1),) for port in self.order[egress].tolist() if port)
        shared = tuple(self.entering[egress].items())
        chain = (shared, *order) if shared else order
        return chain if self.repairs else chain[:1]

    def transit(self, egress: NDArray[np.int64], in_port: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[n, M + 1]: the ports that n packets in transit try, 0: none."""
        came = in_port[:, None]
        order = self.order[egress]
        tried = np.where(order[:, :1] == came, self.bounce[egress], order)
        back = np.where((order == came).any(axis=1), in_port, 0)
        if self.weighted is not None:
            turned = np.column_stack((self.bounce[egress], order[:, 0]))
            among = (self.weighted[egress] == came).any(axis=1, keepdims=True)
            tried = np.where(among, turned, np.pad(tried, ((0, 0), (0, 1))))
        tries = np.column_stack((np.where(tried == came, 0, tried), back))
        return tries if self.repairs else _to_the_left(tries)[:, :1]

    def shares(self, egress: NDArray[np.int64], in_port: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool[n]: packets in transit that are shared as those from hosts are."""
        if self.weighted is None:
            return np.zeros(len(egress), np.bool_)
        weighted = self.weighted[egress]
        several: NDArray[np.bool_] = (weighted > 0).any(axis=1) & (
            weighted != in_port[:, None]
        ).all(axis=1)
        return several

    def unmet(self, egress: NDArray[np.int64], in_port: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool[n]: packets that never come: without repair none is there that would go back."""
        if self.plain:
            back: NDArray[np.bool_] = self.order[egress, 0] == in_port
            return back
        if self.weighted is None or self.bounce.any():
            return np.zeros(len(egress), np.bool_)
        among: NDArray[np.bool_] = (self.weighted[egress] == in_port[:, None]).any(axis=1)
        return among


def _several(ports: NDArray[np.int64], weight: NDArray[Any]) -> NDArray[np.int64]:
    """The weighted ports of classes that have several, and a row of zeros behind them."""
    weighted = ports * (weight > 0)
    return _widened(weighted * (np.count_nonzero(weighted, axis=1) > 1)[:, None], weighted.shape[1])


def _marked(build: Build, minimal: int, weighted: dict[int, int]) -> dict[int, int]:
    """The paths of packets from hosts, but the minimal one marked where the balance says so."""
    if not build.forwarding.marks:
        return weighted
    return {p if p == minimal else p + MARKED: weight for p, weight in weighted.items()}


def _widened(ports: NDArray[np.integer[Any]], width: int) -> NDArray[np.int64]:
    """The rows in a wider array, a row of zeros behind them."""
    wide = np.zeros((len(ports) + 1, width), np.int64)
    wide[:-1, : ports.shape[1]] = ports
    return wide


def _to_the_left(ports: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same with zeros behind all others."""
    return np.take_along_axis(ports, np.argsort(ports == 0, axis=1, kind="stable"), axis=1)


def _egress(build: Build, vertex: int) -> NDArray[np.int64]:
    routes = build.tables.routes
    none = no_route(routes.egress)
    switches = len(routes.egress)
    rows = np.full(max(switches, int(routes.prefix.max(initial=0)) + 1), -1, np.int64)
    egress = routes.egress[vertex].astype(np.int64)
    rows[routes.prefixes(vertex)] = np.where(egress < none, egress, -1)
    found = by_destination(rows, routes.aggregate)
    found[vertex] = rows[vertex]  # connected, whatever aggregate covers it
    return found


def by_destination(rows: NDArray[np.int64], aggregate: NDArray[np.int32]) -> NDArray[np.int64]:
    """int64[S]: the row of the longest prefix of each destination, of int64[P] by prefix number."""
    own = rows[: len(aggregate)]
    covering = np.where(aggregate >= 0, rows[aggregate.clip(0)], -1)
    return np.where(own >= 0, own, covering)


def expected_claims(build: Build, vertex: int, kind: str) -> set[Value]:
    """What a switch has to state of a kind."""
    return set(CLAIMS[kind](build, vertex))


def _hosts(build: Build, vertex: int) -> Iterator[tuple[int, str, list[str]]]:
    """The port, MAC address and addresses of every host of a switch."""
    a = build.addressing
    for number, port in enumerate(build.wiring.host_port[vertex].tolist()):
        if port:
            addresses = [str(a.host(vertex, number))]
            if a.ipv6:
                addresses.append(str(a.host6(vertex, number)))
            yield port, a.mac(vertex, number), addresses


def _host_rows(build: Build, vertex: int) -> Iterator[Value]:
    gateway = format_mac(build.addressing.gateway_mac)
    for port, mac, addresses in _hosts(build, vertex):
        yield from ((address, mac, gateway, port) for address in addresses)


def _host_addresses(build: Build, vertex: int) -> Iterator[Value]:
    for port, _, addresses in _hosts(build, vertex):
        yield from ((address, port) for address in addresses)


def _host_routes(build: Build, vertex: int) -> Iterator[Value]:
    for _, _, addresses in _hosts(build, vertex):
        yield from ((address,) for address in addresses)


def _host_blocks(build: Build, vertex: int) -> Iterator[Value]:
    a = build.addressing
    for port, _, _ in _hosts(build, vertex):
        yield f"{a.gateway(vertex)}/{a.ipv4_length}", port
        if a.ipv6:
            yield f"{a.network6(vertex)[1]}/64", port


def _loopbacks(build: Build, vertex: int) -> Iterator[Value]:
    a = build.addressing
    yield (str(a.gateway(vertex)),)
    if a.ipv6:
        yield (str(a.network6(vertex)[1]),)


def _settings(build: Build, vertex: int) -> Iterator[Value]:
    again = build.forwarding.marks or build.forwarding.every_hop
    if again:
        yield "net/ipv4/fib_multipath_hash_seed", 0x50460001 + vertex
        yield from ((f"net/{ip}/fib_multipath_hash_fields", 0x37) for ip in ("ipv4", "ipv6"))
    yield "net/ipv4/ip_forward", 1
    yield "net/ipv6/conf/all/forwarding", 1
    yield "net/ipv4/conf/all/rp_filter", 0
    policy = 3 if again else 1
    yield "net/ipv4/fib_multipath_hash_policy", policy
    yield "net/ipv6/fib_multipath_hash_policy", policy
    yield "net/ipv4/conf/all/ignore_routes_with_linkdown", 1
    yield "net/ipv6/conf/all/ignore_routes_with_linkdown", 1


def _answered(build: Build, vertex: int) -> Iterator[Value]:
    a = build.addressing
    yield str(a.network(vertex)), format_mac(a.gateway_mac)


def _solicited(build: Build, vertex: int) -> Iterator[Value]:
    if build.addressing.ipv6:
        yield (str(build.addressing.network6(vertex)),)


def _neighbour_answers(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    if build.addressing.ipv6:
        yield (format_mac(build.addressing.gateway_mac),)


def _entries(build: Build, vertex: int) -> Iterator[Value]:
    mac = format_mac(build.addressing.gateway_mac)
    ports = [0] + [port for port, _, _ in _hosts(build, vertex)] * bool(
        build.tables.classes.alternate.shape[2] and not build.forwarding.every_hop
    )
    for family in ("ip", "ipv6")[: 2 if build.addressing.ipv6 else 1]:
        yield from ((family, mac, port) for port in ports)


def _replies(build: Build, vertex: int) -> Iterator[Value]:
    gateway = format_mac(build.addressing.gateway_mac)
    hosts = [(port, mac, addresses[0]) for port, mac, addresses in _hosts(build, vertex)]
    for port, mac, own in hosts:
        for target in (str(build.addressing.gateway(vertex)), *(each for _, _, each in hosts)):
            if target != own:
                yield target, port, mac, own, gateway


def _dispatched(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    mac = format_mac(build.addressing.gateway_mac)
    yield from ((family, mac) for family in ("ip", "ipv6")[: 1 + bool(build.addressing.ipv6)])


def _mark_rows(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    if build.forwarding.marks:
        mac = build.addressing.gateway_mac
        for family in ("ip", "ipv6")[: 1 + bool(build.addressing.ipv6)]:
            yield family, format_mac(mac ^ 0x800000), format_mac(mac)


def _onward(build: Build, vertex: int) -> Iterator[tuple[int, list[int]]]:
    """Each fabric port, and the ports over which what came in marked there is spread."""
    w = build.wiring
    cabled = [(port, far) for port, far, _ in w.ends(vertex)]
    for port, sender in cabled if build.forwarding.marks else ():
        nearby = {sender, *w.far[sender].tolist()}
        nearby |= {f for _, f in cabled if (w.far[f] == w.far[sender]).all()}  # its twin
        yield port, [p for p, f in cabled if f not in nearby]


def _spread_rows(build: Build, vertex: int) -> Iterator[Value]:
    for port, onward in _onward(build, vertex):
        yield port, f"{0x20000}/0x2c000", str(vertex % 65536), ",".join(map(str, onward))


def _spread_tables(build: Build, vertex: int) -> Iterator[Value]:
    for port, onward in _onward(build, vertex):
        ports = sorted(onward, key=lambda p: build.wiring.port_name(vertex, p))
        for pool in _pools(build, vertex):
            yield port, *pool, *ports


def _stages(build: Build, vertex: int) -> Iterator[Value]:
    yield from ((port, "3") for port, _ in _onward(build, vertex))


def _staged(build: Build, vertex: int) -> Iterator[Value]:
    """By the port where packets come in marked: the pools onward, neighbours by the links there."""
    a, w = build.addressing, build.wiring
    yield from _spread_tables(build, vertex)
    ports = [port for port, _ in _onward(build, vertex)]
    for port, far, _ in w.ends(vertex):
        if build.topology.endpoints[far]:
            yield from ((came, str(a.network(far)), port) for came in ports)
            if a.ipv6:
                yield from ((came, str(a.network6(far)), port) for came in ports)


def _staged_hosts(build: Build, vertex: int) -> Iterator[Value]:
    for port, _ in _onward(build, vertex):
        yield from ((port, *address) for address in _host_routes(build, vertex))


def _staged_blocks(build: Build, vertex: int) -> Iterator[Value]:
    """By the port where packets come in marked: the networks of the switch's own hosts."""
    a = build.addressing
    for port, _ in _onward(build, vertex) if build.topology.endpoints[vertex] else ():
        yield port, str(a.network(vertex))
        if a.ipv6:
            yield port, str(a.network6(vertex))


def _marked_devices(build: Build, vertex: int) -> Iterator[Value]:
    w = build.wiring
    mac, address = format_mac(0x025046800001 + vertex), f"fe80::1:0:{vertex + 1:x}"
    yield from ((port, mac, address) for port, _, _ in w.ends(vertex) if build.forwarding.marks)


def _thrown(build: Build, vertex: int) -> Iterator[Value]:
    a = build.addressing
    yield from _neighbours(build, vertex)
    if build.forwarding.marks and build.topology.endpoints[vertex]:
        yield (str(a.network(vertex)),)
        if a.ipv6:
            yield (str(a.network6(vertex)),)


def _shared_classes(build: Build, vertex: int) -> Iterator[Value]:
    if build.forwarding.every_hop:
        weighted = np.count_nonzero(build.tables.classes.weight[vertex], axis=1)
        yield from ((str(k), str(vertex % 65536)) for k in np.flatnonzero(weighted > 1).tolist())


def _neighbours(build: Build, vertex: int) -> Iterator[Value]:
    a, far = build.addressing, build.wiring.far[vertex]
    ends = far[(far >= 0) & build.topology.endpoints[far]]
    for near in ends.tolist() if build.forwarding.marks else ():
        yield (str(a.network(near)),)
        if a.ipv6:
            yield (str(a.network6(near)),)


def _identity(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    yield (build.identity[:12],)


def _pools(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    a = build.addressing
    last = build.tables.switches - 1
    for network in (a.network, a.network6)[: 2 if a.ipv6 else 1]:
        first, end = network(0), network(last)
        bits = int(first.network_address) ^ int(end.broadcast_address)
        length = first.max_prefixlen - bits.bit_length()
        yield (str(ip_network((first.network_address, length), strict=False)),)


def _far_ends(build: Build, vertex: int) -> Iterator[Value]:
    w = build.wiring
    for port, far, far_port in w.ends(vertex):
        yield port, w.names[far], w.port_name(far, far_port)


CLAIMS: dict[str, Callable[[Build, int], Iterator[Value]]] = {
    "host": _host_rows,
    "address of a host": _host_addresses,
    "host route": _host_routes,
    "hosts": _host_blocks,
    "loopback": _loopbacks,
    "setting": _settings,
    "answered block": _answered,
    "solicited block": _solicited,
    "neighbour answer": _neighbour_answers,
    "answered address": _replies,
    "forwarded": _entries,
    "dispatched": _dispatched,
    "marked": _mark_rows,
    "spread": _spread_rows,
    "neighbour": _neighbours,
    "marked device": _marked_devices,
    "onward": _spread_tables,
    "stage": _stages,
    "staged": _staged,
    "staged host": _staged_hosts,
    "staged block": _staged_blocks,
    "thrown on": _thrown,
    "shared class": _shared_classes,
    "identity": _identity,
    "far end": _far_ends,
    "discard": _pools,
    **CARRIED,
    **FACTS,
}
"""By kind:

host: address, MAC, gateway's MAC, port. address of a host: address, port. host route: an
address that transit finds in the VRF of the hosts. hosts: gateway with its
length, the port of one. loopback: gateway. setting: of a Linux kernel, its value. answered block:
prefix, gateway's MAC, for ARP. solicited block, neighbour answer: the same for ND.
answered address: address asked for in ARP, port, MAC and address of the host that asks, gateway's
MAC. forwarded: family, gateway's MAC, port whose packets are matched (0: any); dispatched: the
first two of these. marked: family, the MAC address of marked packets, the gateway's. spread: a
fabric port, what metadata is there, the basis of the hash, the ports that packets marked before go
on by. neighbour: a prefix to which marked packets are
not spread. marked device: a fabric port, MAC
address and address of the device over it; onward: the port, the pool that is spread, the ports;
thrown on: a prefix that goes as in transit. stage: a fabric port with a VRF of its own for marked
packets, their VLAN; staged: the port, a prefix of that VRF, the ports that share it; staged host:
the port, an address that is found in the VRF of the hosts. shared class: one whose next hops
packets from anywhere share, and the basis of the hash. identity: its first 12 digits. far end:
port, node, port there. discard: of each family, the smallest network that holds all blocks. Others:
see `CARRIED` and `FACTS`.
"""
