"""Builds: everything compiled from a spec and an inventory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compilers.spec.balances import Balance, balance_or_plain
from compilers.spec.policy import EVERY_HOP
from compilers.tables.intermediate_form import Tables
from compilers.topology.labelled_graph import Topology
from compilers.wiring.addressing import Addressing
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Build:
    """A compiled fabric.

    identity: 16 hexadecimal digits that every emitted file names, "" before the build is saved.
    inputs: the SHA-256 digest of each file it was made from, by role. hardware: None without an
    inventory. policy: the rest of the spec's routing, for changes at run time. base: what switches
    need besides forwarding, as the spec says it. vars: the user's own variables; node_vars: those
    of nodes and their groups, by the node's name.

    The manifest of a build folder lists arrays in the order of the fields, so this order is part of
    the identity.
    """

    name: str
    balance: str
    protect: str
    inputs: Mapping[str, str]
    hardware: Hardware | None = None
    topology: Topology
    wiring: Wiring
    addressing: Addressing
    tables: Tables
    identity: str = ""
    policy: Mapping[str, str] = field(default_factory=dict)
    base: Mapping[str, Any] = field(default_factory=dict)
    vars: Mapping[str, Any] = field(default_factory=dict)
    node_vars: Mapping[str, Any] = field(default_factory=dict)

    @property
    def every_hop(self) -> bool:
        """Whether packets in transit are shared over the next hops of a class, too."""
        return self.policy.get("transit") == EVERY_HOP

    @property
    def spreading(self) -> Balance:
        """How hosts' packets are spread; of a balance that is not installed, as most are."""
        return balance_or_plain(self.balance)

    @property
    def marks(self) -> bool:
        """Whether packets that leave by an alternate are marked for the next switch."""
        return self.spreading.marks

    @property
    def carries(self) -> bool:
        """Whether packets carry an intermediate switch."""
        return self.spreading.carries

    def __repr__(self) -> str:
        """`<Build lab: polarfly q=7, 0123456789abcdef>`."""
        return f"<Build {self.name}: {self.topology.title()}, {self.identity or 'not saved'}>"
