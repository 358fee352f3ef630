"""The forwarding of a router, from the contents of its configuration.

`forwarding` turns a `RouterText` into an `EmittedSwitch`, the form in which switches of all systems
are compared with the tables: lookup tables, next hops, addresses, and *claims*, which are facts
besides forwarding that lines state. `router_files` and `bgp_files` call it.

Packets are looked up in three kinds of tables:

| packets | routes in `RouterText` | in the result |
|---|---|---|
| *in transit*, from other switches | `transit`, and `leaked` to hosts of this router | `anywhere` |
| *entering*, from hosts of this router | `entering` | `by_ingress` |
| *marked*: sent on over a random link | `marked_routes`, a VRF for each link | claims |

Claims call a VRF for marked packets a *stage*. They are of four kinds:

| claim | what a line states |
|---|---|
| `stage` | the link has a subinterface for marked packets, with this VLAN |
| `staged` | a prefix in its VRF, and the ports that share the prefix |
| `staged host` | a route in its VRF to a host of this router |
| `staged block` | its VRF has the connected routes, so that of a network of this router's hosts |
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from compilers.readers.emitted_forwarding import (
    Claim,
    EmittedSwitch,
    Interface,
    Lookup,
    NextHop,
    OwnAddress,
    network_text,
    port_via,
    with_mark,
)
from compilers.readers.exact_text import exact_address, exact_interface, exact_network
from compilers.readers.route_tables import RouteHop, RouteLines
from compilers.readers.routers.router_text import (
    DISCARD,
    InterfaceText,
    RouterText,
    states_vrf,
)

ALL_FAMILIES = ""
"""In place of an address family: packets of all families."""
POINT_TO_POINT = 4
"""A network with fewer addresses than this is that of a link, /31 or /127."""


def forwarding(router: RouterText, *others: RouterText, recursive: bool = False) -> EmittedSwitch:
    """The forwarding of a router; everything that is wrong in its files is in the result.

    Args:
        router: the contents of the file that says everything.
        others: the contents of further files, whose faults and unknown statements count.
        recursive: whether routes of packets from hosts may have next hops that BGP resolves.
    """
    ends = dict(far_ends(router))
    for routes in (router.transit, router.entering):
        _require_discard(router, routes)
    transit = _lookup(router, router.transit, ends)
    entering = _lookup(router, router.entering, ends)
    vrf_interfaces = _interfaces_of_hosts_vrf(router)
    host_interfaces = (*router.ingress.values(), *vrf_interfaces)
    ports = {port for name in host_interfaces for port in router.ports(name)}
    next_hops = list(_next_hops(router, router.transit, ends))
    for routes in (router.entering, *router.marked_routes.values()):
        next_hops += _next_hops(router, routes, ends, recursive)
    file, host_claims = router.file, list(_host_claims(router))
    return EmittedSwitch(
        anywhere=transit,
        by_ingress=dict.fromkeys(ports, entering) if entering else {},
        claimed_kinds=_claimed_kinds(router, host_claims, has_vrf=bool(vrf_interfaces)),
        claims=[
            *(Claim(fact.kind, fact.value, file, fact.line) for fact in router.facts),
            *host_claims,
            *_host_route_claims(router),
            *_port_claims(router),
            *_claims_about_marked(router, ends),
        ],
        next_hops=next_hops,
        addresses=list(_link_addresses(router)),
        discards=[
            (prefix, file, line)
            for routes in (router.transit, router.entering)
            for prefix, _, line in routes.rows(DISCARD)
        ],
        unread=[(text.file, *line) for text in (router, *others) for line in text.unread],
        wrong=[(text.file, *line) for text in (router, *others) for line in text.wrong],
    )


def _link_addresses(router: RouterText) -> Iterator[OwnAddress]:
    """Yield the addresses of the router on its links."""
    for name, interface in router.interfaces.items():
        for address, line in interface.addresses:
            if _is_link(address):
                yield OwnAddress(_port(router, name), address.partition("/")[0], router.file, line)


def _interfaces_of_hosts_vrf(router: RouterText) -> list[str]:
    """The interfaces in the VRF of hosts; VRFs without a definition or a use are faults."""
    interfaces_in_vrfs = {
        name: interface for name, interface in router.interfaces.items() if interface.vrf
    }
    hosts = [
        name for name, interface in interfaces_in_vrfs.items() if not interface.is_subinterface
    ]
    for name, interface in interfaces_in_vrfs.items():
        # A subinterface is in the VRF of its link, any other interface in that of hosts.
        vrfs = router.marked_routes if interface.is_subinterface else (router.vrf,)
        if interface.vrf not in vrfs:
            router.add_wrong(interface.line, f"{name} is in a VRF that is not there")
    used_vrfs = {interface.vrf for interface in interfaces_in_vrfs.values()}
    for interface in router.interfaces.values():
        used_vrfs |= set(interface.lookup_instance.values())
    for vrf in router.marked_routes.keys() - used_vrfs:
        router.add_wrong(0, f"VRF {vrf}, in which no packet comes in")
    if router.entering.next_hops and not (hosts or router.ingress):
        line = min(router.entering.first_lines().values(), default=0)
        router.add_wrong(line, f"routes of VRF {router.vrf}, in which no packet comes in")
    return hosts


def _claimed_kinds(
    router: RouterText, host_claims: Collection[Claim], *, has_vrf: bool
) -> frozenset[str]:
    """The kinds of claims that the files have to make in full.

    Args:
        router: the contents of the file.
        host_claims: the claims about gateways of hosts and loopbacks.
        has_vrf: whether hosts are in a VRF of their own.
    """
    kinds = {"hosts", "port", "stage", "staged", *router.complete_kinds}
    kinds |= {"host route", "staged host"} if has_vrf else {"staged block"}
    # Without an interface of hosts, a loopback has to have the gateway's address.
    if not host_claims or any(claim.kind == "loopback" for claim in host_claims):
        kinds.add("loopback")
    return frozenset(kinds)


def _require_discard(router: RouterText, routes: RouteLines) -> None:
    """Note a family in which no route discards the fabric's addresses that no switch has.

    Without it packets to such addresses would go back and forth between aggregates.
    """
    for prefix in routes.uncovered({prefix for prefix, _, _ in routes.rows(DISCARD)}):
        router.add_wrong(0, f"no route that discards what is near {prefix}")


def _lookup(router: RouterText, routes: RouteLines, ends: dict[str, str]) -> tuple[Lookup, ...]:
    """The lookup table of routes, in which routes of one prefix share; () where all discard."""
    # All routes are in one table here, and have one metric.
    next_hops = {
        next_hop: RouteHop(table=0, metric=0, ports=((_egress_port(router, next_hop, ends), 1),))
        for next_hop in routes.next_hops
        if next_hop != DISCARD
    }
    return tuple(routes.tables(router.file, next_hops).values())


class _NextHopWords(NamedTuple):
    """The words of a next hop as `RouterText` writes it; "" for a word that it does not state."""

    gateway: str
    """The address of the next hop."""
    interface: str
    """The interface by which packets leave."""
    vrf: str
    """The VRF in which the gateway is looked up."""


def _words_of(next_hop: str) -> _NextHopWords:
    """The words of a next hop, as `RouterText` writes it: up to three."""
    words = next_hop.split(" ")
    return _NextHopWords(*words[:3], *[""] * (3 - len(words)))


def _egress_port(router: RouterText, next_hop: str, ends: dict[str, str]) -> str:
    """The port by which packets to a next hop leave, or `via GATEWAY` where BGP says which.

    A next hop that states a VRF, and is on no subinterface, is a host: no port of the fabric.
    """
    gateway, stated_interface, vrf = _words_of(next_hop)
    name = stated_interface or ends.get(gateway, "")
    interface = router.interfaces.get(name)
    if vrf and not (interface and interface.is_subinterface):
        return f"{name} in {vrf}"
    return _port(router, name) or port_via(gateway)


def _port(router: RouterText, name: str) -> str:
    """The port of an interface. A subinterface is for marked packets of its port."""
    interface = router.interfaces.get(name)
    return with_mark(interface.port) if interface and interface.is_subinterface else name


def _next_hops(
    router: RouterText, routes: RouteLines, ends: dict[str, str], recursive: bool = False
) -> Iterator[NextHop]:
    """Yield each next hop on a link, with the first line that states it.

    A next hop that no interface reaches is a fault. Hosts, and addresses that BGP resolves where
    routes may be recursive, are left out.
    """
    for next_hop, line in routes.first_lines().items():
        gateway, stated_interface, vrf = _words_of(next_hop)
        resolved_by_bgp = recursive and not stated_interface and gateway not in ends
        is_host = vrf != "" and vrf == router.vrf
        if next_hop == DISCARD or resolved_by_bgp or is_host:
            continue
        name = ends.get(gateway, stated_interface)
        at_far_end = gateway in ends and stated_interface in ("", name)
        if not at_far_end and not _reaches(router, gateway, name, stated_interface):
            router.add_wrong(line, f"no interface has a network with {gateway}")
        elif (actual_vrf := router.interfaces[name].vrf) != vrf:
            text = f"{next_hop} is in VRF {actual_vrf}, not where its next hop is looked up"
            router.add_wrong(line, text)
        else:
            yield NextHop(_port(router, name), gateway, router.file, line)


def _to_hosts(router: RouterText, routes: RouteLines) -> Iterator[tuple[str, int]]:
    """Yield the address of each host that routes reach in the VRF of hosts, and the line."""
    next_hops = [next_hop for next_hop in routes.next_hops if states_vrf(next_hop)]
    for prefix, next_hop, line in routes.rows(*next_hops):
        gateway, name, vrf = next_hop.split(" ")
        interface = router.interfaces.get(name)
        is_host = prefix in (f"{gateway}/32", f"{gateway}/128")
        if not is_host or not interface or interface.vrf != vrf:
            router.add_wrong(line, f"{prefix} by {next_hop} is no host of a VRF")
        elif not _reaches(router, gateway, name, name):
            router.add_wrong(line, f"no interface has a network with {gateway}")
        else:
            yield gateway, line


def _host_route_claims(router: RouterText) -> Iterator[Claim]:
    """Claim the hosts that packets in the default VRF reach by leaked routes."""
    for gateway, line in _to_hosts(router, router.leaked):
        yield Claim("host route", (gateway,), router.file, line)


def _claims_about_marked(router: RouterText, ends: dict[str, str]) -> Iterator[Claim]:
    """Yield the claims about marked packets of all links."""
    for interface in router.interfaces.values():
        if interface.is_subinterface:
            port = Interface(interface.port)
            yield Claim("stage", (port, interface.tag), router.file, interface.line)
            # Filters send the packets of each family to a routing instance. Without filters the
            # subinterface is in a VRF, where packets of all families are looked up.
            for family, vrf in interface.lookup_instance.items() or [(ALL_FAMILIES, interface.vrf)]:
                yield from _claims_about_vrf(router, interface, family, vrf, ends)


def _claims_about_vrf(
    router: RouterText, interface: InterfaceText, family: str, vrf: str, ends: dict[str, str]
) -> Iterator[Claim]:
    """Yield the claims about marked packets of one link: the routes in the VRF for them.

    The routes lead to hosts, over other links, or to connected networks.

    Args:
        router: the router at the link.
        interface: the subinterface on the link.
        family: the address family whose packets a filter sends to the VRF; or ALL_FAMILIES.
        vrf: the VRF, or routing instance, where they are looked up.
        ends: the interface to each address at the far end of a link (`far_ends`).
    """
    port = Interface(interface.port)
    routes = router.marked_routes.get(vrf, RouteLines())
    for gateway, line in _to_hosts(router, routes):
        yield Claim("staged host", (port, gateway), router.file, line)
    # A filter sends only packets for this network to the VRF. No packet meets its other routes.
    sent_network = router.filter_networks.get((family, vrf), "")
    for prefix, ports in _ports_by_prefix(router, routes, ends).items():
        if family == ALL_FAMILIES or _is_subnet(prefix, sent_network):
            value = (port, network_text(prefix), *map(Interface, sorted(ports)))
            yield Claim("staged", value, router.file, interface.line)
    if (family, vrf) in router.with_connected_routes:
        for network in _host_networks(router):
            if _is_subnet(network, sent_network):
                yield Claim("staged block", (port, network), router.file, interface.line)


def _ports_by_prefix(
    router: RouterText, routes: RouteLines, ends: dict[str, str]
) -> dict[str, list[str]]:
    """By prefix, the ports of the links over which routes for marked packets lead."""
    link_hops = (next_hop for next_hop in routes.next_hops if not states_vrf(next_hop))
    ports: dict[str, list[str]] = {}
    for prefix, next_hop, _ in routes.rows(*link_hops):
        ports.setdefault(prefix, []).append(_egress_port(router, next_hop, ends))
    return ports


def _host_networks(router: RouterText) -> Iterator[str]:
    """The networks of the router's hosts: neither loopbacks nor networks of links."""
    for interface in router.interfaces.values():
        for address, _ in interface.addresses:
            if not (_is_single(address) or _is_link(address)):
                yield str(exact_interface(address).network)


def _is_single(address: str) -> bool:
    """Whether an address has the length of a single one, as a loopback has."""
    return address.endswith(("/32", "/128"))


def _is_subnet(prefix: str, network: str) -> bool:
    """Whether a network is part of another one of its family; False if that is ""."""
    inner, outer = exact_network(prefix), exact_network(network or "::/128")
    return inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def _reaches(router: RouterText, gateway: str, name: str, stated_interface: str) -> bool:
    """Whether a gateway is in a network of an interface.

    Args:
        router: the router.
        gateway: the address of the next hop.
        name: the name of the interface.
        stated_interface: that of the route, which has to be this one; "" for none.
    """
    interface = router.interfaces.get(name)
    if interface is None or stated_interface not in ("", name):
        return False
    try:
        address = exact_address(gateway)
        networks = (exact_interface(text).network for text, _ in interface.addresses)
        return any(address in network for network in networks)
    except ValueError:
        return False


def far_ends(router: RouterText) -> Iterator[tuple[str, str]]:
    """The addresses at the far ends of links, each with the router's interface on the link."""
    for name, interface in router.interfaces.items():
        for address, line in interface.addresses:
            try:
                yield from ((far, name) for far in _far_addresses(address))
            except ValueError:
                router.add_wrong(line, f"{address} is no address")


@lru_cache(1 << 17)
def _far_addresses(text: str) -> tuple[str, ...]:
    """The address at the other end of a link, by the network of this end; () for other networks.

    Raises:
        ValueError: the text is no address.
    """
    interface = exact_interface(text)
    if interface.network.num_addresses >= POINT_TO_POINT:
        return ()
    return tuple(str(far) for far in interface.network if far != interface.ip)


def _is_link(address: str) -> bool:
    """Whether an address is in the network of a link."""
    try:
        return bool(_far_addresses(address))
    except ValueError:
        return False


def _host_claims(router: RouterText) -> Iterator[Claim]:
    """Claim the gateways of hosts with the ports behind them, and the loopback addresses."""
    for name, interface in router.interfaces.items():
        for address, line in interface.addresses:
            if _is_single(address):
                yield Claim("loopback", (address.partition("/")[0],), router.file, line)
            elif not _is_link(address):
                for port in router.ports(name):
                    yield Claim("hosts", (address, Interface(port)), router.file, line)


def _port_claims(router: RouterText) -> Iterator[Claim]:
    """Claim the ports in use.

    Interfaces that are neither routed nor a port of a VLAN are faults.
    """
    for name, interface in router.interfaces.items():
        _require_one_address(router, name, interface)
        if interface.is_subinterface:
            continue
        uses = (bool(interface.vlan), bool(interface.addresses), interface.unnumbered)
        if uses.count(True) != 1:
            router.add_wrong(
                interface.line, f"interface {name} is neither routed nor a port of a VLAN"
            )
        is_of_vlan = name in router.vlan_interfaces.values()
        if is_of_vlan and not router.ports(name):
            router.add_wrong(interface.line, f"interface {name} of a VLAN without ports")
        is_loopback = all(_is_single(address) for address, _ in interface.addresses)
        if interface.vlan or interface.unnumbered or not (is_loopback or is_of_vlan):
            yield Claim("port", (Interface(name),), router.file, interface.line)


def _require_one_address(router: RouterText, name: str, interface: InterfaceText) -> None:
    """Note an interface with several addresses of one family."""
    for is_ipv6 in (False, True):
        addresses = [(a, line) for a, line in interface.addresses if (":" in a) == is_ipv6]
        if len({address for address, _ in addresses}) > 1:
            address, line = addresses[-1]
            router.add_wrong(line, f"{address} on {name}, which has {addresses[0][0]}")
