"""The srlinux target: a device config in the system's models (RFC 7951; docs/targets/routers.md).

A next hop group per link and address family, and routes that name it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from compilers.readers.routers.router_files import RouterFolder
from compilers.spec.features import AGGREGATES, INGRESS
from compilers.tables.build import Build
from compilers.targets.base_config import BaseConfig
from compilers.targets.capabilities import Capabilities
from compilers.targets.devices.reached import AnsibleConnection, ContainerKind
from compilers.targets.node_facts import shown
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.bgp_options import GTSM, NEXT_HOP_POOLS, ROUTING
from compilers.targets.routed.bgp.control_plane import require_bgp
from compilers.targets.routed.bgp.speaker_variables import BgpFamily, BgpSpeaker
from compilers.targets.routed.p2p_fabric import P2P_UNREACHABLE, VLAN
from compilers.targets.routed.p2p_links import P2P_AGREEMENTS, P2pTarget
from compilers.targets.routed.p2p_variables import HostPort, P2pLink, P2pRouter, P2pVariables
from compilers.targets.srlinux import neighbours, routing_tables
from compilers.targets.srlinux.port_names import SRLINUX

MOST_ROUTES = 16_384
"""Static routes of a network instance, both families together: max-elements of the model."""
IRB, LOOPBACK = "irb0", "lo0"
NOWHERE = "nowhere"
"""The next hop group of the fabric's addresses without another route."""
ETHERNET_HEADER = 14
"""Bytes that the model counts in the MTU of a port, and not in the MTU of IP."""
NRZ = 25
"""Gb/s of a serdes lane up to which RS(528) is the Reed-Solomon code (IEEE 802.3, clause 91)."""
Tree = dict[str, Any]
ROUTED: Tree = {"type": "srl_nokia-interfaces:routed"}
BRIDGED: Tree = {"type": "srl_nokia-interfaces:bridged"}

POLICY_PART = re.compile(
    r"srl_nokia-routing-policy:routing-policy / policy (\S+) / statement (\S+) "
)


@dataclass(frozen=True, slots=True)
class SrlinuxVariables(P2pVariables):
    """The variables of the template."""

    config: Tree
    """The router as SR Linux's configuration."""


class Srlinux(P2pTarget):
    """Static routes of SR Linux."""

    name = "srlinux"
    summary = "a device config for SR Linux, as JSON of its models"
    files = dict.fromkeys(("srlinux.json",), SrlinuxVariables)
    vrf = ""
    not_found = "a next hop of it names no network instance"
    agreements = MappingProxyType(
        {
            name: option
            for name, option in P2P_AGREEMENTS.items()
            if name not in (*NEXT_HOP_POOLS, GTSM)
        }
    )
    capabilities = Capabilities(frozenset({AGGREGATES}), rows=MOST_ROUTES, why={INGRESS: not_found})
    interfaces = SRLINUX
    neighbours = neighbours.FORM
    routing_tables = routing_tables.FORM
    ansible = AnsibleConnection("ssh")
    container = ContainerKind(
        "nokia_srlinux", "srlinux", binds=(("srlinux.json", "/etc/opt/polarfab.json"),)
    )

    @property
    def folder(self) -> RouterFolder:
        """See `P2pTarget.folder`."""
        return RouterFolder(
            self.name,
            tuple(self.files),
            announces_discarded=True,
            policy_part=POLICY_PART,
        )

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`: static routes of both families count together."""
        if chosen[ROUTING] == "bgp":
            require_bgp(build, self.name, chosen, self.not_found)
            return
        families = 2 if build.addressing.ipv6 else 1
        replace(self.capabilities, rows=MOST_ROUTES // families).require(build, self.name)

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], SrlinuxVariables]:
        """See `Target.variables`."""
        fabric = self.fabric(build, chosen)

        def of_router(vertex: int) -> SrlinuxVariables:
            values = fabric.variables(vertex)
            return SrlinuxVariables(**shown(values), config=config(values))

        return of_router


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
        tree = _addresses("" if base.six else base.address, base.address if base.six else "")
        interfaces.append(_interface(base.interface, "management", 0, tree))
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
        "interface": _named([f"{base.interface}.0"]),
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
        alone = _addresses(f"{router.ipv4}/32", router.ipv6 and f"{router.ipv6}/128")
        yield _interface(LOOPBACK, "router", 0, alone)
    if len(router.hosts) > 1:
        mtu = {"ip-mtu": router.mtu} if router.mtu else {}
        yield _interface(IRB, "hosts", VLAN, mtu | gateway)


def _port(end: P2pLink | HostPort, subinterface: Tree) -> Tree:
    """The interface of a port with its one subinterface.

    The model counts the Ethernet header in the MTU of a port, not in that of IP.
    """
    port = end.port
    tree: Tree = {"mtu": port.mtu + ETHERNET_HEADER} if port.mtu else {}
    if port.mtu and "routed" in subinterface["type"]:
        subinterface = {"ip-mtu": port.mtu} | subinterface
    if port.fec:
        rs = "rs-544" if port.speed > NRZ * max(port.lanes, 1) else "rs-528"
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
    """The network instances: `default`, which routes, and a bridge for several hosts."""
    routed = [f"{link.interface}.0" for link in router.links]
    hosts = [f"{host.interface}.0" for host in router.hosts]
    shared = f"{IRB}.{VLAN}"
    yield {
        "name": "default",
        "type": "srl_nokia-network-instance:default",
        "admin-state": "enable",
        "interface": _named([*routed, *([shared] if hosts[1:] else hosts or [f"{LOOPBACK}.0"])]),
        "srl_nokia-static-routes:static-routes": {"route": list(_routes(values))},
        "srl_nokia-next-hop-groups:next-hop-groups": {"group": list(_groups(values))},
        **({"protocols": bgp_protocol(values.bgp)} if values.bgp else {}),
    }
    if hosts[1:]:
        yield {
            "name": "hosts",
            "type": "srl_nokia-network-instance:mac-vrf",
            "admin-state": "enable",
            "interface": _named([*hosts, shared]),
        }


def _named(names: list[str]) -> list[Tree]:
    """A list of the model whose entries only have names."""
    return [{"name": name} for name in names]


def _groups(values: P2pVariables) -> Iterator[Tree]:
    """The next-hop groups: one that discards and, without BGP, one for each link and family."""
    yield {"name": NOWHERE, "blackhole": {"generate-icmp": True}}
    for link in () if values.bgp else values.router.links:
        for family, gateway in (("ipv4", link.gateway4), ("ipv6", link.gateway6)):
            if gateway:
                hop = {"index": 1, "ip-address": gateway, "resolve": False}
                yield {"name": _hop_group(link.interface, family), "nexthop": [hop]}


def _hop_group(interface: str, family: str) -> str:
    """The name of the next-hop group of a link."""
    return f"{interface}-{family}"


def _routes(values: P2pVariables) -> Iterator[Tree]:
    """The static routes: those that discard what nothing else routes, and those over links."""
    for family, pool, routes, _entering in values.families():
        own = values.bgp.announced(family) if values.bgp else []
        for prefix in (pool, *own) if pool else ():
            yield {"prefix": prefix, "preference": P2P_UNREACHABLE, "next-hop-group": NOWHERE}
        for prefix, _, interface in routes:
            yield {"prefix": prefix, "next-hop-group": _hop_group(interface, family)}


COMMON = "srl_nokia-common"
"""The module of the names of address families."""
MICROSECONDS = 1000
"""Microseconds of a millisecond; the model has intervals of BFD in microseconds."""
ACCEPT, REJECT = ({"policy-result": word} for word in ("accept", "reject"))


def bgp_roots(bgp: BgpSpeaker, router: P2pRouter) -> Tree:
    """Policies, and BFD on every link."""
    interval = bgp.interval * MICROSECONDS
    watched = {
        "admin-state": "enable",
        "desired-minimum-transmit-interval": interval,
        "required-minimum-receive": interval,
        "detection-multiplier": bgp.multiplier,
    }
    links = [{"id": f"{link.interface}.0", **watched} for link in router.links]
    policies = {
        "prefix-set": [prefixes for f in bgp.families for prefixes in _prefix_sets(f)],
        "policy": [policy for f in bgp.families for policy in _policies(bgp, f)],
    }
    return {
        "srl_nokia-routing-policy:routing-policy": policies,
        **({"srl_nokia-bfd:bfd": {"subinterface": links}} if bgp.bfd else {}),
    }


def bgp_protocol(bgp: BgpSpeaker) -> Tree:
    """`protocols` of the network instance; the backup path is ready before the best one fails."""
    several = {"allow-multiple-as": True, "ebgp": {"maximum-paths": bgp.paths}}
    families = [
        {
            "afi-safi-name": f"{COMMON}:{f.name}-unicast",
            "admin-state": "enable",
            f"{f.name}-unicast": {"backup-paths": {"install": True}},
            **({"multipath": several} if bgp.paths > 1 else {}),
        }
        for f in bgp.families
    ]
    neighbors = [
        {
            "peer-address": peer.address,
            "peer-as": peer.number,
            "peer-group": f"fabric-{f.name}",
            "description": peer.description,
            **({"import-policy": [peer.policy]} if peer.preferred else {}),
        }
        for f in bgp.families
        for peer in f.peers
    ]
    tree = {
        "admin-state": "enable",
        "autonomous-system": bgp.number,
        "router-id": bgp.router_id,
        "best-path-selection": {"always-compare-med": True},
        "afi-safi": families,
        "group": [_group(bgp, f) for f in bgp.families],
        "neighbor": neighbors,
    }
    return {"srl_nokia-bgp:bgp": tree}


def _group(bgp: BgpSpeaker, f: BgpFamily) -> Tree:
    """The peer group of the sessions of one address family."""
    return {
        "group-name": f"fabric-{f.name}",
        "export-policy": [f"announced-{f.name}"],
        "import-policy": [f"fabric-{f.name}"],
        "failure-detection": {"fast-failover": True} | ({"enable-bfd": True} if bgp.bfd else {}),
        "afi-safi": [
            {
                "afi-safi-name": f"{COMMON}:{family.name}-unicast",
                "admin-state": "enable" if family is f else "disable",
            }
            for family in bgp.families
        ],
        "timers": {
            "connect-retry": bgp.connect,
            "hold-time": bgp.hold,
            "keepalive-interval": bgp.keepalive,
            "minimum-advertisement-interval": 1,
        },
    }


def _prefix_sets(f: BgpFamily) -> list[Tree]:
    """The set of all prefixes of the fabric, and one for each policy with preferred prefixes."""
    everyone = {"ip-prefix": f.pool, "mask-length-range": f"{f.length}..{f.length}"}
    return [{"name": f"fabric-{f.name}", "prefix": [everyone]}] + [
        {
            "name": policy,
            "prefix": [{"ip-prefix": prefix, "mask-length-range": "exact"} for prefix in preferred],
        }
        for policy, preferred in f.policies()
        if preferred
    ]


def _policies(bgp: BgpSpeaker, f: BgpFamily) -> list[Tree]:
    """The import policies of a family, which prefer by MED, and the export policy."""
    everyone = f"fabric-{f.name}"

    def statement(name: str, prefixes: str, metric: int) -> Tree:
        near = {"as-path-length": {"value": bgp.longest, "operator": "le"}}
        return {
            "name": name,
            "match": {"prefix": {"prefix-set": prefixes}, "bgp": near},
            "action": ACCEPT | {"bgp": {"med": {"operation": "set", "value": metric}}},
        }

    def policy(name: str, *statements: Tree) -> Tree:
        return {"name": name, "default-action": REJECT, "statement": list(statements)}

    announced = {"name": "10", "match": {"prefix": {"prefix-set": everyone}}, "action": ACCEPT}
    policies = [
        policy(name, *([statement("10", name, 0)] if own else []), statement("20", everyone, 1))
        for name, own in f.policies()
    ]
    return [*policies, policy(f"announced-{f.name}", announced)]
