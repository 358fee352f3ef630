"""Reader of the lossless priorities in SONiC's CONFIG_DB, and their check against the channels.

The tables become a `PortPriorities` for each port, which `priority_check` compares with the plan
(docs/concepts/channels.md).

A packet's DSCP gives it a traffic class (TC). The class has a priority group, which is the buffer
on the way in, and a queue on the way out. PFC pauses a *priority*, a number from 0 to 7. A full
priority group g has the sender pause priority g: by default SONiC takes the same number. A pause
frame for a priority stops the queue that MAP_PFC_PRIORITY_TO_QUEUE names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import exact_number, read_exact
from compilers.readers.routers.router_text import lines_of
from compilers.readers.strict_json import parse
from extensions.lossless.priorities import PriorityPlan
from extensions.lossless.priority_check import (
    PortPriorities,
    check_channels,
    check_statements,
    on_each_switch,
)

Tree = dict[str, Any]
"""A table, or the whole document, of CONFIG_DB."""
PRIORITY_TABLES = (
    "BUFFER_PG",
    "BUFFER_POOL",
    "BUFFER_PROFILE",
    "BUFFER_QUEUE",
    "CABLE_LENGTH",
    "PFC_WD",
    "PORT_QOS_MAP",
    "QUEUE",
    "SCHEDULER",
    "DSCP_TO_TC_MAP",
    "MAP_PFC_PRIORITY_TO_QUEUE",
    "TC_TO_DSCP_MAP",
    "TC_TO_PRIORITY_GROUP_MAP",
    "TC_TO_QUEUE_MAP",
    "WRED_PROFILE",
)
"""The tables about priorities."""
MAPS = {
    "dscp_to_tc_map": "DSCP_TO_TC_MAP",
    "tc_to_pg_map": "TC_TO_PRIORITY_GROUP_MAP",
    "tc_to_queue_map": "TC_TO_QUEUE_MAP",
    "tc_to_dscp_map": "TC_TO_DSCP_MAP",
    "pfc_to_queue_map": "MAP_PFC_PRIORITY_TO_QUEUE",
}
"""The table of maps that each key of a port names."""
PORT_KEYS = {*MAPS, "pfc_enable", "pfcwd_sw_enable"}
"""The keys that a port can have in PORT_QOS_MAP."""


class PortBuffer(NamedTuple):
    """A priority group or a queue of a port: a buffer for packets that come in, or that leave."""

    port: str
    """The port."""
    number: int
    """The number of the priority group or of the queue."""


class _PortMaps(NamedTuple):
    """The maps of a port, in the order of `MAPS`."""

    class_of_dscp: dict[int, int]
    """The traffic class of each DSCP."""
    group_of_class: dict[int, int]
    """The priority group of each traffic class."""
    queue_of_class: dict[int, int]
    """The queue of each traffic class."""
    dscp_of_class: dict[int, int]
    """The DSCP with which packets of each traffic class leave."""
    queue_of_priority: dict[int, int]
    """The queue that PFC pauses for each priority."""


def check_priorities(
    plan: PriorityPlan,
    tables: Callable[[int], Mapping[str, Tree]],
    folder: Path,
    only: Collection[int] | None = None,
) -> DifferenceList:
    """What the switches' files say otherwise than the plan, and than the tables of the build.

    Args:
        plan: the channels and their priorities.
        tables: makes the tables about priorities of a switch, from its vertex.
        folder: the folder with a folder of files for each switch.
        only: vertices of the switches that are there; None for all.
    """

    def check(vertex: int, of_switch: Path, differences: DifferenceList) -> None:
        """Compare the file of a switch."""
        file = of_switch / "config_db.json"
        text = read_exact(file)
        tree = parse(text)
        ports = _ports(file, text, tree, differences)
        check_channels(plan, vertex, of_switch, ports, differences)
        read_tables = {name: tree[name] for name in PRIORITY_TABLES if name in tree}
        check_statements(file, _entries(read_tables), _entries(tables(vertex)), differences)

    return on_each_switch(plan.build, folder, only, "config_db.json", check)


def _ports(
    file: Path, text: str, tree: Tree, differences: DifferenceList
) -> Mapping[str, PortPriorities]:
    """The ports of a switch by name."""
    port_entries = tree.get("PORT_QOS_MAP", {})
    start = text.find('"PORT_QOS_MAP"')
    lines = lines_of(text[start:], (f'"{name}": {{' for name in port_entries))
    lines_above = text.count("\n", 0, max(start, 0))
    groups, queues = _lossless_profiles(tree, "BUFFER_PG"), _lossless_profiles(tree, "BUFFER_QUEUE")
    _check_pools(file, text, tree, groups, differences)
    ports = {}
    for (name, entry), line_below in zip(port_entries.items(), lines, strict=True):
        line = lines_above + line_below
        for key in sorted(entry.keys() - PORT_KEYS):
            differences.add(file, line, f"{key} of {name}", "none such")
        ports[name] = _port_priorities(
            line,
            _port_maps(tree, entry),
            enabled={_number(number) for number in entry["pfc_enable"].split(",") if number},
            groups={group.number for group in groups if group.port == name},
            queues={queue.number for queue in queues if queue.port == name},
        )
    return ports


def _port_priorities(
    line: int, maps: _PortMaps, enabled: set[int], groups: set[int], queues: set[int]
) -> PortPriorities:
    """The lossless priorities of a port.

    A priority is lossless where PFC is enabled for it, and its priority group or its queue is
    lossless.

    Args:
        line: of the port.
        maps: of the port.
        enabled: the priorities for which PFC is enabled.
        groups: the priority groups that are lossless.
        queues: the queues that are lossless.
    """
    # A priority group has the number of its priority.
    ingress_priority = {
        traffic_class: group
        for traffic_class, group in maps.group_of_class.items()
        if group in groups & enabled
    }
    priority_of_queue = {
        queue: priority
        for priority, queue in maps.queue_of_priority.items()
        if priority in enabled and queue in queues
    }
    egress_priority = {
        traffic_class: priority_of_queue[queue]
        for traffic_class, queue in maps.queue_of_class.items()
        if queue in priority_of_queue
    }
    return PortPriorities(
        line=line,
        class_of_dscp=maps.class_of_dscp,
        ingress_priority=ingress_priority,
        egress_priority=egress_priority,
        egress_dscp=maps.dscp_of_class,
    )


def _port_maps(tree: Tree, entry: Tree) -> _PortMaps:
    """The maps that an entry of PORT_QOS_MAP names, as numbers."""
    maps = [tree[table][entry[key]] for key, table in MAPS.items()]
    return _PortMaps(
        *({_number(key): _number(value) for key, value in of_port.items()} for of_port in maps)
    )


def _check_pools(
    file: Path,
    text: str,
    tree: Tree,
    groups: Mapping[PortBuffer, Tree],
    differences: DifferenceList,
) -> None:
    """Note pools that are too small for the headroom, or the packets, of their priority groups."""
    pools = tree["BUFFER_POOL"]
    for pool, needed in _sums_by_pool(tree, groups, "xoff").items():
        headroom = _number(pools[pool].get("xoff"))
        if needed > headroom:
            line = next(lines_of(text, [f'"{pool}": {{']))
            stated = f"{headroom:,} bytes of headroom"
            differences.add(file, line, stated, f"{needed:,} by its profiles")
    memory = max(_number(pool["size"]) for pool in pools.values())
    for pool, reserved in _sums_by_pool(tree, groups, "size").items():
        shared = _number(pools[pool]["size"]) + _number(pools[pool].get("xoff"))
        if reserved and reserved + shared > memory:
            line = next(lines_of(text, [f'"{pool}": {{']))
            stated = f"{reserved:,} bytes of priority groups and {shared:,} bytes that they share"
            differences.add(file, line, stated, f"{memory:,} bytes of memory in all")


def _number(text: str | None) -> int:
    """A number of CONFIG_DB, whose values are texts; 0 if it is missing."""
    return 0 if text is None else exact_number(text)


def _entries(tables: Mapping[str, Tree]) -> dict[str, object]:
    """The entries of tables, as TABLE|KEY."""
    return {
        f"{name}|{key}": value for name, table in tables.items() for key, value in table.items()
    }


def _lossless_profiles(tree: Tree, table: str) -> dict[PortBuffer, Tree]:
    """The profiles of the priority groups, or of the queues, that drop nothing.

    A lossless priority group has headroom. A lossless queue may fill the whole pool, so that it
    never drops what was taken in.

    Args:
        tree: the document.
        table: BUFFER_PG for priority groups, BUFFER_QUEUE for queues.
    """
    lossless: dict[PortBuffer, Tree] = {}
    for key, entry in tree[table].items():
        port, _, numbers = key.partition("|")
        first, _, last = numbers.partition("-")
        profile = tree["BUFFER_PROFILE"][entry["profile"]]
        pool_size = _number(tree["BUFFER_POOL"][profile["pool"]]["size"])
        if table == "BUFFER_PG":
            is_lossless = _number(profile.get("xoff")) >= 1
        else:
            is_lossless = _number(profile.get("static_th")) >= pool_size
        if is_lossless:
            for number in range(_number(first), _number(last or first) + 1):
                lossless[PortBuffer(port, number)] = profile
    return lossless


def _sums_by_pool(tree: Tree, groups: Mapping[PortBuffer, Tree], key: str) -> dict[str, int]:
    """The headroom (xoff) or the reserved bytes (size) of all groups of each pool."""
    total: dict[str, int] = dict.fromkeys(tree["BUFFER_POOL"], 0)
    for profile in groups.values():
        total[profile["pool"]] += _number(profile.get(key))
    return total
