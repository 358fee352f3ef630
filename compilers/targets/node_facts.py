"""Facts about nodes, for templates: all that a build knows about each; and names of variables."""

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
    """A link at a node: number and name of its port, and the same at the other end."""

    number: int
    port: str
    far: str
    far_number: int
    far_port: str


@dataclass(frozen=True, slots=True)
class NodeHost:
    """A host at a node: number and name of the node's port; ipv6 is "" without a pool."""

    name: str
    number: int
    port: str
    mac: str
    ipv4: str
    ipv6: str


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node of a build; "" and 0 for what is not known.

    kind: of the vertex, in the topology's words. datapath_id: 16 hexadecimal digits. unit: the
    lowest that the node fills. ipv4, ipv6: the gateway of its hosts, with the length. links: in the
    order of the neighbours.
    """

    name: str
    vertex: int
    kind: str
    type: str
    datapath_id: str
    management: str
    rack: str
    unit: int
    serial: str
    ipv4: str
    ipv6: str
    links: tuple[NodeLink, ...]
    hosts: tuple[NodeHost, ...]

    @classmethod
    def of(cls, build: Build, vertex: int) -> NodeFacts:
        """The facts of the node at a vertex."""
        t, w, a = build.topology, build.wiring, build.addressing
        return cls(
            name=w.names[vertex],
            vertex=vertex,
            kind=t.kinds[int(t.kind[vertex])],
            type=w.type_names[int(w.node_type[vertex])],
            datapath_id=f"{int(w.datapath_id[vertex]):016x}",
            management=w.management[vertex],
            ipv4=f"{a.gateway(vertex)}/{a.ipv4_length}",
            ipv6=f"{a.network6(vertex)[1]}/64" if a.ipv6 else "",
            links=tuple(_links(build, vertex)),
            hosts=tuple(_hosts(build, vertex)),
            **_place(build, vertex),
        )


@dataclass(frozen=True, slots=True, eq=False)
class FabricFacts:
    """A fabric: what its build is called, and its nodes.

    _build: a template in the sandbox does not see it: the methods of its arrays write files.
    """

    name: str
    identity: str
    _build: Build

    @property
    def nodes(self) -> Iterator[NodeFacts]:
        """The facts of every node with a program, in the order of the vertices."""
        for vertex in np.flatnonzero(self._build.topology.present).tolist():
            yield NodeFacts.of(self._build, vertex)


def _place(build: Build, vertex: int) -> dict[str, Any]:
    known = build.hardware
    if known is None:
        return {"rack": "", "unit": 0, "serial": ""}
    rack = int(known.rack[vertex])
    return {
        "rack": known.rack_names[rack] if rack >= 0 else "",
        "unit": int(known.unit[vertex]),
        "serial": known.serial[vertex],
    }


def _links(build: Build, vertex: int) -> Iterator[NodeLink]:
    w = build.wiring
    for port, far, far_port in w.ends(vertex):
        ends = w.port_name(vertex, port), w.port_name(far, far_port)
        yield NodeLink(port, ends[0], w.names[far], far_port, ends[1])


def _hosts(build: Build, vertex: int) -> Iterator[NodeHost]:
    w, a = build.wiring, build.addressing
    first = vertex * w.host_port.shape[1]
    for host in np.flatnonzero(w.host_port[vertex]).tolist():
        port = int(w.host_port[vertex, host])
        yield NodeHost(
            name=w.host_names[first + host],
            number=port,
            port=w.port_name(vertex, port),
            mac=a.mac(vertex, host),
            ipv4=str(a.host(vertex, host)),
            ipv6=str(a.host6(vertex, host)) if a.ipv6 else "",
        )


FABRIC_FACTS = frozenset({"fabric", "vars"})
SWITCH_FACTS = FABRIC_FACTS | {"facts"}
"""The variables that every template of a switch has besides (`compilers.targets.node_facts`);
vars: the user's own."""


class UserVariables(dict[str, Any]):
    """`vars` of a template: the user's own variables, of fabric, group and node."""


def shown(values: DataclassInstance) -> dict[str, Any]:
    """The variables of a template by name."""
    return {field.name: getattr(values, field.name) for field in fields(values)}


def names_by_file(files: Mapping[str, type], whole_fabric: bool) -> dict[str, frozenset[str]]:
    """The names of the variables of each file's template."""
    facts = FABRIC_FACTS if whole_fabric else SWITCH_FACTS
    return {file: facts | {field.name for field in fields(kind)} for file, kind in files.items()}
