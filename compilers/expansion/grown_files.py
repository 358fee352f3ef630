"""fabric.yaml and inventory.yaml of a larger fabric, from those that it grew from and its build.

New nodes and racks are added, and everything else stays. Comments are lost. Ports, labels and
addresses are not in these files: a compile takes them from the larger build.
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
from compilers.cabling.fabric_numbers import require_same_topology
from compilers.spec.fabric_file import LoadedFabric
from compilers.tables.build import Build
from compilers.wiring.hardware import Hardware, PortFacts
from compilers.wiring.wiring import first_id
from inventory.model import Node

Data = dict[str, Any]
FITTED = ("demand", "largest_share")
"""Keys of `routing` that a larger fabric does not keep."""


def grown_files(
    loaded: LoadedFabric, olds: Sequence[Build], builds: Sequence[Build], inventory: Path
) -> tuple[str, str]:
    """The text of fabric.yaml and of inventory.yaml of a larger fabric.

    Args:
        loaded: the files of the fabric that it grew from.
        olds: the builds of that fabric, one a plane.
        builds: the builds of the larger fabric.
        inventory: the path at which the new inventory.yaml will be, beside the new fabric.yaml.

    Raises:
        InputError: the builds are of another fabric than the files.
    """
    require_same_topology(loaded, olds)
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
        spec["allocations"] = _from(inventory.parent, old_folder / spec["allocations"])
    hardware = _inventory(loaded, olds, builds, inventory.parent)
    return _text(spec), _text(hardware)


def _inventory(
    loaded: LoadedFabric, olds: Sequence[Build], builds: Sequence[Build], folder: Path
) -> Data:
    """The content of the new inventory.yaml.

    Args:
        loaded: the files of the smaller fabric.
        olds: its builds.
        builds: the larger builds.
        folder: where the file will be.
    """
    document = loaded.inventory_document
    data: Data = deepcopy(document.data) if document else {}
    if document:
        _with_paths(data, Path(document.file).parent, folder)
    is_listed = "nodes" in data
    is_generated = "generate" in data
    has_racks = "racks" in data or is_generated
    if not document:
        data["node_types"] = {
            facts.name: {"ports": _blocks(facts)} for facts in hardware_of(builds[0]).types
        }
    data.pop("generate", None)
    placement = data.get("placement", {})
    if placement.get("layout") not in (None, "fans", "partition"):
        del placement["layout"]
    nodes, racks = data.setdefault("nodes", []), data.get("racks", [])
    known = {rack["name"] for rack in racks}
    names = {node["name"] for node in nodes}
    for old, build in zip(olds, builds, strict=True):
        hardware = hardware_of(build)
        first = len(old.wiring.names) if is_listed else 0
        nodes += [
            _node(build, hardware, v, has_racks)
            for v in range(first, len(build.wiring.names))
            if build.wiring.names[v] not in names
        ]
        _count_hosts(loaded, build, nodes, first)
        if has_racks:
            racks += [rack for rack in _racks(hardware) if rack["name"] not in known]
            known |= {rack["name"] for rack in racks}
    if has_racks:
        data["racks"] = racks
    return data


def _node(build: Build, hardware: Hardware, vertex: int, has_racks: bool) -> Data:
    """A node of the new inventory."""
    w = build.wiring
    node: Data = {"name": w.names[vertex], "type": w.type_names[w.node_type[vertex]]}
    node["vertex"] = vertex
    if has_racks:
        node["rack"] = hardware.rack_names[hardware.rack[vertex]]
        node["unit"] = int(hardware.unit[vertex])
    if (number := int(w.datapath_id[vertex])) != first_id(hardware.plane) + vertex:
        node["datapath_id"] = number
    for word, value in (("management", w.management), ("serial", hardware.serial)):
        if value[vertex]:
            node[word] = value[vertex]
    if hardware.plane:
        node["plane"] = hardware.plane
    if build.systems:
        node["system"] = build.systems[vertex]
    if variables := build.node_vars.get(w.names[vertex]):
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
    usual = loaded.spec.hosts_per_node
    counts = (build.wiring.host_port > 0).sum(axis=1).tolist()
    count_of = dict(zip(build.wiring.names[first:], counts[first:], strict=True))
    for data in nodes:
        if (count := count_of.get(data["name"])) is None:
            continue
        node = listed.get(data["name"]) or Node.model_construct(name="", type=data["type"])
        if inventory.host_count(node, usual) != count:
            data["host_count"] = count


def _racks(hardware: Hardware) -> list[Data]:
    """All racks, as entries of an inventory."""
    columns = hardware.rack_place.tolist(), hardware.rack_units.tolist()
    return [
        {"name": name, "row": row, "column": column, "units": units}
        for name, (row, column), units in zip(hardware.rack_names, *columns, strict=True)
    ]


def _blocks(facts: PortFacts) -> list[Data]:
    """The ports of a generated node type as blocks, one for each run of ports of one role."""
    blocks, first = [], 1
    for role, ports in groupby(facts.role):
        count = len(list(ports))
        blocks.append({"name": "eth{}", "first": first, "count": count, "role": role})
        first += count
    return blocks


def _with_paths(data: Data, old: Path, new: Path) -> None:
    """Change the names of files in an inventory so that they are found from another folder."""
    if isinstance(data.get("hosts"), str):
        data["hosts"] = _from(new, old / data["hosts"])
    for node_type in data.get("node_types", {}).values():
        if isinstance(node_type.get("platform"), str):
            node_type["platform"] = _from(new, old / node_type["platform"])


def _from(folder: Path, file: Path) -> str:
    """The path of a file from a folder on."""
    return os.path.relpath(file, folder)


def _text(data: Data) -> str:
    """YAML with an entry a line."""
    return yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=100)
