"""The system of each node, and the settings that the systems of a fabric share.

A *system* is the operating system of a switch, by the name of its target. A compile calls
`vertex_systems` and `control_options`, and the checks of fabric.yaml call
`missing_system_findings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from inventory.problems import Finding

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from compilers.spec.fabric_spec import FabricSpec
    from inventory.model import Inventory, Node

ROUTING_VALUES: Mapping[str, str] = MappingProxyType({"static": "static", "ebgp": "bgp"})
"""The values of the option `routing` of targets, by those of `control_plane.routes`."""
CONTROL_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "routing": "control_plane.routes",
        "bfd": "control_plane.bfd",
        "gtsm": "control_plane.gtsm",
        "unnumbered": "control_plane.unnumbered",
        "wcmp": "control_plane.wcmp",
        "links": "addressing.links",
        "links6": "addressing.links6",
        "nexthops": "addressing.next_hops",
        "nexthops6": "addressing.next_hops6",
    }
)
"""By option of targets: the key of fabric.yaml for a setting that both ends of a link share."""


def system_of(node: Node, inventory: Inventory, default_system: str | None) -> str:
    """Return the system of a node; "" where nothing names one.

    Args:
        node: the node.
        inventory: has its type.
        default_system: the system that fabric.yaml names.
    """
    node_type = inventory.node_types.get(node.type)
    return node.system or (node_type.system if node_type else None) or default_system or ""


def systems_of(spec: FabricSpec, inventory: Inventory | None) -> tuple[str, ...]:
    """Return the systems of a fabric's nodes, each once, in the order of their names."""
    if inventory and inventory.nodes:
        systems = {system_of(node, inventory, spec.system) for node in inventory.nodes}
    else:
        # polarfab invents the nodes. They are of the types, or have the system of fabric.yaml.
        node_types = inventory.node_types.values() if inventory else ()
        systems = {spec.system or "", *(node_type.system or "" for node_type in node_types)}
    return tuple(sorted(systems - {""}))


def vertex_systems(names: Iterable[str], spec: FabricSpec, inventory: Inventory) -> tuple[str, ...]:
    """Return the system of each vertex, by the names of their nodes; () where there are none."""
    by_name = {node.name: system_of(node, inventory, spec.system) for node in inventory.nodes}
    systems = tuple(by_name.get(name, spec.system or "") for name in names)
    return systems if any(systems) else ()


def missing_system_findings(default_system: str | None, inventory: Inventory) -> Iterator[Finding]:
    """Yield a finding about nodes without a system in a fabric where others have one.

    Args:
        default_system: the system that fabric.yaml names.
        inventory: has the nodes.
    """
    systems = [system_of(node, inventory, default_system) for node in inventory.nodes]
    if not any(systems) or all(systems):
        return
    first = systems.index("")
    required = "a system for every node, as some nodes have one"
    todo = "write `system:` into fabric.yaml, for the node's type or for the node"
    yield Finding(("nodes", first), required, f"none for {inventory.nodes[first].name}", todo)


def control_options(spec: FabricSpec) -> dict[str, str]:
    """Return the settings of fabric.yaml that both ends of a link share, as options of targets.

    Settings that fabric.yaml does not state are left out, but for BFD, which eBGP has by default.
    """
    control_plane, pools = spec.control_plane, spec.addressing
    options: dict[str, str] = {}
    if control_plane.routes:
        options["routing"] = ROUTING_VALUES[control_plane.routes]
    bfd = control_plane.bfd
    if bfd is None and control_plane.routes == "ebgp":
        bfd = True
    for name, value in (
        ("bfd", bfd),
        ("gtsm", control_plane.gtsm),
        ("unnumbered", control_plane.unnumbered),
        ("wcmp", control_plane.wcmp),
    ):
        if value is not None:
            options[name] = "on" if value else "off"
    for name, pool in (
        ("links", pools.links),
        ("links6", pools.links6),
        ("nexthops", pools.next_hops),
        ("nexthops6", pools.next_hops6),
    ):
        if pool is not None:
            options[name] = str(pool)
    return options
