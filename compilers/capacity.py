"""Checks of a build's tables against node types: do they hold the rows, and do what is needed?

The inventory gives a node type's limits (`tables`) and capabilities. The last step of the compiler
(`pipeline.check_limits`) refuses builds that a node cannot hold. The findings of
`capacity_findings` have the node, and the number that is too large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import Classes, Tables
from compilers.targets.openflow.class_groups import class_groups, groups_of_switch
from compilers.wiring.wiring import Wiring
from inventory.problems import Finding, KeyPath

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory

LIMITS = {"lpm_rows": "LPM rows", "groups": "groups", "ecmp_width": "ports per group"}
"""The limits of a node type by their keys, in words."""
OPENFLOW_SYSTEMS = ("", "ovs")
"""The systems that may have an OpenFlow program; "" for a node whose system nothing names."""
NEEDS_IN_WORDS = {
    "ipv6": "IPv6",
    "weights": "weighted groups",
    "ingress": "matching on the ingress port",
    "repair": "repair in the switch",
    "aggregates": "aggregated routes",
}
"""The capabilities of a node type by their keys, in words."""


def needed_entries(
    tables: Tables, wiring: Wiring, families: int, openflow: bool | NDArray[np.bool_] = True
) -> dict[str, NDArray[np.int64]]:
    """Count what the tables of each switch need, int64[S] for each key of `LIMITS`.

    - `lpm_rows`: a route for each other prefix, and one for each host, in each address family;
    - `groups`: groups of OpenFlow, or one for each egress class;
    - `ecmp_width`: the most ports that a class or its repair chooses among.

    Args:
        tables: the tables of all switches.
        wiring: the cables.
        families: the number of address families, 1 or 2.
        openflow: whether groups are those of OpenFlow; of all switches, or bool[S].
    """
    classes = tables.classes
    hosts = np.count_nonzero(wiring.host_port, axis=1)
    is_used = classes.port > 0
    # int64[S, C] each: the ports that share traffic, and the minimal port with its repairs.
    sharing_ports = np.count_nonzero(classes.weight, axis=2)
    repair_ports = 1 + np.count_nonzero(classes.protection, axis=2)
    return {
        "lpm_rows": (tables.routes.rows() - 1 + hosts) * families,
        "groups": np.where(
            openflow, _openflow_groups(classes) if np.any(openflow) else 0, is_used.sum(axis=1)
        ),
        "ecmp_width": np.where(is_used, np.maximum(sharing_ports, repair_ports), 0).max(
            axis=1, initial=0
        ),
    }


def _openflow_groups(classes: Classes) -> NDArray[np.int64]:
    """Count the OpenFlow groups of each switch, int64[S].

    How many groups a switch has mostly follows from how many ports each class has. So switches
    whose classes have the same numbers of ports are counted once. If weights are 0, as fitted ones
    may be, all switches are counted.
    """
    if _has_ports_without_weight(classes):
        switch, class_number = np.nonzero(classes.port > 0)
        groups_by_role = class_groups(classes, switch, class_number)
        switches = len(classes.port)
        return sum(
            (np.bincount(switch[groups.exists], minlength=switches) for groups in groups_by_role),
            np.zeros(switches, np.int64),
        )
    arrays = (classes.port, classes.weight, classes.protection, classes.bounce)
    shapes = np.column_stack([(array.reshape(len(array), -1) > 0).sum(axis=1) for array in arrays])
    _, example_of_shape, shape_of_switch = np.unique(
        shapes, axis=0, return_index=True, return_inverse=True
    )
    counts = [
        sum(len(groups.egress) for groups in groups_of_switch(classes, switch))
        for switch in example_of_shape.tolist()
    ]
    return np.array(counts, np.int64)[shape_of_switch.ravel()]


def _has_ports_without_weight(classes: Classes) -> bool:
    """Whether a port of some class has the weight 0, so that weights do not tell how many ports."""
    if not isinstance(classes.weight, np.ndarray):
        return False
    minimal = (classes.weight[..., 0] == 0) & (classes.port > 0)
    alternates = (classes.weight[..., 1:] == 0) & np.greater(classes.alternate, 0)
    return bool(minimal.any() or alternates.any())


def capacity_findings(
    tables: Tables,
    wiring: Wiring,
    inventory: Inventory,
    ipv6: bool,
    systems: Sequence[str] = (),
) -> Iterator[Finding]:
    """Yield a finding for each node and limit that the tables exceed, and each missing capability.

    Args:
        tables: the tables of all switches.
        wiring: the node of each vertex.
        inventory: the nodes' types, with the limits that are known.
        ipv6: whether there are routes of both address families.
        systems: the system of each vertex, "" for none; empty where no node has one.
    """
    type_keys = _type_keys(wiring, inventory)
    can_be_openflow = np.isin(systems or [""] * len(wiring.names), OPENFLOW_SYSTEMS)
    yield from _limit_findings(
        tables,
        wiring=wiring,
        inventory=inventory,
        ipv6=ipv6,
        type_keys=type_keys,
        can_be_openflow=can_be_openflow,
    )
    yield from _capability_findings(tables, wiring, inventory, ipv6, type_keys)


def _type_keys(wiring: Wiring, inventory: Inventory) -> list[KeyPath]:
    """The key that gives each vertex its type: its node's, or the type's own for a new node."""
    if inventory.generate is not None:
        return [("generate", "type")] * len(wiring.names)
    index = {node.name: i for i, node in enumerate(inventory.nodes)}
    types = [wiring.type_names[number] for number in wiring.node_type.tolist()]
    return [
        ("nodes", index[name], "type") if name in index else ("node_types", node_type)
        for name, node_type in zip(wiring.names, types, strict=True)
    ]


def _limit_findings(
    tables: Tables,
    wiring: Wiring,
    inventory: Inventory,
    ipv6: bool,
    type_keys: Sequence[KeyPath],
    can_be_openflow: NDArray[np.bool_],
) -> Iterator[Finding]:
    """Yield a finding for each node whose tables exceed a limit of its type."""
    for t, name in enumerate(wiring.type_names):
        node_type = inventory.node_types[name]
        if all(getattr(node_type.tables, key) is None for key in LIMITS):
            continue
        capabilities = node_type.capabilities
        openflow = can_be_openflow & (capabilities is None or "openflow" in capabilities)
        for key, count in needed_entries(tables, wiring, 2 if ipv6 else 1, openflow).items():
            limit = getattr(node_type.tables, key)
            if limit is None:
                continue
            for v in np.flatnonzero((wiring.node_type == t) & (count > limit)).tolist():
                yield Finding(
                    type_keys[v],
                    f"at most {limit:,} {LIMITS[key]}, the {key} of {name}",
                    f"{count[v]:,} at {wiring.names[v]} (vertex {v})",
                    "choose another type, a smaller fabric or a simpler routing policy",
                )


def _capability_findings(
    tables: Tables,
    wiring: Wiring,
    inventory: Inventory,
    ipv6: bool,
    type_keys: Sequence[KeyPath],
) -> Iterator[Finding]:
    """Yield a finding for each type that lacks a capability, about its first node."""
    classes = tables.classes
    has_alternates = bool(classes.alternate.shape[2])
    needs = {
        "ipv6": ipv6,
        "weights": has_alternates,
        "ingress": has_alternates,
        "repair": bool(classes.protection.shape[2]),
        "aggregates": tables.routes.aggregated,
    }
    for t, name in enumerate(wiring.type_names):
        capabilities = inventory.node_types[name].capabilities
        vertices = np.flatnonzero(wiring.node_type == t)
        if capabilities is None or not len(vertices):
            continue
        for need, is_needed in needs.items():
            if is_needed and need not in capabilities:
                first = int(vertices[0])
                yield Finding(
                    type_keys[first],
                    f"a type that can do {NEEDS_IN_WORDS[need]} ({need})",
                    f"{name} at {len(vertices):,} nodes, the first of them {wiring.names[first]}",
                    "choose another type or a simpler routing policy",
                )
