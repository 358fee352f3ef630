"""A reader of NVUE's startup.yaml: one `set` of the model of Cumulus Linux."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from compilers.readers.emitted_forwarding import EmittedSwitch, Interface
from compilers.readers.expected_facts import port_text
from compilers.readers.routers.known_keys import ANY, READ, unknown_keys
from compilers.readers.routers.management import is_port, read_gateway
from compilers.readers.routers.router_forwarding import forwarding
from compilers.readers.routers.router_text import DISCARD, LAST_RESORT, RouterText

Tree = dict[str, Any]
SERVERS: Tree = {ANY: {"server": {ANY: {}}}}
SHAPE = {
    "system": {"hostname": READ},
    "service": {"ntp": SERVERS, "syslog": SERVERS},
    "bridge": {"domain": {"br_default": {"vlan": {ANY: {}}}}},
    "interface": {
        ANY: {
            **dict.fromkeys(("type", "description", "vlan"), READ),
            "link": {"mtu": READ, "speed": READ, "fec": READ, "breakout": {ANY: {}}},
            "ip": {"vrf": "mgmt", "address": {ANY: {}}},
            "bridge": {"domain": {"br_default": {"access": READ}}},
        }
    },
    "vrf": {ANY: {"router": {"static": READ}}},
}
"""What may stand in the file."""
FEC = {"rs": "rs", "baser": "fc", "off": "off"}
PARTS = re.compile(r"(\d+)x")

ROUTES = "\n      default:\n        router:\n          static:\n"
ROUTE = re.compile(r' {12}"([^"]+)": (\{.*\})')
"""Where the routes begin, and one that is a line."""


class LineKey(str):
    """A key, and the line where it stands."""

    line: int = 0


def nvue(folder: Path) -> EmittedSwitch:
    """A folder of target nvue."""
    file = folder / "startup.yaml"
    return forwarding(read_nvue(file.read_text(), str(file)))


def read_nvue(text: str, file: str, bgp: Tree | None = None) -> RouterText:
    """The configuration of a switch of Cumulus Linux.

    Args:
        text: of the file.
        file: its name.
        bgp: takes what is said of BGP, under `router` and `bgp`; without it that is unknown.

    Raises:
        ValueError: (file, line, text) it is no such file.
    """
    router = RouterText(file)
    try:
        text, static = _routes_apart(text)
        ((word, tree),) = _value(yaml.compose(text, yaml.CSafeLoader))[0].items()
        if word != "set":
            raise ValueError(word)
        if bgp is not None:
            bgp["router"] = tree.pop("router")
            bgp["bgp"] = tree["vrf"]["default"]["router"].pop("bgp")
        router.told |= {"fec", "speed of a part", "parts"}
        for path in unknown_keys(tree, SHAPE):
            router.unknown(_line(path[-1]) if path else 1, " ".join(path) or "not a mapping")
        for name, interface in tree["interface"].items():
            _interface(router, name, interface)
        vlans = tree["bridge"]["domain"]["br_default"]["vlan"] if "bridge" in tree else {}
        if vlans.keys() != router.shared.keys():
            router.fault(_line(next(iter(vlans), "")), f"VLANs {sorted(vlans)} of the bridge")
        _system(router, tree)
        static = static or tree["vrf"]["default"]["router"]["static"]
        rows = [row for prefix, route in static.items() for row in _hops(prefix, route)]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise ValueError(file, line, error.problem) from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(file, 0, f"not the parts of such a file: {error!r}") from error
    router.transit.extend(*zip(*rows, strict=True))
    return router


def _routes_apart(text: str) -> tuple[str, Tree]:
    """The text without the routes behind `ROUTES`, and these; none where one is no line of its own.

    A YAML parser takes half a second for a thousand routes, whose ways are a few texts.
    """
    head, routes, tail = text.rpartition(ROUTES)
    lines = tail.splitlines()
    matches = [ROUTE.fullmatch(line) for line in lines]
    if not routes or not all(matches):
        return text, {}
    first = (head + routes).count("\n") + 1
    static: Tree = {}
    ways: dict[str, Any] = {}
    for line, match in enumerate(filter(None, matches), first):
        key, way = LineKey(match[1]), match[2]
        key.line = line
        if way not in ways:
            ways[way] = _value(yaml.compose(way, yaml.CSafeLoader))
        if key in static:
            raise ValueError(f"{key} twice, in line {line}, too")
        static[key] = ways[way]
    return f"{head}{routes[:-1]} {{}}\n", static


def _value(node: yaml.Node | None) -> Any:
    """Mappings, lists and texts of YAML; a key has its line, and stands once."""
    if isinstance(node, yaml.MappingNode):
        found: Tree = {}
        for word, inner in node.value:
            key = LineKey(word.value)
            key.line = word.start_mark.line + 1
            if key in found:
                raise ValueError(f"{key} twice, in line {key.line}, too")
            found[key] = _value(inner)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_value(inner) for inner in node.value]
    return node.value if node else {}


def _line(key: str) -> int:
    return key.line if isinstance(key, LineKey) else 0


def _system(router: RouterText, tree: Tree) -> None:
    """The host name, servers of time and logs, and the default route of management."""
    for key, name in tree["system"].items():
        router.fact(_line(key), "hostname", name)
    managed = {vrf: each["router"]["static"] for vrf, each in tree["vrf"].items()}
    managed.pop("default", None)
    inside = "mgmt" if any(kind == "management" for kind, _, _ in router.facts) else "default"
    for service, vrfs in tree.get("service", {}).items():
        for vrf, part in vrfs.items():
            if vrf != inside:
                router.fault(_line(vrf), f"{service} in VRF {vrf}")
            for server in part["server"]:
                router.fact(_line(server), f"{service} server", str(server))
    for vrf, static in managed.items():
        for prefix, hop, line in (row for p, route in static.items() for row in _hops(p, route)):
            if vrf != inside:
                router.fault(line, f"a route of VRF {vrf}")
            read_gateway(router, line, prefix, str(hop))


def _interface(router: RouterText, name: str, tree: Tree) -> None:
    line, link = _line(name), tree.get("link", {})
    ip = tree.get("ip", {})
    addresses = [(str(address), _line(address)) for address in ip.get("address", [])]
    if is_port(name) and ip.get("vrf") == "mgmt":
        for address, where in addresses:
            router.fact(where, "management", port_text(name), address)
        if tree.keys() != {"type", "ip"} or tree["type"] != "eth":
            router.fault(line, f"{name} with {' '.join(tree)}")
        return
    if "breakout" in link:
        if tree != {"type": "swp", "link": {"breakout": link["breakout"]}}:
            router.fault(line, f"{name} with {' '.join(tree)}")
        for way in link["breakout"]:
            parts = PARTS.fullmatch(way)
            router.fact(_line(way), "parts", str(name), int(parts[1]) if parts else way)
        return
    found = router.interface(name, line)
    found.addresses = addresses
    found.vrf = ip.get("vrf", "")
    match tree:
        case {"type": "swp", "bridge": {"domain": {"br_default": {"access": vlan, **more}}}}:
            found.vlan = vlan
            if more or found.addresses:
                router.fault(line, f"{name} is not only a port of VLAN {vlan}")
        case {"type": "svi", "vlan": vlan} if name == f"vlan{vlan}":
            router.shared[vlan] = name
        case {"type": "swp" | "loopback"} if found.addresses and "bridge" not in tree:
            pass
        case _:
            router.fault(line, f"{name} is neither routed nor a port of a VLAN")
    for key, value in {**tree, **link}.items():
        match key:
            case "description":
                router.described(_line(key), name, value)
            case "mtu":
                router.sized(_line(key), name, int(value))
            case "speed":
                router.fact(_line(key), "speed of a part", Interface(name), int(value[:-1]))
            case "fec":
                router.fact(_line(key), "fec", Interface(name), FEC.get(value, value))


def _hops(prefix: str, route: Tree) -> Iterator[tuple[str, str, int]]:
    """Prefix, next hop and line of each way of a route.

    Raises:
        ValueError: the route says anything else.
    """
    six = "ipv6" if ":" in prefix else "ipv4"
    unicast, address = f"{six}-unicast", {"type": f"{six}-address"}
    nowhere = {LAST_RESORT: {"via": {"blackhole": {"type": "blackhole"}}}}
    if route == {"address-family": unicast, "distance": nowhere}:
        yield prefix, DISCARD, _line(prefix)
    elif route.keys() == {"address-family", "via"} and route["address-family"] == unicast:
        for gateway, way in route["via"].items():
            if way != address:
                raise ValueError(f"{prefix} by {gateway}: {way}")
            yield prefix, gateway, _line(prefix)
    else:
        raise ValueError(f"{prefix}: {route}")
