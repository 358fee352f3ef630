"""Write fabric.yaml and inventory.yaml of a larger fabric, from its build and the earlier files.

`polarfab expand` writes them. New nodes and racks are added, and everything else stays. Comments
are lost. Ports, labels and addresses are not in these files: a compile takes them from the larger
build.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import deepcopy
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from compilers.cabling.cable_plan import hardware_of
from compilers.cabling.installed_numbers import require_same_topology
from compilers.expansion.grow import FITTED
from compilers.spec.fabric_file import LoadedFabric
from compilers.tables.build import Build
from compilers.wiring.hardware import Hardware
from compilers.wiring.node_type_facts import NodeTypeFacts
from compilers.wiring.plane_numbers import first_datapath_id
from inventory.model import Node

Data = dict[str, Any]
"""A mapping of a YAML file."""


def grown_files(
    loaded: LoadedFabric, old_builds: Sequence[Build], builds: Sequence[Build], inventory: Path
) -> tuple[str, str]:
    """The text of fabric.yaml and of inventory.yaml of a larger fabric.

    Args:
        loaded: the files of the fabric that it grew from.
        old_builds: the builds of that fabric, one a plane.
        builds: the builds of the larger fabric.
        inventory: the path at which the new inventory.yaml will be, beside the new fabric.yaml.

    Raises:
        InputError: the builds are of another fabric than the files.
    """
    require_same_topology(loaded, old_builds)
    old_folder = Path(loaded.fabric_document.file or ".").parent
    spec = deepcopy(loaded.fabric_document.data)
    topology = builds[0].topology
    spec["topology"] = {"family": topology.family, **topology.parameters}
    spec["inventory"] = inventory.name
    routing = {k: v for k, v in spec.get("routing", {}).items() if k not in FITTED}
    disjoint = builds[0].policy.get("disjoint", "none")
    if loaded.spec.routing.edge_disjoint(topology.family) != (disjoint == "edge"):
        routing["disjoint"] = disjoint  # `auto` would be something else in the larger family
    if routing or "routing" in spec:
        spec["routing"] = routing
    if "allocations" in spec:
        spec["allocations"] = _relative(inventory.parent, old_folder / spec["allocations"])
    hardware = _inventory(loaded, old_builds, builds, inventory.parent)
    return _text(spec), _text(hardware)


def _inventory(
    loaded: LoadedFabric, old_builds: Sequence[Build], builds: Sequence[Build], folder: Path
) -> Data:
    """The content of the new inventory.yaml.

    Args:
        loaded: the files of the smaller fabric.
        old_builds: its builds.
        builds: the larger builds.
        folder: where the file will be.
    """
    document = loaded.inventory_document
    data: Data = deepcopy(document.data) if document else {}
    if document:
        _rewrite_paths(data, Path(document.file).parent, folder)
    else:
        data["node_types"] = {
            facts.name: {"ports": _port_blocks(facts)} for facts in hardware_of(builds[0]).types
        }
    lists_nodes = "nodes" in data
    has_racks = "racks" in data or "generate" in data
    _remove_what_fits_no_larger_fabric(data)
    nodes, racks = data.setdefault("nodes", []), data.get("racks", [])
    rack_names = {rack["name"] for rack in racks}
    node_names = {node["name"] for node in nodes}
    for old_build, build in zip(old_builds, builds, strict=True):
        hardware = hardware_of(build)
        # Old nodes are listed, or else they were generated, and are listed from now on.
        first_unlisted = len(old_build.wiring.names) if lists_nodes else 0
        nodes += [
            _node(build, hardware, vertex, has_racks)
            for vertex in range(first_unlisted, len(build.wiring.names))
            if build.wiring.names[vertex] not in node_names
        ]
        _count_hosts(loaded, build, nodes, first_unlisted)
        if has_racks:
            racks += [rack for rack in _racks(hardware) if rack["name"] not in rack_names]
            rack_names |= {rack["name"] for rack in racks}
    if has_racks:
        data["racks"] = racks
    return data


def _remove_what_fits_no_larger_fabric(data: Data) -> None:
    """Remove entries of an inventory that a larger fabric would contradict.

    `generate` makes a node for each vertex of the smaller fabric; its nodes are listed instead. A
    layout other than `fans` and `partition` does not exist for the larger family.
    """
    data.pop("generate", None)
    placement = data.get("placement", {})
    if placement.get("layout") not in (None, "fans", "partition"):
        del placement["layout"]


def _node(build: Build, hardware: Hardware, vertex: int, has_racks: bool) -> Data:
    """A node of the new inventory."""
    wiring = build.wiring
    type_name = wiring.type_names[wiring.node_type[vertex]]
    node: Data = {"name": wiring.names[vertex], "type": type_name}
    node["vertex"] = vertex
    if has_racks:
        node["rack"] = hardware.rack_names[hardware.rack[vertex]]
        node["unit"] = int(hardware.unit[vertex])
    if (number := int(wiring.datapath_id[vertex])) != first_datapath_id(hardware.plane) + vertex:
        node["datapath_id"] = number
    for word, value in (("management", wiring.management), ("serial", hardware.serial)):
        if value[vertex]:
            node[word] = value[vertex]
    if hardware.plane:
        node["plane"] = hardware.plane
    if build.systems:
        node["system"] = build.systems[vertex]
    if variables := build.node_vars.get(wiring.names[vertex]):
        node["vars"] = dict(variables)
    return node


def _count_hosts(loaded: LoadedFabric, build: Build, nodes: Sequence[Data], first: int) -> None:
    """Write `host_count` at nodes that would otherwise get another number of hosts.

    A file of hosts counts them itself.

    Args:
        loaded: the files of the smaller fabric.
        build: the larger build.
        nodes: the nodes of the new inventory.
        first: the first vertex whose node is looked at.
    """
    inventory = loaded.inventory
    if inventory is None or inventory.hosts:
        return
    listed = {node.name: node for node in inventory.nodes}
    default_count = loaded.spec.hosts_per_node
    counts = (build.wiring.host_port > 0).sum(axis=1).tolist()
    count_of = dict(zip(build.wiring.names[first:], counts[first:], strict=True))
    for data in nodes:
        if (count := count_of.get(data["name"])) is None:
            continue
        node = listed.get(data["name"]) or Node.model_construct(name="", type=data["type"])
        if inventory.host_count(node, default_count) != count:
            data["host_count"] = count


def _racks(hardware: Hardware) -> list[Data]:
    """All racks, as entries of an inventory."""
    columns = hardware.rack_place.tolist(), hardware.rack_units.tolist()
    return [
        {"name": name, "row": row, "column": column, "units": units}
        for name, (row, column), units in zip(hardware.rack_names, *columns, strict=True)
    ]


def _port_blocks(facts: NodeTypeFacts) -> list[Data]:
    """The ports of a generated node type as blocks, one for each run of ports of one role."""
    blocks, first = [], 1
    for role, ports in groupby(facts.role):
        count = len(list(ports))
        blocks.append({"name": "eth{}", "first": first, "count": count, "role": role})
        first += count
    return blocks


def _rewrite_paths(data: Data, old: Path, new: Path) -> None:
    """Change the names of files in an inventory so that they are found from another folder.

    Args:
        data: the content of the inventory.
        old: the folder from which the files are found before.
        new: the folder from which they are found afterwards.
    """
    if isinstance(data.get("hosts"), str):
        data["hosts"] = _relative(new, old / data["hosts"])
    for node_type in data.get("node_types", {}).values():
        if isinstance(node_type.get("platform"), str):
            node_type["platform"] = _relative(new, old / node_type["platform"])


def _relative(folder: Path, file: Path) -> str:
    """The path of a file, relative to a folder."""
    return os.path.relpath(file, folder)


def _text(data: Data) -> str:
    """YAML with an entry a line."""
    return yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=100)
