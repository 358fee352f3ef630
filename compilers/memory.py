"""The memory that a fabric's routes need, checked before the work begins."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from compilers import cgroup_memory
from compilers.spec.fabric_spec import FabricSpec
from compilers.tables.intermediate_form import empty_egress
from compilers.topology.families import FAMILIES, hierarchy
from inventory.problems import Finding

MEMINFO = Path("/proc/meminfo")
GB = 1e9


def available() -> int:
    """Bytes that can be had without swapping, in the limits of the process's control groups.

    All of the machine's where it does not tell.
    """
    limit = cgroup_memory.left()
    return _of_machine() if limit is None else min(limit, _of_machine())


def _of_machine() -> int:
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB$", MEMINFO.read_text(), re.MULTILINE)
    except OSError:
        found = None
    if found:
        return int(found[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def needed(spec: FabricSpec) -> int:
    """Bytes that compiling takes at its peak, nearly all of them for `Routes.egress`.

    Measured in PolarFly q = 127: 1.3 times the table with minimal routes, 3.4 with protection,
    where the table is copied to make room for classes.
    """
    family, parameters = spec.topology.family, spec.topology.parameters()
    order, members = FAMILIES[family].order(parameters), hierarchy(family, parameters)
    q = spec.topology.q
    # In PolarStar a row for each member of the q + 2 near supernodes, one a supernode beyond.
    rows = order if members == 1 else (q + 2) * members + order // members - q - 2
    classes = (q + 1) * (2 if family == "oft" else 1) + int(parameters.get("degree", 0))
    policy = spec.routing.policy(q, spec.topology.family)
    if policy.balances or policy.protects:
        return order * rows * _cell(2 * classes) * 7 // 2
    return order * rows * _cell(classes) * 5 // 4


def beyond_memory(spec: FabricSpec) -> Iterator[Finding]:
    """Routes that the memory that is available cannot hold: what is needed and what is there."""
    need, have = needed(spec), available()
    if need > have:
        order = FAMILIES[spec.topology.family].order(spec.topology.parameters())
        required = f"a fabric whose routes fit into memory: {order:,} switches need"
        yield Finding(
            ("topology", "q"),
            f"{required} {need / GB:,.1f} GB",
            f"{have / GB:,.1f} GB available",
            "lower q, or compile on a machine with more memory",
        )


def _cell(classes: int) -> int:
    """Bytes of a cell of `Routes.egress`."""
    return empty_egress(0, 0, classes).itemsize
