"""Mean distance, utilisation and hosts of a design by formula; no graph is built."""

from __future__ import annotations

from dataclasses import dataclass

from compilers.spec.balances import own_balances, own_balances_with
from compilers.topology.families import family_of
from compilers.topology.family import Design, Family

EXACT, ESTIMATE, BOUND = "exact", "estimate", "bound"
"""What a figure is: computed, estimated, or computed as the least that there is."""


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
    """u, the mean over the largest link load under uniform traffic."""
    basis: str | None
    """Whether u is exact or an estimate."""

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
        """What uniform traffic gets on shortest paths; None where there is no formula.

        Of uneven hosts it is an estimate, as though every switch had `hosts`, the most.
        """
        full = self.full_throughput_hosts
        if full is None or self.basis is None:
            return None
        balance = (
            own_balances()[0]
            if self.family.single
            else own_balances_with(lambda forwarding: forwarding.alternates == "shortest")[0]
        )
        return CarriedShare(min(1.0, full / hosts), balance, self.basis if even else ESTIMATE)

    def guaranteed(self, hosts: int, even: bool) -> CarriedShare | None:
        """What any traffic gets by the balance for any traffic; None without a formula.

        Loads of marked packets, and of those over intermediates, hardly depend on who sends to
        whom, so they have formulas. With uneven hosts, `hosts` the most, at least as much is
        carried: no switch sends or gets more than if all had as many.
        """
        parameters = self.design.parameters
        marked = self.family.marked_share(parameters, hosts)
        if marked and self.family.marks_suit_any_traffic(parameters):
            share, exact = marked
            return CarriedShare(
                min(1.0, share),
                own_balances_with(lambda forwarding: forwarding.marks)[0],
                EXACT if even and exact else BOUND,
            )
        full = self.full_throughput_hosts
        if full is None or self.basis is None or self.family.compared:
            return None
        if self.basis == EXACT and not self.family.single:
            return None  # tables take one of several shortest paths, so legs are not even
        # Both legs are uniform traffic, but an intermediate may be any of N switches, not N - 1.
        legs = full / (2 * hosts) * self.design.nodes / (self.design.nodes - 1)
        bound = BOUND if self.basis == EXACT and not even else self.basis
        return CarriedShare(
            min(1.0, legs), own_balances_with(lambda forwarding: forwarding.intermediates)[0], bound
        )


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
