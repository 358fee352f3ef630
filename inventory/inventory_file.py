"""Load inventory.yaml and check what no single value can tell: names, addresses and types agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from inventory.floor import Generate
from inventory.floor_checks import check_floor
from inventory.library import library_names, library_type
from inventory.model import Inventory, Node, NodeType
from inventory.problems import InputError, KeyPath, Problem, few, nearest, shown
from inventory.validate import part, validate
from inventory.yamlfile import Document, from_values, read

MOST_TYPE_PORTS = 65_000
Nodes = Sequence[tuple[int, Node]]


def load_inventory(source: str | Path | Mapping[str, Any]) -> tuple[Inventory, Document]:
    """The inventory in a YAML file (`-`: standard input) or a mapping, and it as a document.

    Its node_types hold the types of the library that it uses, behind its own.

    Raises:
        InputError: every mistake in it.
    """
    document = from_values(source) if isinstance(source, Mapping) else read(source)
    problems: list[Problem] = []
    inventory = None
    try:
        inventory = validate(Inventory, document)
    except InputError as error:
        problems += error.problems
    problems += _check(inventory, document)
    if inventory is None or problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line))
    return _with_library(inventory), document


def _with_library(inventory: Inventory) -> Inventory:
    """The inventory with every type that it uses among its node_types."""
    used = [node.type for node in inventory.nodes]
    used += [inventory.generate.type] if inventory.generate else []
    missing = sorted(set(used) - set(inventory.node_types))
    shipped = {name: library_type(name) for name in missing}
    return inventory.model_copy(update={"node_types": {**inventory.node_types, **shipped}})


def _nodes(inventory: Inventory | None, document: Document) -> Nodes:
    """The well-formed nodes and their places in the list."""
    if inventory is not None:
        return list(enumerate(inventory.nodes))
    listed = document.data.get("nodes")
    values = enumerate(listed if isinstance(listed, list) else [])
    return [(i, node) for i, value in values if (node := part(Node, value))]


def _check(inventory: Inventory | None, document: Document) -> list[Problem]:
    """Everything that can be said of the well-formed parts, also when others are not."""
    nodes = _nodes(inventory, document)
    listed = document.data.get("node_types")
    names = {str(name) for name in listed} if isinstance(listed, dict) else set()
    types = listed if isinstance(listed, dict) else {}
    found = [
        *(
            p
            for name, value in types.items()
            for p in _ports(name, part(NodeType, value), document)
        ),
        *_neither_nodes_nor_generate(document),
        *_unknown_types(nodes, names, document),
        *_repeated(_own(nodes, "serial"), "a serial number of its own", document),
        *_repeated(_guids(nodes), "a GUID of its own", document),
        *_repeated_in_planes(nodes, document),
        *_repeated(_own(nodes, "datapath_id"), "a datapath id of its own", document),
        *_repeated(_own(nodes, "management"), "a management address of its own", document),
        *_repeated(_of_hosts(nodes, "mac"), "a MAC address of its own", document),
    ]
    return few([*found, *check_floor(nodes, types, document)])


def _neither_nodes_nor_generate(document: Document) -> list[Problem]:
    data = document.data
    if "nodes" in data and "generate" in data:
        todo = "remove one of them"
        return [document.problem(("generate",), "nodes or generate", "both", todo)]
    if "nodes" in data or "generate" in data:
        return []
    return [document.problem(("nodes",), "the key nodes", "nothing", "add `nodes: …`")]


def _ports(name: str, node_type: NodeType | None, document: Document) -> list[Problem]:
    """Port names must differ within a type, or two ports could not be told apart."""
    if node_type is None:
        return []
    path: KeyPath = ("node_types", name, "ports")
    total = sum(block.total for block in node_type.ports)
    if total > MOST_TYPE_PORTS:
        return [document.problem(path, f"at most {MOST_TYPE_PORTS:,} ports a type", f"{total:,}")]
    problems = []
    block_of: dict[str, int] = {}
    for b, block in enumerate(node_type.ports):
        if block.parallel > 1 and (block.breakout > 1 or block.role == "host"):
            given = "breakout, too" if block.breakout > 1 else "role: host"
            required = "parallel cables of whole ports for links"
            problems.append(document.problem((*path, b, "parallel"), required, given))
            continue
        names = block.names()
        if block.parallel > 1:
            names = [*names, *(name for sockets in block.sockets() for name in sockets)]
        if len(set(names)) < len(names):
            problems.append(
                document.problem(
                    (*path, b, "name"),
                    "a name with {} for the number, as the block has several ports",
                    shown(block.name),
                    f"write {block.name}{{}}, or count: 1",
                )
            )
            continue
        if taken := [port for port in names if port in block_of]:
            problems.append(
                document.problem(
                    (*path, b),
                    "port names that no other block of the type has",
                    f"{shown(taken[0])}, also in ports[{block_of[taken[0]]}]",
                    "change name or first",
                )
            )
        block_of |= dict.fromkeys(names, b)
    return problems


def _unknown_types(nodes: Nodes, names: set[str], document: Document) -> list[Problem]:
    asked: list[tuple[KeyPath, str]] = [(("nodes", i, "type"), node.type) for i, node in nodes]
    generate = part(Generate, document.data.get("generate"))
    asked += [(("generate", "type"), generate.type)] if generate else []
    known = {*names, *library_names()}
    problems = []
    if not names and "node_types" in document.data:
        return []  # said to be wrong as a whole
    for path, name in asked:
        if name not in known:
            meant = nearest(name, known)
            there = ", ".join(sorted(names or known))
            todo = f"did you mean {meant}?" if meant else f"there are: {there}"
            problems.append(document.problem(path, "a type of node_types", shown(name), todo))
    return problems


Uses = Iterable[tuple[KeyPath, object]]


def _repeated_in_planes(nodes: Nodes, document: Document) -> list[Problem]:
    """Planes have the same vertices and the same hosts; nodes are of one plane."""
    found = []
    for plane in sorted({node.plane or 1 for _, node in nodes} or {1}):
        own = [(i, node) for i, node in nodes if (node.plane or 1) == plane]
        names = _repeated(_names(nodes, own), "a name that no other node or host has", document)
        vertices = _repeated(_own(own, "vertex"), "a vertex that no other node has", document)
        found += [*names, *vertices]
    return list(dict.fromkeys(found))


def _names(nodes: Nodes, with_hosts: Nodes) -> Uses:
    listed = {i for i, _ in with_hosts}
    for i, node in nodes:
        yield ("nodes", i, "name"), node.name
        for h, host in enumerate(node.hosts if i in listed else ()):
            if host.name is not None:
                yield ("nodes", i, "hosts", h, "name"), host.name


def _guids(nodes: Nodes) -> Uses:
    yield from _own(nodes, "guid")
    yield from _of_hosts(nodes, "guid")


def _of_hosts(nodes: Nodes, field: str) -> Uses:
    for i, node in nodes:
        for h, host in enumerate(node.hosts):
            if (value := getattr(host, field)) is not None:
                yield ("nodes", i, "hosts", h, field), value


def _own(nodes: Nodes, field: str) -> Uses:
    for i, node in nodes:
        if (value := getattr(node, field)) is not None:
            yield ("nodes", i, field), value


def _repeated(uses: Uses, required: str, document: Document) -> list[Problem]:
    """A problem for each value that was used before; case makes no difference."""
    first: dict[str, KeyPath] = {}
    problems = []
    for path, value in uses:
        before = first.setdefault(str(value).lower(), path)
        if before is not path:
            holder = f"{shown(value)}, also in line {document.line(before)}"
            problems.append(document.problem(path, required, holder, "change one of them"))
    return problems


def schema_of(model: type[BaseModel]) -> dict[str, object]:
    """The JSON schema of a model, for an editor's completion."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}
