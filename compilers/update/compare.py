"""Compare two builds by what they mean: nodes, cables, hosts, route rows and egress classes.

`diff`, `expand` and move reports print a `Comparison`. Two route rows are the same if they lead to
the same port for the same network, and two classes are the same if they do the same with packets.
The numbers of vertices and classes may differ.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.spec.node_systems import CONTROL_KEYS, ROUTING_VALUES
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.targets.node_systems import system_target
from compilers.targets.openflow.pipeline import Pipeline
from compilers.targets.routed.bgp.bgp_options import GTSM, ROUTING
from compilers.update.difference import CLASS_PARTS
from compilers.update.loss import Cable, missing_cables
from compilers.update.matching import HostTable, Matching, find_numbers
from compilers.update.renumbering import Renumbering, renumberings
from compilers.update.switch_settings import SettingChange, renamed_switches, setting_changes
from compilers.wiring.as_numbers import NODE_ASNS
from compilers.wiring.mac_addresses import format_mac

Numbers = NDArray[Any]
FACTS_OF_IDENTITY = 3
"""How many of the first columns of `HostTable.facts` identify a host: datapath id, port and MAC
address."""
HostMove = tuple[str, str, str]
"""A host's name, and its old and its new place in words: switch, port and addresses."""


class HostChanges(NamedTuple):
    """The hosts that differ between two builds."""

    added: tuple[str, ...]
    """The names of hosts that only the new build has."""
    removed: tuple[str, ...]
    """The names of hosts that only the old build has."""
    moved: tuple[HostMove, ...]
    """The hosts that have another place in the new build."""


class _HostPlace(NamedTuple):
    """Where a host of a build is."""

    identity: tuple[int, ...]
    """The numbers that say where it is and who it is: switch, port, MAC address, vertex, number."""
    vertex: int
    """Its vertex."""
    host: int
    """Its number at its switch."""


@dataclass(frozen=True, slots=True)
class SwitchChange:
    """How many rows and classes of a switch are added, changed and removed.

    A class that is removed and one that is added count as one changed class.
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
        return {
            field.name: getattr(self, field.name) for field in fields(self) if field.name != "node"
        }

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
    """Old and new names of each switch that stays, as its serial shows, under another name."""
    cables_added: tuple[Cable, ...]
    """Cables that only the new build has."""
    cables_removed: tuple[Cable, ...]
    """Cables that only the old build has."""
    switches: tuple[SwitchChange, ...]
    """The changes of each switch that both builds have, in the order of the new build."""
    hosts_added: tuple[str, ...] = ()
    """The names of hosts that only the new build has."""
    hosts_removed: tuple[str, ...] = ()
    """The names of hosts that only the old build has."""
    hosts_moved: tuple[HostMove, ...] = ()
    """The hosts that have another switch, port, number or MAC address."""
    settings: tuple[SettingChange, ...] = ()
    """What the inventory says of switches besides, such as their systems."""
    renumbered: tuple[Renumbering, ...] = ()
    """The addresses, AS numbers and labels that change."""

    def __repr__(self) -> str:
        """`<Comparison: 8 nodes added, 0 removed; 64 cables added, …; 57 switches change>`."""
        nodes = f"{len(self.nodes_added):,} nodes added, {len(self.nodes_removed):,} removed"
        cables = f"{len(self.cables_added):,} cables added, {len(self.cables_removed):,} removed"
        return f"<Comparison: {nodes}; {cables}; {sum(map(bool, self.switches)):,} switches change>"

    def __bool__(self) -> bool:
        nodes = self.nodes_added or self.nodes_removed or self.renamed
        cables = self.cables_added or self.cables_removed
        hosts = self.hosts_added or self.hosts_removed or self.hosts_moved
        settings = self.settings or self.renumbered
        return bool(self.facts or nodes or cables or hosts or settings or any(self.switches))

    def as_dict(self) -> dict[str, Any]:
        """As values for JSON, with the switches that change."""
        old, new = self.builds
        separate = ("builds", "switches")
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in separate}
        switches = [asdict(switch) for switch in self.switches if switch]
        return {"a": old, "b": new, "differ": bool(self), **values, "switches": switches}


def compare(old: Build, new: Build) -> Comparison:
    """Compare two builds.

    Args:
        old: the build to compare with.
        new: the build whose additions and changes are counted.
    """
    nodes = Matching.of(old, new)
    renamed = renamed_switches(old, new)
    nodes = nodes.as_other_switches(_replaced_rows(old, new, nodes, renamed))
    pairs = nodes.pairs
    hosts = host_changes(old, new)
    return Comparison(
        builds=(old.identity, new.identity),
        facts=fact_changes(old, new),
        nodes_added=tuple(
            new.wiring.names[v] for v in nodes.new_vertex[nodes.old_vertex < 0].tolist()
        ),
        nodes_removed=tuple(
            old.wiring.names[v] for v in nodes.old_vertex[nodes.new_vertex < 0].tolist()
        ),
        renamed=tuple(renamed.items()),
        cables_added=missing_cables(new, old, nodes.node_of_new, nodes.node_of_old),
        cables_removed=missing_cables(old, new, nodes.node_of_old, nodes.node_of_new),
        switches=tuple(switch_changes(old, new, nodes, pairs)),
        hosts_added=hosts.added,
        hosts_removed=hosts.removed,
        hosts_moved=hosts.moved,
        settings=setting_changes(old, new),
        renumbered=renumberings(old, new),
    )


def _replaced_rows(
    old: Build, new: Build, nodes: Matching, renamed: Mapping[str, str]
) -> list[int]:
    """The rows of a matching in which one switch has replaced another, as its name shows.

    A switch with a serial may have another name (`renamed`), and is the same.
    """
    old_names, new_names = old.wiring.names, new.wiring.names
    matched = zip(nodes.kept, nodes.pairs, strict=True)
    names = ((row, old_names[before], new_names[after]) for row, (before, after) in matched)
    return [row for row, old_name, name in names if renamed.get(old_name, old_name) != name]


def switch_changes(
    old: Build, new: Build, nodes: Matching, pairs: Iterable[tuple[int, int]]
) -> Iterator[SwitchChange]:
    """How the rows and classes of switches change.

    Args:
        old: the build to compare with.
        new: the build whose additions and changes are counted.
        nodes: the matching of both.
        pairs: the old and the new vertex of each switch.
    """
    old_tables, new_tables = Pipeline(old), Pipeline(new)
    return (_switch_change(old_tables, new_tables, nodes, before, after) for before, after in pairs)


def host_changes(old: Build, new: Build) -> HostChanges:
    """The hosts that differ between two builds; a host is known by its name."""
    before, after = _hosts(old), _hosts(new)
    places = (
        (name, _place_in_words(old, before[name]), _place_in_words(new, place))
        for name, place in after.items()
        if name in before
        and (
            before[name].identity != place.identity
            or _port_name(old, before[name]) != _port_name(new, place)
        )
    )
    # A switch of another model may have the port of this name under another number.
    moved = [(name, was, now) for name, was, now in places if was != now]
    added = tuple(name for name in after if name not in before)
    removed = tuple(name for name in before if name not in after)
    return HostChanges(added, removed, tuple(moved))


def _hosts(build: Build) -> dict[str, _HostPlace]:
    """The places of all hosts of a build, by their names."""
    table, width = HostTable.of(build), build.wiring.host_port.shape[1]
    numbers = (column.astype(np.uint64) for column in (table.vertex, table.host))
    rows = np.column_stack((table.facts[:, :FACTS_OF_IDENTITY], *numbers)).tolist()
    names = build.wiring.host_names
    return {
        names[vertex * width + host]: _HostPlace((*facts, vertex, host), vertex, host)
        for *facts, vertex, host in rows
    }


def _place_in_words(build: Build, place: _HostPlace) -> str:
    """Switch, port and addresses of a host."""
    vertex, host = place.vertex, place.host
    addressing, switch = build.addressing, build.wiring.names[vertex]
    addresses = f"{addressing.host(vertex, host)}, {addressing.mac(vertex, host)}"
    return f"{switch} {_port_name(build, place)}, {addresses}"


def _port_name(build: Build, place: _HostPlace) -> str:
    """The name of the port of a host; a switch of another model may have other names."""
    wiring, vertex = build.wiring, place.vertex
    return wiring.port_name(vertex, int(wiring.host_port[vertex, place.host]))


def fact_changes(old: Build, new: Build) -> dict[str, tuple[str, str]]:
    """The facts that differ, each with its old and its new value."""
    before, after = _build_facts(old), _build_facts(new)
    keys = [*before, *(key for key in after if key not in before)]
    both = {key: (before.get(key, "none"), after.get(key, "none")) for key in keys}
    return {key: pair for key, pair in both.items() if pair[0] != pair[1]}


def _build_facts(build: Build) -> dict[str, str]:
    """What a build says of itself: inputs, topology, policy and addresses."""
    addressing = build.addressing
    return {
        "name": build.name,
        "topology": build.topology.title(),
        "balance": build.balance,
        "protect": build.forwarding.protect,
        **{f"routing.{key}": str(value) for key, value in build.policy.items()},
        "ipv4": f"{addressing.ipv4}, /{addressing.ipv4_length} per switch",
        "ipv6": str(addressing.ipv6 or "none"),
        "gateway_mac": format_mac(addressing.gateway_mac),
        "source_checks": str(addressing.source_checks).lower(),
        **_control_plane_facts(build),
        **{f"base.{key}": json.dumps(v) for key, v in build.base.items() if key != NODE_ASNS},
        **{f"vars.{key}": json.dumps(value) for key, value in build.vars.items()},
        **{f"input {role}": digest[:12] for role, digest in build.inputs.items()},
    }


def _control_plane_facts(build: Build) -> dict[str, str]:
    """What both ends of a link agree on, by the keys of fabric.yaml and with its values.

    Where switches have systems, static routes are named, which fabric.yaml need not say; and GTSM:
    where nothing is said of it, BFD and the systems of other switches turn TTL security on or off.
    """
    settings = dict(build.control)
    if build.systems:
        options = system_target(build).chosen(build)
        by_default = (ROUTING, GTSM) if options.get(ROUTING) == "bgp" else (ROUTING,)
        settings = {name: options[name] for name in by_default if name in options} | settings
    fabric_value = {option_value: value for value, option_value in ROUTING_VALUES.items()}
    if ROUTING in settings:
        settings[ROUTING] = fabric_value[settings[ROUTING]]
    return {CONTROL_KEYS.get(name, name): value for name, value in settings.items()}


def _switch_change(
    old_tables: Pipeline, new_tables: Pipeline, nodes: Matching, before: int, after: int
) -> SwitchChange:
    """How the rows and classes of a switch change.

    Args:
        old_tables: the flow tables of the old build.
        new_tables: the flow tables of the new build.
        nodes: the matching of both.
        before: the vertex of the switch in the old build.
        after: its vertex in the new build.
    """
    old, new = old_tables.build, new_tables.build
    old_classes, new_classes = old.tables.classes, new.tables.classes
    old_prefixes, old_egress = old_tables.routes(before)
    new_prefixes, new_egress = new_tables.routes(after)
    # For each new row the old row of the same network, if there is one.
    old_row, in_both = find_numbers(old_prefixes, nodes.prefix[new_prefixes])
    old_ports = old_classes.port[before][old_egress[old_row[in_both]]]
    new_ports = new_classes.port[after][new_egress[in_both]]
    widths = {
        part: max(getattr(classes, part).shape[2] for classes in (old_classes, new_classes))
        for part in CLASS_PARTS
    }
    old_counts = _class_counts(old, before, widths)
    new_counts = _class_counts(new, after, widths)
    only_new = (new_counts - old_counts).total()
    only_old = (old_counts - new_counts).total()
    return SwitchChange(
        node=new.wiring.names[after],
        rows_added=int(np.count_nonzero(~in_both)),
        rows_changed=int(np.count_nonzero(old_ports != new_ports)),
        rows_removed=len(old_prefixes) - int(np.count_nonzero(in_both)),
        classes_added=only_new - min(only_new, only_old),
        classes_changed=min(only_new, only_old),
        classes_removed=only_old - min(only_new, only_old),
    )


def _class_counts(build: Build, vertex: int, widths: Mapping[str, int]) -> Counter[bytes]:
    """How many classes of a switch do the same with packets, by their ports and weights as bytes.

    Args:
        build: the build.
        vertex: the switch. Only classes that rows lead to are counted.
        widths: how many columns each part of a class gets, alike for both builds.
    """
    classes, egress = build.tables.classes, build.tables.routes.egress[vertex]
    used = np.unique(egress[egress < no_route(egress)])  # above are no classes, but no_route, local
    rows = np.zeros((len(used), 1 + sum(widths.values())), np.uint32)
    rows[:, 0] = classes.port[vertex, used]
    start = 1
    for part, width in widths.items():
        columns = getattr(classes, part)[vertex, used]
        rows[:, start : start + columns.shape[1]] = columns
        start += width
    return Counter(row.tobytes() for row in rows)
