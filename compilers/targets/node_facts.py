"""What every template can print besides the variables of its target: facts about the nodes.

A template of a switch has the variables `facts` (`NodeFacts`), `fabric` (`FabricFacts`) and `vars`
(`UserVariables`); a template for the whole fabric has the last two. `Target` passes them to the
templates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from compilers.tables.build import Build

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class NodeLink:
    """A link at a node."""

    number: int
    """The number of the node's port."""
    port: str
    """The name of the node's port."""
    far: str
    """The node at the other end."""
    far_number: int
    """The number of its port."""
    far_port: str
    """The name of its port."""


@dataclass(frozen=True, slots=True)
class NodeHost:
    """A host at a node."""

    name: str
    """Its name."""
    number: int
    """The number of the node's port."""
    port: str
    """The name of the node's port."""
    mac: str
    """Its MAC address."""
    ipv4: str
    """Its IPv4 address, without a length."""
    ipv6: str
    """Its IPv6 address; "" where the fabric has none."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node of a build; "" and 0 for what the inventory does not say."""

    name: str
    """Its name."""
    vertex: int
    """The number of its vertex."""
    kind: str
    """The kind of the vertex, in the topology's words."""
    type: str
    """The node type in the inventory."""
    datapath_id: str
    """The OpenFlow datapath id, 16 hexadecimal digits."""
    management: str
    """The management address."""
    rack: str
    """The name of its rack."""
    unit: int
    """The lowest rack unit that the node fills."""
    serial: str
    """Its serial number."""
    ipv4: str
    """The gateway address of its hosts, with the prefix length."""
    ipv6: str
    """The IPv6 gateway address of its hosts, with the prefix length; "" where the fabric has no
    IPv6."""
    links: tuple[NodeLink, ...]
    """Its links, in the order of the neighbours."""
    hosts: tuple[NodeHost, ...]
    """Its hosts, in the order of their numbers."""

    @classmethod
    def of(cls, build: Build, vertex: int) -> NodeFacts:
        """The facts of the node at a vertex."""
        topology, wiring, addressing = build.topology, build.wiring, build.addressing
        return cls(
            name=wiring.names[vertex],
            vertex=vertex,
            kind=topology.kinds[int(topology.kind[vertex])],
            type=wiring.type_names[int(wiring.node_type[vertex])],
            datapath_id=f"{int(wiring.datapath_id[vertex]):016x}",
            management=wiring.management[vertex],
            ipv4=f"{addressing.gateway(vertex)}/{addressing.ipv4_length}",
            ipv6=f"{addressing.network6(vertex)[1]}/64" if addressing.ipv6 else "",
            links=tuple(_links(build, vertex)),
            hosts=tuple(_hosts(build, vertex)),
            **_rack_place(build, vertex),
        )


@dataclass(frozen=True, slots=True, eq=False)
class FabricFacts:
    """A fabric: the name and the identity of its build, and its nodes."""

    name: str
    """The name of the build."""
    identity: str
    """The identity of the build."""
    _build: Build
    """Hidden from templates: arrays have methods that write files."""

    @property
    def nodes(self) -> Iterator[NodeFacts]:
        """The facts of every node that is installed, in the order of the vertices."""
        for vertex in np.flatnonzero(self._build.topology.present).tolist():
            yield NodeFacts.of(self._build, vertex)


def _rack_place(build: Build, vertex: int) -> dict[str, Any]:
    """The fields `rack`, `unit` and `serial` of a node's `NodeFacts`, as keyword arguments."""
    hardware = build.hardware
    if hardware is None:
        return {"rack": "", "unit": 0, "serial": ""}
    rack = int(hardware.rack[vertex])
    return {
        "rack": hardware.rack_names[rack] if rack >= 0 else "",
        "unit": int(hardware.unit[vertex]),
        "serial": hardware.serial[vertex],
    }


def _links(build: Build, vertex: int) -> Iterator[NodeLink]:
    """The links of a node."""
    wiring = build.wiring
    for port, far, far_port in wiring.links_of(vertex):
        yield NodeLink(
            number=port,
            port=wiring.port_name(vertex, port),
            far=wiring.names[far],
            far_number=far_port,
            far_port=wiring.port_name(far, far_port),
        )


def _hosts(build: Build, vertex: int) -> Iterator[NodeHost]:
    """The hosts of a node."""
    wiring, addressing = build.wiring, build.addressing
    first_host = vertex * wiring.host_port.shape[1]  # its index in `host_names`
    for host in np.flatnonzero(wiring.host_port[vertex]).tolist():
        port = int(wiring.host_port[vertex, host])
        yield NodeHost(
            name=wiring.host_names[first_host + host],
            number=port,
            port=wiring.port_name(vertex, port),
            mac=addressing.mac(vertex, host),
            ipv4=str(addressing.host(vertex, host)),
            ipv6=str(addressing.host6(vertex, host)) if addressing.ipv6 else "",
        )


FABRIC_FACTS = frozenset({"fabric", "vars"})
"""The names of the variables that every template has besides those of its target."""
SWITCH_FACTS = FABRIC_FACTS | {"facts"}
"""The names of these variables in templates of a switch."""


class UserVariables(dict[str, Any]):
    """The user's own variables by name: those of the fabric, of groups and of the node."""


def fields_of(values: DataclassInstance) -> dict[str, Any]:
    """The fields of a dataclass as variables of a template."""
    return {field.name: getattr(values, field.name) for field in fields(values)}


def names_by_file(files: Mapping[str, type], whole_fabric: bool) -> dict[str, frozenset[str]]:
    """The names of the variables that each file's template has.

    Args:
        files: the dataclass of each file's variables.
        whole_fabric: whether the files are for the whole fabric.
    """
    facts = FABRIC_FACTS if whole_fabric else SWITCH_FACTS
    return {
        file: facts | {field.name for field in fields(variables)}
        for file, variables in files.items()
    }
