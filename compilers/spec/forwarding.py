"""`Forwarding`: the properties of a build's tables that the tables themselves do not show.

A *balance* is a load-balancing rule. It returns its `Forwarding` with the tables, the manifest of a
build states it, and proofs and targets read it.

An egress class of a switch is a set of destinations with the same ports. Its *minimal port* is on
the shortest path, and its *alternates* are the other ports over which packets from hosts are
shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from compilers.spec.features import INGRESS, INTERMEDIATES, MARKS, MULTIPATH

Alternates = Literal["none", "shortest", "some", "all"]
"""The values of `Forwarding.alternates`."""
Weights = Literal["equal-cost", "minimal-share", "fitted", "any"]
"""The values of `Forwarding.weights`."""
Protect = Literal["none", "link", "node", "module"]
"""The values of `Forwarding.protect`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """The properties of tables that are not in the tables themselves.

    A balance returns them with the tables, a build keeps them, and `verify` proves them.
    """

    alternates: Alternates = "none"
    """The ports that share a class's traffic from hosts with its minimal port.

    `none`; `shortest`: all other shortest paths, and no longer ones; `all`: all neighbours whose
    minimal path does not lead back here (where packets are marked: all neighbours); `some`: not all
    of these.
    """
    disjoint: bool = False
    """Whether all alternates share no link with the minimal path.

    False where packets are marked: their paths may share links.
    """
    weights: Weights = "equal-cost"
    """The shares of a class's ports.

    `equal-cost`: all alike; `minimal-share`: the minimal port has `minimal_share`, the alternates
    have equal parts of the rest; `fitted`: fitted to a demand; `any`: the balance's own.
    """
    minimal_share: Fraction | None = None
    """The minimal port's part of the traffic with `minimal-share`, else None.

    Weights are whole numbers, so the part is approximate.
    """
    bounces: bool = False
    """Whether packets to a host of an adjacent switch are shared over other neighbours, too.

    The shortest path of some of them leads back here. Such a neighbour bounces the packet: it sends
    it on over another port (a U-turn alternate).
    """
    marks: bool = False
    """Whether packets that leave by an alternate are marked.

    The next switch sends each marked packet over a random link.
    """
    intermediates: bool = False
    """Whether packets carry an intermediate switch, drawn at random where they enter the fabric.

    There are no alternates then.
    """
    every_hop: bool = False
    """Whether packets in transit are shared over the ports of a class, as those from hosts are."""
    protect: Protect = "none"
    """The failures that switches repair themselves, one at a time.

    `node` includes links, `module` includes both.
    """

    def __post_init__(self) -> None:
        """Check the values, and that properties do not exclude each other.

        Raises:
            ValueError: they do, or a value is unknown.
        """
        for name, allowed_values in (
            ("alternates", Alternates),
            ("weights", Weights),
            ("protect", Protect),
        ):
            if getattr(self, name) not in get_args(allowed_values):
                allowed = ", ".join(get_args(allowed_values))
                raise ValueError(f"{name} is {getattr(self, name)!r}, not one of {allowed}")
        if (self.minimal_share is None) == (self.weights == "minimal-share"):
            raise ValueError("minimal_share goes with weights: minimal-share, and only with these")
        if self.minimal_share is not None and not 0 <= self.minimal_share <= 1:
            raise ValueError(f"minimal_share is {self.minimal_share}, not from 0 to 1")
        if self.marks and self.disjoint:
            raise ValueError("disjoint does not go with marks: marked packets take any other link")
        if self.intermediates and self.has_alternates:
            raise ValueError("intermediates go with alternates: none, and only with these")

    @property
    def has_alternates(self) -> bool:
        """Whether classes have other ports than the minimal one for packets from hosts."""
        return self.alternates != "none"

    @property
    def several_paths(self) -> bool:
        """Whether the packets of a pair of hosts take several paths."""
        return self.has_alternates or self.intermediates

    @property
    def needs(self) -> frozenset[str]:
        """The features that a target must have to spread packets from hosts in this way.

        Where packets are shared at every hop, packets from hosts need no routes of their own.
        """
        features = set[str]()
        if self.has_alternates:
            features.add(MULTIPATH)
        if self.intermediates or (self.has_alternates and not self.every_hop):
            features.add(INGRESS)
        if self.marks:
            features.add(MARKS)
        if self.intermediates:
            features.add(INTERMEDIATES)
        return frozenset(features)

    @property
    def repairs(self) -> bool:
        """Whether switches repair failures themselves."""
        return self.protect != "none"


PLAIN = Forwarding()
"""One shortest path for every pair of switches, and no repair."""
