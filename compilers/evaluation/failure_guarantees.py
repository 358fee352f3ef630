"""The guaranteed throughput while something is down: for every link, switch, module or rack.

Two figures a case: as the switches repair by themselves, and by the tables that a controller
computes for what is left. Hosts of a switch that is down neither send nor take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.guarantee import CLOSE, require_scipy
from compilers.evaluation.host_rates import HostRates
from compilers.evaluation.worst_traffic import worst_traffic
from compilers.forwarding.link_crossings import LinkCrossings
from compilers.proof.failures.risk_cases import Elements, named_elements, require_single
from compilers.routing.link_repair import Intact, repaired
from compilers.tables.build import Build
from inventory.problems import InputError

Reals = NDArray[np.float64]
MOST_CELLS = 1 << 27
"""Pairs of switches, times links, of the largest fabric whose failures are looked at: a gigabyte,
PolarFly of q = 16."""


@dataclass(frozen=True, slots=True)
class FailureGuarantee:
    """What every host that is left gets under any traffic while something is down.

    kind: link, node, or another kind of failures.
    element: the name of what is down.
    share: of the rate of its link, as the switches repair by themselves; 0 where they lose a pair.
    repaired: the same by the tables that a controller computes then.
    """

    kind: str
    element: str
    share: float
    repaired: float


def failure_guarantees(
    build: Build,
    kind: str,
    hosts_per_node: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[FailureGuarantee, ...]:
    """The guarantee with each element of a kind down, the worst first.

    Args:
        build: its tables and cables.
        kind: one of `compilers.proof.failures.risk_cases.SINGLE`, or a file of groups.
        hosts_per_node: as in `compilers.evaluation.guarantee`.
        progress: called with (cases looked at, all cases).

    Raises:
        InputError: scipy is not installed, the fabric is too large, packets go by intermediates, or
            the kind is several failures at once, or none.
    """
    require_scipy()
    require_single(kind)
    _require_followed(build)
    cases = _cases(build, kind)
    looks = _Looks.of(build, HostRates.of(build, hosts_per_node), len(cases))
    intact, found = Intact.of(build), []
    for number, (name, elements) in enumerate(cases.items(), 1):
        share = looks.share(build, elements)
        after = replace(build, tables=repaired(intact, _dead(build, elements)).tables)
        found.append(FailureGuarantee(kind, name, share, looks.share(after, elements)))
        if progress:
            progress(number, len(cases))
    return tuple(sorted(found, key=lambda case: (case.share, case.repaired)))


def _require_followed(build: Build) -> None:
    if build.forwarding.intermediates:
        required = "a balance without intermediates, to look at failures"
        raise InputError.of(required, build.balance, key="routing.balance")
    ends = int(np.count_nonzero(build.topology.endpoints))
    cells = np.count_nonzero(build.wiring.far >= 0) * build.tables.switches * ends
    if cells > MOST_CELLS:
        raise InputError.of(
            f"a fabric of at most {MOST_CELLS:,} links (each way) times pairs of switches",
            f"{cells:,}",
            "leave `failures` out, or look at a smaller fabric of the family",
            key="failures",
        )


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


@dataclass(frozen=True, slots=True, eq=False)
class _Looks:
    """What every link carries at most while all is up, to compare cases with.

    rates: of hosts and links.
    loads: float64[n, H, H], who crosses each arc.
    most: float64[n], the load of each by the worst traffic.
    times: how often is asked.
    """

    rates: HostRates
    loads: Reals
    most: Reals
    times: int

    @classmethod
    def of(cls, build: Build, rates: HostRates, times: int) -> _Looks:
        crossings = LinkCrossings.of(build, times=times)
        loads = rates.between(crossings.loads(crossings.arcs))
        most = np.array([worst_traffic(load, rates).load for load in loads])
        return cls(rates, loads, most, times)

    def share(self, build: Build, elements: Elements) -> float:
        """The guarantee of some tables while elements are down.

        A link carries at most what it carries otherwise, and what the worst traffic adds. So only
        links are looked at that may be worse than the worst so far.
        """
        crossings = LinkCrossings.of(build, np.array(elements, np.int64), self.times)
        arcs, links = crossings.arcs, crossings.program.cables
        down = [element - links for element in elements if element >= links]
        left = ~np.isin(self.rates.switches, down)
        loads = self.rates.between(crossings.loads(arcs))
        if not self._delivered(loads, crossings.program.far[tuple(arcs.T)], left):
            return 0.0
        hosts = self.rates.hosts
        more = np.maximum(loads - self.loads, 0)
        added = np.minimum(more.max(axis=2) @ hosts, more.max(axis=1) @ hosts)
        carries = self.rates.links[tuple(arcs.T)]
        bounds, peak = (self.most + added) / carries, 0.0
        rates = replace(self.rates, hosts=hosts[left])
        for arc in np.argsort(-bounds, kind="stable").tolist():
            if bounds[arc] <= peak * (1 + CLOSE):
                break
            load = worst_traffic(loads[arc][np.ix_(left, left)], rates).load
            peak = max(peak, load / float(carries[arc]))
        return min(1.0, 1 / peak) if peak else 1.0

    def _delivered(self, loads: Reals, head: NDArray[np.int32], left: NDArray[np.bool_]) -> bool:
        """Whether all that hosts which are left send to each other comes to where it goes."""
        ends = self.rates.switches
        place = np.full(int(max(head.max(), ends.max())) + 1, -1)
        place[ends] = np.arange(len(ends))
        arrived = np.eye(len(ends))
        for arc, end in enumerate(place[head].tolist()):
            if end >= 0:
                arrived[:, end] += loads[arc, :, end]
        return bool((arrived[np.ix_(left, left)] > 1 - CLOSE).all())
