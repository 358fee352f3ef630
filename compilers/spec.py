"""fabric.yaml as a value: what to build, how to address it, how to route it."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from inventory.model import Mac, Model, Name


class TopologySpec(Model):
    """A family and its parameters; the family checks them (`compilers.topologies`)."""

    family: str
    q: int
    supernode: Literal["inductive-quad", "paley", "complete"] | None = None
    degree: Annotated[int, Field(ge=0)] | None = None


class AddressingSpec(Model):
    """Pools that hosts are numbered from, and the MAC address that every switch answers to."""

    ipv4: IPv4Network = IPv4Network("10.0.0.0/8")
    ipv6: IPv6Network | None = None
    gateway_mac: Mac = "02:50:46:00:00:01"


class RoutingSpec(Model):
    """Routing policy."""

    balance: Literal["minimal", "compact-valiant", "valiant", "ugal-pf"] = "minimal"
    protect: Literal["none", "link", "node"] = "none"


class FabricSpec(Model):
    """A fabric. Without `inventory`, one that just fits is generated."""

    name: Name
    topology: TopologySpec
    hosts_per_node: Annotated[int, Field(ge=0, le=1024)] = 1
    addressing: AddressingSpec = AddressingSpec()
    routing: RoutingSpec = RoutingSpec()
    inventory: Path | None = None
