"""Ports that are fixed: by cables and hosts of the inventory, or as installed before.

`cables` of the inventory fix the ports of links, and `port` of a host fixes the host's port.

Fixed ports become *pins*, the ports of links and hosts that `compilers.wiring.port_assignment`
keeps. What the inventory says is checked here, with findings that name the entry. `port_plan` calls
these functions.

The inventory lists *nodes*, that is switches. Each node is placed at a *vertex* of the fabric
graph. `host_index` is the index of a host among the host ports of its switch. A port has a *socket*
for each cable that it takes; the name of a whole port stands for all its sockets. `far` is the
vertex at the other end of a link.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.spec.installed import InstalledPlane
from compilers.topology.labelled_graph import Topology
from compilers.wiring.port_assignment import FixedPorts, Pins
from compilers.wiring.type_ports import SwitchPorts
from compilers.wiring.wiring_checks import PlacedNodes
from inventory.problems import Finding, KeyPath, did_you_mean, shown

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.floor import Cable
    from inventory.model import Inventory

MOST_PORTS_NAMED = 10
"""Of the wrong ports in a file of hosts, how many are named, each with its line."""
NEIGHBOURS_NAMED = 6
"""The most neighbours of a node that a message names."""
Line = tuple[str, int]
"""A file, and the number of a line in it."""


class _PortProperty(NamedTuple):
    """Messages for a property that the ports at both ends of a link share."""

    required: str
    """What is required of the ports."""
    value: str
    """The pattern of `str.format` for a value with its unit."""


PORT_PROPERTIES = {
    "speed": _PortProperty("of one speed", "{} Gb/s"),
    "mtu": _PortProperty("of one MTU", "{} bytes"),
    "lanes": _PortProperty("with as many lanes", "{} lanes"),
    "parallel": _PortProperty("with as many cables", "{} cables"),
}
"""The shared properties, by the field of `TypePorts`."""


@dataclass(frozen=True, slots=True)
class _CableEnd:
    """An end of a cable of the inventory."""

    vertex: int
    """The vertex of the node."""
    link: int
    """The number of the link there."""
    port: int
    """The number of the port."""
    socket: int | None
    """The socket of the port, from 0; None for all sockets."""


_NumberedEnd = tuple[int, _CableEnd]
"""The number of a cable, and an end of this cable."""
_PortByLink = dict[int, int]
"""The fixed ports of a switch, by the number of the link."""
_PortByHost = dict[int, int]
"""The fixed ports of a switch, by the index of the host."""


def lines_of_hosts(inventory: Inventory) -> dict[str | None, Line]:
    """Return the line of each host in the file of hosts, by the host's name; {} without a file."""
    return {row.host.name: (row.file, row.line) for row in inventory.hosts}


def pins_of(
    cables: Sequence[Cable], topology: Topology, placed_nodes: PlacedNodes, switches: SwitchPorts
) -> tuple[Pins, list[Finding]]:
    """Return the ports of links that cables of the inventory fix, and what is wrong with cables.

    Args:
        cables: of the inventory.
        topology: the fabric graph.
        placed_nodes: the node of each vertex.
        switches: the ports of each switch.
    """
    vertex = {node.name: v for v, node in enumerate(placed_nodes.nodes)}
    pins: dict[int, _PortByLink] = defaultdict(dict)
    # By vertex and port, the ends of cables at this port.
    ends_at: dict[tuple[int, int], list[_NumberedEnd]] = defaultdict(list)
    sockets_by_name = [ports.sockets_by_name for ports in switches.types]  # by node type
    findings = []
    for i, cable in enumerate(cables):
        unknown = _unknown_end_findings(i, cable, vertex, switches)
        findings += unknown
        if unknown:
            continue
        u, v = vertex[cable.a], vertex[cable.b]
        link, link_back = _link_to(topology, u, v), _link_to(topology, v, u)
        if link is None or link_back is None:
            findings.append(
                _no_link_finding(
                    i,
                    cable=cable,
                    u=u,
                    v=v,
                    neighbours=topology.graph.neighbours(u),
                    placed_nodes=placed_nodes,
                )
            )
            continue
        a = _CableEnd(u, link, *sockets_by_name[switches.node_type[u]][cable.a_port])
        b = _CableEnd(v, link_back, *sockets_by_name[switches.node_type[v]][cable.b_port])
        if a.socket != b.socket:
            port_names = f"{cable.a_port} and {cable.b_port}"
            required = "whole ports, or sockets of one number, at both ends"
            findings.append(_finding((i,), required, port_names, ""))
        for end in (a, b):
            ends_at_port = ends_at[end.vertex, end.port]
            findings += _port_use_findings(i, cable, end, ends_at_port, pins[end.vertex])
            ends_at_port.append((i, end))
            pins[end.vertex][end.link] = end.port
    return pins, findings


def _link_to(topology: Topology, vertex: int, far: int) -> int | None:
    """Return the number of the link from a vertex to another, None if they have no link."""
    neighbours = topology.graph.neighbours(vertex)
    link = int(np.searchsorted(neighbours, far))
    return link if link < len(neighbours) and neighbours[link] == far else None


def pins_of_hosts(
    placed_nodes: PlacedNodes,
    switches: SwitchPorts,
    pins: Pins,
    line_of_host: Mapping[str | None, Line],
) -> tuple[Pins, list[Finding]]:
    """Return the ports of hosts that the inventory fixes, and what is wrong with these ports.

    Args:
        placed_nodes: the node of each vertex.
        switches: the ports of each switch.
        pins: the ports of links that are fixed.
        line_of_host: the line of each host in the file of hosts, by the host's name; {} without
            such a file.
    """
    host_pins: dict[int, _PortByHost] = defaultdict(dict)
    findings = []
    for v, node in enumerate(placed_nodes.nodes):
        names = switches.of_switch(v).names
        for host_index, host in enumerate(node.hosts):
            if host.port is None:
                continue
            number = names.index(host.port) + 1 if host.port in names else 0
            used = (*pins.get(v, {}).values(), *host_pins[v].values())
            refusal = _host_port_refusal(
                host.port,
                number=number,
                vertex=v,
                node_name=node.name,
                switches=switches,
                used=used,
            )
            if refusal is None:
                host_pins[v][host_index] = number
                continue
            required, todo = refusal.required, refusal.todo
            at_node = f"{shown(host.port)} for {host.name or 'a host'} at {node.name}"
            if line_of_host:
                line = line_of_host[host.name]
                findings.append(Finding(("hosts",), required, at_node, todo, row=line))
            else:
                path = ("hosts", host_index, "port")
                findings.append(placed_nodes.finding(v, path, required, at_node, todo))
    if line_of_host and len(findings) > MOST_PORTS_NAMED:
        findings.sort(key=lambda finding: finding.row or ("", 0))
        more = f"{len(findings) - MOST_PORTS_NAMED:,} more ports that cannot be used"
        required, first = "ports of the nodes for hosts", findings[MOST_PORTS_NAMED].row
        findings[MOST_PORTS_NAMED:] = [Finding(("hosts",), required, more, row=first)]
    return {v: ports for v, ports in host_pins.items() if ports}, findings


class _Refusal(NamedTuple):
    """Why the port of a host is refused."""

    required: str
    """What is required of the port."""
    todo: str
    """What the user can do."""


def _host_port_refusal(
    port: str, number: int, vertex: int, node_name: str, switches: SwitchPorts, used: Sequence[int]
) -> _Refusal | None:
    """Return why a host's port is refused; None if nothing is wrong with it.

    Args:
        port: the name of the port in the inventory.
        number: its number; 0 if the node type has no such port.
        vertex: the vertex of the node.
        node_name: the name of the node.
        switches: the ports of each switch.
        used: the numbers of the ports that are fixed for links and other hosts.
    """
    ports = switches.of_switch(vertex)
    if number not in ports.host:
        todo = did_you_mean(port, [ports.names[n - 1] for n in ports.host])
        return _Refusal(f"a port of {node_name} for hosts", todo)
    if number in switches.disabled.get(vertex, ()):
        return _Refusal("a port that works", "name another one")
    if number in used:
        return _Refusal("a port of its own", "name another one")
    return None


def with_installed(
    by_hand: FixedPorts,
    installed: InstalledPlane,
    host_indexes: Sequence[Sequence[int]],
    topology: Topology,
    switches: SwitchPorts,
) -> FixedPorts:
    """Add the ports that links and hosts have already to the ports that are fixed by hand.

    Links and hosts whose port is now disabled, or used by another link or host, are left out: they
    move to other ports.

    Args:
        by_hand: the ports that are fixed by hand.
        installed: the ports that links and hosts have.
        host_indexes: by vertex, the indexes of the hosts of the switch.
        topology: the fabric graph.
        switches: the ports of each switch.
    """
    links = {v: dict(ports) for v, ports in by_hand.links.items()}
    hosts = {v: dict(ports) for v, ports in by_hand.hosts.items()}
    numbers = [{name: n for n, name in enumerate(ports.names, 1)} for ports in switches.types]
    for v, indexes in enumerate(host_indexes):
        ports, number_of = switches.of_switch(v), numbers[switches.node_type[v]]
        used = {*links.get(v, {}).values(), *hosts.get(v, {}).values()}
        used |= {*switches.disabled.get(v, ())}
        for link, far in enumerate(topology.graph.neighbours(v).tolist()):
            port = number_of.get(installed.port_of_link.get((v, far)) or "", 0)
            if link not in links.get(v, {}) and port in ports.fabric and port not in used:
                links.setdefault(v, {})[link] = port
                used.add(port)
        for host_index in indexes:
            port = number_of.get(installed.port_of_host.get((v, host_index)) or "", 0)
            if host_index not in hosts.get(v, {}) and port in ports.host and port not in used:
                hosts.setdefault(v, {})[host_index] = port
                used.add(port)
    return FixedPorts(links, hosts)


def _unknown_end_findings(
    i: int, cable: Cable, vertex: dict[str, int], switches: SwitchPorts
) -> list[Finding]:
    """Return findings for ends of the i-th cable whose node or port for links does not exist.

    Args:
        i: the number of the cable.
        cable: the cable.
        vertex: the vertex of each node, by name.
        switches: the ports of each switch.
    """
    findings = []
    for end, name, port in (("a", cable.a, cable.a_port), ("b", cable.b, cable.b_port)):
        if name not in vertex:
            todo = did_you_mean(name, vertex) or "spare nodes have no links"
            findings.append(_finding((i, end), "a node of the fabric", shown(name), todo))
            continue
        ports = switches.of_switch(vertex[name])
        fabric = set(ports.fabric)
        names = [
            port_name for port_name, named in ports.sockets_by_name.items() if named.port in fabric
        ]
        if port not in names:
            todo = did_you_mean(port, names)
            required = f"a port of {name} for links"
            findings.append(_finding((i, f"{end}_port"), required, shown(port), todo))
    return findings


def _no_link_finding(
    i: int, cable: Cable, u: int, v: int, neighbours: NDArray[np.int32], placed_nodes: PlacedNodes
) -> Finding:
    """Return the finding that the i-th cable joins vertices u and v, which have no link.

    Args:
        i: the number of the cable.
        cable: the cable.
        u: the vertex of its first end.
        v: the vertex of its second end.
        neighbours: int32[K], the neighbours of u.
        placed_nodes: the node of each vertex.
    """
    names = ", ".join(placed_nodes.nodes[w].name for w in neighbours[:NEIGHBOURS_NAMED].tolist())
    more = ", …" if len(neighbours) > NEIGHBOURS_NAMED else ""
    return _finding(
        (i,),
        "a link of the fabric",
        f"{cable.a} to {cable.b} (vertices {u} and {v}), which are not joined",
        f"{cable.a} is joined to {names}{more}; if nodes were placed anew, compile against "
        "the build that has the cable",
    )


def _port_use_findings(
    i: int,
    cable: Cable,
    end: _CableEnd,
    earlier_ends: Sequence[_NumberedEnd],
    pins: Mapping[int, int],
) -> Iterator[Finding]:
    """Yield a finding if an earlier cable takes the port of an end, or joins the same link.

    Args:
        i: the number of the cable.
        cable: the cable.
        end: the end.
        earlier_ends: the ends of earlier cables at the same port, with the numbers of the cables.
        pins: the ports that earlier cables fix at the end's switch, by link.
    """
    # An end without a socket takes the whole port.
    at_same_socket = [
        number
        for number, earlier in earlier_ends
        if earlier.socket == end.socket or earlier.socket is None or end.socket is None
    ]
    of_other_link = [number for number, earlier in earlier_ends if earlier.link != end.link]
    todo = "change one of them"
    if at_same_socket:
        required, second = "one cable per port", "a second for one port"
        yield _finding((i,), required, second, todo, ("cables", at_same_socket[0]))
    elif of_other_link:
        required, second = "cables of one link at a port", "one of another link"
        yield _finding((i,), required, second, todo, ("cables", of_other_link[0]))
    # Only the sockets of one port may carry several cables of a link.
    elif end.link in pins and (end.socket is None or pins[end.link] != end.port):
        second = f"another between {cable.a} and {cable.b}"
        yield _finding((i,), "one cable per link", second, "remove one of them")


def _finding(path: KeyPath, required: str, given: str, todo: str, also: KeyPath = ()) -> Finding:
    """Return a finding about the value at a path below `cables`; `also` is a second such path."""
    return Finding(("cables", *path), required, given, todo, also)


def unequal_port_findings(
    port: NDArray[np.int32],
    far: NDArray[np.int32],
    far_port: NDArray[np.int32],
    placed_nodes: PlacedNodes,
    switches: SwitchPorts,
) -> Iterator[Finding]:
    """Yield a finding for each link whose ports differ in speed, MTU, lanes or cables.

    Args:
        port: int32[S, K], the port of each link.
        far: int32[S, K], the vertex at the other end, -1 beyond the last.
        far_port: int32[S, K], the port at the other end.
        placed_nodes: the node of each vertex.
        switches: the ports of each switch.
    """
    node_type, types = switches.node_type, switches.types
    widest = max(len(ports.names) for ports in types)
    smaller_end = far > np.arange(len(far))[:, None]
    for field, (required, value_pattern) in PORT_PROPERTIES.items():
        # int64[types, ports + 1], by type and port number; 0 where unknown. Ports begin with 1.
        values = np.zeros((len(types), widest + 1), np.int64)
        for type_number, ports in enumerate(types):
            values_of_ports = [value or 0 for value in getattr(ports, field)]
            values[type_number, 1 : len(ports.names) + 1] = values_of_ports
        if len({*values[values > 0].tolist()}) < 2:
            continue
        near_value = values[node_type[:, None], port]
        far_value = np.where(far >= 0, values[node_type[far], far_port], 0)
        both_known = (near_value > 0) & (far_value > 0)
        is_unequal = (near_value != far_value) & both_known & smaller_end
        for u, k in np.argwhere(is_unequal).tolist():
            ends = (
                (u, int(port[u, k]), int(near_value[u, k])),
                (int(far[u, k]), int(far_port[u, k]), int(far_value[u, k])),
            )
            near_text, far_text = (
                f"{value_pattern.format(value)} at {placed_nodes.nodes[v].name}"
                f" {switches.of_switch(v).names[number - 1]}"
                for v, number, value in ends
            )
            yield placed_nodes.finding(
                u,
                ("type",),
                f"ports {required} at both ends of a link",
                f"{near_text} and {far_text}",
                f"choose types with the same {field}, or ports by hand (cables)",
            )
