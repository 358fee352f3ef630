"""Reader of SR Linux's configuration, JSON of its models."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from compilers.readers.emitted_forwarding import Interface
from compilers.readers.expected_facts import port_text
from compilers.readers.routers.known_keys import READ, line_of
from compilers.readers.routers.management import is_port, read_gateway, read_servers
from compilers.readers.routers.router_forwarding import far_ends
from compilers.readers.routers.router_text import DISCARD, LAST_RESORT, RouterText, lines_of
from compilers.readers.strict_json import parse

Tree = dict[str, Any]
SRL = "srl_nokia-"
SRL_INTERFACES = f"{SRL}interfaces:interface"
SRL_INSTANCES = f"{SRL}network-instance:network-instance"
SRL_STATIC, SRL_GROUPS = (f"{SRL}{part}:{part}" for part in ("static-routes", "next-hop-groups"))
SRL_SYSTEM, SRL_NAME = f"{SRL}system:system", f"{SRL}system-name:name"
SRL_NTP, SRL_LOGGING = f"{SRL}ntp:ntp", f"{SRL}logging:logging"
SRL_FAMILY = {"admin-state": READ, "address": [{"ip-prefix": READ}]}
SRL_SHAPE: Tree = {
    SRL_INTERFACES: [
        {
            **dict.fromkeys(("name", "description", "admin-state", "mtu"), READ),
            "transceiver": {"forward-error-correction": READ},
            "breakout-mode": {"num-breakout-ports": READ, "breakout-port-speed": READ},
            "subinterface": [
                {
                    **dict.fromkeys(("index", "type", "admin-state", "ip-mtu"), READ),
                    "ipv4": SRL_FAMILY,
                    "ipv6": SRL_FAMILY,
                }
            ],
        }
    ],
    SRL_INSTANCES: [
        {
            **dict.fromkeys(("name", "type", "admin-state"), READ),
            "interface": [{"name": READ}],
            SRL_STATIC: {"route": READ},
            SRL_GROUPS: {"group": READ},
        }
    ],
    SRL_SYSTEM: {
        SRL_NAME: {"host-name": READ},
        SRL_NTP: {
            "admin-state": "enable",
            "network-instance": READ,
            "server": [{"address": READ}],
        },
        SRL_LOGGING: {"network-instance": READ, "remote-server": [{"host": READ}]},
    },
}
SRL_TOLD = {"code", "cage"}
"""What may stand in a configuration of SR Linux, and the facts that it tells in full."""
ETHERNET_HEADER = 14
"""Counted in the MTU of a port, not in that of IP."""
VRF = f"{SRL}network-instance:ip-vrf"
WAY_KEYS = {"next-hop-group", "preference", "admin-state"}


def read_srlinux(text: str, file: str, apart: Collection[str] = ()) -> RouterText:
    """The configuration of an SR Linux device, by its models, but for keys that are read apart."""
    router = RouterText(file)
    router.told |= SRL_TOLD
    others = dict.fromkeys(apart, READ)
    instances = [{**each, **others} for each in SRL_SHAPE[SRL_INSTANCES]]
    tree = parse(text)
    router.known(tree, {**SRL_SHAPE, **others, SRL_INSTANCES: instances}, text)
    tree = _without_management(router, tree, text)
    system = tree[SRL_SYSTEM]
    router.fact(line_of(text, (SRL_NAME,)), "hostname", system[SRL_NAME]["host-name"])
    for interface in tree[SRL_INTERFACES]:
        _interface(router, interface, text)
    for instance in tree[SRL_INSTANCES]:
        if instance.get("admin-state") != "enable":
            router.fault(0, f"network-instance {instance.get('name')} is not enabled")
        match instance:
            case {"name": "default", "type": "srl_nokia-network-instance:default"}:
                _instance(router, instance, text)
            case {"name": name, "type": "srl_nokia-network-instance:mac-vrf"}:
                _switched(router, name, _names(instance))
            case _:
                router.fault(0, f"network-instance {instance.get('name')}")
    return router


def _names(instance: Tree) -> list[str]:
    return [_port(entry["name"]) for entry in instance.get("interface", [])]


def _port(subinterface: str) -> str:
    """A port, whose one subinterface is 0, or another interface with its number."""
    return subinterface.removesuffix(".0")


def _interface(router: RouterText, interface: Tree, text: str) -> None:
    name = interface.get("name", "")
    line = next(lines_of(text, [f'"name": "{name}"']))
    if interface.get("admin-state") != "enable":
        router.fault(line, f"interface {name} is not enabled")
    size = _physical(router, interface, line, text)
    for inner in interface.get("subinterface", []):
        found = router.interface(_port(f"{name}.{inner.get('index')}"), line)
        match inner.get("type"):
            case "srl_nokia-interfaces:bridged":
                found.words.add("bridged")
            case None if name.startswith(("irb", "lo")):
                pass
            case "srl_nokia-interfaces:routed" if not name.startswith(("irb", "lo")):
                pass
            case other:
                router.fault(line, f"type {other} of {name}")
        if "bridged" in found.words:
            pass
        elif name.startswith("irb"):
            if "ip-mtu" in inner:
                router.fact(line, "mtu of the hosts", inner["ip-mtu"])
        elif inner.get("ip-mtu", 0) != size:
            router.fault(line, f"ip-mtu of {name} is not mtu without the Ethernet header")
        if inner.get("admin-state") != "enable":
            router.fault(line, f"subinterface {inner.get('index')} of {name} is not enabled")
        for family in ("ipv4", "ipv6"):
            part = inner.get(family, {"admin-state": "enable"})
            if part.get("admin-state") != "enable":
                router.fault(line, f"{family} of {name} is not enabled")
            found.addresses += [(entry["ip-prefix"], line) for entry in part.get("address", [])]


def _physical(router: RouterText, interface: Tree, line: int, text: str) -> int:
    """What is said of a port beside its subinterface; bytes of an IP packet, 0 where unknown."""
    name, size = interface.get("name", ""), 0
    match interface.get("description", ""):
        case "hosts" if name.startswith("irb"):
            pass
        case "router" if name.startswith("lo"):
            pass
        case "" if "breakout-mode" in interface:
            mode = interface["breakout-mode"]
            speed = mode["breakout-port-speed"].removesuffix("G")
            router.fact(line, "cage", name, int(mode["num-breakout-ports"]), int(speed))
        case description:
            router.fact(line, "description", Interface(name), description)
    if "mtu" in interface:
        size = interface["mtu"] - ETHERNET_HEADER
        router.fact(line, "mtu", Interface(name), size)
    if "transceiver" in interface:
        code = interface["transceiver"]["forward-error-correction"]
        router.fact(line_of(text, (name, "transceiver")), "code", Interface(name), code)
    return int(size)


def _switched(router: RouterText, network: str, names: list[str]) -> None:
    for name in names:
        found = router.interfaces.get(name)
        if found and "bridged" in found.words:
            found.vlan = network
        elif name.startswith("irb"):
            router.shared[network] = name
        else:
            router.fault(0, f"{name} in network-instance {network} is no bridged port")


def _instance(router: RouterText, instance: Tree, text: str) -> None:
    """The default network instance: its interfaces, and static routes by next-hop groups."""
    inside = set(_names(instance))
    for name, found in router.interfaces.items():
        if (name in inside) != bool(found.addresses):
            router.fault(found.line, f"{name} has addresses or is in network-instance default")
    groups = dict(_groups(router, instance))
    ends = dict(far_ends(router))
    for hop in (hop for hops in groups.values() for hop in hops):
        if hop not in ends and hop != DISCARD:
            line = next(lines_of(text, [f'"ip-address": "{hop}"']))
            router.fault(line, f"{hop}, which is at the end of no link")
    routes = instance.get(SRL_STATIC, {}).get("route", [])
    prefixes = [route.pop("prefix", "") for route in routes]
    lines = lines_of(text, (f'"prefix": "{prefix}"' for prefix in prefixes))

    def hops_of(way: Tree) -> list[str]:
        hops = groups.get(way.get("next-hop-group", ""), [])
        last = str(way.get("preference", "")) == LAST_RESORT
        up = way.get("admin-state", "enable") == "enable"
        return hops if up and (hops == [DISCARD]) == last and way.keys() <= WAY_KEYS else []

    router.static(router.transit, list(zip(prefixes, routes, strict=True)), lines, hops_of)


def _groups(router: RouterText, instance: Tree) -> Iterator[tuple[str, list[str]]]:
    seen: set[str] = set()
    for group in instance.get(SRL_GROUPS, {}).get("group", []):
        match group:
            case {"name": str(name), "blackhole": {"generate-icmp": True, **rest}, **more} if not (
                rest or more
            ):
                yield name, [DISCARD]
            case {
                "name": str(name),
                "nexthop": [{"index": 1, "ip-address": str(hop), "resolve": False, **rest}],
                **more,
            } if not (rest or more):
                yield name, [hop]
            case _:
                name = str(group.get("name"))
                router.fault(0, f"next-hop-group {name}")
        if name in seen:
            router.fault(0, f"next-hop-group {name} twice")
        seen.add(name)


def _without_management(router: RouterText, tree: Tree, text: str) -> Tree:
    """The configuration without management, time and logs, which are noted."""
    kept: dict[str, list[Tree]] = {SRL_INTERFACES: [], SRL_INSTANCES: []}
    vrf = "default"
    for interface in tree.get(SRL_INTERFACES, []):
        if is_port(interface.get("name", "")):
            _managed_port(router, interface, text)
        else:
            kept[SRL_INTERFACES].append(interface)
    for instance in tree.get(SRL_INSTANCES, []):
        names = [entry["name"] for entry in instance.get("interface", [])]
        if names and all(map(is_port, names)):
            vrf = instance["name"]
            _managed_instance(router, instance, text)
        else:
            kept[SRL_INSTANCES].append(instance)
    for key, part in tree[SRL_SYSTEM].items():
        if key == SRL_NTP and "admin-state" not in part:
            router.fault(line_of(text, (key,)), f"{key} is not enabled")
        listed = [*part.get("server", []), *part.get("remote-server", [])]
        names = [server.get("address") or server["host"] for server in listed]
        read_servers(router, key, names, part.get("network-instance") == vrf, text)
    return tree | kept


def _managed_port(router: RouterText, interface: Tree, text: str) -> None:
    """The port of management: up, with one address."""
    name = interface["name"]
    line = line_of(text, (name,))
    states = [interface, *interface.get("subinterface", [])]
    states += [inner[family] for inner in states for family in ("ipv4", "ipv6") if family in inner]
    index = [inner.get("index") for inner in interface.get("subinterface", [])]
    if index != [0] or any(state.get("admin-state") != "enable" for state in states):
        router.fault(line, f"{name} is not enabled, or has no subinterface 0")
    for part in states:
        for entry in part.get("address", []):
            router.fact(line, "management", port_text(name), entry["ip-prefix"])
    if interface.keys() - {"name", "admin-state", "subinterface"} != {"description"}:
        router.fault(line, f"{name} {sorted(interface)}")
    if interface.get("description") != "management":
        router.fault(line, f"description {interface.get('description')} of {name}")


def _managed_instance(router: RouterText, instance: Tree, text: str) -> None:
    """The network instance of management: enabled, with one route at most."""
    line = line_of(text, (SRL_INSTANCES, instance["name"]))
    up = instance.get("admin-state") == "enable" and instance.get("type") == VRF
    if not up or any(not entry["name"].endswith(".0") for entry in instance["interface"]):
        router.fault(
            line, f"network-instance {instance['name']} is no VRF of the port that is enabled"
        )
    groups = instance.get(SRL_GROUPS, {}).get("group", [])
    hops = {group["name"]: group.get("nexthop") for group in groups}
    for route in instance.get(SRL_STATIC, {}).get("route", []):
        match hops.get(route.get("next-hop-group")):
            case [{"index": 0, "ip-address": gateway, **more}] if not more and len(route) == 2:
                read_gateway(router, line, route["prefix"], gateway)
            case _:
                router.fault(line, f"route {route}")
