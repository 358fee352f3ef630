"""Capacity: the needs of every switch's program against the limits of its node type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import Classes, Tables
from compilers.targets.openflow.class_groups import class_groups, groups
from compilers.wiring.wiring import Wiring
from compilers.wiring.wiring_checks import Site
from inventory.problems import Finding

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory

LIMITS = {"lpm_rows": "LPM rows", "groups": "groups", "ecmp_width": "ports per group"}
NEEDS_IN_WORDS = {
    "ipv6": "IPv6",
    "weights": "weighted groups",
    "ingress": "matching on the ingress port",
    "repair": "repair in the switch",
    "aggregates": "aggregated routes",
}


def needed(
    tables: Tables, wiring: Wiring, families: int, openflow: bool = True
) -> dict[str, NDArray[np.int64]]:
    """What each switch's program takes, int64[S] a key of `TableLimits`.

    lpm_rows: routes to other prefixes and one a host, for each address family (1: IPv4 only);
    groups: those of OpenFlow, or else one an egress class; ecmp_width: the most ports that a class
    or its repair chooses among.
    """
    classes = tables.classes
    hosts = np.count_nonzero(wiring.host_port, axis=1)
    used = classes.port > 0
    shared = np.count_nonzero(classes.weight, axis=2)
    repair = 1 + np.count_nonzero(classes.protection, axis=2)
    return {
        "lpm_rows": (tables.routes.rows() - 1 + hosts) * families,
        "groups": _openflow_groups(classes) if openflow else used.sum(axis=1),
        "ecmp_width": np.where(used, np.maximum(shared, repair), 0).max(axis=1, initial=0),
    }


def _openflow_groups(classes: Classes) -> NDArray[np.int64]:
    """int64[S]: the groups of each switch, counted at one of each shape; at all that are fitted."""
    if _without_weight(classes):
        switch, number = np.nonzero(classes.port > 0)
        of_roles = class_groups(classes, switch, number)
        order = len(classes.port)
        return sum(
            (np.bincount(switch[role.there], minlength=order) for role in of_roles),
            np.zeros(order, np.int64),
        )
    parts = (classes.port, classes.weight, classes.protection, classes.bounce)
    shape = np.column_stack([(part.reshape(len(part), -1) > 0).sum(axis=1) for part in parts])
    _, examples, which = np.unique(shape, axis=0, return_index=True, return_inverse=True)
    counts = [sum(len(g.classes) for g in groups(classes, v)) for v in examples.tolist()]
    return np.array(counts, np.int64)[which.ravel()]


def _without_weight(classes: Classes) -> bool:
    """Whether a port of some class has no share: then counts of weights do not tell how many."""
    if not isinstance(classes.weight, np.ndarray):
        return False
    minimal = (classes.weight[..., 0] == 0) & (classes.port > 0)
    others = (classes.weight[..., 1:] == 0) & np.greater(classes.alternate, 0)
    return bool(minimal.any() or others.any())


def over_capacity(
    tables: Tables, wiring: Wiring, inventory: Inventory, ipv6: bool
) -> Iterator[Finding]:
    """Tables that a node cannot hold or do: every node and limit, with the number.

    Args:
        tables: the program of every switch.
        wiring: which node each is.
        inventory: the nodes' types, with limits where they are known.
        ipv6: whether routes are of both address families.
    """
    index = {node.name: i for i, node in enumerate(inventory.nodes)}
    site = Site.of(inventory, [index[name] for name in wiring.names])
    yield from _over(tables, wiring, inventory, ipv6, site)
    yield from _unable(tables, wiring, inventory, ipv6, site)


def _over(
    tables: Tables, wiring: Wiring, inventory: Inventory, ipv6: bool, site: Site
) -> Iterator[Finding]:
    for t, name in enumerate(wiring.type_names):
        node_type = inventory.node_types[name]
        if all(getattr(node_type.tables, word) is None for word in LIMITS):
            continue
        able = node_type.capabilities
        openflow = able is None or "openflow" in able
        for word, count in needed(tables, wiring, 2 if ipv6 else 1, openflow).items():
            limit = getattr(node_type.tables, word)
            if limit is None:
                continue
            for v in np.flatnonzero((wiring.node_type == t) & (count > limit)).tolist():
                yield site.finding(
                    v,
                    ("type",),
                    f"at most {limit:,} {LIMITS[word]}, the {word} of {name}",
                    f"{count[v]:,} at {wiring.names[v]} (vertex {v})",
                    "choose another type, a smaller fabric or a simpler routing policy",
                )


def _unable(
    tables: Tables, wiring: Wiring, inventory: Inventory, ipv6: bool, site: Site
) -> Iterator[Finding]:
    """The first node of each type that lacks a capability which the build needs."""
    classes = tables.classes
    weighted = bool(classes.alternate.shape[2])
    asked = {
        "ipv6": ipv6,
        "weights": weighted,
        "ingress": weighted,
        "repair": bool(classes.protection.shape[2]),
        "aggregates": tables.routes.aggregated,
    }
    for t, name in enumerate(wiring.type_names):
        able = inventory.node_types[name].capabilities
        at = np.flatnonzero(wiring.node_type == t)
        if able is None or not len(at):
            continue
        for word in [word for word, wanted in asked.items() if wanted and word not in able]:
            yield site.finding(
                int(at[0]),
                ("type",),
                f"a type that can do {NEEDS_IN_WORDS[word]} ({word})",
                f"{name} at {len(at):,} nodes, the first of them {wiring.names[at[0]]}",
                "choose another type or a simpler routing policy",
            )
