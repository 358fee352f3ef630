"""Differences between two builds by their meaning: nodes, cables, next hops, classes.

Numbers of classes don't count here, nor vertices: a row is its network and the port that it leads
to, a class is what it does with packets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.intermediate_form import local
from compilers.targets.openflow.flow_tables import Pipeline
from compilers.update.difference import CLASS_PARTS
from compilers.update.loss import Cable, cables_apart
from compilers.update.matching import HostTable, Matching

Numbers = NDArray[Any]
HostMove = tuple[str, str, str]
"""A host's name, its old place and its new one: switch and port, addresses."""


@dataclass(frozen=True, slots=True)
class SwitchChange:
    """How many rows and classes a switch has more, other, and less.

    A class counts as changed where one that does something else takes the place of one.
    """

    node: str
    """The name of the switch."""
    rows_added: int = 0
    """Route rows that only the new build has."""
    rows_changed: int = 0
    """Route rows with another egress."""
    rows_removed: int = 0
    """Route rows that only the old build has."""
    classes_added: int = 0
    """Egress classes that only the new build has."""
    classes_changed: int = 0
    """Egress classes that do something else."""
    classes_removed: int = 0
    """Egress classes that only the old build has."""

    def counts(self) -> dict[str, int]:
        """The numbers by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self)[1:]}

    def __bool__(self) -> bool:
        return any(self.counts().values())


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Two builds side by side."""

    builds: tuple[str, str]
    """Their identities."""
    facts: Mapping[str, tuple[str, str]]
    """What the builds say of themselves (inputs, topology, policy, addresses), where they differ:
    the old value and the new one."""
    nodes_added: tuple[str, ...]
    """The names of switches that only the new build has."""
    nodes_removed: tuple[str, ...]
    """The names of switches that only the old build has."""
    renamed: tuple[tuple[str, str], ...]
    """Old and new names of a switch that stays."""
    cables_added: tuple[Cable, ...]
    """Cables that only the new build has."""
    cables_removed: tuple[Cable, ...]
    """Cables that only the old build has."""
    switches: tuple[SwitchChange, ...]
    """Those that stay, in the new order."""
    hosts_added: tuple[str, ...] = ()
    """The names of hosts that only the new build has."""
    hosts_removed: tuple[str, ...] = ()
    """The names of hosts that only the old build has."""
    hosts_moved: tuple[HostMove, ...] = ()
    """Of each host at another port or place of its switch, or with another MAC address, its name,
    what it was and what it is."""

    def __repr__(self) -> str:
        """`<Comparison: 8 nodes added, 0 removed; 64 cables added, …; 57 switches change>`."""
        nodes = f"{len(self.nodes_added):,} nodes added, {len(self.nodes_removed):,} removed"
        cables = f"{len(self.cables_added):,} cables added, {len(self.cables_removed):,} removed"
        return f"<Comparison: {nodes}; {cables}; {sum(map(bool, self.switches)):,} switches change>"

    def __bool__(self) -> bool:
        nodes = self.nodes_added or self.nodes_removed or self.renamed
        cables = self.cables_added or self.cables_removed
        hosts = self.hosts_added or self.hosts_removed or self.hosts_moved
        return bool(self.facts or nodes or cables or hosts or any(self.switches))

    def as_dict(self) -> dict[str, Any]:
        """For JSON; of switches those that change."""
        a, b = self.builds
        apart = ("builds", "switches")
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in apart}
        switches = [asdict(switch) for switch in self.switches if switch]
        return {"a": a, "b": b, "differ": bool(self), **values, "switches": switches}


def compare(old: Build, new: Build) -> Comparison:
    """What the new build has that the old one has not, and the other way round."""
    nodes = Matching.of(old, new)
    stays = np.flatnonzero(nodes.both)
    pairs = [(int(nodes.before[n]), int(nodes.after[n])) for n in stays]
    names = [(old.wiring.names[a], new.wiring.names[b]) for a, b in pairs]
    hosts = host_changes(old, new)
    pipelines = Pipeline(old), Pipeline(new)
    return Comparison(
        builds=(old.identity, new.identity),
        facts=_facts(old, new),
        nodes_added=tuple(new.wiring.names[v] for v in nodes.after[nodes.before < 0].tolist()),
        nodes_removed=tuple(old.wiring.names[v] for v in nodes.before[nodes.after < 0].tolist()),
        renamed=tuple((one, other) for one, other in names if one != other),
        cables_added=cables_apart(new, old, nodes.node_after, nodes.node_before),
        cables_removed=cables_apart(old, new, nodes.node_before, nodes.node_after),
        switches=tuple(_switch(*pipelines, nodes, *pair) for pair in pairs),
        hosts_added=hosts[0],
        hosts_removed=hosts[1],
        hosts_moved=hosts[2],
    )


def host_changes(
    old: Build, new: Build
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[HostMove, ...]]:
    """The hosts that the new build has more, those that it lacks, and those it has elsewhere."""
    before, after = _hosts(old), _hosts(new)
    moved = []
    for name, (place, v, h) in after.items():
        was = before.get(name)
        if was and was[0] != place:
            moved.append((name, _place_in_words(old, *was[1:]), _place_in_words(new, v, h)))
    added = tuple(name for name in after if name not in before)
    return added, tuple(name for name in before if name not in after), tuple(moved)


def _hosts(build: Build) -> dict[str, tuple[tuple[int, ...], int, int]]:
    """By name: the numbers that say where a host is and who it is; its vertex, its place there."""
    table, width = HostTable.of(build), build.wiring.host_port.shape[1]
    at = (column.astype(np.uint64) for column in (table.vertex, table.host))
    numbers = np.column_stack((table.facts[:, :3], *at)).tolist()
    names = build.wiring.host_names
    return {names[n[3] * width + n[4]]: (tuple(n), n[3], n[4]) for n in numbers}


def _place_in_words(build: Build, vertex: int, host: int) -> str:
    a, w = build.addressing, build.wiring
    port = w.port_name(vertex, int(w.host_port[vertex, host]))
    return f"{w.names[vertex]} {port}, {a.host(vertex, host)}, {a.mac(vertex, host)}"


def _facts(old: Build, new: Build) -> dict[str, tuple[str, str]]:
    one, other = _said(old), _said(new)
    words = [*one, *(word for word in other if word not in one)]
    both = {word: (one.get(word, "none"), other.get(word, "none")) for word in words}
    return {word: pair for word, pair in both.items() if pair[0] != pair[1]}


def _said(build: Build) -> dict[str, str]:
    a = build.addressing
    return {
        "name": build.name,
        "topology": build.topology.title(),
        "balance": build.balance,
        "protect": build.forwarding.protect,
        **{f"routing.{word}": str(value) for word, value in build.policy.items()},
        "ipv4": f"{a.ipv4}, /{a.ipv4_length} per switch",
        "ipv6": str(a.ipv6 or "none"),
        **{f"input {role}": digest[:12] for role, digest in build.inputs.items()},
    }


def _switch(
    one: Pipeline, other: Pipeline, nodes: Matching, before: int, after: int
) -> SwitchChange:
    was, now = one.routes(before), other.routes(after)
    earlier = nodes.prefix[now[0]]
    place = np.minimum(np.searchsorted(was[0], earlier), max(len(was[0]) - 1, 0))
    kept = was[0][place] == earlier if len(was[0]) else np.zeros(len(earlier), np.bool_)
    ports = one.build.tables.classes.port[before], other.build.tables.classes.port[after]
    differ = ports[0][was[1][place[kept]]] != ports[1][now[1][kept]]
    both = one.build.tables.classes, other.build.tables.classes
    widths = {
        word: max(getattr(classes, word).shape[2] for classes in both) for word in CLASS_PARTS
    }
    mine, theirs = (_does(p.build, v, widths) for p, v in ((one, before), (other, after)))
    come, gone = (theirs - mine).total(), (mine - theirs).total()
    return SwitchChange(
        node=other.build.wiring.names[after],
        rows_added=int(np.count_nonzero(~kept)),
        rows_changed=int(np.count_nonzero(differ)),
        rows_removed=len(was[0]) - int(np.count_nonzero(kept)),
        classes_added=come - min(come, gone),
        classes_changed=min(come, gone),
        classes_removed=gone - min(come, gone),
    )


def _does(build: Build, vertex: int, widths: Mapping[str, int]) -> Counter[bytes]:
    """What each class of a switch does, as often as it does; only those that rows lead to."""
    classes, egress = build.tables.classes, build.tables.routes.egress[vertex]
    used = np.unique(egress[egress < local(egress) - 1])
    rows = np.zeros((len(used), 1 + sum(widths.values())), np.uint32)
    rows[:, 0] = classes.port[vertex, used]
    first = 1
    for word, width in widths.items():
        part = getattr(classes, word)[vertex, used]
        rows[:, first : first + part.shape[1]] = part
        first += width
    return Counter(row.tobytes() for row in rows)
