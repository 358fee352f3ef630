"""A reader of NVUE's startup.yaml: one `set` of the model of Cumulus Linux."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.management import is_port
from compilers.readers.router_forwarding import forwarding
from compilers.readers.router_text import DISCARD, LAST_RESORT, RouterText

Tree = dict[str, Any]
HARMLESS = {"type", "description", "link", "vlan"}
"""What a key of an interface may be called that does not change where packets go."""
PARTS = {"system", "service", "bridge", "interface", "vrf"}

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


def read_nvue(text: str, file: str) -> RouterText:
    """The configuration of a switch of Cumulus Linux.

    Raises:
        ValueError: (file, line, text) it is no such file.
    """
    router = RouterText(file)
    try:
        text, static = _routes_apart(text)
        ((word, tree),) = _value(yaml.compose(text, yaml.CSafeLoader))[0].items()
        if word != "set":
            raise ValueError(word)
        router.hostname = tree["system"]["hostname"]
        for name, interface in tree["interface"].items():
            _interface(router, name, interface)
        vrfs = {name: vrf for name, vrf in tree["vrf"].items() if name != "mgmt"}
        ((_, default),) = vrfs.items()
        _known(router, default, {"router"})
        _known(router, default["router"], {"static"})
        static = static or default["router"]["static"]
        rows = [row for prefix, route in static.items() for row in _hops(prefix, route)]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise ValueError(file, line, error.problem) from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(file, 0, f"not the parts of such a file: {error!r}") from error
    _known(router, tree, PARTS)
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


def _known(router: RouterText, tree: Tree, words: set[str]) -> None:
    """Note the keys that are not among these."""
    for key in tree:
        if key not in words:
            router.fault(_line(key), key)


def _interface(router: RouterText, name: str, tree: Tree) -> None:
    if is_port(name) and tree["ip"].get("vrf") == "mgmt":
        return
    if "breakout" in tree.get("link", {}):
        _known(router, tree, HARMLESS)
        return
    found = router.interface(name, _line(name))
    _known(router, tree, HARMLESS | {"ip", "bridge"})
    ip = tree.get("ip", {"address": {}})
    _known(router, ip, {"address"})
    found.addresses = [(str(address), _line(address)) for address in ip["address"]]
    match tree:
        case {"type": "swp", "bridge": {"domain": {"br_default": {"access": vlan, **more}}}}:
            found.vlan = vlan
            if more or found.addresses:
                router.fault(_line(name), f"{name} is not only a port of VLAN {vlan}")
        case {"type": "svi", "vlan": vlan}:
            router.shared[vlan] = name
        case {"type": "swp" | "loopback"} if found.addresses and "bridge" not in tree:
            pass
        case _:
            router.fault(_line(name), f"{name} is neither routed nor a port of a VLAN")


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
