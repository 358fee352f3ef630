"""The guaranteed throughput while something is down: for every link, switch, module or rack.

Two figures a case: as the switches repair by themselves, and by the tables that a controller
computes for what is left. Hosts of a switch that is down neither send nor take. In a large fabric
cases are drawn by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.crossings import CELLS, Crossings, OverDamagedLegs, OverTables
from compilers.evaluation.guarantee import CLOSE, require_scipy
from compilers.evaluation.host_rates import HostRates
from compilers.evaluation.worst_traffic import worst_traffic
from compilers.forwarding.link_crossings import LinkCrossings
from compilers.proof.failures.risk_cases import Elements, named_elements, require_single
from compilers.routing.link_repair import Intact, repaired
from compilers.tables.build import Build
from inventory.problems import InputError

Reals = NDArray[np.float64]
MOST_WORK = 1 << 33
"""Cases, times links, times pairs of switches, that take minutes: all links of PolarFly q = 9."""
LEAST_CASES = 4
"""The cases that have to take minutes at most, or failures are refused: up to PolarFly q = 19."""
MOST_LEGS = 1 << 27
"""Pairs of switches, times links, of the largest fabric with intermediates: a gigabyte."""
FEW = 8
"""Links whose pairs are asked for at a time, the first time."""


@dataclass(frozen=True, slots=True)
class FailureGuarantee:
    """What every host that is left gets under any traffic while something is down."""

    kind: str
    """link, node, or another kind of failures."""
    element: str
    """The name of what is down."""
    share: float
    """The share of the rate of its link, as the switches repair by themselves; 0 where they lose a
    pair, or no host is left."""
    repaired: float
    """The same by the tables that a controller computes then."""


def failure_guarantees(
    build: Build,
    kind: str,
    hosts_per_node: int = 0,
    progress: Callable[[int, int], None] | None = None,
    sample: int = 0,
    seed: int = 0,
) -> tuple[FailureGuarantee, ...]:
    """The guarantee with each element of a kind down, the worst first.

    Args:
        build: its tables and cables.
        kind: one of `compilers.proof.failures.risk_cases.SINGLE`, or a file of groups.
        hosts_per_node: as in `compilers.evaluation.guarantee`.
        progress: called with (cases looked at, all cases).
        sample: how many cases, drawn by chance; 0: all, or as many as take minutes.
        seed: of the sample.

    Raises:
        InputError: scipy is not installed, the fabric is too large, or the kind is several
            failures at once, or none.
    """
    require_scipy()
    require_single(kind)
    _require_size(build)
    cases = _drawn(build, _cases(build, kind), sample, seed)
    looks = Looks(build, HostRates.of(build, hosts_per_node), len(cases))
    intact, found = Intact.of(build), []
    for number, (name, elements) in enumerate(cases.items(), 1):
        share = looks.share(build, elements)
        after = replace(build, tables=repaired(intact, _dead(build, elements)).tables)
        found.append(FailureGuarantee(kind, name, share, looks.share(after, elements)))
        if progress:
            progress(number, len(cases))
    return tuple(sorted(found, key=lambda case: (case.share, case.repaired)))


def failure_cases(build: Build, kind: str) -> int:
    """How many failures of a kind there are."""
    return len(_cases(build, kind))


def _require_size(build: Build) -> None:
    """Pass where a look takes seconds, and the legs over intermediates fit into memory.

    Raises:
        InputError: one does not.
    """
    most, words = MOST_WORK // LEAST_CASES, ""
    if build.forwarding.intermediates:
        most, words = MOST_LEGS, ", where packets go by intermediates"
    if (cells := _cells(build)) > most:
        raise InputError.of(
            f"a fabric of at most {most:,} links (each way) times pairs of switches{words}",
            f"{cells:,}",
            "leave `failures` out, or look at a smaller fabric of the family",
            key="failures",
        )


def _cells(build: Build) -> int:
    """Directions of links, times pairs of switches."""
    return int(np.count_nonzero(build.wiring.far >= 0)) * build.tables.switches**2


def _drawn(build: Build, cases: dict[str, Elements], sample: int, seed: int) -> dict[str, Elements]:
    """The cases that are looked at, in their order."""
    usual = MOST_WORK // max(1, _cells(build))
    count = min(len(cases), sample or usual)
    chosen = np.random.default_rng(seed).permutation(len(cases))[:count]
    names = list(cases)
    return {names[number]: cases[names[number]] for number in np.sort(chosen).tolist()}


def _cases(build: Build, kind: str) -> dict[str, Elements]:
    """The elements of each case by its name."""
    names, ends = build.wiring.names, build.wiring.link_ends()
    if kind == "link":
        return {"-".join(names[end] for end in link): (n,) for n, link in enumerate(ends.tolist())}
    if kind == "node":
        cabled = np.flatnonzero((build.wiring.far >= 0).any(axis=1)).tolist()
        return {names[s]: (len(ends) + s,) for s in cabled}
    return named_elements(build, kind)


def _dead(build: Build, elements: Elements) -> NDArray[np.bool_]:
    """bool[S, K]: the links that are down, at both ends, those of switches too."""
    far, ends = build.wiring.far, build.wiring.link_ends()
    dead = np.zeros(far.shape, np.bool_)
    for element in elements:
        if element >= len(ends):
            dead[element - len(ends)] = True
            dead |= far == element - len(ends)
        else:
            one, other = ends[element].tolist()
            dead[one] |= far[one] == other
            dead[other] |= far[other] == one
    return dead & (far >= 0)


class Looks:
    """Looks at a fabric while elements are down.

    Bounds say how much each link may carry. Links are looked at from the highest bound on, until no
    other can be worse.

    Args:
        build: with its tables before.
        rates: of hosts and links.
        times: how often is asked.
    """

    def __init__(self, build: Build, rates: HostRates, times: int) -> None:
        self.build, self.rates, self.times = build, rates, times
        self.links = len(build.wiring.link_ends())
        self.intact = (
            None if build.forwarding.intermediates else LinkCrossings.of(build, times=times)
        )

    def share(self, build: Build, elements: Elements) -> float:
        """The guarantee of some tables while elements are down.

        It is 0 where packets are lost, and where no switch with hosts is left.
        """
        rates = self.rates
        down = [element - self.links for element in elements if element >= self.links]
        left = ~np.isin(rates.switches, down)
        if not left.any():
            return 0.0
        crossings = self._crossings(build, np.array(elements, np.int64))
        arcs = crossings.arcs
        living = replace(
            rates,
            switches=rates.switches[left],
            columns=rates.columns[left],
            hosts=rates.hosts[left],
            counts=rates.counts[left],
        )
        carries = rates.links[tuple(arcs.T)]
        bounds = crossings.bounds(arcs, *living.ends(*crossings.size))
        arrived = living.pairs(bounds.arrived)
        np.fill_diagonal(arrived, 1)
        if not (arrived > 1 - CLOSE).all():
            return 0.0
        return _least(crossings, arcs, carries, bounds.most / carries, living)

    def _crossings(self, build: Build, dead: NDArray[np.int64]) -> Crossings:
        """Who crosses links while elements are down."""
        if self.intact is None:
            return OverDamagedLegs.of(build, dead)
        if build is self.build:
            return OverTables(self.intact.while_down(build, dead))
        return OverTables(LinkCrossings.of(build, dead, self.times))


def _least(
    crossings: Crossings, arcs: NDArray[np.int64], carries: Reals, most: Reals, rates: HostRates
) -> float:
    """The share by the link that the worst traffic loads most, by what it carries.

    Args:
        crossings: who crosses links.
        arcs: int64[n, 2], the links.
        carries: float64[n], what each carries.
        most: float64[n], a bound of its load, by what it carries.
        rates: of the hosts that are left.
    """
    order, peak, done, step = np.argsort(-most, kind="stable"), 0.0, 0, FEW
    while done < len(order) and most[order[done]] > peak * (1 + CLOSE):
        some = order[done : done + step]
        for arc, load in zip(some.tolist(), crossings.loads(arcs[some]), strict=True):
            if most[arc] > peak * (1 + CLOSE):
                worst = worst_traffic(rates.pairs(load), rates).load
                peak = max(peak, worst / float(carries[arc]))
        done += len(some)
        step = max(1, min(2 * step, CELLS // load.size))
    return min(1.0, 1 / peak) if peak else 1.0
