"""The facts besides forwarding that the files of a switch have to state, by the tables of a build.

What comes in is a build and a switch; what goes out are *claims*, values of a kind, such as the
address and the port of a host. `claim_check` compares them with the claims of the switch's files.
They come from the tables and the addresses alone: no code is shared with what renders files, so
that both have to be wrong for a fault to pass.

`CLAIMS` has a function for each kind, and its docstring says what the values are. The kinds for
Valiant routing are in `expected_intermediates`, those about names, ports and services in
`expected_facts`.

In marked spread (`compilers.routing.marked_spread`), a *mark* in a packet tells the next switch to
*spread* it: to send it over any of several links, which depend on the link that brought it. Routers
keep a VRF for each link that brings marked packets; words of claims call it a *stage*.

All functions of `CLAIMS` take a build and a vertex, also those that need only one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import ip_network
from typing import NamedTuple

import numpy as np

from compilers.readers.expected_facts import FACTS, Value
from compilers.readers.expected_intermediates import BASES, INTERMEDIATE_CLAIMS, row_families
from compilers.tables.build import Build
from compilers.wiring.mac_addresses import format_mac

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
    addressing = build.addressing
    for number, port in enumerate(build.wiring.host_port[vertex].tolist()):
        if port:
            addresses = [str(addressing.host(vertex, number))]
            if addressing.ipv6:
                addresses.append(str(addressing.host6(vertex, number)))
            yield _Host(port, addressing.mac(vertex, number), addresses)


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
    addressing = build.addressing
    for host in _hosts(build, vertex):
        yield f"{addressing.gateway(vertex)}/{addressing.ipv4_length}", host.port
        if addressing.ipv6:
            yield f"{addressing.network6(vertex)[1]}/64", host.port


def _loopbacks(build: Build, vertex: int) -> Iterator[Value]:
    """The gateway's addresses on the loopback interface."""
    addressing = build.addressing
    yield (str(addressing.gateway(vertex)),)
    if addressing.ipv6:
        yield (str(addressing.network6(vertex)[1]),)


def _settings(build: Build, vertex: int) -> Iterator[Value]:
    """The settings of the Linux kernel."""
    # If several switches on a path balance the same packets, each needs a hash of its own.
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


def _arp_block(build: Build, vertex: int) -> Iterator[Value]:
    """The IPv4 block whose ARP requests the switch answers."""
    addressing = build.addressing
    yield str(addressing.network(vertex)), format_mac(addressing.gateway_mac)


def _nd_block(build: Build, vertex: int) -> Iterator[Value]:
    """The IPv6 block whose neighbour solicitations the switch answers."""
    if build.addressing.ipv6:
        yield (str(build.addressing.network6(vertex)),)


def _neighbour_answers(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """The Ethernet address in answers to neighbour solicitations."""
    if build.addressing.ipv6:
        yield (format_mac(build.addressing.gateway_mac),)


def _forward_rows(build: Build, vertex: int) -> Iterator[Value]:
    """The rows by which packets enter the tables of routes: by address family, and by host port.

    Packets from hosts need rows of their own if they are spread over alternates and packets in
    transit are not.
    """
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


def _admit_rows(build: Build, vertex: int) -> Iterator[Value]:
    """Rows that admit packets of hosts, where no bit of metadata tells these from others."""
    has_bit = build.tables.classes.alternate.shape[2] and not build.forwarding.every_hop
    if build.addressing.source_checks and not has_bit and not build.forwarding.intermediates:
        yield from _admit_rows_unmasked(build, vertex)


def _admit_rows_unmasked(build: Build, vertex: int) -> Iterator[Value]:
    """Rows that admit packets on a switch that matches no bits of metadata."""
    mac = format_mac(build.addressing.gateway_mac)
    if build.addressing.source_checks:
        for family, port, source in sources(build, vertex):
            yield family, mac, port, source


def _guarded_ports(build: Build, vertex: int) -> Iterator[Value]:
    """The ports of hosts, all of whose other packets are dropped."""
    if build.addressing.source_checks:
        yield from ((host.port,) for host in _hosts(build, vertex))


def _arp_replies(build: Build, vertex: int) -> Iterator[Value]:
    """The answers to ARP requests of each host, for the gateway and for the other hosts."""
    gateway = format_mac(build.addressing.gateway_mac)
    hosts = list(_hosts(build, vertex))
    targets = [str(build.addressing.gateway(vertex)), *(host.addresses[0] for host in hosts)]
    for host in hosts:
        for target in targets:
            if target != host.addresses[0]:
                yield target, host.port, host.mac, host.addresses[0], gateway


def _dispatch_rows(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """The rows by which packets for the gateway are told apart by address family."""
    mac = format_mac(build.addressing.gateway_mac)
    yield from ((family, mac) for family in row_families(build))


def _mark_rows(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """The rows that give marked packets the gateway's Ethernet address again."""
    if build.forwarding.marks:
        mac = build.addressing.gateway_mac
        for family in row_families(build):
            yield family, format_mac(mac ^ MARK_IN_MAC), format_mac(mac)


def _ports_of_spread(build: Build, vertex: int) -> Iterator[tuple[int, list[int]]]:
    """Each fabric port, and the ports over which packets that it brings marked are spread.

    They lead neither to the sender, nor to its neighbours, nor to switches with the same neighbours
    as the sender.
    """
    wiring = build.wiring
    cabled = [(port, far) for port, far, _ in wiring.links_of(vertex)]
    for port, sender in cabled if build.forwarding.marks else ():
        excluded = {sender, *wiring.far[sender].tolist()}
        excluded |= {far for _, far in cabled if (wiring.far[far] == wiring.far[sender]).all()}
        yield port, [out_port for out_port, far in cabled if far not in excluded]


def _spread_rows(build: Build, vertex: int) -> Iterator[Value]:
    """The groups that spread marked packets, by the port that brings them."""
    for port, spread_ports in _ports_of_spread(build, vertex):
        yield port, SPREAD_METADATA, str(vertex % BASES), ",".join(map(str, spread_ports))


def _spread_tables(build: Build, vertex: int) -> Iterator[Value]:
    """The routes that spread marked packets, by the port that brings them and the pool."""
    for port, spread_ports in _ports_of_spread(build, vertex):
        ports = sorted(spread_ports, key=lambda port: build.wiring.port_name(vertex, port))
        for pool in _pools(build, vertex):
            yield port, *pool, *ports


def _vrfs_of_links(build: Build, vertex: int) -> Iterator[Value]:
    """The ports with a VRF for marked packets."""
    yield from ((port, MARKED_VLAN) for port, _ in _ports_of_spread(build, vertex))


def _routes_in_vrfs(build: Build, vertex: int) -> Iterator[Value]:
    """The routes for marked packets, by the port that brings them.

    The pools are spread over other ports; the networks of neighbours go over the links to these.
    """
    addressing, wiring = build.addressing, build.wiring
    yield from _spread_tables(build, vertex)
    ports = [port for port, _ in _ports_of_spread(build, vertex)]
    for port, far, _ in wiring.links_of(vertex):
        if build.topology.endpoints[far]:
            yield from ((ingress, str(addressing.network(far)), port) for ingress in ports)
            if addressing.ipv6:
                yield from ((ingress, str(addressing.network6(far)), port) for ingress in ports)


def _hosts_in_vrfs(build: Build, vertex: int) -> Iterator[Value]:
    """The addresses of the switch's own hosts, by the port where packets come in marked."""
    for port, _ in _ports_of_spread(build, vertex):
        yield from ((port, *address) for address in _host_routes(build, vertex))


def _blocks_in_vrfs(build: Build, vertex: int) -> Iterator[Value]:
    """By the port where packets come in marked: the networks of the switch's own hosts."""
    addressing = build.addressing
    for port, _ in _ports_of_spread(build, vertex) if build.topology.endpoints[vertex] else ():
        yield port, str(addressing.network(vertex))
        if addressing.ipv6:
            yield port, str(addressing.network6(vertex))


def _marked_devices(build: Build, vertex: int) -> Iterator[Value]:
    """The devices over fabric ports that take marked packets."""
    wiring = build.wiring
    mac, address = format_mac(FIRST_MARKED_MAC + vertex), f"fe80::1:0:{vertex + 1:x}"
    yield from (
        (port, mac, address) for port, _, _ in wiring.links_of(vertex) if build.forwarding.marks
    )


def _thrown_prefixes(build: Build, vertex: int) -> Iterator[Value]:
    """The prefixes for which marked packets are looked up as other packets."""
    addressing = build.addressing
    yield from _neighbour_networks(build, vertex)
    if build.forwarding.marks and build.topology.endpoints[vertex]:
        yield (str(addressing.network(vertex)),)
        if addressing.ipv6:
            yield (str(addressing.network6(vertex)),)


def _shared_classes(build: Build, vertex: int) -> Iterator[Value]:
    """The egress classes whose next hops packets from any port share."""
    if build.forwarding.every_hop:
        weighted_ports = np.count_nonzero(build.tables.classes.weight[vertex], axis=1)
        for egress in np.flatnonzero(weighted_ports > 1).tolist():
            yield str(egress), str(vertex % BASES)


def _neighbour_networks(build: Build, vertex: int) -> Iterator[Value]:
    """The networks of neighbours' hosts, for which packets are not spread."""
    addressing, far = build.addressing, build.wiring.far[vertex]
    with_hosts = far[(far >= 0) & build.topology.endpoints[far]]
    for neighbour in with_hosts.tolist() if build.forwarding.marks else ():
        yield (str(addressing.network(neighbour)),)
        if addressing.ipv6:
            yield (str(addressing.network6(neighbour)),)


def _identity(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """The first digits of the build's identity."""
    yield (build.identity[:SHOWN_DIGITS],)


def _pools(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """The smallest network that holds all prefixes of each address family."""
    addressing = build.addressing
    last_vertex = build.tables.switches - 1
    networks = addressing.network, addressing.network6
    for network_of in networks if addressing.ipv6 else networks[:1]:
        first, last = network_of(0), network_of(last_vertex)
        # From the first bit on in which the two addresses differ, the pool has all values.
        different_bits = int(first.network_address) ^ int(last.broadcast_address)
        length = first.max_prefixlen - different_bits.bit_length()
        yield (str(ip_network((first.network_address, length), strict=False)),)


def _far_ends(build: Build, vertex: int) -> Iterator[Value]:
    """The node and the port at the other end of each link."""
    wiring = build.wiring
    for port, far, far_port in wiring.links_of(vertex):
        yield port, wiring.names[far], wiring.port_name(far, far_port)


CLAIMS: dict[str, Callable[[Build, int], Iterator[Value]]] = {
    "host": _host_rows,
    "address of a host": _host_addresses,
    "host route": _host_routes,
    "hosts": _host_blocks,
    "loopback": _loopbacks,
    "setting": _settings,
    "answered block": _arp_block,
    "solicited block": _nd_block,
    "neighbour answer": _neighbour_answers,
    "answered address": _arp_replies,
    "forwarded": _forward_rows,
    "admitted": _admit_rows,
    "admitted unmasked": _admit_rows_unmasked,
    "guarded": _guarded_ports,
    "dispatched": _dispatch_rows,
    "marked": _mark_rows,
    "spread": _spread_rows,
    "neighbour": _neighbour_networks,
    "marked device": _marked_devices,
    "onward": _spread_tables,
    "stage": _vrfs_of_links,
    "staged": _routes_in_vrfs,
    "staged host": _hosts_in_vrfs,
    "staged block": _blocks_in_vrfs,
    "thrown on": _thrown_prefixes,
    "shared class": _shared_classes,
    "identity": _identity,
    "far end": _far_ends,
    "discard": _pools,
    **INTERMEDIATE_CLAIMS,
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
- those of `INTERMEDIATE_CLAIMS` and `FACTS`
"""
