"""Readers of configurations that are JSON: AVD's structured config of EOS, SR Linux, and SONiC.

What a key is for is said by the system's models; a key that no reader here knows, in a part that
says where packets go, is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from socket import AF_INET6, inet_pton
from typing import Any

import numpy as np

from compilers.readers.cli_sections import eos_routes
from compilers.readers.management import without_instances, without_keys
from compilers.readers.route_tables import Numbers, RouteLines
from compilers.readers.router_text import (
    DEFAULT,
    DISCARD,
    LAST_RESORT,
    RouterText,
    from_inside,
    lines_of,
)
from compilers.readers.strict_json import parse
from compilers.readers.text_lines import TextLines

Tree = dict[str, Any]
SRL = "srl_nokia-"
SRL_INTERFACES = f"{SRL}interfaces:interface"
SRL_INSTANCES = f"{SRL}network-instance:network-instance"
SRL_STEERING = {f"{SRL}acl:acl", f"{SRL}qos:qos", f"{SRL}policy-forwarding:policy-forwarding"}
SRL_INTERFACE = {"name", "description", "admin-state", "subinterface", "mtu"} | {
    *("transceiver", "breakout-mode")
}
SRL_SUBINTERFACE = {"index", "type", "description", "admin-state", "ip-mtu", "ipv4", "ipv6"}
SRL_INSTANCE = {"name", "type", "description", "admin-state", "interface"} | {
    *(f"{SRL}static-routes:static-routes", f"{SRL}next-hop-groups:next-hop-groups")
}
"""Keys that are known; others may change where packets go."""
ETHERNET_HEADER = 14
"""Counted in the MTU of a port, not in that of IP."""
SEGMENT_BLOCK = 4
WAY_KEYS = {"next-hop-group", "preference", "admin-state"}
AVD_STEERING = {"router", "policy_maps", "route_maps", "virtual_source_nat"}
SONIC_STEERING = {"VNET", "ROUTE_MAP", "PORTCHANNEL", "BGP_NEIGHBOR", "ACL_RULE", "VXLAN"} | {
    *("PORTCHANNEL_MEMBER", "PORTCHANNEL_INTERFACE", "VLAN_SUB_INTERFACE", "BGP_PEER_RANGE"),
    *("PBH_RULE", "STATIC_NAT", "STATIC_NAPT", "PORT_QOS_MAP", "VNET_ROUTE", "VNET_ROUTE_TUNNEL"),
}


def read_avd(text: str, file: str) -> RouterText:
    """AVD's structured config of an EOS device."""
    router, tree = RouterText(file), without_keys(parse(text))
    router.hostname = tree.get("hostname", "")
    if tree.get("ip_routing") is not True:
        router.fault(1, "ip_routing is not true")
    places = [
        (entry, f'"name": "{entry.get("name", "")}"')
        for key in ("ethernet_interfaces", "loopback_interfaces", "vlan_interfaces")
        for entry in tree.get(key, [])
    ]
    for entry, needle in places:
        _avd_interface(router, entry, next(lines_of(text, [needle])))
    six = any(":" in address for i in router.interfaces.values() for address, _ in i.addresses)
    if six and tree.get("ipv6_unicast_routing") is not True:
        router.fault(1, "ipv6_unicast_routing is not true")
    for entry in tree.get("vlan_interfaces", []):
        router.shared[entry["name"].removeprefix("Vlan")] = entry["name"]
    _avd_vrf(router, tree, six)
    commands = TextLines.of(tree.get("eos_cli", "").encode())
    line = np.full_like(commands.number, next(lines_of(text, ['"eos_cli"'])))
    for number, command in eos_routes(router, replace(commands, number=line)):
        router.fault(number, command)
    # AVD's keys stand in the order of the alphabet, IPv6 before IPv4.
    for key in ("ipv6_static_routes", "static_routes"):
        _avd_routes(router, tree.get(key, []), text)
    for key in sorted(set(tree) & AVD_STEERING):
        router.fault(next(lines_of(text, [f'"{key}"'])), key)
    return router


def _avd_vrf(router: RouterText, tree: Tree, six: bool) -> None:
    """The VRF beside the default one, which routes, by the model that can do so between VRFs."""
    match tree.get("vrfs", []):
        case []:
            return
        case [{"name": str(name), "ip_routing": True, **more}] if more == {
            "ipv6_routing": True
        } or (not six and not more):
            router.vrf = name
        case found:
            router.fault(1, f"vrfs {found}")
    if tree.get("service_routing_protocols_model") != "multi-agent":
        router.fault(1, "service_routing_protocols_model is not multi-agent")


def _avd_interface(router: RouterText, entry: Tree, line: int) -> None:
    found = router.interface(entry.get("name", ""), line)
    match entry:
        case {
            "shutdown": False,
            "switchport": {"enabled": True, "mode": "access", "access_vlan": n},
        }:
            found.vlan = str(n)
        case {"shutdown": False, "switchport": {"enabled": False}}:
            pass
        case {"name": str(name)} if name.startswith(("Loopback", "Vlan")):
            if entry.get("shutdown"):
                router.fault(line, f"{name} is shut down")
        case _:
            router.fault(line, f"{entry.get('name')} is neither routed nor a port of a VLAN")
    found.mtu = int(entry.get("mtu", 0))
    found.addresses += [(entry[k], line) for k in ("ip_address", "ipv6_address") if k in entry]
    found.vrf = entry.get("vrf", "")


def _avd_routes(router: RouterText, routes: list[Tree], text: str) -> None:
    for vrf, rows in ((DEFAULT, router.transit), (router.vrf, router.entering)):
        mine = [entry for entry in routes if entry.get("vrf", DEFAULT) == vrf]
        prefixes = [entry.get("prefix", "") for entry in mine]
        lines = lines_of(text, (f'"prefix": "{prefix}"' for prefix in prefixes))
        ways = [{k: v for k, v in entry.items() if k not in ("prefix", "vrf")} for entry in mine]
        _add(router, rows, list(zip(prefixes, ways, strict=True)), lines, _avd_hops)
    for entry in routes:
        if entry.get("vrf", DEFAULT) not in (DEFAULT, router.vrf):
            router.fault(1, f"a route of VRF {entry['vrf']}")


def _avd_hops(way: Tree) -> list[str]:
    match way:
        case {"interface": "Null0", "distance": distance, **more} if not more:
            return [DISCARD] if str(distance) == LAST_RESORT else []
        case {"interface": interface, "next_hop": gateway, **more} if not more:
            return [f"{gateway} {interface}"]
    return []


def _add(
    router: RouterText,
    rows: RouteLines,
    routes: Sequence[tuple[str, Tree]],
    lines: Iterable[int],
    hops_of: Callable[[Tree], list[str]],
) -> None:
    """Add static routes of a prefix and a way each; ways are few, so each is understood once.

    Args:
        router: whose routes they are.
        rows: takes them.
        routes: the prefix, "" where there is none, and what the entry says beside it.
        lines: where each stands.
        hops_of: the next hops that a way says, none where it is not understood.
    """
    if not routes:
        return
    prefixes, entries = zip(*routes, strict=True)
    known: Numbers[tuple[tuple[str, Any], ...]] = Numbers()
    way = known.of([tuple(entry.items()) for entry in entries]).tolist()
    hops = [hops_of(dict(each)) for each in known]
    found = list(zip(prefixes, way, lines, strict=True))
    if not all(hops) or not all(prefixes):
        for (prefix, number, line), entry in zip(found, entries, strict=True):
            if not hops[number] or not prefix:
                router.fault(line, f"{prefix or 'a route'}: {entry}")
    for step in range(max(map(len, hops))):
        some = [(prefix, hops[n][step], line) for prefix, n, line in found if step < len(hops[n])]
        rows.extend(*zip(*some, strict=True))


def read_srlinux(text: str, file: str) -> RouterText:
    """The configuration of an SR Linux device, by its models."""
    router = RouterText(file)
    tree = without_instances(parse(text), SRL_INTERFACES, SRL_INSTANCES)
    router.hostname = (
        tree.get(f"{SRL}system:system", {}).get(f"{SRL}system-name:name", {}).get("host-name", "")
    )
    for key in sorted(set(tree) & SRL_STEERING):
        router.fault(next(lines_of(text, [f'"{key}"'])), key)
    for interface in tree[SRL_INTERFACES]:
        _srl_interface(router, interface, text)
    for instance in tree[SRL_INSTANCES]:
        if instance.get("admin-state") != "enable":
            router.fault(0, f"network-instance {instance.get('name')} is not enabled")
        for key in sorted(instance.keys() - SRL_INSTANCE):
            router.fault(0, f"{key} of network-instance {instance.get('name')}")
        match instance:
            case {"name": "default", "type": "srl_nokia-network-instance:default"}:
                _srl_instance(router, instance, text)
            case {"name": name, "type": "srl_nokia-network-instance:mac-vrf"}:
                _srl_switched(router, name, _srl_names(instance))
            case _:
                router.fault(0, f"network-instance {instance.get('name')}")
    return router


def _srl_names(instance: Tree) -> list[str]:
    return [_port(entry["name"]) for entry in instance.get("interface", [])]


def _port(subinterface: str) -> str:
    """A port, whose one subinterface is 0, or another interface with its number."""
    return subinterface.removesuffix(".0")


def _srl_interface(router: RouterText, interface: Tree, text: str) -> None:
    name = interface.get("name", "")
    line = next(lines_of(text, [f'"name": "{name}"']))
    for key in sorted(interface.keys() - SRL_INTERFACE):
        router.fault(line, f"{key} of {name}")
    if interface.get("admin-state") != "enable":
        router.fault(line, f"interface {name} is not enabled")
    for inner in interface.get("subinterface", []):
        found = router.interface(_port(f"{name}.{inner.get('index')}"), line)
        for key in sorted(inner.keys() - SRL_SUBINTERFACE):
            router.fault(line, f"{key} of {name}")
        sizes = [inner.get("ip-mtu", 0), interface.get("mtu", 0) - ETHERNET_HEADER]
        found.mtu = 0 if name.startswith("irb") else min((s for s in sizes if s > 0), default=0)
        if inner.get("admin-state") != "enable":
            router.fault(line, f"subinterface {inner.get('index')} of {name} is not enabled")
        for family in ("ipv4", "ipv6"):
            part = inner.get(family, {"admin-state": "enable"})
            if part.get("admin-state") != "enable":
                router.fault(line, f"{family} of {name} is not enabled")
            found.addresses += [(entry["ip-prefix"], line) for entry in part.get("address", [])]
        if str(inner.get("type", "")).endswith("bridged"):
            found.words.add("bridged")


def _srl_switched(router: RouterText, network: str, names: list[str]) -> None:
    for name in names:
        found = router.interfaces.get(name)
        if found and "bridged" in found.words:
            found.vlan = network
        elif name.startswith("irb"):
            router.shared[network] = name
        else:
            router.fault(0, f"{name} in network-instance {network} is no bridged port")


def _srl_instance(router: RouterText, instance: Tree, text: str) -> None:
    """The default network instance: its interfaces, and static routes by next-hop groups."""
    inside = set(_srl_names(instance))
    for name, found in router.interfaces.items():
        if (name in inside) != bool(found.addresses):
            router.fault(found.line, f"{name} has addresses or is in network-instance default")
    groups = dict(_srl_groups(router, instance))
    routes = instance.get(f"{SRL}static-routes:static-routes", {}).get("route", [])
    prefixes = [route.pop("prefix", "") for route in routes]
    lines = lines_of(text, (f'"prefix": "{prefix}"' for prefix in prefixes))

    def hops_of(way: Tree) -> list[str]:
        hops = groups.get(way.get("next-hop-group", ""), [])
        last = str(way.get("preference", "")) == LAST_RESORT
        up = way.get("admin-state", "enable") == "enable"
        return hops if up and (hops == [DISCARD]) == last and way.keys() <= WAY_KEYS else []

    _add(router, router.transit, list(zip(prefixes, routes, strict=True)), lines, hops_of)


def _srl_groups(router: RouterText, instance: Tree) -> Iterator[tuple[str, list[str]]]:
    seen: set[str] = set()
    for group in instance.get(f"{SRL}next-hop-groups:next-hop-groups", {}).get("group", []):
        match group:
            case {"name": str(name), "blackhole": _, **more} if not more:
                yield name, [DISCARD]
            case {"name": str(name), "nexthop": [*hops], **more} if not more:
                yield name, [hop.get("ip-address", "") for hop in hops]
            case _:
                name = str(group.get("name"))
                router.fault(0, f"next-hop-group {name}")
        if name in seen:
            router.fault(0, f"next-hop-group {name} twice")
        seen.add(name)


def read_sonic(text: str, file: str) -> RouterText:
    """SONiC's CONFIG_DB."""
    router, tree = RouterText(file), parse(text)
    router.hostname = tree.get("DEVICE_METADATA", {}).get("localhost", {}).get("hostname", "")
    ports = tree.get("PORT", {})
    for name, line in zip(ports, lines_of(text, (f'"{name}": {{' for name in ports)), strict=True):
        router.interface(name, line)
        router.interfaces[name].mtu = int(ports[name].get("mtu", 0))
        if ports[name].get("admin_status") != "up":
            router.fault(line, f"port {name} is not up")
    for table in ("INTERFACE", "LOOPBACK_INTERFACE", "VLAN_INTERFACE"):
        _sonic_addresses(router, tree.get(table, {}), text)
    for key, member in tree.get("VLAN_MEMBER", {}).items():
        vlan, _, port = key.partition("|")
        if vlan not in tree.get("VLAN", {}) or member != {"tagging_mode": "untagged"}:
            router.fault(next(lines_of(text, [f'"{key}"'])), f"VLAN_MEMBER {key}")
        router.interface(port, 0).vlan = vlan
        router.shared[vlan] = vlan
    router.vrf = next(iter(tree.get("VRF", {})), "")
    _sonic_routes(router, tree.get("STATIC_ROUTE", {}), text)
    for locator in tree.get("SRV6_MY_LOCATORS", {}).values():
        router.segments = inet_pton(AF_INET6, locator["prefix"])[:SEGMENT_BLOCK]
    for table in sorted(set(tree) & SONIC_STEERING):
        router.fault(next(lines_of(text, [f'"{table}"'])), table)
    return router


def _sonic_addresses(router: RouterText, table: Tree, text: str) -> None:
    """Addresses have a key each, and their interface one of its own."""
    keys = sorted(table, key=lambda key: text.find(f'"{key}"'))
    for key, line in zip(keys, lines_of(text, (f'"{key}"' for key in keys)), strict=True):
        name, _, address = key.partition("|")
        if name not in table:
            router.fault(line, f"{key} without {name}")
        elif name == key:
            router.interface(name, line).vrf = table[key].get("vrf_name", "")
        if address:
            router.interface(name, line).addresses.append((address, line))


def _sonic_routes(router: RouterText, table: Tree, text: str) -> None:
    known = {DEFAULT: (router.transit, _sonic_hops), router.vrf: (router.entering, _sonic_inside)}
    by_vrf: dict[str, list[tuple[str, str]]] = {}
    for key in table:
        vrf, _, prefix = key.rpartition("|")
        by_vrf.setdefault(vrf, []).append((key, prefix))
    for vrf, keys in by_vrf.items():
        lines = lines_of(text, (f'"{key}": {{' for key, _ in keys))
        if vrf in known and vrf:
            rows, hops_of = known[vrf]
            _add(router, rows, [(prefix, table[key]) for key, prefix in keys], lines, hops_of)
        else:
            router.fault(next(iter(lines)), f"routes of VRF {vrf!r}")
    router.part_back()


def _sonic_inside(way: Tree) -> list[str]:
    hops = [from_inside(hop) for hop in _sonic_hops(way)]
    known = [hop for hop in hops if hop is not None]
    return known if len(known) == len(hops) else []


def _sonic_hops(way: Tree) -> list[str]:
    match way:
        case {"advertise": "false", "nexthop": gateways, "ifname": interfaces, **more}:
            columns = [gateways, interfaces, *(more[k] for k in ("nexthop-vrf",) if k in more)]
            lists = [column.split(",") for column in columns]
            if more.keys() - {"nexthop-vrf"} or len(set(map(len, lists))) > 1:
                return []
            return list(map(" ".join, zip(*lists, strict=True)))
        case {"advertise": "false", "blackhole": "true", "distance": distance, **more} if not more:
            return [DISCARD] if distance == LAST_RESORT else []
    return []
