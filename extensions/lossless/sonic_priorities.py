"""Reader of the lossless priorities in SONiC's CONFIG_DB (docs/concepts/channels.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

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
PRIORITY_TABLES = (
    *("BUFFER_PG", "BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_QUEUE", "CABLE_LENGTH", "PFC_WD"),
    *("PORT_QOS_MAP", "QUEUE", "SCHEDULER", "DSCP_TO_TC_MAP", "MAP_PFC_PRIORITY_TO_QUEUE"),
    *("TC_TO_DSCP_MAP", "TC_TO_PRIORITY_GROUP_MAP", "TC_TO_QUEUE_MAP", "WRED_PROFILE"),
)
MAPS = {
    "dscp_to_tc_map": "DSCP_TO_TC_MAP",
    "tc_to_pg_map": "TC_TO_PRIORITY_GROUP_MAP",
    "tc_to_queue_map": "TC_TO_QUEUE_MAP",
    "tc_to_dscp_map": "TC_TO_DSCP_MAP",
    "pfc_to_queue_map": "MAP_PFC_PRIORITY_TO_QUEUE",
}
SAID = {*MAPS, "pfc_enable", "pfcwd_sw_enable"}


def check_priorities(
    plan: PriorityPlan,
    tables: Callable[[int], Mapping[str, Tree]],
    folder: Path,
    only: Collection[int] | None = None,
) -> DifferenceList:
    """What the switches' files say otherwise than the plan, and than the tables of the build.

    Args:
        plan: the channels and their priorities.
        tables: those about priorities, by vertex.
        folder: of all switches.
        only: vertices of the switches that are there; None for all.
    """

    def check(vertex: int, here: Path, differences: DifferenceList) -> None:
        file = here / "config_db.json"
        text = read_exact(file)
        tree = parse(text)
        check_channels(plan, vertex, here, _ports(file, text, tree, differences), differences)
        said = {name: tree[name] for name in PRIORITY_TABLES if name in tree}
        check_statements(file, _entries(said), _entries(tables(vertex)), differences)

    return on_each_switch(plan.build, folder, only, "config_db.json", check)


def _ports(
    file: Path, text: str, tree: Tree, differences: DifferenceList
) -> Mapping[str, PortPriorities]:
    """The ports of a switch by name.

    A priority is lossless where PFC is enabled and its priority group and queue have a profile of a
    lossless pool, whose sizes hold.
    """
    bound = tree.get("PORT_QOS_MAP", {})
    lines = lines_of(text[text.find('"PORT_QOS_MAP"') :], (f'"{name}": {{' for name in bound))
    above = text.count("\n", 0, max(text.find('"PORT_QOS_MAP"'), 0))
    groups, queues = _buffered(tree, "BUFFER_PG"), _buffered(tree, "BUFFER_QUEUE")
    for pool, needed in _in_all(tree, groups, "xoff").items():
        if needed > (headroom := _number(tree["BUFFER_POOL"][pool].get("xoff"))):
            line = next(lines_of(text, [f'"{pool}": {{']))
            differences.add(
                file, line, f"{headroom:,} bytes of headroom", f"{needed:,} by its profiles"
            )
    memory = max(_number(pool["size"]) for pool in tree["BUFFER_POOL"].values())
    for pool, reserved in _in_all(tree, groups, "size").items():
        sizes = tree["BUFFER_POOL"][pool]
        if reserved and reserved + _number(sizes["size"]) + _number(sizes.get("xoff")) > memory:
            line = next(lines_of(text, [f'"{pool}": {{']))
            size = f"{reserved:,} bytes of priority groups besides"
            differences.add(file, line, size, f"{memory:,} bytes of memory hold all")
    ports = {}
    for (name, entry), line in zip(bound.items(), lines, strict=True):
        for word in sorted(entry.keys() - SAID):
            differences.add(file, above + line, f"{word} of {name}", "none such")
        maps = {word: tree[table][entry[word]] for word, table in MAPS.items()}
        to_class, to_group, to_queue, to_dscp, held = (
            {_number(k): _number(v) for k, v in maps[word].items()} for word in MAPS
        )
        enabled = {_number(n) for n in entry["pfc_enable"].split(",") if n}
        safe = {g for port, g in groups if port == name} & enabled
        holds = {q: p for p, q in held.items() if p in enabled and (name, q) in queues}
        ports[name] = PortPriorities(
            line=above + line,
            arriving=to_class,
            pauses={c: g for c, g in to_group.items() if g in safe},
            queues={c: holds[q] for c, q in to_queue.items() if q in holds},
            leaves=to_dscp,
        )
    return ports


def _number(text: str | None) -> int:
    """A number of CONFIG_DB, whose values are texts; 0 where it is not said."""
    return 0 if text is None else exact_number(text)


def _entries(tables: Mapping[str, Tree]) -> dict[str, object]:
    """The entries of tables, as TABLE|KEY."""
    return {
        f"{name}|{key}": value for name, table in tables.items() for key, value in table.items()
    }


def _buffered(tree: Tree, table: str) -> dict[tuple[str, int], Tree]:
    """The profile of every port and number of a table that drops nothing.

    A priority group has headroom; a queue may fill the whole pool, so that it never drops what was
    taken in.
    """
    lossless: dict[tuple[str, int], Tree] = {}
    for key, entry in tree[table].items():
        port, _, numbers = key.partition("|")
        first, _, last = numbers.partition("-")
        profile = tree["BUFFER_PROFILE"][entry["profile"]]
        whole = _number(tree["BUFFER_POOL"][profile["pool"]]["size"])
        limit = "xoff" if table == "BUFFER_PG" else "static_th"
        if _number(profile.get(limit)) >= (1 if table == "BUFFER_PG" else whole):
            numbers_of = range(_number(first), _number(last or first) + 1)
            lossless |= {(port, number): profile for number in numbers_of}
    return lossless


def _in_all(tree: Tree, groups: dict[tuple[str, int], Tree], word: str) -> dict[str, int]:
    """The bytes of headroom (xoff), or of their own (size), of the groups of each pool."""
    total: dict[str, int] = dict.fromkeys(tree["BUFFER_POOL"], 0)
    for profile in groups.values():
        total[profile["pool"]] += _number(profile.get(word))
    return total
