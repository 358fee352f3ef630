"""Fixed cables: the inventory's cables as ports of links, and checks of these ports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.spec.installed import Installed
from compilers.topology.labelled_graph import Topology
from compilers.wiring.port_assignment import Pins, TypePorts
from compilers.wiring.wiring_checks import Site
from inventory.problems import Finding, KeyPath, did_you_mean, shown

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.floor import Cable


MOST_WRONG = 10
"""Ports in a file of hosts that are named as wrong, each with its line."""


def pins_of(
    cables: Sequence[Cable],
    topology: Topology,
    site: Site,
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
) -> tuple[Pins, list[Finding]]:
    """The port of each link that a cable of the inventory names, and what is wrong with cables."""
    vertex = {node.name: v for v, node in enumerate(site.nodes)}
    pins: dict[int, dict[int, int]] = defaultdict(dict)
    used: dict[tuple[int, int, int | None], int] = {}
    plugs = [ports.plugs for ports in types]
    problems = []
    for i, cable in enumerate(cables):
        wrong = _unknown(i, cable, vertex, node_type, types)
        if not wrong:
            u, v = vertex[cable.a], vertex[cable.b]
            near = topology.graph.neighbours(u)
            where = int(np.searchsorted(near, v))
            if where == len(near) or near[where] != v:
                wrong = [_no_link(i, cable, u, v, near, site)]
            else:
                back = int(np.searchsorted(topology.graph.neighbours(v), u))
                ends = [plugs[node_type[u]][cable.a_port], plugs[node_type[v]][cable.b_port]]
                if ends[0][1] != ends[1][1]:
                    given = f"{cable.a_port} and {cable.b_port}"
                    required = "whole ports, or sockets of one number, at both ends"
                    wrong += [_finding((i,), required, given, "")]
                for s, k, (number, socket) in ((u, where, ends[0]), (v, back, ends[1])):
                    end = (s, number, socket)
                    wrong += _taken(i, cable, used, end, pins[s], k)
                    pins[s][k] = number
        problems += wrong
    return pins, problems


def pins_of_hosts(
    site: Site,
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
    disabled: Mapping[int, Sequence[int]],
    pins: Pins,
    lines: Mapping[str | None, int],
) -> tuple[Pins, list[Finding]]:
    """By switch and host the port that the inventory says, and what is wrong with these ports.

    lines: of the file that has the hosts, by their names; empty where they are listed at nodes.
    """
    pinned: dict[int, dict[int, int]] = defaultdict(dict)
    wrong = []
    for v, node in enumerate(site.nodes):
        for h, host in enumerate(node.hosts):
            if host.port is None:
                continue
            own = types[node_type[v]]
            number = own.names.index(host.port) + 1 if host.port in own.names else 0
            names = [own.names[n - 1] for n in own.host]
            required, todo = f"a port of {node.name} for hosts", did_you_mean(host.port, names)
            if number in own.host:
                required, todo = "a port that works", "name another one"
                if number not in disabled.get(v, ()):
                    required = "a port of its own"
                    if number not in (*pins.get(v, {}).values(), *pinned[v].values()):
                        pinned[v][h] = number
                        continue
            given = f"{shown(host.port)} for {host.name or 'a host'} at {node.name}"
            if lines:
                given += f" in line {lines[host.name]}"
                wrong.append(Finding(("hosts",), required, given, todo))
            else:
                wrong.append(site.finding(v, ("hosts", h, "port"), required, given, todo))
    if lines and len(wrong) > MOST_WRONG:
        wrong.sort(key=lambda finding: int(finding.given.rsplit(" ", 1)[1]))
        more = f"{len(wrong) - MOST_WRONG:,} more that are none"
        wrong[MOST_WRONG:] = [Finding(("hosts",), "ports of the nodes for hosts", more)]
    return {v: ports for v, ports in pinned.items() if ports}, wrong


def with_installed(
    fixed: tuple[Pins, Pins],
    installed: Installed,
    places: Sequence[Sequence[int]],
    site: Site,
    topology: Topology,
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
    disabled: Mapping[int, Sequence[int]],
) -> tuple[Pins, Pins]:
    """The ports by hand, and those that links and hosts have already, as far as these are free.

    fixed: by hand, of links and of hosts. places: those of each switch's hosts. A port that is
    disabled now keeps nothing: what is there moves.
    """
    links, hosts = ({v: dict(ports) for v, ports in pins.items()} for pins in fixed)
    numbers = [{name: n for n, name in enumerate(own.names, 1)} for own in types]
    for v, node in enumerate(site.nodes):
        own, number = types[node_type[v]], numbers[node_type[v]]
        taken = {*links.get(v, {}).values(), *hosts.get(v, {}).values(), *disabled.get(v, ())}
        near = topology.graph.neighbours(v).tolist()
        wanted = [
            *(
                (links, k, installed.link.get((node.name, site.nodes[w].name)), own.fabric)
                for k, w in enumerate(near)
            ),
            *((hosts, h, installed.host.get((node.name, h)), own.host) for h in places[v]),
        ]
        for pins, k, name, usable in wanted:
            port = number.get(name or "", 0)
            if k not in pins.get(v, {}) and port in usable and port not in taken:
                pins.setdefault(v, {})[k] = port
                taken.add(port)
    return links, hosts


def _unknown(
    i: int,
    cable: Cable,
    vertex: dict[str, int],
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
) -> list[Finding]:
    problems = []
    for end, name, port in (("a", cable.a, cable.a_port), ("b", cable.b, cable.b_port)):
        if name not in vertex:
            todo = did_you_mean(name, vertex) or "spare nodes have no links"
            problems.append(_finding((i, end), "a node with a vertex", shown(name), todo))
            continue
        ports = types[node_type[vertex[name]]]
        fabric = set(ports.fabric)
        names = [name for name, (number, _) in ports.plugs.items() if number in fabric]
        if port not in names:
            todo = did_you_mean(port, names)
            required = f"a port of {name} for links"
            problems.append(_finding((i, f"{end}_port"), required, shown(port), todo))
    return problems


def _no_link(i: int, cable: Cable, u: int, v: int, near: NDArray[np.int32], site: Site) -> Finding:
    neighbours = ", ".join(site.nodes[w].name for w in near[:6].tolist())
    more = ", …" if len(near) > 6 else ""
    return _finding(
        (i,),
        "a link of the fabric",
        f"{cable.a} to {cable.b} (vertices {u} and {v}), which are not joined",
        f"{cable.a} is joined to {neighbours}{more}; if nodes were placed anew, compile with "
        "`cables_of` an earlier build",
    )


def _taken(
    i: int,
    cable: Cable,
    used: dict[tuple[int, int, int | None], int],
    end: tuple[int, int, int | None],
    pinned: dict[int, int],
    link: int,
) -> Iterator[Finding]:
    before = used.get((*end[:2], None), used.setdefault(end, i))
    if before != i:
        given, todo = "a second for one port", "change one of them"
        yield _finding((i,), "one cable per port", given, todo, ("cables", before))
    elif link in pinned and (end[2] is None or pinned[link] != end[1]):
        given = f"another between {cable.a} and {cable.b}"
        yield _finding((i,), "one cable per link", given, "remove one of them")


def _finding(rest: KeyPath, required: str, given: str, todo: str, also: KeyPath = ()) -> Finding:
    return Finding(("cables", *rest), required, given, todo, also)


PORT_WORDS = {
    "speed": ("of one speed", "{} Gb/s"),
    "mtu": ("of one MTU", "{} bytes"),
    "lanes": ("with as many lanes", "{} lanes"),
    "parallel": ("with as many cables", "{} cables"),
}


def unequal_ports(
    port: NDArray[np.int32],
    far: NDArray[np.int32],
    far_port: NDArray[np.int32],
    site: Site,
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
) -> Iterator[Finding]:
    """Links between ports of known speeds or lanes that are not the same."""
    widest = max(len(t.names) for t in types)
    for word, (what, unit) in PORT_WORDS.items():
        known = np.zeros((len(types), widest + 1), np.int64)
        for t, ports in enumerate(types):
            known[t, 1 : len(ports.names) + 1] = [n or 0 for n in getattr(ports, word)]
        if len({*known[known > 0].tolist()}) < 2:
            continue
        here = known[node_type[:, None], port]
        there = np.where(far >= 0, known[node_type[far], far_port], 0)
        differ = (here != there) & (here > 0) & (there > 0) & (far > np.arange(len(far))[:, None])
        for s, k in np.argwhere(differ).tolist():
            other = int(far[s, k])
            ends = ((s, port[s, k], here[s, k]), (other, far_port[s, k], there[s, k]))
            yield site.finding(
                s,
                ("type",),
                f"ports {what} at both ends of a link",
                " and ".join(
                    f"{unit.format(n)} at {site.nodes[v].name} {types[node_type[v]].names[p - 1]}"
                    for v, p, n in ends
                ),
                f"choose types with the same {word}, or ports by hand (cables)",
            )
