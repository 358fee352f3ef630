"""Shared risk groups: links and switches that fail together.

They follow from the hardware of a build and from `shared_risks` of the inventory. Failure analyses,
rehearsals and drains name a group by a word that `resolve_name` understands:

- `module:NODE/MODULE`: all links on an optical module, a line card or a block of ports;
- `cage:NODE/PORT`: all links of a cage that is broken out into several ports. PORT is the first;
- `rack:RACK`: the nodes of a rack;
- `trunk:RACK-RACK`: all links between two racks;
- `risk:NAME`: an entry of `shared_risks` in the inventory, such as a power feed or a conduit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.hardware import Hardware
from compilers.wiring.node_type_facts import NodeTypeFacts
from compilers.wiring.wiring import Wiring
from inventory.problems import Finding, InputError, did_you_mean, first_names

Link = tuple[int, int]
"""The two switches that a link joins, the smaller first."""
GROUP_KINDS = ("module", "cage", "rack", "trunk", "risk")
"""The kinds of groups, each the first word of the names of its groups."""
NEEDED_FOR_GROUPS = {
    "module": "node types with ports (an inventory)",
    "cage": "a node type whose ports are parts of a cage (`breakout`)",
    "rack": "racks (an inventory)",
    "trunk": "racks with links between them (an inventory)",
    "risk": "`shared_risks` in the inventory",
}
"""What a fabric without groups of a kind would need to have any."""
NEIGHBOURS_NAMED = 10
"""The most neighbours that a message names."""


@dataclass(frozen=True, slots=True)
class RiskGroup:
    """Links and switches that fail together."""

    name: str
    """The name of the group."""
    links: tuple[Link, ...] = ()
    """The links that fail."""
    switches: tuple[int, ...] = ()
    """The switches that fail."""


def modules_of(wiring: Wiring, hardware: Hardware | None) -> NDArray[np.int32] | None:
    """Return the module of its switch that each link is on, int32[S, K], -1 beyond the last link.

    None for a fabric without an inventory.
    """
    return _values_of_links(wiring, [t.module for t in hardware.types]) if hardware else None


def uses_several_modules(module: NDArray[np.int32]) -> bool:
    """Whether the links of any switch are on more than one module."""
    first = module.max(axis=1, initial=-1, keepdims=True)
    return bool(((module >= 0) & (module != first)).any())


def risk_groups(wiring: Wiring, hardware: Hardware | None, kind: str) -> tuple[RiskGroup, ...]:
    """Return all groups of a kind that have a link or a switch.

    Raises:
        InputError: the fabric has no such group.
    """
    of_kind = tuple(_GROUPS[kind](wiring, hardware)) if hardware else ()
    if not of_kind:
        raise InputError.of(
            f"{NEEDED_FOR_GROUPS[kind]}, for failures of a {kind}", "none", key="failures"
        )
    return of_kind


def find_group(wiring: Wiring, hardware: Hardware | None, word: str) -> RiskGroup:
    """Return the group of a name, in which a vertex may stand for its node.

    Raises:
        InputError: there is no such group.
    """
    kind, _, place = word.partition(":")
    node, *part = place.split("/", 1)
    name_of_vertex = {str(v): name for v, name in enumerate(wiring.names)}
    if part and node in name_of_vertex and node not in wiring.names:
        word = f"{kind}:{name_of_vertex[node]}/{part[0]}"
    by_name = {group.name: group for group in risk_groups(wiring, hardware, kind)}
    if kind == "trunk":  # its racks may be named in either order
        for group in list(by_name.values()):
            racks = group.name.removeprefix("trunk:")
            by_name |= {f"trunk:{name}": group for name in _with_racks_exchanged(racks)}
    if word not in by_name:
        raise InputError.of(f"a {kind} of the fabric", word, did_you_mean(word, by_name))
    return by_name[word]


def _with_racks_exchanged(racks: str) -> Iterator[str]:
    """Yield `C1-C0` for `C0-C1`. Racks with hyphens in their names may be cut at each hyphen."""
    for cut in _hyphens(racks):
        yield f"{racks[cut + 1 :]}-{racks[:cut]}"


def _hyphens(text: str) -> list[int]:
    """Return the indexes of all hyphens in a text."""
    return [i for i, sign in enumerate(text) if sign == "-"]


def union_of_named(
    wiring: Wiring, hardware: Hardware | None, name: str, words: Sequence[str]
) -> RiskGroup:
    """Put nodes, links `A-B` and other groups together into one group.

    Raises:
        InputError: the fabric has no node, link or group of such a name.
    """
    links, switches = dict[Link, None](), dict[int, None]()
    for word in words:
        part = resolve_name(wiring, hardware, word)
        links |= dict.fromkeys(part.links)
        switches |= dict.fromkeys(part.switches)
    return RiskGroup(name, tuple(links), tuple(switches))


def rack_hint(hardware: Hardware | None, word: str) -> str:
    """Say how a rack of the inventory is named as a group; "" if the word is no rack's name."""
    is_rack = hardware is not None and word in hardware.rack_names
    return f"rack {word} of the inventory is group rack:{word}" if is_rack else ""


def resolve_name(wiring: Wiring, hardware: Hardware | None, word: str) -> RiskGroup:
    """Return what a word names: a node, a vertex, a link `A-B`, or a group such as `module:A/0`.

    Raises:
        InputError: there is no such node, link or group.
    """
    names = wiring.names
    vertex = {str(v): v for v in range(len(names))} | {name: v for v, name in enumerate(names)}
    if word in vertex:
        return RiskGroup(word, switches=(vertex[word],))
    if word.partition(":")[0] in GROUP_KINDS:
        return find_group(wiring, hardware, word)
    todo = rack_hint(hardware, word)
    todo = todo or did_you_mean(word, names, "polarfab export lists the links")
    for u, v in _node_pairs(word, vertex):
        if (wiring.far[u] == v).any():
            return RiskGroup(word, links=((min(u, v), max(u, v)),))
        neighbours = [names[w] for w in wiring.far[u].tolist() if w >= 0]
        todo = f"{names[u]} is joined to {first_names(neighbours, NEIGHBOURS_NAMED)}"
    required = "a node, or a link as two nodes that it joins, such as 3-8"
    raise InputError.of(required, word, todo)


def _node_pairs(word: str, vertex: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Yield the two vertices that a word names with a hyphen between them, for each such hyphen.

    Names of nodes may have hyphens, too.

    Args:
        word: such as `3-8` or `spine-a-leaf-2`.
        vertex: by name.
    """
    longest = max(map(len, vertex), default=0)
    # A word from outside may be very long. Neither half may be longer than the longest name, so
    # cut <= longest, and len(word) - 1 - cut <= longest, where 1 is the hyphen.
    first, last = len(word) - 1 - longest, longest
    for cut in (cut for cut in _hyphens(word) if first <= cut <= last):
        u, v = vertex.get(word[:cut]), vertex.get(word[cut + 1 :])
        if u is not None and v is not None:
            yield u, v


def names_in_other_build(before: Wiring, after: Wiring) -> list[str]:
    """Return the name that each switch has in another build, "" if that build lacks the switch.

    Switches are found by their datapath ids, which a change of names leaves as they are.
    """
    name_of = dict(zip(after.datapath_id.tolist(), after.names, strict=True))
    return [name_of.get(number, "") for number in before.datapath_id.tolist()]


def name_in_other_build(group: RiskGroup, before: Wiring, names: Sequence[str]) -> str:
    """Return the word for the same node, link or group in another build of the fabric.

    The name is returned unchanged if the group is empty, or if the other build lacks one of its
    switches.

    Args:
        group: as `resolve_name` returned it for the build before.
        before: the wiring of the build before.
        names: the names of its switches in the other build (`names_in_other_build`).
    """
    kind, _, place = group.name.partition(":")
    if kind in GROUP_KINDS:
        node, _, part = place.partition("/")
        if kind in ("module", "cage") and node in before.names:
            name = names[before.names.index(node)]
            return f"{kind}:{name}/{part}" if name else group.name
        return group.name
    if group.switches:
        return names[group.switches[0]] or group.name
    for u, v in group.links:
        if group.name == f"{before.names[v]}-{before.names[u]}":
            u, v = v, u  # the order of the word
        if names[u] and names[v]:
            return f"{names[u]}-{names[v]}"
    return group.name


def links_and_switches(
    far: NDArray[np.int32], groups: Iterable[RiskGroup]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the links, bool[S, K], at both ends, and the switches, bool[S], in these groups.

    Args:
        far: int32[S, K], `Wiring.far`.
        groups: some groups of the wiring.
    """
    links, switches = np.zeros(far.shape, np.bool_), np.zeros(len(far), np.bool_)
    for group in groups:
        switches[list(group.switches)] = True
        for u, v in group.links:
            links[u] |= far[u] == v
            links[v] |= far[v] == u
    return links, switches


def unknown_risk_findings(wiring: Wiring, hardware: Hardware) -> Iterator[Finding]:
    """Yield a finding for each word of `shared_risks` that names nothing of the fabric."""
    for i, risk in enumerate(hardware.risks):
        for j, word in enumerate(risk.fails):
            try:
                resolve_name(wiring, hardware, word)
            except InputError as error:
                path = ("shared_risks", i, "fails", j)
                yield from (Finding(path, p.required, p.given, p.todo) for p in error.problems)


def _values_of_links(wiring: Wiring, values: Sequence[Sequence[int]]) -> NDArray[np.int32]:
    """Return the value of each link's port, int32[S, K], -1 beyond the last link.

    Args:
        wiring: the ports of links.
        values: by node type, the value of each of its ports.
    """
    # int32[types, ports + 1], by node type and port number; column 0 stands for no port.
    table = np.full((len(values), max(map(len, values)) + 1), -1, np.int32)
    for row, type_values in zip(table, values, strict=True):
        row[1 : len(type_values) + 1] = type_values
    value_of_link: NDArray[np.int32] = table[wiring.node_type[:, None], wiring.port]
    return value_of_link


def _links_by_number(
    wiring: Wiring, number: NDArray[np.int32]
) -> Iterator[tuple[int, int, list[Link]]]:
    """Yield the links of each switch by their numbers.

    Args:
        wiring: the cables.
        number: int32[S, K], the number of each link, -1 for links to leave out.

    Yields:
        A switch, a number, and the links of the switch with this number.
    """
    for switch, (numbers, far) in enumerate(zip(number.tolist(), wiring.far.tolist(), strict=True)):
        links_of = defaultdict[int, list[Link]](list)
        for link_number, neighbour in zip(numbers, far, strict=True):
            if neighbour >= 0 and link_number >= 0:
                link = min(switch, neighbour), max(switch, neighbour)
                links_of[link_number].append(link)
        for link_number in sorted(links_of):
            yield switch, link_number, links_of[link_number]


def _modules(wiring: Wiring, hardware: Hardware) -> Iterator[RiskGroup]:
    """Yield each module of each switch that has links."""
    names = [module_names(facts) for facts in hardware.types]
    number = _values_of_links(wiring, [facts.module for facts in hardware.types])
    for switch, module, links in _links_by_number(wiring, number):
        text = names[wiring.node_type[switch]][module]
        yield RiskGroup(f"module:{wiring.names[switch]}/{text}", tuple(links))


def module_names(facts: NodeTypeFacts) -> list[str]:
    """Return the names of a node type's modules: the common beginning of their ports' names.

    Where two modules have the same one, or a module has none, the numbers of modules are returned.
    """
    ports = defaultdict[int, list[str]](list)
    for module, sockets in zip(facts.module, facts.sockets, strict=True):
        ports[module].append(sockets[0])
    beginnings = []
    for module in range(len(ports)):
        # The k-th characters of all names, as long as they are equal.
        equal = takewhile(lambda signs: len({*signs}) == 1, zip(*ports[module], strict=False))
        beginning = "".join(signs[0] for signs in equal)
        if len(ports[module]) > 1:
            beginning = beginning.rstrip("/:.-_")
        beginnings.append(beginning)
    if len({*beginnings}) == len(beginnings) and all(beginnings) and len(beginnings) > 1:
        return beginnings
    return [str(module) for module in range(len(ports))]


def _cages(wiring: Wiring, hardware: Hardware) -> Iterator[RiskGroup]:
    """Yield each cage of several ports that has links."""
    # By node type and port: the number of the cage, which is that of its first port, and the name.
    cages, port_names = [], []
    for facts in hardware.types:
        cage_of_port: list[int] = []
        for block in facts.blocks:
            for _ in range(block.modules * block.count):
                cage = len(cage_of_port) if block.breakout > 1 else -1
                cage_of_port += [cage] * block.breakout
        cages.append(cage_of_port)
        port_names.append([sockets[0] for sockets in facts.sockets])
    for switch, cage, links in _links_by_number(wiring, _values_of_links(wiring, cages)):
        text = port_names[wiring.node_type[switch]][cage]
        yield RiskGroup(f"cage:{wiring.names[switch]}/{text}", tuple(links))


def _racks(wiring: Wiring, hardware: Hardware) -> Iterator[RiskGroup]:
    """Yield each rack with nodes that have links."""
    cabled = (wiring.far >= 0).any(axis=1)
    for rack, name in enumerate(hardware.rack_names):
        nodes = np.flatnonzero((hardware.rack == rack) & cabled)
        if len(nodes):
            yield RiskGroup(f"rack:{name}", switches=tuple(nodes.tolist()))


def _trunks(wiring: Wiring, hardware: Hardware) -> Iterator[RiskGroup]:
    """Yield all links between two racks, for every two racks that have any."""
    links_between = defaultdict[tuple[int, int], list[Link]](list)
    for switch, _, far, _ in wiring.each_cable():
        low, high = sorted((int(hardware.rack[switch]), int(hardware.rack[far])))
        if low != high:
            links_between[low, high].append((switch, far))
    for (low, high), links in sorted(links_between.items()):
        racks = f"{hardware.rack_names[low]}-{hardware.rack_names[high]}"
        yield RiskGroup(f"trunk:{racks}", tuple(links))


def _listed_risks(wiring: Wiring, hardware: Hardware) -> Iterator[RiskGroup]:
    """Yield the groups that the inventory lists in `shared_risks`."""
    for risk in hardware.risks:
        yield union_of_named(wiring, hardware, f"risk:{risk.name}", risk.fails)


# How the groups of each kind are listed.
_GROUPS = {
    "module": _modules,
    "cage": _cages,
    "rack": _racks,
    "trunk": _trunks,
    "risk": _listed_risks,
}
