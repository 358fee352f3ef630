"""Checks across racks and cables: places, heights, ends and names agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from inventory.document_errors import part, sound
from inventory.floor import Cable, Cabling, DeadLink, Generate, Rack, SharedRisk, repeated_names
from inventory.library import library_names, library_type
from inventory.model import Node, Nodes, NodeType, PortBlock
from inventory.names import NAME
from inventory.problems import Finding, KeyPath, did_you_mean, shown

REACH = {"dac-passive": 7, "dac-active": 15}
"""Metres that copper with plugs of its own reaches at most, at 10 Gbit/s; at 100 it is less."""

Data = Mapping[str, Any]


def check_floor(nodes: Nodes, types: Mapping[str, object], data: Data) -> list[Finding]:
    """Every mistake in racks, units, cable types and cables, of the well-formed parts.

    Args:
        nodes: the well-formed nodes and their places in the list.
        types: node_types as it is written.
        data: the inventory's.
    """
    types_by_name = _types(nodes, types)
    risks = _listed(data, "shared_risks")
    racks = [(i, rack) for i, value in _listed(data, "racks") if (rack := sound(Rack, value))]
    cables = [(i, c) for i, value in _listed(data, "cables") if (c := sound(Cable, value))]
    racks_by_name = {rack.name: rack for _, rack in racks}
    # Which of two racks with one name a node is in is not known, nor whether it has room there.
    repeated = {name for name, n in Counter(rack.name for _, rack in racks).items() if n > 1}
    return [
        *_racks(racks),
        *_places(nodes, racks_by_name, repeated, types_by_name),
        *_hosts(nodes, racks_by_name, repeated),
        *_generate(types_by_name, data),
        *_cable_types(data),
        *_disabled_ports(nodes, types_by_name),
        *_dead_links(data),
        *repeated_names((i, r) for i, v in risks if (r := sound(SharedRisk, v))),
        *_cables(cables, {node.name: node for _, node in nodes}, types_by_name, data),
    ]


def _listed(data: Data, word: str) -> Iterator[tuple[int, object]]:
    value = data.get(word)
    yield from enumerate(value if isinstance(value, list) else [])


def _types(nodes: Nodes, types: Mapping[str, object]) -> dict[str, NodeType]:
    shipped = {node.type for _, node in nodes} & set(library_names()) - set(types)
    listed = {name: sound(NodeType, value) for name, value in types.items()}
    good = {name: value for name, value in listed.items() if value is not None}
    return good | {name: library_type(name) for name in shipped}


def _racks(racks: Sequence[tuple[int, Rack]]) -> Iterator[Finding]:
    names: dict[str, int] = {}
    spots: dict[tuple[int, int], int] = {}
    for i, rack in racks:
        path: KeyPath = ("racks", i)
        if (before := names.setdefault(rack.name.lower(), i)) != i:
            required, todo = "a name that no other rack has", "change one of them"
            also = ("racks", before, "name")
            yield Finding((*path, "name"), required, rack.name, todo, also)
        if (rack.row is None) != (rack.column is None):
            todo = "give both or neither"
            yield Finding(path, "row and column", "one of them", todo)
            continue
        spot = (rack.row or 0, i if rack.column is None else rack.column)
        if (before := spots.setdefault(spot, i)) != i:
            where = f"row {spot[0]}, column {spot[1]}, the place of {shown(racks[before][1].name)}"
            todo = "change row or column; racks without them are in row 0"
            yield Finding(path, "a place of its own on the floor", where, todo)


def _places(
    nodes: Nodes,
    racks: Mapping[str, Rack],
    repeated: Collection[str],
    types: Mapping[str, NodeType],
) -> Iterator[Finding]:
    """Nodes are in racks that exist, side by side, and no rack holds more than it can.

    Args:
        nodes: the well-formed nodes and their places in the list.
        racks: the well-formed racks by name.
        repeated: the names that several racks have.
        types: the node types by name.
    """
    filled: dict[str, dict[int, int]] = defaultdict(dict)
    held: dict[str, int] = defaultdict(int)
    for i, node in nodes:
        path: KeyPath = ("nodes", i, "rack")
        if node.rack is None:
            if node.unit is not None:
                todo = "add rack, or remove unit"
                yield Finding(("nodes", i, "unit"), "a rack", "a unit only", todo)
            continue
        rack = racks.get(node.rack)
        if rack is None:
            todo = did_you_mean(node.rack, racks) or "add it to racks"
            yield Finding(path, "a rack of racks", shown(node.rack), todo)
            if not racks:
                return  # nor are those of the others
            continue
        if rack.name in repeated:
            continue
        height = types[node.type].units if node.type in types else 1
        held[rack.name] += height
        if held[rack.name] - height <= rack.units < held[rack.name]:
            given = f"{held[rack.name]} in {rack.name} with {shown(node.name)}"
            todo = "move nodes to another rack"
            yield Finding(path, f"nodes of at most {rack.units} units", given, todo)
        if node.unit is not None:
            yield from _unit(i, node, height, rack, filled[rack.name])


def _hosts(nodes: Nodes, racks: Mapping[str, Rack], repeated: Collection[str]) -> Iterator[Finding]:
    """Hosts are in racks that exist; several may share a unit, as blades do."""
    for i, node in nodes:
        for h, host in enumerate(node.hosts):
            path: KeyPath = ("nodes", i, "hosts", h)
            if host.rack is None:
                if host.unit is not None:
                    todo = "add rack, or remove unit"
                    yield Finding((*path, "unit"), "a rack", "a unit only", todo)
                continue
            rack = racks.get(host.rack)
            if rack is None:
                todo = did_you_mean(host.rack, racks) or "add it to racks"
                yield Finding((*path, "rack"), "a rack of racks", shown(host.rack), todo)
            elif (host.unit or 1) > rack.units and rack.name not in repeated:
                required = f"a unit from 1 to {rack.units} of {rack.name}"
                yield Finding((*path, "unit"), required, str(host.unit))


def _unit(i: int, node: Node, height: int, rack: Rack, filled: dict[int, int]) -> Iterator[Finding]:
    """The units that the node fills are in its rack, and no other node's."""
    first = node.unit or 1
    path: KeyPath = ("nodes", i, "unit")
    if first + height - 1 > rack.units:
        top = rack.units - height + 1
        given = f"{first}, of a node {height} high"
        yield Finding(path, f"a unit from 1 to {top} of {rack.name}", given)
        return
    for unit in range(first, first + height):
        if (before := filled.setdefault(unit, i)) != i:
            given, also = f"unit {unit} of {rack.name}", ("nodes", before, "unit")
            yield Finding(path, "units of its own", given, "choose others", also)
            return


def _generate(types: Mapping[str, NodeType], data: Data) -> Iterator[Finding]:
    generate = part(Generate, data.get("generate"))
    if generate is None:
        return
    if (generate.type is None) == (not generate.types):
        given = "both" if generate.types else "neither"
        yield Finding(("generate",), "type, or types for several", given, "write one of them")
    patterns: list[tuple[KeyPath, str]] = [
        (("generate", "name"), generate.name),
        (("generate", "racks", "name"), generate.racks.name),
        *(
            (("generate", "types", i, "name"), p.name)
            for i, p in enumerate(generate.types)
            if p.name
        ),
    ]
    for path, pattern in patterns:
        if "{}" not in pattern:
            todo = f"write {pattern}{{}}"
            required = "a name with {} for the number"
            yield Finding(path, required, shown(pattern), todo)
        elif not NAME.fullmatch(pattern.replace("{}", "0")):
            required = "a name of letters, digits and . _ -, and {} for the number"
            yield Finding(path, required, shown(pattern))
    for generated in generate.parts:
        shipped = library_type(generated.type) if generated.type in library_names() else None
        node_type = types.get(generated.type, shipped)
        if node_type and node_type.units > generate.racks.units:
            path = ("generate", "racks", "units")
            required = f"racks of {node_type.units} units or more, the height of {generated.type}"
            yield Finding(path, required, str(generate.racks.units))


def _cable_types(data: Data) -> Iterator[Finding]:
    cabling = part(Cabling, data.get("cabling", {})) or Cabling()
    names: set[str] = set()
    for t, cable_type in enumerate(cabling.types):
        path: KeyPath = ("cabling", "types", t)
        if cable_type.name in names:
            yield Finding(
                (*path, "name"), "a name of its own", cable_type.name, "change one of them"
            )
        names.add(cable_type.name)
        if list(cable_type.lengths) != sorted(set(cable_type.lengths)) or not cable_type.lengths[0]:
            required = "lengths over 0 that ascend"
            yield Finding((*path, "lengths"), required, "another order")
        reach = REACH.get(cable_type.media)
        if reach is not None and cable_type.lengths[-1] > reach:
            where = (*path, "lengths") if "lengths" in cable_type.model_fields_set else path
            required = f"lengths of at most {reach} m, as far as {cable_type.media} reaches"
            todo = "leave longer ones out, or name another medium"
            yield Finding(where, required, f"{cable_type.lengths[-1]:g} m", todo)


def _names(data: Data) -> set[str]:
    """The names of all nodes, those with a mistake included."""
    listed = [value for _, value in _listed(data, "nodes")]
    return {str(value["name"]) for value in listed if isinstance(value, dict) and "name" in value}


def _disabled_ports(nodes: Nodes, types: Mapping[str, NodeType]) -> Iterator[Finding]:
    for i, node in nodes:
        if not node.disabled_ports or node.type not in types:
            continue
        names = [name for block in types[node.type].ports for name in block.port_names()]
        for j, port in enumerate(node.disabled_ports):
            if port not in names:
                path: KeyPath = ("nodes", i, "disabled_ports", j)
                todo = did_you_mean(port, names)
                yield Finding(path, f"a port of {node.type}", shown(port), todo)


def _dead_links(data: Data) -> Iterator[Finding]:
    """Dead links end at nodes; of generated ones the names are looked up when they are there."""
    names = _names(data)
    for i, value in _listed(data, "dead_links") if names else ():
        link = part(DeadLink, value)
        if link and link.a == link.b:
            given = f"both at {shown(link.a)}"
            yield Finding(("dead_links", i), "ends at two nodes", given, "correct a or b")
        for end, name in (("a", link.a), ("b", link.b)) if link else ():
            if name not in names:
                todo = did_you_mean(name, names)
                yield Finding(("dead_links", i, end), "a node of nodes", shown(name), todo)


def _plugs(block: PortBlock) -> Iterator[str]:
    """The names by which a cable may be plugged: of ports, and of their sockets."""
    yield from block.port_names()
    if block.parallel > 1:
        yield from (name for sockets in block.sockets() for name in sockets)


def _cables(
    cables: Sequence[tuple[int, Cable]],
    nodes: Mapping[str, Node],
    types: Mapping[str, NodeType],
    data: Data,
) -> Iterator[Finding]:
    """Both ends of a cable are ports for links, and no port has two cables."""
    names = _names(data)
    cabling = sound(Cabling, data.get("cabling", {})) or Cabling()
    kinds = [cable_type.name for cable_type in cabling.types]
    ports = {
        name: {p: block.role for block in node_type.ports for p in _plugs(block)}
        for name, node_type in types.items()
    }
    taken: dict[tuple[str, str], int] = {}
    for i, cable in cables:
        if cable.a == cable.b:
            given = f"both at {shown(cable.a)}"
            yield Finding(("cables", i), "ends at two nodes", given, "correct a or b")
        if cable.type is not None and cable.type not in kinds:
            todo = did_you_mean(cable.type, kinds) or f"there are: {', '.join(kinds)}"
            path: KeyPath = ("cables", i, "type")
            yield Finding(path, "a type of cabling.types", shown(cable.type), todo)
        for end, name, port in (("a", cable.a, cable.a_port), ("b", cable.b, cable.b_port)):
            node = nodes.get(name)
            if node is None:
                if names and name not in names:  # generated ones are looked up when they are there
                    todo = did_you_mean(name, names)
                    yield Finding(("cables", i, end), "a node of nodes", shown(name), todo)
                continue
            path = ("cables", i, f"{end}_port")
            roles = ports.get(node.type, {port: "fabric"})
            if port not in roles or roles[port] == "host":
                fit = [p for p, role in roles.items() if role != "host"]
                todo = did_you_mean(port, fit)
                required = f"a port of {node.type} for links"
                yield Finding(path, required, shown(port), todo)
            elif (before := taken.setdefault((name, port), i)) != i:
                given, also = f"{shown(port)} of {shown(name)}", ("cables", before)
                yield Finding(path, "one cable per port", given, "change one of them", also)
