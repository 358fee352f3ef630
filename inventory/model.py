"""Hardware as values: node types with ports, and nodes of those types."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
Mac = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$")]


class Model(BaseModel):
    """A frozen value read from YAML: unknown keys and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class PortBlock(Model):
    """A run of alike ports: `count` of them, named by `name` with {} for first, first + 1, …

    Port numbers (OpenFlow, 1 first) run on over the blocks of a type in their order.
    """

    name: str = "eth{}"
    count: Annotated[int, Field(ge=1, le=65_000)]
    first: Annotated[int, Field(ge=0)] = 1
    role: Literal["any", "fabric", "host"] = "any"


class NodeType(Model):
    """A kind of switch: its ports."""

    ports: Annotated[tuple[PortBlock, ...], Field(min_length=1)]


class Host(Model):
    """An endpoint at a node's host port: its name and MAC address, both optional."""

    name: Name | None = None
    mac: Mac | None = None


class Node(Model):
    """One switch. Without `vertex`, nodes take the free vertices in the order they are listed."""

    name: Name
    type: str
    vertex: Annotated[int, Field(ge=0)] | None = None
    datapath_id: Annotated[int, Field(ge=1, lt=2**64)] | None = None
    management: IPv4Address | IPv6Address | None = None
    hosts: tuple[Host, ...] = ()


class Inventory(Model):
    """The hardware that a fabric is built from."""

    node_types: dict[Name, NodeType]
    nodes: tuple[Node, ...]
