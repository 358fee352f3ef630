"""Lanes and speeds of SONiC's ports, from the node types."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from compilers.tables.build import Build
from compilers.targets.routed.interfaces import SONIC
from compilers.wiring.hardware import PortFacts
from inventory.problems import InputError, Problem, few

MEGABITS = 1000
Entry = dict[str, str]
Table = dict[str, Entry]


def port_facts(build: Build) -> list[Table]:
    """Lanes and speed by port name, a table per node type; none without an inventory.

    Lane numbers follow SONiC's names: a port EthernetN of L lanes has lanes N + 1 to N + L. A port
    whose speed or lanes the node type doesn't say has no entry.

    Raises:
        InputError: names that leave a port fewer lanes than it has.
    """
    if build.hardware is None:
        return []
    w = build.wiring
    used = set(np.unique(w.node_type).tolist())
    types = list(zip(build.hardware.types, w.port_names, strict=True))
    problems = [p for t, known in enumerate(types) if t in used for p in _too_close(*known)]
    if problems:
        raise InputError(few(problems))
    return [dict(_entries(facts, names)) for facts, names in types]


def _first(name: str) -> int | None:
    """The number before a port's first lane; None for a name that SONiC has not."""
    return int(name.removeprefix("Ethernet")) if SONIC.pattern.fullmatch(name) else None


def _entries(facts: PortFacts, names: tuple[str, ...]) -> Iterator[tuple[str, Entry]]:
    for name, count, speed in zip(names, facts.lanes, facts.speed, strict=True):
        first = _first(name)
        if speed and count and first is not None:
            lanes = ",".join(str(first + lane) for lane in range(1, count + 1))
            yield name, {"lanes": lanes, "speed": str(speed * MEGABITS)}


def _too_close(facts: PortFacts, names: tuple[str, ...]) -> Iterator[Problem]:
    numbered = [(_first(name), count) for name, count in zip(names, facts.lanes, strict=True)]
    taken = sorted((first, count) for first, count in numbered if first is not None)
    for (first, count), (second, _) in pairwise(taken):
        if second - first < count:
            yield Problem(
                key=f"node_types.{facts.name}.ports",
                required=f"names {count} apart for ports of {count} lanes",
                given=f"Ethernet{first} and Ethernet{second}",
                todo="SONiC numbers ports by their lanes: set `step`, or --set ports=keep",
            )
