"""Mean distance, utilisation and hosts of a design by formula; no graph is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from compilers.spec.policy import MARKED, VALIANT
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Design, Parameters
from compilers.topology.polarity import order

if TYPE_CHECKING:
    from compilers.topology.baseline import BaselineDesign

EXACT, ESTIMATE, BOUND = "exact", "estimate", "bound"
"""What a figure is: computed, estimated, or computed as the least that there is."""


@dataclass(frozen=True, slots=True)
class Carried:
    """The share of its link's rate that every host can send, by a balance of fabric.yaml."""

    share: float
    balance: str
    basis: str


@dataclass(frozen=True, slots=True)
class Formulas:
    """The figures of a design by formula, None where there is no formula.

    endpoints: nodes with hosts. leaf_degree: fabric ports of such a node. host_diameter and
    mean_distance: over pairs of such nodes, on minimal routes. utilisation: u, mean over largest
    link load under uniform traffic. basis: whether u is exact or an estimate.
    """

    parameters: Parameters
    endpoints: int
    leaf_degree: int
    host_diameter: int
    mean_distance: float | None
    utilisation: float | None
    basis: str | None

    def full_throughput_hosts(self, links: int) -> float | None:
        """Δ0 = 2E·u/(L·k̄): the hosts per node at which uniform traffic just fills the fullest link.

        Projective Networks paper, formula (1) and §VI, with the mean degree if degrees differ, as
        in its derivation.
        """
        if self.mean_distance is None or self.utilisation is None:
            return None
        return 2 * links * self.utilisation / (self.endpoints * self.mean_distance)


def uniform(known: Formulas, family: str, links: int, hosts: int, even: bool) -> Carried | None:
    """What uniform traffic gets on shortest paths; None where there is no formula.

    Of uneven hosts it is an estimate, as though every switch had `hosts`, the most.
    """
    full = known.full_throughput_hosts(links)
    if full is None or known.basis is None:
        return None
    balance = "minimal" if family_of(family).single else "ecmp"
    return Carried(min(1.0, full / hosts), balance, known.basis if even else ESTIMATE)


def worst(known: Formulas, design: Design, hosts: int, even: bool) -> Carried | None:
    """What the worst permutation gets by the balance for any traffic; None without a formula.

    Loads of `spread` and `valiant` hardly depend on who sends to whom, so they have formulas. With
    uneven hosts, `hosts` the most, at least as much is carried: no switch sends or gets more than
    if all had as many.
    """
    q, basis = design.q or 0, EXACT if even else BOUND
    if design.family == "polarfly" and family_of("polarfly").has_marks({"q": q}):
        share = (q * q - 1) / (2 * hosts * (2 * q - 1))
        return Carried(min(1.0, share), MARKED, basis if q >= EXACT_SPREAD else BOUND)
    if design.family == "oft":
        return Carried(min(1.0, (q + 1) / (2 * hosts)), MARKED, basis)
    if design.family == "pn":
        return Carried(min(1.0, (q + 1) / (5 * hosts)), MARKED, BOUND)
    full = known.full_throughput_hosts(design.links)
    if full is None or known.basis is None or design.family not in OURS:
        return None
    # Both legs are uniform traffic, but an intermediate may be any of N switches, not N - 1.
    legs = full / (2 * hosts) * design.nodes / (design.nodes - 1)
    return Carried(min(1.0, legs), VALIANT, basis if known.basis == EXACT else known.basis)


def formulas(design: Design) -> Formulas:
    """The formulas of a design of any family."""
    if design.family in OURS:
        return OURS[design.family](design)
    return _baseline(cast("BaselineDesign", design))


def _baseline(design: BaselineDesign) -> Formulas:
    from compilers.topology.families import BASELINES

    family, parameters = BASELINES[design.family], design.parameters
    used = family.utilisation(parameters)
    indirect = design.endpoints < design.nodes
    leaf = design.radix // 2
    if design.family == "megafly":
        leaf = int(parameters["a"]) // 2
    return Formulas(
        parameters=parameters,
        endpoints=design.endpoints,
        leaf_degree=leaf if indirect else design.radix,
        host_diameter=design.host_diameter,
        mean_distance=family.mean_distance(parameters),
        utilisation=used,
        basis=None if used is None else EXACT,
    )


def polarity_utilisation(q: int) -> float:
    """The u of ER_q: arcs at a quadric carry 2q pairs, all others 2q - 1 (Theorem 3.10)."""
    return (2 * q * q + q + 1) / (2 * q * (q + 1))


def _polarfly(design: Design) -> Formulas:
    q = design.q or 0
    mean = 2 - 2 * design.links / (design.nodes * (design.nodes - 1))
    return _direct(design, {"q": q}, mean, polarity_utilisation(q), EXACT)


def _pn(design: Design) -> Formulas:
    """Distances of §III-A; the graph is symmetric, so u = 1 (Theorem 3.5)."""
    q = design.q or 0
    mean = (5 * q * q + 3 * q + 1) / (2 * q * q + 2 * q + 1)
    return _direct(design, {"q": q}, mean, 1.0, EXACT)


def _oft(design: Design) -> Formulas:
    """Any two leaves are 2 links apart, and all links are alike (§VI)."""
    q = design.q or 0
    return Formulas({"q": q}, 2 * order(q), q + 1, 2, 2.0, 1.0, EXACT)


def _polarstar(design: Design) -> Formulas:
    parameters: Parameters = {
        "q": design.q or 0,
        "supernode": design.supernode or "",
        "degree": design.supernode_degree or 0,
    }
    near, far = polarstar_distances(design)
    pairs = design.nodes * (design.nodes - 1)
    total = near + 2 * far + 3 * (pairs - near - far)
    fullest = _polarstar_fullest(design)
    used = total / (2 * design.links) / fullest
    return _direct(design, parameters, total / pairs, min(used, 1.0), ESTIMATE)


def polarstar_distances(design: Design) -> tuple[int, int]:
    """Ordered pairs at distance 1 and at distance 2; all others are at distance 3.

    A member at distance 2 is the one reached at a structure vertex two arcs away, or any but the
    neighbour at an adjacent structure vertex, or in the same supernode.
    """
    q, k, degree = design.q or 0, design.supernode_order or 0, design.supernode_degree or 0
    n, arcs = order(q), q * (q + 1) ** 2
    far = (n * (n - 1) - arcs) * k + arcs * (k * k - k) + n * k * (k - 1 - degree)
    if design.supernode == "inductive-quad":
        far -= (q + 1) * k + (2 * q * q if degree % 4 == 0 else 0)
    return 2 * design.links, far


def _polarstar_fullest(design: Design) -> float:
    """An estimate of the largest arc load: the mean over structure arcs or supernode arcs.

    A minimal path over d structure arcs, d = 1 or 2, has one more arc in a supernode unless it has
    reached the member already. Quadrics unbalance structure arcs as they do in ER_q. The resulting
    u was measured against graphs up to q = 16: 6 % too low to 8 % too high for Inductive-Quad and
    complete supernodes, at most 23 % too high for Paley.
    """
    q, k, degree = design.q or 0, design.supernode_order or 0, design.supernode_degree or 0
    n, arcs = order(q), q * (q + 1) ** 2
    distant = n * (n - 1) - arcs
    if design.supernode == "complete":
        return max(2 * q * k, n)
    other = k - 2 if design.supernode == "inductive-quad" else k - 1
    detours = k - 1 - other
    outside = distant * k * (2 * k + detours) + arcs * k * (k + detours)
    inside = (distant + arcs) * k * other + n * k * (2 * k - 2 - degree)
    return max(outside / (arcs * k) / polarity_utilisation(q), inside / (n * k * degree))


def _direct(
    design: Design, parameters: Parameters, mean: float, used: float, basis: str
) -> Formulas:
    return Formulas(parameters, design.nodes, design.radix, design.diameter, mean, used, basis)


EXACT_SPREAD = 5
"""The q of PolarFly from which some permutation loads links as much as the formula for `spread`."""
OURS = {"polarfly": _polarfly, "polarstar": _polarstar, "pn": _pn, "oft": _oft}
