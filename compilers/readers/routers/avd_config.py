"""Reader of AVD's structured config of EOS."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from compilers.readers.emitted_forwarding import Interface
from compilers.readers.expected_facts import port_text
from compilers.readers.routers.cli_sections import eos_commands
from compilers.readers.routers.known_keys import READ, line_of
from compilers.readers.routers.management import read_gateway, read_servers
from compilers.readers.routers.router_text import (
    DEFAULT,
    DISCARD,
    LAST_RESORT,
    RouterText,
    lines_of,
)
from compilers.readers.strict_json import parse
from compilers.readers.text_lines import TextLines

Tree = dict[str, Any]
INTERFACE = dict.fromkeys(("name", "mtu", "shutdown", "ip_address", "ipv6_address", "vrf"), READ)
SHAPE = {
    **dict.fromkeys(("hostname", "ip_routing", "ipv6_unicast_routing", "vrfs", "eos_cli"), READ),
    **dict.fromkeys(("static_routes", "ipv6_static_routes"), READ),
    "service_routing_protocols_model": READ,
    "management_interfaces": [INTERFACE],
    "ethernet_interfaces": [
        {
            **INTERFACE,
            **dict.fromkeys(("description", "speed", "error_correction_encoding"), READ),
            "switchport": {"enabled": READ, "mode": "access", "access_vlan": READ},
        }
    ],
    "loopback_interfaces": [INTERFACE],
    "vlan_interfaces": [{**INTERFACE, "description": "hosts"}],
    "vlans": [{"id": READ, "name": "hosts"}],
    "ntp": {"vrf": READ, "servers": [{"name": READ}]},
    "logging": {"vrfs": [{"name": READ, "hosts": [{"name": READ}]}]},
}
FEC = {"reed_solomon": "rs", "fire_code": "fc", "enabled": "off"}


def read_avd(text: str, file: str, apart: Collection[str] = ()) -> RouterText:
    """AVD's structured config of an EOS device, but for keys that are read apart."""
    router = RouterText(file)
    router.told |= {"fec", "speed and lanes"}
    tree = parse(text)
    router.known(tree, SHAPE | dict.fromkeys(apart, READ), text)
    tree = _without_management(router, tree, text)
    router.fact(line_of(text, ("hostname",)), "hostname", tree.get("hostname", ""))
    router.vlans = {str(entry["id"]) for entry in tree.get("vlans", [])}
    if tree.get("ip_routing") is not True:
        router.fault(1, "ip_routing is not true")
    places = [
        (entry, f'"name": "{entry.get("name", "")}"')
        for key in ("ethernet_interfaces", "loopback_interfaces", "vlan_interfaces")
        for entry in tree.get(key, [])
    ]
    for entry in tree.get("vlan_interfaces", []):
        router.shared[entry["name"].removeprefix("Vlan")] = entry["name"]
    for entry, needle in places:
        _interface(router, entry, next(lines_of(text, [needle])))
    six = any(":" in address for i in router.interfaces.values() for address, _ in i.addresses)
    if tree.get("ipv6_unicast_routing", False) is not six:
        router.fault(1, f"ipv6_unicast_routing is not {six}")
    _vrf(router, tree, six)
    commands = TextLines.of(tree.get("eos_cli", "").encode())
    line = np.full_like(commands.number, next(lines_of(text, ['"eos_cli"'])))
    eos_commands(router, commands.numbered(line))
    # AVD's keys stand in the order of the alphabet, IPv6 before IPv4.
    for key in ("ipv6_static_routes", "static_routes"):
        _routes(router, tree.get(key, []), text)
    return router


def _vrf(router: RouterText, tree: Tree, six: bool) -> None:
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


def _interface(router: RouterText, entry: Tree, line: int) -> None:
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
    if "description" in entry:
        router.described(line, entry["name"], entry["description"])
    if "mtu" in entry:
        router.sized(line, entry["name"], entry["mtu"])
    if "speed" in entry:
        router.fact(line, "speed and lanes", Interface(entry["name"]), entry["speed"])
    for word, on in entry.get("error_correction_encoding", {}).items():
        fec = FEC.get(word, word) if on is (word != "enabled") else f"{word} {on}"
        router.fact(line, "fec", Interface(entry["name"]), fec)
    found.addresses += [(entry[k], line) for k in ("ip_address", "ipv6_address") if k in entry]
    found.vrf = entry.get("vrf", "")


def _routes(router: RouterText, routes: list[Tree], text: str) -> None:
    for vrf, rows in ((DEFAULT, router.transit), (router.vrf, router.entering)):
        mine = [entry for entry in routes if entry.get("vrf", DEFAULT) == vrf]
        prefixes = [entry.get("prefix", "") for entry in mine]
        lines = lines_of(text, (f'"prefix": "{prefix}"' for prefix in prefixes))
        ways = [{k: v for k, v in entry.items() if k not in ("prefix", "vrf")} for entry in mine]
        router.static(rows, list(zip(prefixes, ways, strict=True)), lines, _hops)
    for entry in routes:
        if entry.get("vrf", DEFAULT) not in (DEFAULT, router.vrf):
            router.fault(1, f"a route of VRF {entry['vrf']}")


def _hops(way: Tree) -> list[str]:
    match way:
        case {"interface": "Null0", "distance": distance, **more} if not more:
            return [DISCARD] if str(distance) == LAST_RESORT else []
        case {"interface": interface, "next_hop": gateway, **more} if not more:
            return [f"{gateway} {interface}"]
    return []


def _without_management(router: RouterText, tree: Tree, text: str) -> Tree:
    """AVD's structured config without management, time and logs, which are noted."""
    kept, vrf = dict(tree), ""
    for port in kept.pop("management_interfaces", []):
        vrf = port.get("vrf", "")
        for key in ("ip_address", "ipv6_address"):
            if key in port:
                line = line_of(text, ("management_interfaces", port[key]))
                router.fact(line, "management", port_text(port["name"]), port[key])
    for key in ("static_routes", "ipv6_static_routes") if vrf else ():
        for route in kept.get(key, []):
            if route.get("vrf") == vrf:
                line = line_of(text, (key, route["prefix"]))
                read_gateway(router, line, route["prefix"], route["next_hop"])
                if route.keys() != {"vrf", "prefix", "next_hop"}:
                    router.fault(line, f"{key} {route}")
        kept[key] = [route for route in kept.get(key, []) if route.get("vrf") != vrf]
    if vrf:
        kept["vrfs"] = [entry for entry in kept.get("vrfs", []) if entry != {"name": vrf}]
    servers = [("ntp", kept.get("ntp", {}).get("vrf", ""), kept.get("ntp", {}).get("servers", []))]
    for entry in kept.get("logging", {}).get("vrfs", []):
        inside = entry["name"] if entry["name"] != "default" else ""
        servers.append(("logging", inside, entry["hosts"]))
    for key, inside, listed in servers:
        read_servers(router, key, [entry["name"] for entry in listed], inside == vrf, text)
    return kept
