"""Ports that are fixed: by `cables` and `port` of hosts in the inventory, or as installed before.

They become *pins*, the ports of links and hosts that `compilers.wiring.port_assignment` keeps. What
the inventory says is checked here, with findings that name the entry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.spec.installed import Installed
from compilers.topology.labelled_graph import Topology
from compilers.wiring.port_assignment import FixedPorts, Pins
from compilers.wiring.type_ports import TypePorts
from compilers.wiring.wiring_checks import PlacedNodes
from inventory.problems import Finding, KeyPath, did_you_mean, shown

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.floor import Cable


MOST_WRONG = 10
"""The most wrong ports of a file of hosts that are named, each with its line."""
PORT_WORDS = {
    "speed": ("of one speed", "{} Gb/s"),
    "mtu": ("of one MTU", "{} bytes"),
    "lanes": ("with as many lanes", "{} lanes"),
    "parallel": ("with as many cables", "{} cables"),
}
"""Properties that ports at both ends of a link share: what is required, and the unit."""


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


def pins_of(
    cables: Sequence[Cable],
    topology: Topology,
    site: PlacedNodes,
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
) -> tuple[Pins, list[Finding]]:
    """Return the ports of links that cables of the inventory fix, and what is wrong with cables.

    Args:
        cables: of the inventory.
        topology: the fabric graph.
        site: the node of each vertex.
        node_type: uint16[S] into types.
        types: the ports of each type.
    """
    vertex = {node.name: v for v, node in enumerate(site.nodes)}
    pins: dict[int, dict[int, int]] = defaultdict(dict)
    # The number of the cable at each port and socket that is used.
    used: dict[tuple[int, int, int | None], int] = {}
    plugs = [ports.plugs for ports in types]
    findings = []
    for i, cable in enumerate(cables):
        unknown = _unknown_ends(i, cable, vertex, node_type, types)
        findings += unknown
        if unknown:
            continue
        u, v = vertex[cable.a], vertex[cable.b]
        near = topology.graph.neighbours(u)
        link = int(np.searchsorted(near, v))
        if link == len(near) or near[link] != v:
            findings.append(_no_link(i, cable, u, v, near, site))
            continue
        link_back = int(np.searchsorted(topology.graph.neighbours(v), u))
        a = _CableEnd(u, link, *plugs[node_type[u]][cable.a_port])
        b = _CableEnd(v, link_back, *plugs[node_type[v]][cable.b_port])
        if a.socket != b.socket:
            given = f"{cable.a_port} and {cable.b_port}"
            required = "whole ports, or sockets of one number, at both ends"
            findings.append(_finding((i,), required, given, ""))
        for end in (a, b):
            findings += _taken(i, cable, used, end, pins[end.vertex])
            pins[end.vertex][end.link] = end.port
    return pins, findings


def pins_of_hosts(
    site: PlacedNodes,
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
    disabled: Mapping[int, Sequence[int]],
    pins: Pins,
    rows: Mapping[str | None, tuple[str, int]],
) -> tuple[Pins, list[Finding]]:
    """Return the ports of hosts that the inventory fixes, and what is wrong with these ports.

    Args:
        site: the node of each vertex.
        node_type: uint16[S] into types.
        types: the ports of each type.
        disabled: the numbers of disabled ports, by switch.
        pins: the ports of links that are fixed.
        rows: the file of hosts and the line of each host in it, by the host's name; {} without
            such a file.
    """
    host_pins: dict[int, dict[int, int]] = defaultdict(dict)
    findings = []
    for v, node in enumerate(site.nodes):
        type_ports = types[node_type[v]]
        for h, host in enumerate(node.hosts):
            if host.port is None:
                continue
            names = type_ports.names
            number = names.index(host.port) + 1 if host.port in names else 0
            taken = (*pins.get(v, {}).values(), *host_pins[v].values())
            if number not in type_ports.host:
                required = f"a port of {node.name} for hosts"
                todo = did_you_mean(host.port, [names[n - 1] for n in type_ports.host])
            elif number in disabled.get(v, ()):
                required, todo = "a port that works", "name another one"
            elif number in taken:
                required, todo = "a port of its own", "name another one"
            else:
                host_pins[v][h] = number
                continue
            given = f"{shown(host.port)} for {host.name or 'a host'} at {node.name}"
            if rows:
                row = rows[host.name]
                findings.append(Finding(("hosts",), required, given, todo, row=row))
            else:
                findings.append(site.finding(v, ("hosts", h, "port"), required, given, todo))
    if rows and len(findings) > MOST_WRONG:
        findings.sort(key=lambda finding: finding.row or ("", 0))
        more = f"{len(findings) - MOST_WRONG:,} more that are none"
        required, first = "ports of the nodes for hosts", findings[MOST_WRONG].row
        findings[MOST_WRONG:] = [Finding(("hosts",), required, more, row=first)]
    return {v: ports for v, ports in host_pins.items() if ports}, findings


def with_installed(
    by_hand: FixedPorts,
    installed: Installed,
    places: Sequence[Sequence[int]],
    site: PlacedNodes,
    topology: Topology,
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
    disabled: Mapping[int, Sequence[int]],
) -> FixedPorts:
    """Add the ports that links and hosts have already to those fixed by hand.

    Links and hosts at ports that are disabled or taken now are left out: they move.

    Args:
        by_hand: the ports that are fixed by hand.
        installed: the ports that links and hosts have.
        places: the places of the hosts of each switch.
        site: the node of each vertex.
        topology: the fabric graph.
        node_type: uint16[S] into types.
        types: the ports of each type.
        disabled: the numbers of disabled ports, by switch.
    """
    links = {v: dict(ports) for v, ports in by_hand.links.items()}
    hosts = {v: dict(ports) for v, ports in by_hand.hosts.items()}
    numbers = [{name: n for n, name in enumerate(ports.names, 1)} for ports in types]
    for v in range(len(site.nodes)):
        type_ports, number_of = types[node_type[v]], numbers[node_type[v]]
        taken = {*links.get(v, {}).values(), *hosts.get(v, {}).values(), *disabled.get(v, ())}
        for k, w in enumerate(topology.graph.neighbours(v).tolist()):
            name = installed.link.get((v, w))
            port = number_of.get(name or "", 0)
            if k not in links.get(v, {}) and port in type_ports.fabric and port not in taken:
                links.setdefault(v, {})[k] = port
                taken.add(port)
        for h in places[v]:
            port = number_of.get(installed.host.get((v, h)) or "", 0)
            if h not in hosts.get(v, {}) and port in type_ports.host and port not in taken:
                hosts.setdefault(v, {})[h] = port
                taken.add(port)
    return FixedPorts(links, hosts)


def _unknown_ends(
    i: int,
    cable: Cable,
    vertex: dict[str, int],
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
) -> list[Finding]:
    """Return findings for ends of the i-th cable that are no nodes, or no ports for links."""
    problems = []
    for end, name, port in (("a", cable.a, cable.a_port), ("b", cable.b, cable.b_port)):
        if name not in vertex:
            todo = did_you_mean(name, vertex) or "spare nodes have no links"
            problems.append(_finding((i, end), "a node of the fabric", shown(name), todo))
            continue
        ports = types[node_type[vertex[name]]]
        fabric = set(ports.fabric)
        names = [name for name, (number, _) in ports.plugs.items() if number in fabric]
        if port not in names:
            todo = did_you_mean(port, names)
            required = f"a port of {name} for links"
            problems.append(_finding((i, f"{end}_port"), required, shown(port), todo))
    return problems


def _no_link(
    i: int, cable: Cable, u: int, v: int, near: NDArray[np.int32], site: PlacedNodes
) -> Finding:
    """Return the finding that the i-th cable joins vertices u and v, which have no link.

    near: int32[K], the neighbours of u.
    """
    neighbours = ", ".join(site.nodes[w].name for w in near[:6].tolist())
    more = ", …" if len(near) > 6 else ""
    return _finding(
        (i,),
        "a link of the fabric",
        f"{cable.a} to {cable.b} (vertices {u} and {v}), which are not joined",
        f"{cable.a} is joined to {neighbours}{more}; if nodes were placed anew, compile against "
        "the build that has the cable",
    )


def _taken(
    i: int,
    cable: Cable,
    used: dict[tuple[int, int, int | None], int],
    end: _CableEnd,
    pins: dict[int, int],
) -> Iterator[Finding]:
    """Yield a finding if another cable has the port or the link of the i-th cable's end.

    Args:
        i: the number of the cable.
        cable: the cable.
        used: the number of the cable at each port and socket, to which this one is added.
        end: the end.
        pins: the fixed ports of the end's switch, by link.
    """
    at_socket = used.setdefault((end.vertex, end.port, end.socket), i)
    before = used.get((end.vertex, end.port, None), at_socket)
    if before != i:
        given, todo = "a second for one port", "change one of them"
        yield _finding((i,), "one cable per port", given, todo, ("cables", before))
    elif end.link in pins and (end.socket is None or pins[end.link] != end.port):
        given = f"another between {cable.a} and {cable.b}"
        yield _finding((i,), "one cable per link", given, "remove one of them")


def _finding(rest: KeyPath, required: str, given: str, todo: str, also: KeyPath = ()) -> Finding:
    """Return a finding about the value at `rest` below `cables`; also: a second place."""
    return Finding(("cables", *rest), required, given, todo, also)


def unequal_ports(
    port: NDArray[np.int32],
    far: NDArray[np.int32],
    far_port: NDArray[np.int32],
    site: PlacedNodes,
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
) -> Iterator[Finding]:
    """Yield a finding for each link whose ports differ in speed, MTU, lanes or cables.

    Args:
        port: int32[S, K], the port of each link.
        far: int32[S, K], the vertex at the other end, -1 beyond the last.
        far_port: int32[S, K], the port at the other end.
        site: the node of each vertex.
        node_type: uint16[S] into types.
        types: the ports of each type.
    """
    widest = max(len(ports.names) for ports in types)
    smaller_end = far > np.arange(len(far))[:, None]
    for word, (what, unit) in PORT_WORDS.items():
        # By type and port number, 0 where unknown.
        values = np.zeros((len(types), widest + 1), np.int64)
        for t, ports in enumerate(types):
            values[t, 1 : len(ports.names) + 1] = [n or 0 for n in getattr(ports, word)]
        if len({*values[values > 0].tolist()}) < 2:
            continue
        near_value = values[node_type[:, None], port]
        far_value = np.where(far >= 0, values[node_type[far], far_port], 0)
        known = (near_value > 0) & (far_value > 0)
        for s, k in np.argwhere((near_value != far_value) & known & smaller_end).tolist():

            def text(vertex: int, number: int, value: int, unit: str = unit) -> str:
                name = types[node_type[vertex]].names[number - 1]
                return f"{unit.format(value)} at {site.nodes[vertex].name} {name}"

            near_text = text(s, int(port[s, k]), int(near_value[s, k]))
            far_text = text(int(far[s, k]), int(far_port[s, k]), int(far_value[s, k]))
            yield site.finding(
                s,
                ("type",),
                f"ports {what} at both ends of a link",
                f"{near_text} and {far_text}",
                f"choose types with the same {word}, or ports by hand (cables)",
            )
