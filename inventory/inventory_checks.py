"""Checks between the values of an inventory: names, addresses, types and ports.

`check_inventory` lists all mistakes. Racks, places and cables are checked by `floor_checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set

from inventory.document_errors import value_or_none, well_formed
from inventory.floor import Generate
from inventory.floor_checks import Data, check_floor
from inventory.library import library_names
from inventory.model import Nodes, NodeType, PortBlock
from inventory.problems import Finding, KeyPath, did_you_mean, shown

MOST_TYPE_PORTS = 65_000
"""The most ports of a node type."""
MOST_HOSTS = 1024
"""The most hosts of a node."""
Uses = Iterable[tuple[KeyPath, object]]
"""Values that must differ, each with its path."""


def check_inventory(nodes: Nodes, data: Data, context: Data) -> list[Finding]:
    """All mistakes between values, also if other parts of the inventory are not well-formed.

    Args:
        nodes: the well-formed nodes.
        data: the inventory as it is written.
        context: for validators: the `folder` of files that the inventory names.
    """
    listed = data.get("node_types")
    types = listed if isinstance(listed, dict) else {}
    node_types = {name: well_formed(NodeType, value, context) for name, value in types.items()}
    return [
        *_type_findings(node_types, _port_findings),
        *_type_findings(node_types, _buffer_findings),
        *_node_source_findings(data),
        *_unknown_group_findings(nodes, data),
        *_group_count_findings(data),
        *_host_list_findings(nodes, data),
        *_unknown_type_findings(nodes, {str(name) for name in types}, data),
        *_repeated_findings(_node_values(nodes, "serial"), "a serial number of its own"),
        *_repeated_findings(_guids(nodes), "a GUID of its own"),
        *_repeated_in_plane_findings(nodes),
        *_repeated_findings(_node_values(nodes, "datapath_id"), "a datapath id of its own"),
        *_repeated_findings(_node_values(nodes, "asn"), "an AS number of its own"),
        *_repeated_findings(_node_values(nodes, "management"), "a management address of its own"),
        *_repeated_findings(_host_values(nodes, "mac"), "a MAC address of its own"),
        *check_floor(nodes, types, data),
    ]


def _type_findings(
    node_types: Mapping[str, NodeType | None],
    check: Callable[[str, NodeType], Iterator[Finding]],
) -> Iterator[Finding]:
    """The mistakes that a check finds in the well-formed node types."""
    for name, node_type in node_types.items():
        if node_type is not None:
            yield from check(name, node_type)


def _node_source_findings(data: Data) -> Iterator[Finding]:
    """Nodes that are both listed and generated, or neither."""
    generated = data.get("generate") is not None
    if "nodes" in data and generated:
        yield Finding(("generate",), "nodes or generate", "both", "remove one of them")
    elif "nodes" not in data and not generated:
        yield Finding(("nodes",), "the key nodes", "nothing", "add `nodes: …`")


def _port_findings(name: str, node_type: NodeType) -> Iterator[Finding]:
    """Ports of a type with the same name, and a shuffle or a platform that does not fit them."""
    path: KeyPath = ("node_types", name)
    total = sum(block.total for block in node_type.ports)
    if total > MOST_TYPE_PORTS:
        yield Finding((*path, "ports"), f"at most {MOST_TYPE_PORTS:,} ports a type", f"{total:,}")
        return
    block_of: dict[str, int] = {}  # by the name of a port or socket
    for b, block in enumerate(node_type.ports):
        mistake = _block_mistake((*path, "ports", b), block, block_of)
        if mistake:
            yield mistake
        else:
            block_of |= dict.fromkeys(_names_in_block(block), b)
    yield from _shuffle_findings((*path, "shuffle"), node_type, block_of.keys())
    try:
        node_type.platform_ports()
    except ValueError as error:
        todo = "name the platform's own file, or correct count, breakout, speed and lanes"
        required, actual = error.args
        yield Finding((*path, "platform"), required, actual, todo)


def _block_mistake(path: KeyPath, block: PortBlock, block_of: Mapping[str, int]) -> Finding | None:
    """The mistake in a block of ports, or None.

    Args:
        path: the path of the block.
        block: the block.
        block_of: by port of the blocks before it, the number of the port's block.
    """
    if block.parallel > 1 and (block.breakout > 1 or block.role == "host"):
        clash = "breakout, too" if block.breakout > 1 else "role: host"
        return Finding((*path, "parallel"), "parallel cables of whole ports for links", clash)
    names = _names_in_block(block)
    if len(set(names)) < len(names):
        required = "a name with {} for the number, as the block has several ports"
        todo = f"write {block.name}{{}}, or count: 1"
        return Finding((*path, "name"), required, shown(block.name), todo)
    repeated = [name for name in names if name in block_of]
    if repeated:
        required = "port names that no other block of the type has"
        name = f"{shown(repeated[0])}, also in ports[{block_of[repeated[0]]}]"
        return Finding(path, required, name, "change name or first")
    return None


def _names_in_block(block: PortBlock) -> list[str]:
    """The names of a block's ports, and of their sockets if a port takes several cables."""
    names = list(block.port_names())
    if block.parallel > 1:
        names += [name for sockets in block.sockets() for name in sockets]
    return names


def _shuffle_findings(path: KeyPath, node_type: NodeType, ports: Set[str]) -> Iterator[Finding]:
    """The first lane of the shuffle that leads to no port of the type, or to a port with a lane.

    Args:
        path: the path of the shuffle.
        node_type: the type.
        ports: the names of its ports and sockets.
    """
    lanes = [word for text in node_type.shuffle for word in text.split() if word != "-"]
    wrong = [word for word in lanes if word not in ports or lanes.count(word) > 1]
    if wrong:
        port = f"{wrong[0]} twice" if wrong[0] in ports else wrong[0]
        yield Finding(path, "each lane's port, once", port, did_you_mean(wrong[0], ports))


def _buffer_findings(name: str, node_type: NodeType) -> Iterator[Finding]:
    """Values of packet memory that do not fit each other."""
    buffer = node_type.buffer
    if buffer is None:
        return
    path: KeyPath = ("node_types", name, "buffer")
    if len(set(buffer.priorities)) < len(buffer.priorities):
        priorities = ", ".join(map(str, buffer.priorities))
        yield Finding((*path, "priorities"), "each priority once", priorities)
    if buffer.ecn_max < buffer.ecn_min:
        required = f"at least ecn_min, {buffer.ecn_min}"
        yield Finding((*path, "ecn_max"), required, str(buffer.ecn_max))


def _unknown_group_findings(nodes: Nodes, data: Data) -> Iterator[Finding]:
    """Groups of nodes, listed or generated, that `groups` does not have."""
    uses: list[tuple[KeyPath, str | None]] = [(("nodes", i, "group"), n.group) for i, n in nodes]
    generate = value_or_none(Generate, data.get("generate"))
    for i, generated in enumerate(generate.types if generate else ()):
        uses.append((("generate", "types", i, "group"), generated.group))
    groups = [str(name) for name in data.get("groups") or ()]
    for path, group in uses:
        if group is not None and group not in groups:
            todo = did_you_mean(group, groups) or "add it there"
            yield Finding(path, "a key of groups", shown(group), todo)


def _group_count_findings(data: Data) -> Iterator[Finding]:
    """Values of `host_count` in a group that are no number of hosts."""
    groups = data.get("groups")
    for name, values in groups.items() if isinstance(groups, dict) else ():
        count = values.get("host_count") if isinstance(values, dict) else None
        if count is not None and not (type(count) is int and 0 <= count <= MOST_HOSTS):
            path: KeyPath = ("groups", name, "host_count")
            yield Finding(path, f"a whole number from 0 to {MOST_HOSTS}", shown(count))


def _host_list_findings(nodes: Nodes, data: Data) -> Iterator[Finding]:
    """Hosts at nodes, although a file has all hosts."""
    if "hosts" not in data:
        return
    required = "hosts at their nodes, or all of them in a file (hosts)"
    for i, node in nodes:
        for key in ("hosts", "host_count"):
            if getattr(node, key) not in ((), None):
                path: KeyPath = ("nodes", i, key)
                yield Finding(path, required, "both", "remove one of them", ("hosts",))


def _unknown_type_findings(nodes: Nodes, names: Collection[str], data: Data) -> Iterator[Finding]:
    """Types of nodes, listed or generated, that neither the inventory nor the library has.

    Args:
        nodes: the well-formed nodes.
        names: the keys of node_types.
        data: the inventory as it is written.
    """
    if not names and "node_types" in data:
        return  # another finding says that node_types is wrong as a whole
    uses: list[tuple[KeyPath, str]] = [(("nodes", i, "type"), node.type) for i, node in nodes]
    generate = value_or_none(Generate, data.get("generate"))
    if generate is not None and generate.type is not None:
        uses.append((("generate", "type"), generate.type))
    elif generate is not None:
        uses += [(("generate", "types", i, "type"), p.type) for i, p in enumerate(generate.types)]
    types = {*names, *library_names()}
    for path, name in uses:
        if name not in types:
            todo = did_you_mean(name, types, f"there are: {', '.join(sorted(names or types))}")
            yield Finding(path, "a type of node_types", shown(name), todo)


def _repeated_in_plane_findings(nodes: Nodes) -> list[Finding]:
    """Names and vertices that are used twice.

    Every plane has the same hosts and vertices, so hosts and vertices are compared in one plane at
    a time. Names of nodes differ in all planes. They are compared with the hosts of each plane in
    turn, so a finding about them may come more than once; it is reported once.
    """
    findings: list[Finding] = []
    for plane in sorted({node.plane or 1 for _, node in nodes} or {1}):
        in_plane = [(i, node) for i, node in nodes if (node.plane or 1) == plane]
        findings += _repeated_findings(
            _node_and_host_names(nodes, in_plane), "a name that no other node or host has"
        )
        findings += _repeated_findings(
            _node_values(in_plane, "vertex"), "a vertex that no other node has"
        )
    return list(dict.fromkeys(findings))


def _node_and_host_names(nodes: Nodes, in_plane: Nodes) -> Uses:
    """The names of all nodes, and of the hosts at the nodes of a plane."""
    numbers_in_plane = {i for i, _ in in_plane}
    for i, node in nodes:
        yield ("nodes", i, "name"), node.name
        if i in numbers_in_plane:
            yield from _host_values([(i, node)], "name")


def _guids(nodes: Nodes) -> Uses:
    """The GUIDs of nodes and hosts."""
    yield from _node_values(nodes, "guid")
    yield from _host_values(nodes, "guid")


def _host_values(nodes: Nodes, key: str) -> Uses:
    """The values of a key of hosts, for the hosts that have it."""
    for i, node in nodes:
        for h, host in enumerate(node.hosts):
            value = getattr(host, key)
            if value is not None:
                yield ("nodes", i, "hosts", h, key), value


def _node_values(nodes: Nodes, key: str) -> Uses:
    """The values of a key of nodes, for the nodes that have it."""
    for i, node in nodes:
        value = getattr(node, key)
        if value is not None:
            yield ("nodes", i, key), value


def _repeated_findings(uses: Uses, required: str) -> Iterator[Finding]:
    """A finding for each value that an earlier path has, too; case makes no difference."""
    first: dict[str, KeyPath] = {}
    for path, value in uses:
        earlier = first.setdefault(str(value).lower(), path)
        if earlier is not path:
            yield Finding(path, required, shown(value), "change one of them", earlier)
