"""Compare two builds by what they mean: nodes, cables, hosts, route rows and egress classes.

`diff`, `expand` and move reports print a `Comparison`. Two route rows are the same if they lead to
the same port for the same network, and two classes are the same if they do the same with packets.
The numbers of vertices and classes may differ.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
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
from compilers.update.matching import HostTable, SwitchMatching, find_numbers
from compilers.update.renumbering import Renumbering, renumberings
from compilers.update.switch_settings import SettingChange, renamed_switches, setting_changes
from compilers.wiring.as_numbers import NODE_ASNS
from compilers.wiring.mac_addresses import format_mac

Numbers = NDArray[Any]
INPUT_DIGEST = "input "
"""How the names of settings of `fact_changes` begin whose value is the digest of an input file."""
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

    datapath_id: int
    """The OpenFlow datapath id of its switch."""
    port: int
    """The number of its port."""
    mac: int
    """Its MAC address."""
    vertex: int
    """The vertex of its switch, on which its address depends."""
    host: int
    """Its number at its switch, on which its address depends."""


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
    """The settings of the whole fabric that differ (inputs, topology, policy, addresses), as
    `fact_changes` lists them: the old value and the new one."""
    nodes_added: tuple[str, ...]
    """The names of switches that only the new build has."""
    nodes_removed: tuple[str, ...]
    """The names of switches that only the old build has."""
    renamed: tuple[tuple[str, str], ...]
    """The old and the new name of each switch that has another name, and the same serial."""
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
    """The other settings of switches, cables and node types that differ, such as systems."""
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
        """As values for JSON: all fields by name, and of `switches` those that change."""
        old, new = self.builds
        written_apart = ("builds", "switches")
        values = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in written_apart
        }
        switches = [asdict(switch) for switch in self.switches if switch]
        return {"a": old, "b": new, "differ": bool(self), **values, "switches": switches}


def compare(old: Build, new: Build) -> Comparison:
    """Compare two builds.

    Args:
        old: the build to compare with.
        new: the build whose additions and changes are counted.
    """
    nodes = SwitchMatching.of(old, new)
    renamed = renamed_switches(old, new)
    nodes = nodes.as_other_switches(_replaced_nodes(old, new, nodes, renamed))
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
        switches=tuple(switch_changes(old, new, nodes)),
        hosts_added=hosts.added,
        hosts_removed=hosts.removed,
        hosts_moved=hosts.moved,
        settings=setting_changes(old, new),
        renumbered=renumberings(old, new),
    )


def _replaced_nodes(
    old: Build, new: Build, nodes: SwitchMatching, renamed: Mapping[str, str]
) -> list[int]:
    """The nodes at which another switch has taken the datapath id of an old one.

    Its name shows that. Only a switch with a serial may have another name and be the same.

    Args:
        old: the build to compare with.
        new: the other build.
        nodes: the matching of both.
        renamed: the new names of switches with a serial, by the old names.
    """
    old_names, new_names = old.wiring.names, new.wiring.names
    return [
        node
        for node, (old_vertex, new_vertex) in zip(nodes.kept_nodes, nodes.vertex_pairs, strict=True)
        if renamed.get(old_names[old_vertex], old_names[old_vertex]) != new_names[new_vertex]
    ]


def switch_changes(old: Build, new: Build, nodes: SwitchMatching) -> Iterator[SwitchChange]:
    """How the rows and classes of the switches change that both builds have.

    Args:
        old: the build to compare with.
        new: the build whose additions and changes are counted.
        nodes: the matching of both.
    """
    old_pipeline, new_pipeline = Pipeline(old), Pipeline(new)
    return (
        _switch_change(old_pipeline, new_pipeline, nodes, old_vertex, new_vertex)
        for old_vertex, new_vertex in nodes.vertex_pairs
    )


def host_changes(old: Build, new: Build) -> HostChanges:
    """The hosts that differ between two builds; a host is known by its name."""
    before, after = _hosts(old), _hosts(new)
    moved = []
    for name, place in after.items():
        if name not in before:
            continue
        old_place = before[name]
        # A switch of another model may have another port under the same number.
        port_is_renamed = _port_name(old, old_place) != _port_name(new, place)
        if old_place != place or port_is_renamed:
            was, now = _place_in_words(old, old_place), _place_in_words(new, place)
            # It may also have the same port under another number: then nothing has changed.
            if was != now:
                moved.append((name, was, now))
    return HostChanges(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        moved=tuple(moved),
    )


def _hosts(build: Build) -> dict[str, _HostPlace]:
    """The places of all hosts of a build, by their names."""
    table, wiring = HostTable.of(build), build.wiring
    hosts_per_switch = wiring.host_port.shape[1]
    rows = zip(table.identity.tolist(), table.vertex.tolist(), table.host.tolist(), strict=True)
    return {
        wiring.host_names[vertex * hosts_per_switch + host]: _HostPlace(
            datapath_id=datapath_id, port=port, mac=mac, vertex=vertex, host=host
        )
        for (datapath_id, port, mac), vertex, host in rows
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
    """The settings of the whole fabric that differ, each with its old and its new value.

    Their names are those of `_build_facts`.
    """
    before, after = _build_facts(old), _build_facts(new)
    keys = [*before, *(key for key in after if key not in before)]
    both = {key: (before.get(key, "none"), after.get(key, "none")) for key in keys}
    return {key: (was, now) for key, (was, now) in both.items() if was != now}


def _build_facts(build: Build) -> dict[str, str]:
    """The settings of a whole fabric in words: inputs, topology, policy and addresses.

    Names are keys of fabric.yaml, with `base.` and `vars.` before values of the inventory, and
    `INPUT_DIGEST` before the digest of an input file.
    """
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
        **{
            f"base.{key}": json.dumps(value)
            for key, value in build.base.items()
            if key != NODE_ASNS
        },
        **{f"vars.{key}": json.dumps(value) for key, value in build.vars.items()},
        **{f"{INPUT_DIGEST}{role}": digest[:12] for role, digest in build.inputs.items()},
    }


def _control_plane_facts(build: Build) -> dict[str, str]:
    """What both ends of a link agree on, by the keys of fabric.yaml and with its values.

    If switches have systems, two settings that fabric.yaml may leave out are added: the kind of
    routes, static or BGP, and with BGP whether sessions use TTL security (GTSM). The default of
    GTSM depends on BFD and on the systems of all switches, so it may change with them.
    """
    settings = dict(build.control)
    if build.systems:
        options = system_target(build).chosen(build)
        may_be_default = (ROUTING, GTSM) if options.get(ROUTING) == "bgp" else (ROUTING,)
        settings = {name: options[name] for name in may_be_default if name in options} | settings
    if ROUTING in settings:
        fabric_value = {option_value: value for value, option_value in ROUTING_VALUES.items()}
        settings[ROUTING] = fabric_value[settings[ROUTING]]
    return {CONTROL_KEYS.get(name, name): value for name, value in settings.items()}


def _switch_change(
    old_pipeline: Pipeline,
    new_pipeline: Pipeline,
    nodes: SwitchMatching,
    old_vertex: int,
    new_vertex: int,
) -> SwitchChange:
    """How the rows and classes of a switch change.

    Args:
        old_pipeline: the flow tables of the old build.
        new_pipeline: the flow tables of the new build.
        nodes: the matching of both.
        old_vertex: the switch in the old build.
        new_vertex: the switch in the new build.
    """
    old, new = old_pipeline.build, new_pipeline.build
    old_classes, new_classes = old.tables.classes, new.tables.classes
    old_prefixes, old_egress = old_pipeline.routes(old_vertex)
    new_prefixes, new_egress = new_pipeline.routes(new_vertex)
    # For each new row the old row of the same network, if there is one.
    old_row, in_both = find_numbers(old_prefixes, nodes.old_prefix[new_prefixes])
    old_ports = old_classes.port[old_vertex][old_egress[old_row[in_both]]]
    new_ports = new_classes.port[new_vertex][new_egress[in_both]]
    columns = {
        part: max(getattr(classes, part).shape[2] for classes in (old_classes, new_classes))
        for part in CLASS_PARTS
    }
    old_counts = _class_counts(old, old_vertex, columns)
    new_counts = _class_counts(new, new_vertex, columns)
    only_new = (new_counts - old_counts).total()
    only_old = (old_counts - new_counts).total()
    classes_changed = min(only_new, only_old)  # one that comes and one that goes are one change
    return SwitchChange(
        node=new.wiring.names[new_vertex],
        rows_added=int(np.count_nonzero(~in_both)),
        rows_changed=int(np.count_nonzero(old_ports != new_ports)),
        rows_removed=len(old_prefixes) - int(np.count_nonzero(in_both)),
        classes_added=only_new - classes_changed,
        classes_changed=classes_changed,
        classes_removed=only_old - classes_changed,
    )


def _class_counts(build: Build, vertex: int, columns: Mapping[str, int]) -> Counter[bytes]:
    """How often each behaviour is among the classes of a switch.

    The key is what a class does with packets: its ports and weights as bytes.

    Args:
        build: the build.
        vertex: the switch. Only classes that rows lead to are counted.
        columns: how many columns each of `CLASS_PARTS` gets, the same number for both builds.
    """
    classes, egress = build.tables.classes, build.tables.routes.egress[vertex]
    # From no_route on, values of `egress` are no classes.
    used = np.unique(egress[egress < no_route(egress)])
    behaviour = np.zeros((len(used), 1 + sum(columns.values())), np.uint32)
    behaviour[:, 0] = classes.port[vertex, used]
    start = 1
    for part, width in columns.items():
        values = getattr(classes, part)[vertex, used]
        behaviour[:, start : start + values.shape[1]] = values
        start += width
    return Counter(row.tobytes() for row in behaviour)
