"""Checks between the racks, nodes and cables of an inventory, for `inventory_checks`.

Each function `_…_findings` yields the mistakes of one kind. Its docstring states the rule.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from inventory.document_errors import value_or_none, well_formed
from inventory.floor import (
    REACH_METRES,
    Cable,
    Cabling,
    DeadLink,
    Generate,
    Rack,
    SharedRisk,
    repeated_name_findings,
)
from inventory.library import library_names, library_type
from inventory.model import Node, Nodes, NodeType, PortBlock
from inventory.names import NAME
from inventory.problems import Finding, KeyPath, did_you_mean, shown

Data = Mapping[str, Any]
"""An inventory, or a part of it, as the file has it: values by key, not checked yet."""
M = TypeVar("M", bound=BaseModel)
"""A model of an item of a list."""


def check_floor(nodes: Nodes, types: Mapping[str, object], data: Data) -> list[Finding]:
    """All mistakes in racks, units, cable types and cables, among the well-formed parts.

    Args:
        nodes: the well-formed nodes and their indexes in the list.
        types: `node_types` as it is written.
        data: the inventory as it is written.
    """
    types_by_name = _well_formed_types(nodes, types)
    racks = _well_formed(Rack, data, "racks")
    cables = _well_formed(Cable, data, "cables")
    racks_by_name = {rack.name: rack for _, rack in racks}
    # If two racks have one name, it is not known which of them a node is in.
    repeated = {name for name, n in Counter(rack.name for _, rack in racks).items() if n > 1}
    return [
        *_rack_findings(racks),
        *_unit_findings(nodes, racks_by_name, repeated, types_by_name),
        *_host_findings(nodes, racks_by_name, repeated),
        *_generate_findings(types_by_name, data),
        *_cable_type_findings(data),
        *_disabled_port_findings(nodes, types_by_name),
        *_dead_link_findings(data),
        *repeated_name_findings(_well_formed(SharedRisk, data, "shared_risks")),
        *_cable_findings(cables, {node.name: node for _, node in nodes}, types_by_name, data),
    ]


def _listed(data: Data, key: str) -> Iterator[tuple[int, object]]:
    """The items of the list at a key, each with its index; none if there is no list."""
    value = data.get(key)
    yield from enumerate(value if isinstance(value, list) else [])


def _well_formed(model: type[M], data: Data, key: str) -> list[tuple[int, M]]:
    """The well-formed items of the list at a key, each with its index in the list."""
    values = ((i, well_formed(model, value)) for i, value in _listed(data, key))
    return [(i, value) for i, value in values if value is not None]


def _well_formed_types(nodes: Nodes, types: Mapping[str, object]) -> dict[str, NodeType]:
    """The well-formed node types, and those of the library that nodes have, by name."""
    from_library = {node.type for _, node in nodes} & set(library_names()) - set(types)
    by_name = {name: well_formed(NodeType, value) for name, value in types.items()}
    own_types = {name: value for name, value in by_name.items() if value is not None}
    return own_types | {name: library_type(name) for name in from_library}


def _rack_findings(racks: Sequence[tuple[int, Rack]]) -> Iterator[Finding]:
    """Racks have names and places on the floor of their own."""
    first_with_name: dict[str, int] = {}
    first_at: dict[tuple[int, int], int] = {}
    for i, rack in racks:
        path: KeyPath = ("racks", i)
        earlier = first_with_name.setdefault(rack.name.lower(), i)
        if earlier != i:
            required, todo = "a name that no other rack has", "change one of them"
            yield Finding((*path, "name"), required, rack.name, todo, ("racks", earlier, "name"))
        if (rack.row is None) != (rack.column is None):
            yield Finding(path, "row and column", "one of them", "give both or neither")
            continue
        row, column = rack.row or 0, i if rack.column is None else rack.column
        earlier = first_at.setdefault((row, column), i)
        if earlier != i:
            place = f"row {row}, column {column}, the place of {shown(racks[earlier][1].name)}"
            todo = "change row or column; racks without them are in row 0"
            yield Finding(path, "a place of its own on the floor", place, todo)


def _unit_findings(
    nodes: Nodes,
    racks: Mapping[str, Rack],
    repeated: Collection[str],
    types: Mapping[str, NodeType],
) -> Iterator[Finding]:
    """Nodes are in racks that exist, fill different units, and no rack is too full.

    Args:
        nodes: the well-formed nodes and their indexes in the list.
        racks: the well-formed racks by name.
        repeated: the names that several racks have.
        types: the node types by name.
    """
    node_at: dict[str, dict[int, int]] = defaultdict(dict)  # by rack and unit, the node's index
    used_units: dict[str, int] = defaultdict(int)
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
                return  # the racks of other nodes do not exist either
            continue
        if rack.name in repeated:
            continue
        height = types[node.type].units if node.type in types else 1
        used_units[rack.name] += height
        if used_units[rack.name] - height <= rack.units < used_units[rack.name]:
            units = f"{used_units[rack.name]} in {rack.name} with {shown(node.name)}"
            todo = "move nodes to another rack"
            yield Finding(path, f"nodes of at most {rack.units} units", units, todo)
        if node.unit is not None:
            yield from _node_unit_findings(i, node, height, rack, node_at[rack.name])


def _host_findings(
    nodes: Nodes, racks: Mapping[str, Rack], repeated: Collection[str]
) -> Iterator[Finding]:
    """Hosts are in racks that exist, at units that the rack has; hosts may share a unit."""
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


def _node_unit_findings(
    i: int, node: Node, height: int, rack: Rack, node_at: dict[int, int]
) -> Iterator[Finding]:
    """The units that a node fills are in its rack, and no other node fills them.

    Args:
        i: the index of the node in the list.
        node: the node.
        height: how many units the node fills.
        rack: its rack.
        node_at: by unit of the rack, the index of the node there; this node is added.
    """
    first = node.unit or 1
    path: KeyPath = ("nodes", i, "unit")
    if first + height - 1 > rack.units:
        top = rack.units - height + 1
        actual = f"{first}, of a node {height} high"
        yield Finding(path, f"a unit from 1 to {top} of {rack.name}", actual)
        return
    for unit in range(first, first + height):
        earlier = node_at.setdefault(unit, i)
        if earlier != i:
            place, also = f"unit {unit} of {rack.name}", ("nodes", earlier, "unit")
            yield Finding(path, "units of its own", place, "choose others", also)
            return


def _generate_findings(types: Mapping[str, NodeType], data: Data) -> Iterator[Finding]:
    """Generated nodes have types, names with a number, and racks that are high enough."""
    generate = value_or_none(Generate, data.get("generate"))
    if generate is None:
        return
    if (generate.type is None) == (not generate.types):
        keys = "both" if generate.types else "neither"
        yield Finding(("generate",), "type, or types for several", keys, "write one of them")
    yield from _name_pattern_findings(generate)
    for generated in generate.parts:
        node_type = types.get(generated.type)
        if node_type is None and generated.type in library_names():
            node_type = library_type(generated.type)
        if node_type and node_type.units > generate.racks.units:
            path = ("generate", "racks", "units")
            required = f"racks of {node_type.units} units or more, the height of {generated.type}"
            yield Finding(path, required, str(generate.racks.units))


def _name_pattern_findings(generate: Generate) -> Iterator[Finding]:
    """Patterns of names have {} for a number, and become names with a number."""
    patterns: list[tuple[KeyPath, str]] = [
        (("generate", "name"), generate.name),
        (("generate", "racks", "name"), generate.racks.name),
    ]
    for i, generated in enumerate(generate.types):
        if generated.name:
            patterns.append((("generate", "types", i, "name"), generated.name))
    for path, pattern in patterns:
        if "{}" not in pattern:
            required = "a name with {} for the number"
            yield Finding(path, required, shown(pattern), f"write {pattern}{{}}")
        elif not NAME.fullmatch(pattern.replace("{}", "0")):
            required = "a name of letters, digits and . _ -, and {} for the number"
            yield Finding(path, required, shown(pattern))


def _cable_type_findings(data: Data) -> Iterator[Finding]:
    """Types of cables have different names, and ascending lengths that their medium reaches."""
    cabling = value_or_none(Cabling, data.get("cabling", {})) or Cabling()
    names: set[str] = set()
    for t, cable_type in enumerate(cabling.types):
        path: KeyPath = ("cabling", "types", t)
        name, lengths = cable_type.name, cable_type.lengths
        if name in names:
            yield Finding((*path, "name"), "a name of its own", name, "change one of them")
        names.add(name)
        if list(lengths) != sorted(set(lengths)) or not lengths[0]:
            yield Finding((*path, "lengths"), "lengths over 0 that ascend", "another order")
        reach = REACH_METRES.get(cable_type.media)
        if reach is not None and lengths[-1] > reach:
            place = (*path, "lengths") if "lengths" in cable_type.model_fields_set else path
            required = f"lengths of at most {reach} m, as far as {cable_type.media} reaches"
            todo = "leave longer ones out, or name another medium"
            yield Finding(place, required, f"{lengths[-1]:g} m", todo)


def _node_names(data: Data) -> set[str]:
    """The names of all nodes, also of those with mistakes."""
    listed = [value for _, value in _listed(data, "nodes")]
    return {str(value["name"]) for value in listed if isinstance(value, dict) and "name" in value}


def _disabled_port_findings(nodes: Nodes, types: Mapping[str, NodeType]) -> Iterator[Finding]:
    """Disabled ports are ports of the node's type."""
    for i, node in nodes:
        if not node.disabled_ports or node.type not in types:
            continue
        names = [name for block in types[node.type].ports for name in block.port_names()]
        for j, port in enumerate(node.disabled_ports):
            if port not in names:
                path: KeyPath = ("nodes", i, "disabled_ports", j)
                todo = did_you_mean(port, names)
                yield Finding(path, f"a port of {node.type}", shown(port), todo)


def _dead_link_findings(data: Data) -> Iterator[Finding]:
    """Dead links end at two nodes that exist; generated nodes have no names yet."""
    names = _node_names(data)
    if not names:
        return
    for i, value in _listed(data, "dead_links"):
        link = value_or_none(DeadLink, value)
        if link is None:
            continue
        if link.a == link.b:
            node = f"both at {shown(link.a)}"
            yield Finding(("dead_links", i), "ends at two nodes", node, "correct a or b")
        for end, name in (("a", link.a), ("b", link.b)):
            if name not in names:
                todo = did_you_mean(name, names)
                yield Finding(("dead_links", i, end), "a node of nodes", shown(name), todo)


def _cable_findings(
    cables: Sequence[tuple[int, Cable]],
    nodes: Mapping[str, Node],
    types: Mapping[str, NodeType],
    data: Data,
) -> Iterator[Finding]:
    """Cables end at two nodes and have types that exist; their ends are checked separately.

    Args:
        cables: the well-formed cables and their indexes in the list.
        nodes: the well-formed nodes by name.
        types: the well-formed node types by name.
        data: the inventory as it is written.
    """
    cabling = well_formed(Cabling, data.get("cabling", {})) or Cabling()
    cable_types = [cable_type.name for cable_type in cabling.types]
    for i, cable in cables:
        if cable.a == cable.b:
            node = f"both at {shown(cable.a)}"
            yield Finding(("cables", i), "ends at two nodes", node, "correct a or b")
        if cable.type is not None and cable.type not in cable_types:
            path: KeyPath = ("cables", i, "type")
            todo = did_you_mean(cable.type, cable_types) or f"there are: {', '.join(cable_types)}"
            yield Finding(path, "a type of cabling.types", shown(cable.type), todo)
    yield from _cable_end_findings(cables, nodes, types, _node_names(data))


def _cable_end_findings(
    cables: Sequence[tuple[int, Cable]],
    nodes: Mapping[str, Node],
    types: Mapping[str, NodeType],
    names: Collection[str],
) -> Iterator[Finding]:
    """Both ends of a cable are ports for links, and no port has two cables.

    Args:
        cables: the well-formed cables and their indexes in the list.
        nodes: the well-formed nodes by name.
        types: the well-formed node types by name.
        names: the names of all nodes; empty if nodes are generated, which have no names yet.
    """
    roles_of = {
        name: {port: block.role for block in node_type.ports for port in _plug_names(block)}
        for name, node_type in types.items()
    }
    first_at: dict[tuple[str, str], int] = {}
    for i, cable in cables:
        for end, name, port in (("a", cable.a, cable.a_port), ("b", cable.b, cable.b_port)):
            node = nodes.get(name)
            if node is None:
                if names and name not in names:
                    todo = did_you_mean(name, names)
                    yield Finding(("cables", i, end), "a node of nodes", shown(name), todo)
                continue
            path = ("cables", i, f"{end}_port")
            # A type that is missing or wrong is a finding of its own: here any port will do.
            roles = roles_of.get(node.type, {port: "fabric"})
            if port not in roles or roles[port] == "host":
                for_links = [port for port, role in roles.items() if role != "host"]
                required = f"a port of {node.type} for links"
                yield Finding(path, required, shown(port), did_you_mean(port, for_links))
                continue
            earlier = first_at.setdefault((name, port), i)
            if earlier != i:
                place, also = f"{shown(port)} of {shown(name)}", ("cables", earlier)
                yield Finding(path, "one cable per port", place, "change one of them", also)


def _plug_names(block: PortBlock) -> Iterator[str]:
    """The names of a block's ports and of their sockets, into which a cable may be plugged."""
    yield from block.port_names()
    if block.parallel > 1:
        yield from (name for sockets in block.sockets() for name in sockets)
