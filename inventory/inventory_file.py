"""Load inventory.yaml and check it across values: names, addresses and types agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from inventory.document_errors import checked, part, sound
from inventory.field_docs import with_field_docs
from inventory.floor import Generate
from inventory.floor_checks import check_floor
from inventory.library import library_names, library_type
from inventory.model import Inventory, Node, NodeType
from inventory.problems import Finding, InputError, KeyPath, did_you_mean, shown
from inventory.values import Model
from inventory.yamlfile import Document, read_or_take

MOST_TYPE_PORTS = 65_000
MOST_HOSTS = 1024
Data = Mapping[str, Any]
Nodes = Sequence[tuple[int, Node]]


def load_inventory(source: str | Path | Mapping[str, Any]) -> tuple[Inventory, Document]:
    """The inventory in a YAML file (`-`: standard input) or a mapping, and it as a document.

    Its node_types hold the types of the library that it uses, behind its own.

    Raises:
        InputError: every mistake in it.
    """
    document = read_or_take(source)
    examined = examine(document)
    if examined.inventory is None or examined.findings:
        raise InputError(document.report(examined.findings))
    return examined.inventory, document


@dataclass(frozen=True, slots=True)
class Examined:
    """An inventory and its mistakes."""

    inventory: Inventory | None
    """The inventory; None if its form is wrong."""
    nodes: Nodes
    """The well-formed nodes, by their places in the list."""
    findings: tuple[Finding, ...]
    """Every mistake."""


def examine(document: Document) -> Examined:
    """An inventory as a value, or what is wrong with it; names of files are relative to its own."""
    data, context = document.data, {"folder": Path(document.file).parent}
    inventory, wrong = checked(Inventory, data, context)
    nodes = _nodes(data)
    said = {finding.path for finding in wrong}
    more = (finding for finding in _check(nodes, data, context) if finding.path not in said)
    findings = (*wrong, *more)
    whole = _with_library(inventory) if inventory and not findings else inventory
    return Examined(whole, nodes, findings)


def _with_library(inventory: Inventory) -> Inventory:
    """The inventory with every type that it uses among its node_types."""
    used = [node.type for node in inventory.nodes]
    used += [part.type for part in inventory.generate.parts] if inventory.generate else []
    missing = sorted(set(used) - set(inventory.node_types))
    shipped = {name: library_type(name) for name in missing}
    return inventory.model_copy(update={"node_types": {**inventory.node_types, **shipped}})


def _nodes(data: Data) -> Nodes:
    """The nodes and their places in the list; what is wrong with one is left out of it."""
    listed = data.get("nodes")
    values = enumerate(listed if isinstance(listed, list) else [])
    return [(i, node) for i, value in values if (node := sound(Node, value))]


def _check(nodes: Nodes, data: Data, context: Data) -> list[Finding]:
    """Everything that can be said of the well-formed parts, also when others are not."""
    listed = data.get("node_types")
    types = listed if isinstance(listed, dict) else {}
    return [
        *(f for n, value in types.items() for f in _ports(n, sound(NodeType, value, context))),
        *(f for n, value in types.items() for f in _buffer(n, sound(NodeType, value, context))),
        *_neither_nodes_nor_generate(data),
        *_unknown_groups(nodes, data),
        *_group_counts(data),
        *_hosts_twice(nodes, data),
        *_unknown_types(nodes, {str(name) for name in types}, data),
        *_repeated(_values(nodes, "serial"), "a serial number of its own"),
        *_repeated(_guids(nodes), "a GUID of its own"),
        *_repeated_in_planes(nodes),
        *_repeated(_values(nodes, "datapath_id"), "a datapath id of its own"),
        *_repeated(_values(nodes, "asn"), "an AS number of its own"),
        *_repeated(_values(nodes, "management"), "a management address of its own"),
        *_repeated(_of_hosts(nodes, "mac"), "a MAC address of its own"),
        *check_floor(nodes, types, data),
    ]


def _neither_nodes_nor_generate(data: Data) -> Iterator[Finding]:
    generated = data.get("generate") is not None
    if "nodes" in data and generated:
        yield Finding(("generate",), "nodes or generate", "both", "remove one of them")
    elif "nodes" not in data and not generated:
        yield Finding(("nodes",), "the key nodes", "nothing", "add `nodes: …`")


def _ports(name: str, node_type: NodeType | None) -> Iterator[Finding]:
    """Port names must differ within a type, or two ports could not be distinguished."""
    if node_type is None:
        return
    path: KeyPath = ("node_types", name, "ports")
    total = sum(block.total for block in node_type.ports)
    if total > MOST_TYPE_PORTS:
        yield Finding(path, f"at most {MOST_TYPE_PORTS:,} ports a type", f"{total:,}")
        return
    block_of: dict[str, int] = {}
    for b, block in enumerate(node_type.ports):
        if block.parallel > 1 and (block.breakout > 1 or block.role == "host"):
            given = "breakout, too" if block.breakout > 1 else "role: host"
            yield Finding((*path, b, "parallel"), "parallel cables of whole ports for links", given)
            continue
        names = block.port_names()
        if block.parallel > 1:
            names = [*names, *(name for sockets in block.sockets() for name in sockets)]
        if len(set(names)) < len(names):
            required = "a name with {} for the number, as the block has several ports"
            todo = f"write {block.name}{{}}, or count: 1"
            yield Finding((*path, b, "name"), required, shown(block.name), todo)
            continue
        if taken := [port for port in names if port in block_of]:
            given = f"{shown(taken[0])}, also in ports[{block_of[taken[0]]}]"
            required = "port names that no other block of the type has"
            yield Finding((*path, b), required, given, "change name or first")
        block_of |= dict.fromkeys(names, b)
    lanes = [word for text in node_type.shuffle for word in text.split() if word != "-"]
    if wrong := [word for word in lanes if word not in block_of or lanes.count(word) > 1]:
        given = f"{wrong[0]} twice" if wrong[0] in block_of else wrong[0]
        required, todo = "each lane's port, once", did_you_mean(wrong[0], block_of)
        yield Finding(("node_types", name, "shuffle"), required, given, todo)
    try:
        node_type.platform_ports()
    except ValueError as error:
        todo = "name the platform's own file, or correct count, breakout, speed and lanes"
        required, given = error.args
        yield Finding(("node_types", name, "platform"), required, given, todo)


def _buffer(name: str, node_type: NodeType | None) -> Iterator[Finding]:
    """Values of packet memory that do not fit each other."""
    buffer = node_type.buffer if node_type else None
    if buffer is None:
        return
    path: KeyPath = ("node_types", name, "buffer")
    if len(set(buffer.priorities)) < len(buffer.priorities):
        given = ", ".join(map(str, buffer.priorities))
        yield Finding((*path, "priorities"), "each priority once", given)
    if buffer.ecn_max < buffer.ecn_min:
        required = f"at least ecn_min, {buffer.ecn_min}"
        yield Finding((*path, "ecn_max"), required, str(buffer.ecn_max))


def _unknown_groups(nodes: Nodes, data: Data) -> Iterator[Finding]:
    groups = [str(name) for name in data.get("groups") or ()]
    generate = part(Generate, data.get("generate"))
    uses: list[tuple[KeyPath, str | None]] = [
        *((("nodes", i, "group"), node.group) for i, node in nodes),
        *(
            (("generate", "types", i, "group"), generated.group)
            for i, generated in enumerate(generate.types if generate else ())
        ),
    ]
    for path, group in uses:
        if group is not None and group not in groups:
            todo = did_you_mean(group, groups) or "add it there"
            yield Finding(path, "a key of groups", shown(group), todo)


def _group_counts(data: Data) -> Iterator[Finding]:
    """`host_count` of a group is a number of hosts, not a variable of any kind."""
    groups = data.get("groups")
    for name, values in groups.items() if isinstance(groups, dict) else ():
        count = values.get("host_count") if isinstance(values, dict) else None
        if count is not None and not (type(count) is int and 0 <= count <= MOST_HOSTS):
            path: KeyPath = ("groups", name, "host_count")
            yield Finding(path, f"a whole number from 0 to {MOST_HOSTS}", shown(count))


def _hosts_twice(nodes: Nodes, data: Data) -> Iterator[Finding]:
    """Hosts of a node where a file has all hosts."""
    for i, node in nodes if "hosts" in data else ():
        for word in ("hosts", "host_count"):
            if getattr(node, word) not in ((), None):
                required = "hosts at their nodes, or all of them in a file (hosts)"
                yield Finding(
                    ("nodes", i, word), required, "both", "remove one of them", ("hosts",)
                )


def _unknown_types(nodes: Nodes, names: set[str], data: Data) -> Iterator[Finding]:
    uses: list[tuple[KeyPath, str]] = [(("nodes", i, "type"), node.type) for i, node in nodes]
    generate = part(Generate, data.get("generate"))
    for i, generated in enumerate(generate.parts if generate else ()):
        of_one_type = generate is not None and generate.type is not None
        uses.append(
            (
                ("generate", "type") if of_one_type else ("generate", "types", i, "type"),
                generated.type,
            )
        )
    types = {*names, *library_names()}
    if not names and "node_types" in data:
        return  # said to be wrong as a whole
    for path, name in uses:
        if name not in types:
            todo = did_you_mean(name, types, f"there are: {', '.join(sorted(names or types))}")
            yield Finding(path, "a type of node_types", shown(name), todo)


Uses = Iterable[tuple[KeyPath, object]]


def _repeated_in_planes(nodes: Nodes) -> list[Finding]:
    """Planes have the same vertices and the same hosts; nodes are of one plane."""
    findings: list[Finding] = []
    for plane in sorted({node.plane or 1 for _, node in nodes} or {1}):
        in_plane = [(i, node) for i, node in nodes if (node.plane or 1) == plane]
        findings += _repeated(_names(nodes, in_plane), "a name that no other node or host has")
        findings += _repeated(_values(in_plane, "vertex"), "a vertex that no other node has")
    return list(dict.fromkeys(findings))


def _names(nodes: Nodes, with_hosts: Nodes) -> Uses:
    listed = {i for i, _ in with_hosts}
    for i, node in nodes:
        yield ("nodes", i, "name"), node.name
        for h, host in enumerate(node.hosts if i in listed else ()):
            if host.name is not None:
                yield ("nodes", i, "hosts", h, "name"), host.name


def _guids(nodes: Nodes) -> Uses:
    yield from _values(nodes, "guid")
    yield from _of_hosts(nodes, "guid")


def _of_hosts(nodes: Nodes, field: str) -> Uses:
    for i, node in nodes:
        for h, host in enumerate(node.hosts):
            if (value := getattr(host, field)) is not None:
                yield ("nodes", i, "hosts", h, field), value


def _values(nodes: Nodes, field: str) -> Uses:
    for i, node in nodes:
        if (value := getattr(node, field)) is not None:
            yield ("nodes", i, field), value


def _repeated(uses: Uses, required: str) -> Iterator[Finding]:
    """A finding for each value that was used before; case makes no difference."""
    first: dict[str, KeyPath] = {}
    for path, value in uses:
        before = first.setdefault(str(value).lower(), path)
        if before is not path:
            yield Finding(path, required, shown(value), "change one of them", before)


BOUNDS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
"""Pydantic's names of bounds behind a validator, which JSON Schema ignores, and its own."""


def schema_of(model: type[BaseModel]) -> dict[str, object]:
    """The JSON schema of a model: an editor that follows it refuses what a single value may not be.

    Checks between values are not in it. A field is described by its docstring.
    """
    models = {kind.__name__: kind for kind in _descendants(Model)}
    for kind in models.values():  # pydantic 2.7 writes defaults of built models only
        kind.model_rebuild()
    schema = with_field_docs(_bounded(model.model_json_schema()), models)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _descendants(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The models that extend a model, and those that extend them."""
    for extension in kind.__subclasses__():
        yield extension
        yield from _descendants(extension)


def _bounded(value: Any) -> Any:
    """A schema with JSON Schema's own words for bounds."""
    if isinstance(value, list):
        return [_bounded(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {BOUNDS.get(word, word): _bounded(item) for word, item in value.items()}
