"""A router in the YANG models of SR Linux: interfaces, network instances, next-hop groups, routes.

Target srlinux calls `config` with the variables that routers of all systems have, and prints the
result as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilers.targets.base_config import BaseConfig
from compilers.targets.routed.p2p_fabric import DISCARD_DISTANCE, HOST_VLAN
from compilers.targets.routed.p2p_variables import HostPort, P2pLink, P2pRouter, P2pVariables
from compilers.targets.srlinux.bgp_config import Tree, bgp_protocol, bgp_roots

IRB = "irb0"
"""The interface with the gateway's address, where several hosts share a bridge."""
LOOPBACK = "lo0"
"""The interface with the router's address, where it has no hosts."""
DISCARD_GROUP = "nowhere"
"""The next-hop group that discards packets to addresses of the fabric without another route."""
ETHERNET_HEADER = 14
"""The bytes of an Ethernet header, which the MTU of a port counts and the MTU of IP does not."""
FASTEST_RS528_LANE = 25
"""The highest speed of a serdes lane in Gb/s at which the Reed-Solomon code is RS(528,514) (IEEE
802.3, clause 91). Faster lanes have RS(544,514)."""
ROUTED: Tree = {"type": "srl_nokia-interfaces:routed"}
"""The type of a subinterface that is routed."""
BRIDGED: Tree = {"type": "srl_nokia-interfaces:bridged"}
"""The type of a subinterface that is a port of a bridge."""


def config(values: P2pVariables) -> Tree:
    """A router as SR Linux's configuration.

    Args:
        values: the variables of its templates.
    """
    router, base = values.router, values.base
    system = {
        "srl_nokia-system-name:name": {"host-name": router.hostname},
        "srl_nokia-lldp:lldp": {"admin-state": "enable"},
        **_servers(base),
    }
    instances = [*_instances(router, values), *_management(base)]
    interfaces = [*_interfaces(router)]
    if base.address:
        ipv4, ipv6 = ("", base.address) if base.six else (base.address, "")
        interfaces.append(_interface(base.interface, "management", 0, _addresses(ipv4, ipv6)))
    return {
        "srl_nokia-interfaces:interface": interfaces,
        "srl_nokia-network-instance:network-instance": instances,
        "srl_nokia-system:system": system,
        **(bgp_roots(values.bgp, router) if values.bgp else {}),
    }


def _servers(base: BaseConfig) -> Tree:
    """The servers of time and of logs."""
    instance = {"network-instance": base.vrf or "default"}
    servers: Tree = {}
    if base.ntp:
        time_servers = [{"address": server} for server in base.ntp]
        servers["srl_nokia-ntp:ntp"] = {"admin-state": "enable", **instance, "server": time_servers}
    if base.syslog:
        hosts = [{"host": server} for server in base.syslog]
        servers["srl_nokia-logging:logging"] = {**instance, "remote-server": hosts}
    return servers


def _management(base: BaseConfig) -> Iterator[Tree]:
    """The network instance of management, with its default route."""
    if not base.address:
        return
    instance: Tree = {
        "name": base.vrf,
        "type": "srl_nokia-network-instance:ip-vrf",
        "admin-state": "enable",
        "interface": _entries_of_names([f"{base.interface}.0"]),
    }
    if base.gateway:
        hop = {"index": 0, "ip-address": base.gateway}
        group = {"name": base.vrf, "nexthop": [hop]}
        route = {"prefix": base.everywhere, "next-hop-group": base.vrf}
        instance["srl_nokia-static-routes:static-routes"] = {"route": [route]}
        instance["srl_nokia-next-hop-groups:next-hop-groups"] = {"group": [group]}
    yield instance


def _interfaces(router: P2pRouter) -> Iterator[Tree]:
    """The interfaces of a router: split cages, links, ports of hosts, and the router's own.

    One host has a routed port. Several hosts share a bridge, whose address is on the IRB interface.
    Without hosts the router's address is on a loopback interface.
    """
    for port in router.cages:
        parts = {"num-breakout-ports": str(port.parts), "breakout-port-speed": f"{port.speed}G"}
        yield {"name": port.cage, "admin-state": "enable", "breakout-mode": parts}
    for link in router.links:
        yield _port(link, ROUTED | _addresses(link.ipv4, link.ipv6))
    gateway = _addresses(f"{router.ipv4}/{router.ipv4_length}", router.ipv6 and f"{router.ipv6}/64")
    for host in router.hosts:
        yield _port(host, ROUTED | gateway if len(router.hosts) == 1 else BRIDGED)
    if not router.hosts:
        loopback = _addresses(f"{router.ipv4}/32", router.ipv6 and f"{router.ipv6}/128")
        yield _interface(LOOPBACK, "router", 0, loopback)
    if len(router.hosts) > 1:
        mtu = {"ip-mtu": router.mtu} if router.mtu else {}
        yield _interface(IRB, "hosts", HOST_VLAN, mtu | gateway)


def _port(end: P2pLink | HostPort, subinterface: Tree) -> Tree:
    """The interface of a port with its one subinterface.

    The model counts the Ethernet header in the MTU of a port, not in that of IP.
    """
    port = end.port
    tree: Tree = {"mtu": port.mtu + ETHERNET_HEADER} if port.mtu else {}
    if port.mtu and "routed" in subinterface["type"]:
        subinterface = {"ip-mtu": port.mtu} | subinterface
    if port.fec:
        has_fast_lanes = port.speed > FASTEST_RS528_LANE * max(port.lanes, 1)
        rs = "rs-544" if has_fast_lanes else "rs-528"
        option = {"rs": rs, "fc": "base-r", "off": "disabled"}[port.fec]
        tree["transceiver"] = {"forward-error-correction": option}
    return _interface(end.interface, end.description, 0, subinterface) | tree


def _interface(name: str, description: str, index: int, subinterface: Tree) -> Tree:
    """An interface with one subinterface, which has this index."""
    return {
        "name": name,
        "description": description,
        "admin-state": "enable",
        "subinterface": [{"index": index, "admin-state": "enable", **subinterface}],
    }


def _addresses(ipv4: str, ipv6: str) -> Tree:
    """The addresses of a subinterface, each with its prefix length; "" for none of a family."""
    return {
        family: {"admin-state": "enable", "address": [{"ip-prefix": address}]}
        for family, address in (("ipv4", ipv4), ("ipv6", ipv6))
        if address
    }


def _instances(router: P2pRouter, values: P2pVariables) -> Iterator[Tree]:
    """The network instances: `default`, which routes, and a bridge for several hosts.

    The router's own address is on the loopback interface without hosts, on the port of a single
    host, and on the IRB interface of the bridge of several (see `_interfaces`).
    """
    links = [f"{link.interface}.0" for link in router.links]
    hosts = [f"{host.interface}.0" for host in router.hosts]
    irb = f"{IRB}.{HOST_VLAN}"
    is_bridged = len(hosts) > 1
    own_interfaces = [irb] if is_bridged else hosts or [f"{LOOPBACK}.0"]
    yield {
        "name": "default",
        "type": "srl_nokia-network-instance:default",
        "admin-state": "enable",
        "interface": _entries_of_names([*links, *own_interfaces]),
        "srl_nokia-static-routes:static-routes": {"route": list(_routes(values))},
        "srl_nokia-next-hop-groups:next-hop-groups": {"group": list(_groups(values))},
        **({"protocols": bgp_protocol(values.bgp)} if values.bgp else {}),
    }
    if is_bridged:
        yield {
            "name": "hosts",
            "type": "srl_nokia-network-instance:mac-vrf",
            "admin-state": "enable",
            "interface": _entries_of_names([*hosts, irb]),
        }


def _entries_of_names(names: list[str]) -> list[Tree]:
    """A list in the model whose entries have only names."""
    return [{"name": name} for name in names]


def _groups(values: P2pVariables) -> Iterator[Tree]:
    """The next-hop groups: one that discards and, without BGP, one for each link and family."""
    yield {"name": DISCARD_GROUP, "blackhole": {"generate-icmp": True}}
    links = () if values.bgp else values.router.links
    for link in links:
        for family, gateway in (("ipv4", link.gateway4), ("ipv6", link.gateway6)):
            if gateway:
                hop = {"index": 1, "ip-address": gateway, "resolve": False}
                yield {"name": _hop_group(link.interface, family), "nexthop": [hop]}


def _hop_group(interface: str, family: str) -> str:
    """The name of the next-hop group of a link in one address family."""
    return f"{interface}-{family}"


def _routes(values: P2pVariables) -> Iterator[Tree]:
    """The static routes: those that discard what nothing else routes, and those over links.

    BGP announces a prefix only if there is a route to it, so each announced prefix is discarded
    where nothing more specific leads there.
    """
    for family, pool, routes, _entering in values.families():
        announced = values.bgp.announced(family) if values.bgp else []
        for prefix in (pool, *announced) if pool else ():
            yield {
                "prefix": prefix,
                "preference": DISCARD_DISTANCE,
                "next-hop-group": DISCARD_GROUP,
            }
        for prefix, _, interface in routes:
            yield {"prefix": prefix, "next-hop-group": _hop_group(interface, family)}
