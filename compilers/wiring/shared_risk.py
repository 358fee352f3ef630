"""Shared risk groups: the links and switches that fail together, as the inventory gives them.

- `module:NODE/MODULE`: an optical module, a line card or a block of ports, and all links at it.
- `cage:NODE/PORT`: a cage that is broken out into several ports; PORT is its first.
- `rack:RACK`: the nodes of a rack. `trunk:RACK-RACK`: all links between two racks.
- `risk:NAME`: what `shared_risks` of the inventory lists: a power feed, a conduit, a line card.

A group is a set of pairs of switches, which are the links, and of switches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.hardware import Hardware, PortFacts
from compilers.wiring.wiring import Wiring
from inventory.problems import Finding, InputError, did_you_mean

Link = tuple[int, int]
GROUP_KINDS = ("module", "cage", "rack", "trunk", "risk")
LACKING = {
    "module": "node types with ports (an inventory)",
    "cage": "a node type whose ports are parts of a cage (`breakout`)",
    "rack": "racks (an inventory)",
    "trunk": "racks with links between them (an inventory)",
    "risk": "`shared_risks` in the inventory",
}


@dataclass(frozen=True, slots=True)
class RiskGroup:
    """Links, the smaller switch of each first, and switches that fail together."""

    name: str
    links: tuple[Link, ...] = ()
    switches: tuple[int, ...] = ()


def modules_of(wiring: Wiring, hardware: Hardware | None) -> NDArray[np.int32] | None:
    """int32[S, K]: the module of its switch that each link is on, -1 beyond the last link.

    None where nothing is known of modules.
    """
    return _of_ports(wiring, [t.module for t in hardware.types]) if hardware else None


def several_modules(module: NDArray[np.int32]) -> bool:
    """Whether the links of any switch are on more than one module."""
    first = module.max(axis=1, initial=-1, keepdims=True)
    return bool(((module >= 0) & (module != first)).any())


def groups(wiring: Wiring, hardware: Hardware | None, kind: str) -> tuple[RiskGroup, ...]:
    """All groups of a kind that have a link or a switch.

    Raises:
        InputError: the fabric has none.
    """
    found = tuple(_GROUPS[kind](wiring, hardware)) if hardware else ()
    if not found:
        raise InputError.of(f"{LACKING[kind]}, for failures of a {kind}", "none", key="failures")
    return found


def find_group(wiring: Wiring, hardware: Hardware | None, word: str) -> RiskGroup:
    """The group of this name.

    Raises:
        InputError: there is none.
    """
    kind, _, rest = word.partition(":")
    node, *part = rest.split("/", 1)
    vertex = {str(v): name for v, name in enumerate(wiring.names)}
    if part and node in vertex and node not in wiring.names:
        word = f"{kind}:{vertex[node]}/{part[0]}"
    known = {group.name: group for group in groups(wiring, hardware, kind)}
    if kind == "trunk":  # in either order
        for group in list(known.values()):
            known |= {f"trunk:{other}": group for other in _turned(group.name[len("trunk:") :])}
    if word not in known:
        raise InputError.of(f"a {kind} of the fabric", word, did_you_mean(word, known))
    return known[word]


def _turned(racks: str) -> Iterator[str]:
    """`C0-C1` with its halves exchanged, wherever a hyphen may part them."""
    for cut in (i for i, sign in enumerate(racks) if sign == "-"):
        yield f"{racks[cut + 1 :]}-{racks[:cut]}"


def group_of_words(
    wiring: Wiring, hardware: Hardware | None, name: str, words: Sequence[str]
) -> RiskGroup:
    """The group of nodes, links `A-B` and other groups.

    Raises:
        InputError: one of these is not there.
    """
    links, switches = dict[Link, None](), dict[int, None]()
    for word in words:
        part = find(wiring, hardware, word)
        links |= dict.fromkeys(part.links)
        switches |= dict.fromkeys(part.switches)
    return RiskGroup(name, tuple(links), tuple(switches))


def find(wiring: Wiring, hardware: Hardware | None, word: str) -> RiskGroup:
    """What a word names: a node or its vertex, a link `A-B`, or a group, such as `module:A/0`.

    Raises:
        InputError: there is no such node, link or group.
    """
    names = wiring.names
    vertex = {str(v): v for v in range(len(names))} | {name: v for v, name in enumerate(names)}
    if word in vertex:
        return RiskGroup(word, switches=(vertex[word],))
    if word.partition(":")[0] in GROUP_KINDS:
        return find_group(wiring, hardware, word)
    todo = did_you_mean(word, names, "polarfab export lists the links")
    longest = max(map(len, vertex), default=0)
    # Only where both halves are short enough: a word from outside may be very long.
    first, last = max(len(word) - 1 - longest, 0), min(len(word), longest + 1)
    for cut in (i for i in range(first, last) if word[i] == "-"):
        one, other = vertex.get(word[:cut]), vertex.get(word[cut + 1 :])
        if one is None or other is None:
            continue
        if (wiring.far[one] == other).any():
            return RiskGroup(word, links=((min(one, other), max(one, other)),))
        near = [names[v] for v in wiring.far[one].tolist() if v >= 0]
        rest = f" and {len(near) - 10} more" if len(near) > 10 else ""
        todo = f"{names[one]} is joined to {', '.join(near[:10])}{rest}"
    required = "a node, or a link as two nodes that it joins, such as 3-8"
    raise InputError.of(required, word, todo)


def of_groups(
    far: NDArray[np.int32], groups: Iterable[RiskGroup]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """bool[S, K] and bool[S]: the links, at both ends, and the switches that are in these groups.

    Args:
        far: int32[S, K], `Wiring.far`.
        groups: some groups of the wiring.
    """
    links, switches = np.zeros(far.shape, np.bool_), np.zeros(len(far), np.bool_)
    for group in groups:
        switches[list(group.switches)] = True
        for one, other in group.links:
            links[one] |= far[one] == other
            links[other] |= far[other] == one
    return links, switches


def unknown_risks(wiring: Wiring, hardware: Hardware) -> Iterator[Finding]:
    """Words of `shared_risks` that name nothing of the fabric."""
    for i, risk in enumerate(hardware.risks):
        for j, word in enumerate(risk.fails):
            try:
                find(wiring, hardware, word)
            except InputError as error:
                path = ("shared_risks", i, "fails", j)
                yield from (Finding(path, p.required, p.given, p.todo) for p in error.problems)


def _of_ports(wiring: Wiring, values: Sequence[Sequence[int]]) -> NDArray[np.int32]:
    """int32[S, K]: what is known of each link's port, -1 beyond the last link.

    values: by node type, of each port.
    """
    table = np.full((len(values), max(map(len, values)) + 1), -1, np.int32)
    for row, known in zip(table, values, strict=True):
        row[1 : len(known) + 1] = known
    found: NDArray[np.int32] = table[wiring.node_type[:, None], wiring.port]
    return found


def _links_by(wiring: Wiring, number: NDArray[np.int32]) -> Iterator[tuple[int, int, list[Link]]]:
    """Every switch and number that some of its links have, with these links."""
    for switch, (own, far) in enumerate(zip(number.tolist(), wiring.far.tolist(), strict=True)):
        found = defaultdict[int, list[Link]](list)
        for value, other in zip(own, far, strict=True):
            if other >= 0 and value >= 0:
                found[value].append((min(switch, other), max(switch, other)))
        for value in sorted(found):
            yield switch, value, found[value]


def _modules(wiring: Wiring, hardware: Hardware) -> Iterator[RiskGroup]:
    """Each module of each switch that has links at it."""
    names = [module_names(facts) for facts in hardware.types]
    number = _of_ports(wiring, [facts.module for facts in hardware.types])
    for switch, module, links in _links_by(wiring, number):
        text = names[wiring.node_type[switch]][module]
        yield RiskGroup(f"module:{wiring.names[switch]}/{text}", tuple(links))


def module_names(facts: PortFacts) -> list[str]:
    """What the modules of a node type are called: what their ports' names begin with.

    Where that is the same for two modules or nothing, their numbers.
    """
    ports = defaultdict[int, list[str]](list)
    for module, sockets in zip(facts.module, facts.sockets, strict=True):
        ports[module].append(sockets[0])
    fronts = []
    for module in range(len(ports)):
        own = ports[module]
        alike = takewhile(lambda signs: len({*signs}) == 1, zip(*own, strict=False))
        front = "".join(signs[0] for signs in alike)
        fronts.append(front.rstrip("/:.-_") if len(own) > 1 else front)
    if len({*fronts}) == len(fronts) and all(fronts) and len(fronts) > 1:
        return fronts
    return [str(module) for module in range(len(ports))]


def _cages(wiring: Wiring, hardware: Hardware) -> Iterator[RiskGroup]:
    """Each cage of several ports."""
    cages, first = [], []
    for facts in hardware.types:
        own: list[int] = []
        for block in facts.blocks:
            for _ in range(block.modules * block.count):
                own += [len(own) if block.breakout > 1 else -1] * block.breakout
        cages.append(own)
        first.append([sockets[0] for sockets in facts.sockets])
    for switch, cage, links in _links_by(wiring, _of_ports(wiring, cages)):
        text = first[wiring.node_type[switch]][cage]
        yield RiskGroup(f"cage:{wiring.names[switch]}/{text}", tuple(links))


def _racks(wiring: Wiring, hardware: Hardware) -> Iterator[RiskGroup]:
    """Each rack with nodes that have links."""
    cabled = (wiring.far >= 0).any(axis=1)
    for rack, name in enumerate(hardware.rack_names):
        nodes = np.flatnonzero((hardware.rack == rack) & cabled)
        if len(nodes):
            yield RiskGroup(f"rack:{name}", switches=tuple(nodes.tolist()))


def _trunks(wiring: Wiring, hardware: Hardware) -> Iterator[RiskGroup]:
    """All links between two racks, of any two."""
    found = defaultdict[Link, list[Link]](list)
    for switch, _, other, _ in wiring.each_cable():
        ends = sorted((int(hardware.rack[switch]), int(hardware.rack[other])))
        if ends[0] != ends[1]:
            found[ends[0], ends[1]].append((switch, other))
    for (one, other), links in sorted(found.items()):
        names = hardware.rack_names[one], hardware.rack_names[other]
        yield RiskGroup(f"trunk:{names[0]}-{names[1]}", tuple(links))


def _listed(wiring: Wiring, hardware: Hardware) -> Iterator[RiskGroup]:
    """The groups that the inventory lists."""
    for risk in hardware.risks:
        yield group_of_words(wiring, hardware, f"risk:{risk.name}", risk.fails)


_GROUPS = {
    "module": _modules,
    "cage": _cages,
    "rack": _racks,
    "trunk": _trunks,
    "risk": _listed,
}
