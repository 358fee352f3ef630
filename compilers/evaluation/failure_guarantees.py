"""The guaranteed throughput while a link, switch, module or rack is down.

`polarfab throughput --failures` calls `failure_guarantees`. Each failure has two figures:

- `share`: the guaranteed rate right after the failure, with the tables of the build. Each switch
  sends packets around what is down by its alternate next hops.
- `repaired`: the guaranteed rate later, when a controller has computed tables for the rest of the
  fabric, and has given them to the switches.

Both are a share of the rate of a host's link. Hosts of a switch that is down neither send nor
receive. In a large fabric the failures are a random sample.

An *element* is a cable or a switch: cables have the numbers 0 to E - 1 (`Wiring.link_ends`), and
switch s has the number E + s. A failure is a set of elements that are down together. A *link
fraction* is the part of the packets of a pair of switches that crosses a link in one direction. A
fabric has as many link fractions as directions of links times pairs of switches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.crossings import DamagedLegCrossings
from compilers.evaluation.damaged_loads import DamagedLoads, all_arrive
from compilers.evaluation.guarantee import require_scipy
from compilers.evaluation.host_rates import HostRates
from compilers.evaluation.worst_link import WorstLink
from compilers.proof.failures.risk_cases import Elements, named_elements, require_single
from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import RepairedTables, repair_tables
from compilers.tables.build import Build
from inventory.problems import InputError

# The time decides how many failures are computed. A link that is down changes the paths of few
# pairs, so only the pairs are gone through. In every other case all link fractions are computed
# anew: when switches are down, and for all kinds of failures if packets go over intermediates.
MOST_LINK_WORK = 1 << 26
"""The most link failures times pairs of switches that are computed in minutes: PolarFly q = 13."""
MOST_OTHER_WORK = 1 << 33
"""The most other failures times link fractions that are computed in minutes."""

# The memory decides how many link fractions a fabric may have.
MOST_LINK_FRACTIONS = 1 << 36
"""The most link fractions if links go down: as many as PolarFly q = 32 has."""
MOST_LINK_FRACTIONS_SWITCHES_DOWN = 1 << 31
"""The most link fractions if switches go down, which changes the loads of all links: as many as
PolarFly q = 19 has."""
MOST_LINK_FRACTIONS_BY_INTERMEDIATES = 1 << 27
"""The most link fractions if packets go over intermediates: the legs of the packets take a gigabyte
then."""


class FailureCase(NamedTuple):
    """A failure that is computed."""

    name: str
    """The name of what is down."""
    elements: Elements
    """The elements that are down together."""


@dataclass(frozen=True, slots=True)
class FailureGuarantee:
    """The rate that each remaining host is guaranteed for any traffic, while something is down."""

    kind: str
    """What is down: one of `compilers.proof.failures.risk_cases.SINGLE`, or a file of groups."""
    element: str
    """The name of what is down."""
    share: float
    """The guaranteed rate right after the failure, with the tables of the build and their alternate
    next hops, as a share of the rate of a host's link. It is 0 where the packets of a pair are
    lost, or no host is left."""
    repaired: float
    """The guaranteed rate with the tables that a controller computes after the failure, as a share
    of the rate of a host's link."""


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
        progress: called with the number of cases that are computed, and the number of all cases.
        sample: how many cases to compute, drawn by chance; 0: all, or as many as take minutes.
        seed: the seed of the random sample.

    Raises:
        InputError: scipy is not installed, the fabric is too large, or the kind is not one of
            single failures.
    """
    require_scipy()
    require_single(kind)
    _require_size(build, kind)
    cases = _sampled_cases(build, kind, sample, seed)
    loads: DamagedLoads | DamagedLegLoads
    rates = HostRates.of(build, hosts_per_node)
    if build.forwarding.intermediates:
        loads = DamagedLegLoads(build, rates, len(cases))
    else:
        loads = DamagedLoads(build, rates, len(cases))
    intact, guarantees = IntactBuild.of(build), []
    for number, (name, elements) in enumerate(cases, 1):
        down = np.array(elements, np.int64)
        new_tables = repair_tables(intact, _dead_links(build, elements))
        guarantees.append(
            FailureGuarantee(
                kind=kind,
                element=name,
                share=loads.guarantee(down),
                repaired=loads.guarantee(down, new_tables),
            )
        )
        if progress:
            progress(number, len(cases))
    return tuple(sorted(guarantees, key=lambda failure: (failure.share, failure.repaired)))


def failure_count(build: Build, kind: str) -> int:
    """The number of single failures of a kind in a build."""
    return len(_cases(build, kind))


def _require_size(build: Build, kind: str) -> None:
    """Check that a failure of this kind takes seconds, and that its arrays fit into memory.

    Raises:
        InputError: the fabric has too many link fractions.
    """
    count = _link_fraction_count(build)
    todo = "leave `failures` out, or look at a smaller fabric of the family"
    if build.forwarding.intermediates:
        most, condition = (
            MOST_LINK_FRACTIONS_BY_INTERMEDIATES,
            ", where packets go by intermediates",
        )
    elif kind == "link":
        most, condition = MOST_LINK_FRACTIONS, ""
    else:
        most = MOST_LINK_FRACTIONS_SWITCHES_DOWN
        condition = ", where a switch that is down changes what all links carry"
        if count <= MOST_LINK_FRACTIONS:
            todo = (
                "try failures of links, of which a sample is drawn, or look at a smaller fabric of "
                "the family"
            )
    if count > most:
        raise InputError.of(
            f"a fabric of at most {most:,} links (each way) times pairs of switches{condition}",
            f"{count:,}",
            todo,
            key="failures",
        )


def _link_fraction_count(build: Build) -> int:
    """The number of link fractions: directions of links times pairs of switches."""
    return int(np.count_nonzero(build.wiring.far >= 0)) * build.tables.switches**2


def _sampled_cases(build: Build, kind: str, sample: int, seed: int) -> list[FailureCase]:
    """The cases to compute, in their order: all, or a random sample."""
    cases = _cases(build, kind)
    if kind == "link" and not build.forwarding.intermediates:
        affordable = MOST_LINK_WORK // build.tables.switches**2
    else:
        affordable = MOST_OTHER_WORK // max(1, _link_fraction_count(build))
    count = min(len(cases), sample or affordable)
    drawn = np.random.default_rng(seed).permutation(len(cases))[:count]
    return [cases[number] for number in np.sort(drawn).tolist()]


def _cases(build: Build, kind: str) -> list[FailureCase]:
    """All failures of a kind.

    Several failures may have one name: a link from a to b-c and a link from a-b to c are both named
    a-b-c.
    """
    names, link_ends = build.wiring.names, build.wiring.link_ends()
    if kind == "link":
        return [
            FailureCase(f"{names[u]}-{names[v]}", (cable,))
            for cable, (u, v) in enumerate(link_ends.tolist())
        ]
    if kind == "node":
        cabled = np.flatnonzero((build.wiring.far >= 0).any(axis=1)).tolist()
        return [FailureCase(names[switch], (len(link_ends) + switch,)) for switch in cabled]
    return [FailureCase(name, elements) for name, elements in named_elements(build, kind).items()]


def _dead_links(build: Build, elements: Elements) -> NDArray[np.bool_]:
    """bool[S, K]: the links that are down, or have an end that is down, marked at both ends."""
    far, ends = build.wiring.far, build.wiring.link_ends()
    dead = np.zeros(far.shape, np.bool_)
    for element in elements:
        if element >= len(ends):
            switch = element - len(ends)
            dead[switch] = True
            dead |= far == switch
        else:
            u, v = ends[element].tolist()
            dead[u] |= far[u] == v
            dead[v] |= far[v] == u
    return dead & (far >= 0)


class DamagedLegLoads:
    """The loads of links of a fabric with intermediates, while elements are down.

    Packets have two *legs*: the path to their intermediate, and the path from there.

    Args:
        build: the intact fabric.
        rates: the rates of hosts and links.
        failure_count: how many failures `guarantee` will be called for.
    """

    def __init__(self, build: Build, rates: HostRates, failure_count: int) -> None:
        self.build, self.rates, self.failure_count = build, rates, failure_count

    def guarantee(
        self, elements: NDArray[np.int64], new_tables: RepairedTables | None = None
    ) -> float:
        """The rate that every host is guaranteed while elements are down, as a share of its link's.

        Args:
            elements: int64[n], the elements that are down.
            new_tables: the tables that a controller has computed; None for those of the build.
        """
        cable_count = len(self.build.wiring.link_ends())
        living = self.rates.without(elements[elements >= cable_count] - cable_count)
        if not len(living.switches):
            return 0.0
        build = replace(self.build, tables=new_tables.tables) if new_tables else self.build
        crossings = DamagedLegCrossings.of(build, elements, self.failure_count)
        arcs = crossings.arcs
        sends, takes = living.by_switch(*crossings.size)
        bounds = crossings.bounds(arcs, sends, takes)
        if not all_arrive(bounds.arrived, living):
            return 0.0
        search = WorstLink(crossings, arcs, living)
        search.compute(np.arange(len(arcs)), bounds.upper / search.capacity)
        return search.share
