"""Builds: everything that is compiled from a spec and an inventory.

`compilers.pipeline` makes a build, `compilers.tables.folders` stores it, and targets, the proof and
the controller read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compilers.spec.allocations import Allocations
from compilers.spec.forwarding import Forwarding
from compilers.tables.intermediate_form import Tables
from compilers.topology.labelled_graph import Topology
from compilers.wiring.addressing import Addressing
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Build:
    """A compiled fabric.

    The manifest of a build folder lists arrays in the order of the fields, so this order is part of
    the identity.
    """

    name: str
    """The name of the fabric, or of the plane."""
    balance: str
    """The name of the balance, as in the spec's `routing.balance`."""
    forwarding: Forwarding
    """What the tables mean: whether packets are marked, what weights are, and so on."""
    inputs: Mapping[str, str]
    """The SHA-256 digest of each file that the build was made from, by role."""
    hardware: Hardware | None = None
    """The racks, units and modules of the inventory, None without one."""
    topology: Topology
    """The graph, with its family and parameters."""
    wiring: Wiring
    """Which node is each vertex, and which ports each link uses."""
    addressing: Addressing
    """The addresses of switches and hosts."""
    tables: Tables
    """What each switch does with packets to each destination."""
    identity: str = ""
    """16 hexadecimal digits that emitted files name, "" before the build is saved."""
    policy: Mapping[str, str] = field(default_factory=dict)
    """The other entries of the spec's `routing`, for reports and for compiling again."""
    base: Mapping[str, Any] = field(default_factory=dict)
    """What switches need besides forwarding, as the spec says it."""
    vars: Mapping[str, Any] = field(default_factory=dict)
    """The user's own variables."""
    node_vars: Mapping[str, Any] = field(default_factory=dict)
    """The variables of nodes and of their groups, by the node's name."""
    allocations: Allocations = field(default_factory=Allocations)
    """The numbers of links, cables and hosts that stay when the fabric is compiled again.

    It is empty where all numbers follow from the ports of links.
    """

    systems: tuple[str, ...] = ()
    """The system of each switch; () where neither fabric.yaml nor the inventory names one."""
    control: Mapping[str, str] = field(default_factory=dict)
    """The options of targets that both ends of a link must have alike, as far as they are set."""
    disabled_ports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of the ports that the inventory disables, by the node's name."""

    def __repr__(self) -> str:
        """`<Build lab: polarfly q=7, 0123456789abcdef>`."""
        return f"<Build {self.name}: {self.topology.title()}, {self.identity or 'not saved'}>"
