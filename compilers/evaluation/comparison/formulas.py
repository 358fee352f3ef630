"""Mean distance, utilisation and hosts of a design by formula; no graph is built.

`candidates` adds hosts, cost and power. Δ0 is the number of hosts of a switch at which uniform
traffic just fills the link with the highest load (Projective Networks paper). A *balance* is a
load-balancing rule, a value of `routing.balance` in fabric.yaml.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compilers.spec.balances import own_balances, own_balances_with
from compilers.spec.forwarding import Forwarding
from compilers.topology.families import family_of
from compilers.topology.family import Design, Family

EXACT, ESTIMATE, BOUND = "exact", "estimate", "bound"
"""The basis of a figure: an exact formula, an estimate, or a lower bound."""


@dataclass(frozen=True, slots=True)
class CarriedShare:
    """The share of its link's rate that every host can send, by a balance of fabric.yaml."""

    share: float
    """The share, at most 1."""
    balance: str
    """The name of the balance."""
    basis: str
    """`EXACT`, `ESTIMATE` or `BOUND`."""


@dataclass(frozen=True, slots=True)
class Formulas:
    """The figures of a design by formula, None where there is no formula."""

    design: Design
    """The design that they describe."""
    family: Family
    """Its family."""
    leaf_degree: int
    """Fabric ports of a node with hosts."""
    mean_distance: float | None
    """Mean links of minimal routes, over pairs of nodes with hosts."""
    utilisation: float | None
    """u, the mean load of links divided by the largest, under uniform traffic."""
    basis: str | None
    """`EXACT` or `ESTIMATE`, the basis of u; None without u."""

    @property
    def full_throughput_hosts(self) -> float | None:
        """Δ0 = 2E·u/(L·k̄): the hosts per node at which uniform traffic just fills the fullest link.

        Projective Networks paper, formula (1) and §VI, with the mean degree if degrees differ, as
        in its derivation.
        """
        if self.mean_distance is None or self.utilisation is None:
            return None
        links, endpoints = self.design.links, self.design.endpoints
        return 2 * links * self.utilisation / (endpoints * self.mean_distance)

    def uniform(self, hosts: int, even: bool) -> CarriedShare | None:
        """The share of its rate that every host gets under uniform traffic, on shortest paths.

        None where there is no formula.

        Args:
            hosts: the hosts of a switch that has the most.
            even: whether all switches with hosts have as many. If not, the share is an estimate: it
                is that of a fabric in which all have as many.
        """
        hosts_at_full_rate = self.full_throughput_hosts
        if hosts_at_full_rate is None or self.basis is None:
            return None
        if self.family.single:  # one shortest path for each pair: no balance is needed
            balance = own_balances()[0]
        else:
            balance = _first_balance(lambda forwarding: forwarding.alternates == "shortest")
        basis = self.basis if even else ESTIMATE
        return CarriedShare(min(1.0, hosts_at_full_rate / hosts), balance, basis)

    def guaranteed(self, hosts: int, even: bool) -> CarriedShare | None:
        """The share of its rate that every host gets under any traffic, by the best balance for it.

        None where there is no formula. There are formulas for balances that mark packets or send
        them over intermediates, as their link loads hardly depend on the traffic. If not all
        switches have as many hosts, the share is a lower bound: no switch sends or gets more than
        in a fabric in which all have as many.

        Args:
            hosts: the hosts of a switch that has the most.
            even: whether all switches with hosts have as many.
        """
        if self.family.marks_suit_any_traffic(self.design.parameters):
            by_marks = self._guaranteed_by_marks(hosts, even)
            if by_marks is not None:
                return by_marks
        return self._guaranteed_by_intermediates(hosts, even)

    def _guaranteed_by_marks(self, hosts: int, even: bool) -> CarriedShare | None:
        """The share if packets are marked; None where the family has no formula."""
        share_and_exactness = self.family.marked_share(self.design.parameters, hosts)
        if not share_and_exactness:
            return None
        share, is_exact = share_and_exactness
        balance = _first_balance(lambda forwarding: forwarding.marks)
        return CarriedShare(min(1.0, share), balance, EXACT if even and is_exact else BOUND)

    def _guaranteed_by_intermediates(self, hosts: int, even: bool) -> CarriedShare | None:
        """The share if packets go over intermediates; None where there is no formula.

        There is none for families that are only compared with, as no balance is compiled for them.
        """
        hosts_at_full_rate = self.full_throughput_hosts
        if hosts_at_full_rate is None or self.basis is None or self.family.compared:
            return None
        if self.basis == EXACT and not self.family.single:
            return None  # tables use one of several shortest paths, so legs load links unevenly
        # Both legs are uniform traffic, but an intermediate may be any of N switches, not N - 1.
        share = hosts_at_full_rate / (2 * hosts) * self.design.nodes / (self.design.nodes - 1)
        basis = BOUND if self.basis == EXACT and not even else self.basis
        balance = _first_balance(lambda forwarding: forwarding.intermediates)
        return CarriedShare(min(1.0, share), balance, basis)


def _first_balance(has_property: Callable[[Forwarding], bool]) -> str:
    """The first of polarfab's own balances whose forwarding has a property."""
    return own_balances_with(has_property)[0]


def formulas(design: Design) -> Formulas:
    """The formulas of a design of any family."""
    family = family_of(design.family)
    utilisation = family.utilisation(design.parameters)
    basis = None
    if utilisation is not None:
        basis = ESTIMATE if family.estimated else EXACT
    return Formulas(
        design=design,
        family=family,
        leaf_degree=family.leaf_degree(design),
        mean_distance=family.mean_distance(design.parameters),
        utilisation=utilisation,
        basis=basis,
    )
