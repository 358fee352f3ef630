"""The eos target: a device config, and the same for Arista's AVD (docs/targets/routers.md).

Packets from hosts share ports in VRF `hosts` (`p2p_links`). A member of a route is a line: `ip
route vrf hosts PREFIX egress-vrf default INTERFACE NEXTHOP`, ECMP in the same or in several egress
VRFs (EOS user manual, Static Inter-VRF Route, with the multi-agent model only). AVD 6.4 has no key
for `egress-vrf`, so these lines are in its `eos_cli`. Those of marked packets come in on a
subinterface in a VRF (EOS user manual, Subinterfaces: `encapsulation dot1q vlan`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compilers.readers.routers.router_files import RouterFolder
from compilers.spec.features import AGGREGATES, CHANNELS, INGRESS, MARKS, WEIGHTS
from compilers.tables.build import Build
from compilers.targets.base_config import BaseConfig
from compilers.targets.capabilities import Capabilities
from compilers.targets.devices.reached import AnsibleConnection, ContainerKind, RouteMapWords
from compilers.targets.eos import neighbours, routing_tables
from compilers.targets.eos.device import EosDevice
from compilers.targets.eos.port_names import EOS
from compilers.targets.node_facts import shown
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.control_plane import BgpFamily, BgpSpeaker
from compilers.targets.routed.interfaces import PhysicalPort
from compilers.targets.routed.p2p_links import (
    P2P_UNREACHABLE,
    VLAN,
    HostPort,
    P2pLink,
    P2pTarget,
    P2pVariables,
)

NUMBERS = re.compile(r"[0-9]+")
WITH_LANES = 50
"""Gb/s from which a speed says its lanes."""
FEC = {"rs": {"reed_solomon": True}, "fc": {"fire_code": True}, "off": {"enabled": False}}


@dataclass(frozen=True, slots=True)
class EosVariables(P2pVariables):
    """The variables of the templates.

    avd: the router as AVD's structured config. speeds: of the ports that are parts of a cage.
    profiles: the QoS profile of every port, where priorities are lossless.
    """

    speeds: dict[str, str]
    profiles: dict[str, str]
    avd: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EosStatements:
    """What an addition has a switch say."""

    commands: tuple[str, ...]
    """Lines before those of interfaces."""
    profiles: Mapping[str, str]
    """The QoS profile of each interface."""


class Eos(P2pTarget):
    """Static routes of EOS, as its configuration and as AVD's."""

    name = "eos"
    summary = "a device config for EOS, and the same for Arista's AVD"
    files = dict.fromkeys(("eos.cfg", "avd.json"), EosVariables)
    capabilities = Capabilities(frozenset({AGGREGATES, CHANNELS, INGRESS, MARKS, WEIGHTS}))
    hier_config = dict.fromkeys(("eos.cfg",), "ARISTA_EOS")
    interfaces = EOS
    neighbours = neighbours.FORM
    routing_tables = routing_tables.FORM
    device = EosDevice
    ansible = AnsibleConnection("ansible.netcommon.network_cli", "arista.eos.eos")
    container = ContainerKind("arista_ceos", "ceos", startup="eos.cfg")
    route_maps = RouteMapWords(family="", list_sections=True)  # user manual, "ipv6 prefix-list"

    @property
    def folder(self) -> RouterFolder:
        """See `P2pTarget.folder`."""
        return RouterFolder(
            self.name,
            tuple(self.files),
            commands="eos.cfg",
        )

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], EosVariables]:
        """See `Target.variables`."""
        fabric = self.fabric(build, chosen)
        added: list[Callable[[int], EosStatements]] = self.printed(fabric, chosen)

        def of_router(vertex: int) -> EosVariables:
            return eos_variables(fabric.variables(vertex), [of(vertex) for of in added])

        return of_router


def eos_variables(values: P2pVariables, added: Sequence[EosStatements]) -> EosVariables:
    """The variables of a router's templates.

    Args:
        values: those of every system.
        added: what additions have the router say.
    """
    profiles = {port: name for each in added for port, name in each.profiles.items()}
    commands = [line for each in added for line in each.commands]
    values = _sorted(values)
    speeds = {port.name: speed(port) for port in values.router.ports if port.cage and port.speed}
    avd = structured(values, speeds, profiles) | (
        {"eos_cli": "\n".join(commands)} if commands else {}
    )
    return EosVariables(**shown(values), speeds=speeds, profiles=profiles, avd=avd)


def _sorted(values: P2pVariables) -> P2pVariables:
    """With the ports in the order in which EOS shows them."""

    def place(link: P2pLink) -> list[int]:
        return [int(number) for number in NUMBERS.findall(link.interface)]

    links = sorted(values.router.links, key=place)
    return replace(values, router=replace(values.router, links=tuple(links)))


def speed(port: PhysicalPort) -> str:
    """The speed of a part of a cage, from 50 Gb/s on with its lanes: 25g, 100g-2."""
    return f"{port.speed}g" + f"-{port.lanes}" * (port.speed >= WITH_LANES)


def structured(
    values: P2pVariables, speeds: dict[str, str], profiles: dict[str, str]
) -> dict[str, Any]:
    """A router as AVD's structured config (eos_cli_config_gen).

    Args:
        values: the variables of its templates.
        speeds: of the ports that are parts of a cage.
        profiles: QoS profiles of ports.
    """
    router, vrf = values.router, values.vrf
    config: dict[str, Any] = {
        "hostname": router.hostname,
        "ip_routing": True,
        "ethernet_interfaces": [
            port | ({"service_profile": profiles[port["name"]]} if port["name"] in profiles else {})
            for port in _ethernet(values, speeds)
        ],
        "static_routes": list(_routes(values, 0)),
    }
    if router.ipv6:
        config["ipv6_unicast_routing"] = True
        config["ipv6_static_routes"] = list(_routes(values, 1))
    if management := _management_route(values.base):
        key = "ipv6_static_routes" if values.base.six else "static_routes"
        config[key] = [*management, *config.get(key, [])]
    config |= _base(values.base)
    if not router.hosts:
        loopback = _addresses(f"{router.ipv4}/32", router.ipv6 and f"{router.ipv6}/128")
        config["loopback_interfaces"] = [{"name": "Loopback0", **loopback}]
    if len(router.hosts) > 1:
        shared: dict[str, Any] = {"name": router.host_interface, "description": "hosts"}
        shared |= {"shutdown": False} | ({"mtu": router.mtu} if router.mtu else {})
        config["vlans"] = [{"id": VLAN, "name": "hosts"}]
        config["vlan_interfaces"] = [shared | _gateway(values)]
    if made := [*([vrf] if vrf else ()), *(stage.vrf for stage in values.stages)]:
        six = {"ipv6_routing": True} if router.ipv6 else {}
        config["service_routing_protocols_model"] = "multi-agent"
        here = [{"name": name, "ip_routing": True, **six} for name in made]
        config["vrfs"] = [*config.get("vrfs", []), *here]
        config["eos_cli"] = "\n".join(_between_vrfs(values))
    return config | (bgp_structured(values.bgp) if values.bgp else {})


def _base(base: BaseConfig) -> dict[str, Any]:
    """Management, time and logs; the default route of management is with the static routes."""
    vrf = {"vrf": base.vrf} if base.vrf else {}
    found: dict[str, Any] = {}
    if base.address:
        own = {"ipv6_addresses": [base.address]} if base.six else {"ip_address": base.address}
        found["vrfs"] = [{"name": base.vrf}]
        found["management_interfaces"] = [{"name": base.interface, **vrf, **own}]
    if base.ntp:
        found["ntp"] = {**vrf, "servers": [{"name": server} for server in base.ntp]}
    if base.syslog:
        hosts = [{"name": server} for server in base.syslog]
        found["logging"] = {"vrfs": [{"name": base.vrf or "default", "hosts": hosts}]}
    return found


def _management_route(base: BaseConfig) -> list[dict[str, Any]]:
    """The default route of management."""
    route = {"vrf": base.vrf, "prefix": base.everywhere, "next_hop": base.gateway}
    return [route] if base.gateway else []


def _ethernet(values: P2pVariables, speeds: dict[str, str]) -> Iterator[dict[str, Any]]:
    routed: dict[str, Any] = {"shutdown": False, "switchport": {"enabled": False}}
    for link in values.router.links:
        named = _named(link, speeds)
        yield named | routed | _addresses(link.ipv4, link.ipv6)
    for stage in values.stages:
        inside: dict[str, Any] = {"name": stage.interface, "shutdown": False, "vrf": stage.vrf}
        tagged = {"encapsulation_dot1q": {"vlan": stage.vlan}}
        yield inside | tagged | _addresses(stage.ipv4, stage.ipv6)
    for host in values.router.hosts:
        named = _named(host, speeds)
        if host.interface == values.router.host_interface:
            yield named | routed | _gateway(values)
        else:
            access = {"enabled": True, "mode": "access", "access_vlan": VLAN}
            yield named | {"shutdown": False, "switchport": access}


def _named(end: P2pLink | HostPort, speeds: dict[str, str]) -> dict[str, Any]:
    named: dict[str, Any] = {"name": end.interface, "description": end.description}
    if end.port.mtu:
        named["mtu"] = end.port.mtu
    if end.interface in speeds:
        named["speed"] = speeds[end.interface]
    if end.port.fec:
        named["error_correction_encoding"] = FEC[end.port.fec]
    return named


def _gateway(values: P2pVariables) -> dict[str, Any]:
    router = values.router
    own = f"{router.ipv4}/{router.ipv4_length}"
    addresses = _addresses(own, router.ipv6 and f"{router.ipv6}/64")
    return addresses | ({"vrf": values.vrf} if values.vrf else {})


def _addresses(ipv4: str, ipv6: str) -> dict[str, Any]:
    return {"ip_address": ipv4} | ({"ipv6_addresses": [ipv6]} if ipv6 else {})


def _routes(values: P2pVariables, family: int) -> Iterator[dict[str, Any]]:
    name, pool, routes, _ = [*values.families()][family]
    own = values.bgp.announced(name) if values.bgp else []
    nowhere = {"interface": "Null0", "distance": P2P_UNREACHABLE}
    yield from ({"prefix": prefix} | nowhere for prefix in (pool, *own))
    if values.vrf:
        yield {"prefix": pool, **nowhere, "vrf": values.vrf}
    for prefix, gateway, interface in routes:
        yield {"prefix": prefix, "interface": interface, "next_hop": gateway}


def _between_vrfs(values: P2pVariables) -> Iterator[str]:
    """The routes whose next hops are in another VRF, as lines of the configuration."""
    for word, vrf, routes in values.between_vrfs():
        for prefix, next_hops in routes:
            for gateway, interface, other in next_hops:
                hop = " ".join(filter(None, (interface, gateway)))
                yield f"{word} route vrf {vrf} {prefix} egress-vrf {other} {hop}"
    for prefix, gateway, interface in values.router.back() if values.vrf else ():
        word = "ipv6" if ":" in prefix else "ip"
        yield f"{word} route {prefix} egress-vrf {values.vrf} {interface} {gateway}"


Tree = dict[str, Any]


def bgp_structured(bgp: BgpSpeaker) -> Tree:
    """The keys that a switch has with eBGP, in AVD's words."""
    families = bgp.families
    lists = {f.word: [_prefix_list(name, ends) for name, ends in _lists(f)] for f in families}
    groups: list[Tree] = [
        {"name": f"fabric-{f.name}", "maximum_routes": 0} | ({"bfd": True} if bgp.bfd else {})
        for f in families
    ]
    around = [
        {"type": "permit", "match": f"^[0-9]+_{peer.number}_", "origin": "any"}
        for peer in families[0].peers
    ]
    watched = dict.fromkeys(("interval", "min_rx"), bgp.interval) | {"multiplier": bgp.multiplier}
    return {
        **({"router_bfd": watched} if bgp.bfd else {}),
        "as_path": {"regex_mode": "string", "access_lists": [{"name": "again", "entries": around}]},
        "prefix_lists": lists["ip"],
        **({"ipv6_prefix_lists": lists["ipv6"]} if families[1:] else {}),
        "route_maps": [each for f in families for each in _route_maps(bgp, f)],
        "router_bgp": {
            "as": str(bgp.number),
            "router_id": bgp.router_id,
            "bgp": {"default": {"ipv4_unicast": False}},
            "bgp_defaults": [
                f"timers bgp {bgp.keepalive} {bgp.hold}",
                "bgp always-compare-med",
                "bgp bestpath tie-break router-id",
            ],
            "maximum_paths": dict.fromkeys(("paths", "ecmp"), bgp.paths),
            "peer_groups": groups,
            "neighbors": [
                {
                    "ip_address": peer.address,
                    "peer_group": f"fabric-{f.name}",
                    "remote_as": str(peer.number),
                }
                for f in families
                for peer in f.peers
            ],
            **{f"address_family_{f.name}": _activated(f) for f in families},
        },
    }


def _lists(f: BgpFamily) -> list[tuple[str, list[str]]]:
    """The prefix lists of a family: their names, and what they permit."""
    preferred = [(policy, list(own)) for policy, own in f.policies() if own]
    everyone = [f"{f.pool} ge {f.length} le {f.length}"]
    everyone += [f"{f.via_pool} ge {f.full} le {f.full}"] if f.via else []
    return [(f"fabric-{f.name}", everyone), *preferred]


def _prefix_list(name: str, permitted: list[str]) -> Tree:
    numbered = [
        {"sequence": 5 * n, "action": f"permit {text}"} for n, text in enumerate(permitted, 1)
    ]
    return {"name": name, "sequence_numbers": numbered}


def _route_maps(bgp: BgpSpeaker, f: BgpFamily) -> list[Tree]:
    everyone = f"fabric-{f.name}"

    def entry(sequence: int, prefixes: str, metric: int, *paths: str) -> Tree:
        near = f"as-path length <= {bgp.longest}"
        return {
            "sequence": sequence,
            "type": "permit",
            "match": [near, *paths, f"{f.word} address prefix-list {prefixes}"],
            "set": [f"metric {metric}"],
        }

    announced = {
        "sequence": 10,
        "type": "permit",
        "match": [f"{f.word} address prefix-list {everyone}"],
    }
    last = entry(5, everyone, 2, "as-path again")
    policies = [
        (policy, [last, *([entry(10, policy, 0)] if own else []), entry(20, everyone, 1)])
        for policy, own in f.policies()
    ]
    policies.append((f"announced-{f.name}", [announced]))
    return [{"name": name, "sequence_numbers": entries} for name, entries in policies]


def _activated(f: BgpFamily) -> Tree:
    """What an address family says of its neighbours, and the prefix of the switch."""
    group = {
        "name": f"fabric-{f.name}",
        "activate": True,
        "route_map_in": f"fabric-{f.name}",
        "route_map_out": f"announced-{f.name}",
    }
    preferring = [
        {"ip_address": peer.address, "route_map_in": peer.policy}
        for peer in f.peers
        if peer.preferred
    ]
    found: Tree = {"peer_groups": [group]}
    found |= {"neighbors": preferring} if preferring else {}
    networks = [{"prefix": prefix} for prefix in f.announced]
    return found | ({"networks": networks} if networks else {})
