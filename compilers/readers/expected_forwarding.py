"""The forwarding that the tables of a build give one switch, in the form of `emitted_forwarding`.

The check compares it with what the switch's files say. The rule of `Classes` is stated here once
more, and shares no code with what renders files, so that both have to be wrong for a fault to pass.
`CLAIMS` has the plain facts that the files have to state besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_forwarding import MARKED, Chain
from compilers.readers.expected_carried import BASES, CARRIED, row_families
from compilers.readers.expected_facts import FACTS
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.wiring.addressing import format_mac

Value = tuple[str | int, ...]
"""The values of a claim, as `CLAIMS` lists them."""
HASH_SEED = 0x50460001
"""The seed of the kernel's hash at vertex 0; that of vertex v is v higher."""
HASH_FIELDS = 0x37
"""The fields of a packet that the kernel hashes: both addresses, the protocol, and both ports."""
HASH_BY_LAYER_4, HASH_BY_FIELDS = 1, 3
"""Policies of the kernel's hash: addresses and ports, or the fields of `HASH_FIELDS`."""
MARK_IN_MAC = 0x800000
"""The bit of the gateway's MAC address that is inverted in marked packets."""
FIRST_MARKED_MAC = 0x025046800001
"""The MAC address of vertex 0's devices for marked packets; that of vertex v is v higher."""
SPREAD_METADATA = f"{0x20000}/0x2c000"
"""The metadata, with its mask, of packets that a link brings marked and that are spread."""
SHOWN_DIGITS = 12
"""How many digits of the build's identity the files state."""
MARKED_VLAN = "3"
"""The VLAN of marked packets on a link between routers."""


@dataclass(frozen=True, slots=True)
class Ability:
    """What a switch can do of the tables."""

    repairs: bool = True
    """Whether it tries several ports in order; if not, it has the first port only."""
    most_ports: int | None = None
    """How many ports can share the packets of a class: the minimal port, and the alternates with
    the greatest weights. None: any number."""

    def shared(self, ports: list[int], weights: list[int]) -> dict[int, int]:
        """The weight of each port that shares packets from hosts, the minimal port first.

        >>> Ability(most_ports=2).shared([1, 2, 3, 0], [4, 1, 2, 0])
        {1: 4, 3: 2}
        """
        weight_of = {p: weight for p, weight in zip(ports, weights, strict=True) if p and weight}
        if self.most_ports is None or len(weight_of) <= self.most_ports:
            return weight_of
        alternates = [port for port in weight_of if port != ports[0]]
        heaviest = sorted(alternates, key=lambda port: -weight_of[port])[: self.most_ports - 1]
        chosen = {ports[0], *heaviest}
        return {port: weight for port, weight in weight_of.items() if port in chosen}


ALL = Ability()
"""A switch that can do everything."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedSwitch:
    """The forwarding of one switch by the tables.

    S is the number of destinations, C of egress classes, M the most ports that a class tries in
    order, A the most alternates. Port 0 is none. The last row of arrays by class is of no class,
    and has no ports.
    """

    egress: NDArray[np.int64]
    """int64[S]: the egress class for each destination, -1: none."""
    order: NDArray[np.int64]
    """int64[C + 1, M]: the ports that each class tries for packets in transit."""
    bounce: NDArray[np.int64]
    """int64[C + 1, M]: the ports that each class tries for packets that came in on its first
    port."""
    entering: list[dict[int, int]]
    """For each class, the weight of each port that shares packets from hosts."""
    plain: bool
    """Whether there are neither alternates nor repair."""
    repairs: bool = True
    """Whether the switch tries several ports in order."""
    weighted: NDArray[np.int64] | None = None
    """int64[C + 1, 1 + A]: the ports that share packets in transit, in classes with several; None:
    packets in transit are not shared."""

    @classmethod
    def of(cls, build: Build, vertex: int, able: Ability = ALL) -> ExpectedSwitch:
        """The forwarding of a switch.

        Args:
            build: its tables.
            vertex: of the switch.
            able: what the switch can do of the tables.
        """
        c = build.tables.classes
        ports = np.column_stack((c.port[vertex], c.alternate[vertex]))
        weights = c.weight[vertex]
        order = np.column_stack((c.port[vertex], c.protection[vertex]))
        if not able.repairs:
            order = order[:, :1]
        width = max(order.shape[1], c.bounce.shape[2])
        return cls(
            egress=_egress(build, vertex),
            order=_to_the_left(_widened(order, width)),
            bounce=_widened(c.bounce[vertex], width),
            entering=[
                _marked(build, of_class[0], able.shared(of_class, weight))
                for of_class, weight in zip(ports.tolist(), weights.tolist(), strict=True)
            ],
            plain=not (c.alternate.shape[2] or c.protection.shape[2] or c.bounce.shape[2]),
            repairs=able.repairs,
            weighted=_several(ports, weights) if build.forwarding.every_hop else None,
        )

    def from_hosts(self, egress: int) -> Chain:
        """The chain by which a class forwards packets from hosts."""
        order = tuple(((port, 1),) for port in self.order[egress].tolist() if port)
        shared = tuple(self.entering[egress].items())
        chain = (shared, *order) if shared else order
        return chain if self.repairs else chain[:1]

    def transit(self, egress: NDArray[np.int64], in_port: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[n, M + 1]: the ports that n packets in transit try, 0: none.

        Args:
            egress: int64[n], the classes.
            in_port: int64[n], the ports where the packets came in.
        """
        ingress = in_port[:, None]
        order = self.order[egress]
        tried = np.where(order[:, :1] == ingress, self.bounce[egress], order)
        # A packet that came in on a port of the class goes back there when nothing else is up.
        back = np.where((order == ingress).any(axis=1), in_port, 0)
        if self.weighted is not None:
            bounced = np.column_stack((self.bounce[egress], order[:, 0]))
            from_sharing = (self.weighted[egress] == ingress).any(axis=1, keepdims=True)
            tried = np.where(from_sharing, bounced, np.pad(tried, ((0, 0), (0, 1))))
        tries = np.column_stack((np.where(tried == ingress, 0, tried), back))
        return tries if self.repairs else _to_the_left(tries)[:, :1]

    def shares(self, egress: NDArray[np.int64], in_port: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool[n]: whether packets in transit are shared as packets from hosts are.

        They are where every hop shares, unless a packet came in on one of the sharing ports.
        """
        if self.weighted is None:
            return np.zeros(len(egress), np.bool_)
        weighted = self.weighted[egress]
        came_elsewhere = (weighted != in_port[:, None]).all(axis=1)
        shared: NDArray[np.bool_] = (weighted > 0).any(axis=1) & came_elsewhere
        return shared

    def unmet(self, egress: NDArray[np.int64], in_port: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool[n]: packets that cannot occur, as no switch sends packets back without repair."""
        if self.plain:
            from_minimal: NDArray[np.bool_] = self.order[egress, 0] == in_port
            return from_minimal
        if self.weighted is None or self.bounce.any():
            return np.zeros(len(egress), np.bool_)
        from_sharing: NDArray[np.bool_] = (self.weighted[egress] == in_port[:, None]).any(axis=1)
        return from_sharing


def _several(ports: NDArray[np.int64], weight: NDArray[Any]) -> NDArray[np.int64]:
    """int64[C + 1, n]: the ports with a weight, in classes with several of these; others are 0."""
    weighted = np.where(weight > 0, ports, 0)
    has_several = np.count_nonzero(weighted, axis=1) > 1
    return _widened(np.where(has_several[:, None], weighted, 0), weighted.shape[1])


def _marked(build: Build, minimal: int, weight_of: dict[int, int]) -> dict[int, int]:
    """The weights of ports for packets from hosts; all ports but the minimal one mark packets."""
    if not build.forwarding.marks:
        return weight_of
    return {p if p == minimal else p + MARKED: weight for p, weight in weight_of.items()}


def _widened(ports: NDArray[np.integer[Any]], width: int) -> NDArray[np.int64]:
    """The rows in a wider array, with a row of zeros behind them."""
    wide = np.zeros((len(ports) + 1, width), np.int64)
    wide[:-1, : ports.shape[1]] = ports
    return wide


def _to_the_left(ports: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows in which zeros stand behind all ports."""
    return np.take_along_axis(ports, np.argsort(ports == 0, axis=1, kind="stable"), axis=1)


def _egress(build: Build, vertex: int) -> NDArray[np.int64]:
    """int64[S]: the egress class for each destination, by the longest prefix with a route."""
    routes = build.tables.routes
    none = no_route(routes.egress)
    switches = len(routes.egress)
    by_prefix = np.full(max(switches, int(routes.prefix.max(initial=0)) + 1), -1, np.int64)
    egress = routes.egress[vertex].astype(np.int64)
    by_prefix[routes.prefixes(vertex)] = np.where(egress < none, egress, -1)
    longest = by_destination(by_prefix, routes.aggregate)
    longest[vertex] = by_prefix[vertex]  # connected, whatever aggregate covers it
    return longest


def by_destination(by_prefix: NDArray[np.int64], aggregate: NDArray[np.int32]) -> NDArray[np.int64]:
    """int64[S]: the value of the longest prefix of each destination that has one, else -1.

    Args:
        by_prefix: int64[P], a value for each prefix, -1: none. The first S are of destinations.
        aggregate: int32[S], the shorter prefix that covers each destination, -1: none.
    """
    exact = by_prefix[: len(aggregate)]
    covering = np.where(aggregate >= 0, by_prefix[aggregate.clip(0)], -1)
    return np.where(exact >= 0, exact, covering)


def expected_claims(build: Build, vertex: int, kind: str) -> set[Value]:
    """The claims of a kind that a switch has to make."""
    return set(CLAIMS[kind](build, vertex))


class _Host(NamedTuple):
    """A host of a switch."""

    port: int
    """The port of the switch that it is at."""
    mac: str
    """Its Ethernet address."""
    addresses: list[str]
    """Its IPv4 address, and the IPv6 one where the fabric has IPv6."""


def _hosts(build: Build, vertex: int) -> Iterator[_Host]:
    """Yield the hosts of a switch."""
    a = build.addressing
    for number, port in enumerate(build.wiring.host_port[vertex].tolist()):
        if port:
            addresses = [str(a.host(vertex, number))]
            if a.ipv6:
                addresses.append(str(a.host6(vertex, number)))
            yield _Host(port, a.mac(vertex, number), addresses)


def _host_rows(build: Build, vertex: int) -> Iterator[Value]:
    """The rows that rewrite packets for the hosts of a switch."""
    gateway = format_mac(build.addressing.gateway_mac)
    for host in _hosts(build, vertex):
        yield from ((address, host.mac, gateway, host.port) for address in host.addresses)


def _host_addresses(build: Build, vertex: int) -> Iterator[Value]:
    """The addresses of hosts, by port."""
    for host in _hosts(build, vertex):
        yield from ((address, host.port) for address in host.addresses)


def _host_routes(build: Build, vertex: int) -> Iterator[Value]:
    """The addresses of hosts that the default VRF reaches in the VRF of hosts."""
    for host in _hosts(build, vertex):
        yield from ((address,) for address in host.addresses)


def _host_blocks(build: Build, vertex: int) -> Iterator[Value]:
    """The gateway's addresses towards hosts, with their lengths."""
    a = build.addressing
    for host in _hosts(build, vertex):
        yield f"{a.gateway(vertex)}/{a.ipv4_length}", host.port
        if a.ipv6:
            yield f"{a.network6(vertex)[1]}/64", host.port


def _loopbacks(build: Build, vertex: int) -> Iterator[Value]:
    """The gateway's addresses on the loopback interface."""
    a = build.addressing
    yield (str(a.gateway(vertex)),)
    if a.ipv6:
        yield (str(a.network6(vertex)[1]),)


def _settings(build: Build, vertex: int) -> Iterator[Value]:
    """The settings of the Linux kernel."""
    # Packets that several switches share in turn need another hash at each of them.
    shared_in_turn = build.forwarding.marks or build.forwarding.every_hop
    if shared_in_turn:
        yield "net/ipv4/fib_multipath_hash_seed", HASH_SEED + vertex
        yield from ((f"net/{ip}/fib_multipath_hash_fields", HASH_FIELDS) for ip in ("ipv4", "ipv6"))
    yield "net/ipv4/ip_forward", 1
    yield "net/ipv6/conf/all/forwarding", 1
    yield "net/ipv4/conf/all/rp_filter", 0
    policy = HASH_BY_FIELDS if shared_in_turn else HASH_BY_LAYER_4
    yield "net/ipv4/fib_multipath_hash_policy", policy
    yield "net/ipv6/fib_multipath_hash_policy", policy
    yield "net/ipv4/conf/all/ignore_routes_with_linkdown", 1
    yield "net/ipv6/conf/all/ignore_routes_with_linkdown", 1


def _answered(build: Build, vertex: int) -> Iterator[Value]:
    """The IPv4 block whose ARP requests the switch answers."""
    a = build.addressing
    yield str(a.network(vertex)), format_mac(a.gateway_mac)


def _solicited(build: Build, vertex: int) -> Iterator[Value]:
    """The IPv6 block whose neighbour solicitations the switch answers."""
    if build.addressing.ipv6:
        yield (str(build.addressing.network6(vertex)),)


def _neighbour_answers(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """The Ethernet address in answers to neighbour solicitations."""
    if build.addressing.ipv6:
        yield (format_mac(build.addressing.gateway_mac),)


def _entries(build: Build, vertex: int) -> Iterator[Value]:
    """The rows by which packets enter the tables of routes: by address family, and by host port."""
    mac = format_mac(build.addressing.gateway_mac)
    yield from ((family, mac, 0, "") for family in row_families(build))
    if build.tables.classes.alternate.shape[2] and not build.forwarding.every_hop:
        for family, port, source in sources(build, vertex):
            yield family, mac, port, source


def sources(build: Build, vertex: int) -> Iterator[tuple[str, int, str]]:
    """Address family, port, and source address of each host; "" where it is not checked."""
    checks = build.addressing.source_checks
    for host in _hosts(build, vertex):
        for family, address in zip(row_families(build), host.addresses, strict=True):
            yield family, host.port, address if checks else ""


def _admitted(build: Build, vertex: int) -> Iterator[Value]:
    """Rows that admit packets of hosts, where no bit of metadata tells these from others."""
    has_bit = build.tables.classes.alternate.shape[2] and not build.forwarding.every_hop
    if build.addressing.source_checks and not has_bit and not build.forwarding.intermediates:
        yield from _admitted_unmasked(build, vertex)


def _admitted_unmasked(build: Build, vertex: int) -> Iterator[Value]:
    """Rows that admit packets on a switch that matches no bits of metadata."""
    mac = format_mac(build.addressing.gateway_mac)
    if build.addressing.source_checks:
        for family, port, source in sources(build, vertex):
            yield family, mac, port, source


def _guarded(build: Build, vertex: int) -> Iterator[Value]:
    """The ports of hosts, all of whose other packets are dropped."""
    if build.addressing.source_checks:
        yield from ((host.port,) for host in _hosts(build, vertex))


def _replies(build: Build, vertex: int) -> Iterator[Value]:
    """The answers to ARP requests of each host, for the gateway and for the other hosts."""
    gateway = format_mac(build.addressing.gateway_mac)
    hosts = list(_hosts(build, vertex))
    targets = [str(build.addressing.gateway(vertex)), *(host.addresses[0] for host in hosts)]
    for host in hosts:
        for target in targets:
            if target != host.addresses[0]:
                yield target, host.port, host.mac, host.addresses[0], gateway


def _dispatched(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """The rows by which packets for the gateway are told apart by address family."""
    mac = format_mac(build.addressing.gateway_mac)
    yield from ((family, mac) for family in row_families(build))


def _mark_rows(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """The rows that give marked packets the gateway's Ethernet address again."""
    if build.forwarding.marks:
        mac = build.addressing.gateway_mac
        for family in row_families(build):
            yield family, format_mac(mac ^ MARK_IN_MAC), format_mac(mac)


def _onward(build: Build, vertex: int) -> Iterator[tuple[int, list[int]]]:
    """Each fabric port, and the ports over which packets that it brings marked are spread."""
    w = build.wiring
    cabled = [(port, far) for port, far, _ in w.ends(vertex)]
    for port, sender in cabled if build.forwarding.marks else ():
        excluded = {sender, *w.far[sender].tolist()}
        excluded |= {far for _, far in cabled if (w.far[far] == w.far[sender]).all()}
        yield port, [onward for onward, far in cabled if far not in excluded]


def _spread_rows(build: Build, vertex: int) -> Iterator[Value]:
    """The groups that spread marked packets, by the port that brings them."""
    for port, onward in _onward(build, vertex):
        yield port, SPREAD_METADATA, str(vertex % BASES), ",".join(map(str, onward))


def _spread_tables(build: Build, vertex: int) -> Iterator[Value]:
    """The routes that spread marked packets, by the port that brings them and the pool."""
    for port, onward in _onward(build, vertex):
        ports = sorted(onward, key=lambda p: build.wiring.port_name(vertex, p))
        for pool in _pools(build, vertex):
            yield port, *pool, *ports


def _stages(build: Build, vertex: int) -> Iterator[Value]:
    """The ports with a VRF for marked packets."""
    yield from ((port, MARKED_VLAN) for port, _ in _onward(build, vertex))


def _staged(build: Build, vertex: int) -> Iterator[Value]:
    """The routes for marked packets, by the port that brings them.

    The pools are spread over other ports; the networks of neighbours go over the links to these.
    """
    a, w = build.addressing, build.wiring
    yield from _spread_tables(build, vertex)
    ports = [port for port, _ in _onward(build, vertex)]
    for port, far, _ in w.ends(vertex):
        if build.topology.endpoints[far]:
            yield from ((ingress, str(a.network(far)), port) for ingress in ports)
            if a.ipv6:
                yield from ((ingress, str(a.network6(far)), port) for ingress in ports)


def _staged_hosts(build: Build, vertex: int) -> Iterator[Value]:
    """The addresses of the switch's own hosts, by the port where packets come in marked."""
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
    """The devices over fabric ports that take marked packets."""
    w = build.wiring
    mac, address = format_mac(FIRST_MARKED_MAC + vertex), f"fe80::1:0:{vertex + 1:x}"
    yield from ((port, mac, address) for port, _, _ in w.ends(vertex) if build.forwarding.marks)


def _thrown(build: Build, vertex: int) -> Iterator[Value]:
    """The prefixes for which marked packets are looked up as other packets."""
    a = build.addressing
    yield from _neighbours(build, vertex)
    if build.forwarding.marks and build.topology.endpoints[vertex]:
        yield (str(a.network(vertex)),)
        if a.ipv6:
            yield (str(a.network6(vertex)),)


def _shared_classes(build: Build, vertex: int) -> Iterator[Value]:
    """The egress classes whose next hops packets from any port share."""
    if build.forwarding.every_hop:
        weighted = np.count_nonzero(build.tables.classes.weight[vertex], axis=1)
        yield from ((str(k), str(vertex % BASES)) for k in np.flatnonzero(weighted > 1).tolist())


def _neighbours(build: Build, vertex: int) -> Iterator[Value]:
    """The networks of neighbours' hosts, for which packets are not spread."""
    a, far = build.addressing, build.wiring.far[vertex]
    ends = far[(far >= 0) & build.topology.endpoints[far]]
    for neighbour in ends.tolist() if build.forwarding.marks else ():
        yield (str(a.network(neighbour)),)
        if a.ipv6:
            yield (str(a.network6(neighbour)),)


def _identity(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """The first digits of the build's identity."""
    yield (build.identity[:SHOWN_DIGITS],)


def _pools(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """The smallest network that holds all prefixes of each address family."""
    a = build.addressing
    last_vertex = build.tables.switches - 1
    for network_of in (a.network, a.network6) if a.ipv6 else (a.network,):
        first, last = network_of(0), network_of(last_vertex)
        bits = int(first.network_address) ^ int(last.broadcast_address)
        length = first.max_prefixlen - bits.bit_length()
        yield (str(ip_network((first.network_address, length), strict=False)),)


def _far_ends(build: Build, vertex: int) -> Iterator[Value]:
    """The node and the port at the other end of each link."""
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
    "admitted": _admitted,
    "admitted unmasked": _admitted_unmasked,
    "guarded": _guarded,
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
"""The claims of each kind that a switch has to make. Their values are:

Hosts:

- host: address, MAC address, the gateway's MAC address, port
- address of a host: address, port
- hosts: the gateway's address with its length, the port of one host
- host route: an address that the default VRF reaches in the VRF of hosts
- loopback: the gateway's address

ARP and neighbour discovery:

- answered block: prefix, the gateway's MAC address
- solicited block: prefix; neighbour answer: the gateway's MAC address
- answered address: the address that is asked for; port, MAC address and address of the host that
  asks; the gateway's MAC address

Rows of OpenFlow:

- forwarded: address family, the gateway's MAC address, the port whose packets are matched (0:
  any), their source address ("": any)
- admitted, admitted unmasked: address family, the gateway's MAC address, the port of a host, its
  address
- guarded: the port of a host, all of whose other packets are dropped
- dispatched: address family, the gateway's MAC address
- marked: address family, the MAC address of marked packets, the gateway's
- spread: a fabric port, the metadata of packets that it brings marked, the basis of the hash, the
  ports over which they are spread
- shared class: an egress class whose next hops packets from any port share, the basis of the hash

Marked packets on routers:

- neighbour: a prefix for which they are not spread
- marked device: a fabric port; MAC address and address of the device over it
- onward: a fabric port, the pool that is spread, the ports over which
- thrown on: a prefix for which they are looked up as other packets
- stage: a fabric port with a VRF for marked packets, their VLAN
- staged: that port, a prefix in the VRF, the ports that share it
- staged host, staged block: that port, an address or a network of the switch's own hosts

Others:

- setting: a setting of the Linux kernel, its value
- identity: the first 12 digits of the build's identity
- far end: port, node at the other end, port there
- discard: the smallest network that holds all prefixes of an address family
- those of `CARRIED` and `FACTS`
"""
