"""What failures do to the packets of a build, kind by kind: lost pairs, and longest paths.

For each kind of failure (`risk_cases`) a `FailureReport` says how many cases were tried, which
pairs of switches lose packets, and how long repaired paths become. No controller acts: switches do
what their tables say.

The packets are followed by `compilers.forwarding.walks`, a block of destinations at a time. Where a
single link or switch fails, tabulated next hops are enough (`single_failures`). In all other cases,
and where packets are lost, the rule itself is asked (`failure_sets`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import (
    NO_CASES,
    NO_ROWS,
    Alternates,
    BlockWalk,
    Lengths,
    Numbers,
    Progress,
    Walks,
    packets,
)
from compilers.proof.failures.risk_cases import at_once, is_file, joined, named_elements, padded
from compilers.tables.build import Build
from compilers.topology.distance import components, neighbour_table
from compilers.workers.shards import THIS_PROCESS, Workers
from inventory.problems import InputError

LOSS_EXAMPLES = 10
"""The most lost pairs that a report names."""
NO_DESTINATIONS = np.zeros(0, np.int64)
SAMPLE = 1000
"""The cases of several failures at once that are tried by default."""
PAIRS_UP_TO = 1 << 22
"""The most packets for which all pairs of failures are walked by default, in ten seconds or so."""


@dataclass(frozen=True, slots=True)
class FailureLoss:
    """A pair of switches that loses packets under a failure."""

    failed: str
    """What is down, by name."""
    source: int
    """The vertex where packets begin."""
    destination: int
    """The vertex that they are for."""


@dataclass(frozen=True, slots=True)
class FailureReport:
    """The effect of all failures of one kind on the pairs of switches that are left."""

    kind: str
    """One of the kinds in `compilers.proof.failures.risk_cases`."""
    cases: int
    """How many cases were tried."""
    all_cases: int
    """How many cases there are."""
    lost_pairs: int
    """Pairs that lose packets on some path that their source may choose, over all cases."""
    looped: int
    """Lost pairs whose packets are still forwarded after 64 links."""
    max_hops: int
    """The longest path of a packet that met a failure and was delivered, in links."""
    stretch: int
    """The most links that a repair adds to a packet's path."""
    losses: tuple[FailureLoss, ...]
    """The first few lost pairs."""
    cut_off: int = 0
    """The lost pairs that no path joins any more, counted if the build promises to repair."""
    pairs: int = 0
    """Ordered pairs of switches with hosts, over all cases."""
    exact: bool = True
    """Whether packets with this `max_hops` and this `stretch` were seen; otherwise a proof shows
    only that no packet has more."""

    @property
    def lost_share(self) -> float:
        """The part of the pairs that is lost."""
        return self.lost_pairs / self.pairs if self.pairs else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class FailureCases:
    """The cases of a kind of failure: those that there are, and those that are tried."""

    every: int
    """How many cases there are."""
    elements: int
    """E + S, how many links and switches there are."""
    rows: Numbers | None
    """int64[n, F], the failed elements (`Program`) of each case that is tried, then E + S.

    None: all pairs of elements are tried, and case a·(E + S) + b has the elements a and b."""
    names: tuple[str, ...] = ()
    """The name of each case; empty if cases are named by their elements."""

    @classmethod
    def of(cls, walks: Walks, kind: str, sample: int, seed: int = 1) -> FailureCases:
        """Failures of links and nodes.

        Args:
            walks: of the build.
            kind: `link` or `node`, or a number: so many links or nodes at once.
            sample: the most cases of several failures at once.
            seed: of the sample.
        """
        nodes = walks.links + np.flatnonzero(walks.cabled)
        beyond = walks.elements
        if kind in ("link", "node"):
            single = np.arange(walks.links) if kind == "link" else nodes
            return cls(len(single), beyond, single[:, None])
        elements = np.concatenate((np.arange(walks.links), nodes))
        every = comb(len(elements), int(kind))
        if every > sample:
            return cls(every, beyond, elements[_drawn(len(elements), int(kind), sample, seed)])
        if int(kind) == 2 and not walks.program.every_hop:
            return cls(every, beyond, None)
        return cls(every, beyond, np.array(list(combinations(elements.tolist(), int(kind)))))

    @classmethod
    def of_groups(cls, walks: Walks, kind: str, sample: int, seed: int) -> FailureCases:
        """Failures of groups that share a risk: of one kind, or a group of each of several kinds.

        Args:
            walks: of the build.
            kind: of `compilers.proof.failures.risk_cases`, such as `module` or `module+node`.
            sample: the most cases of several kinds at once; all cases of one kind are tried.
            seed: of the sample.

        Raises:
            InputError: the build has no groups of this kind.
        """
        kinds = [kind] if is_file(kind) else kind.split("+")
        # By kind, the elements of each group by its name.
        groups = [cls._groups(walks, word) for word in kinds]
        names = [list(of_kind) for of_kind in groups]
        elements = [list(of_kind.values()) for of_kind in groups]
        most = sample if len(kinds) > 1 else len(names[0])
        chosen, every = at_once(elements, len({*kinds}) == 1, most, seed)
        cases = [joined([elements[i][n] for i, n in enumerate(case)]) for case in chosen]
        case_names = (" and ".join(names[i][n] for i, n in enumerate(case)) for case in chosen)
        beyond = walks.elements
        return cls(every, beyond, padded(cases, beyond), tuple(case_names))

    @classmethod
    def _groups(cls, walks: Walks, kind: str) -> dict[str, tuple[int, ...]]:
        """The elements of every group of one kind, by the group's name."""
        if kind not in ("link", "node"):
            return named_elements(walks.build, kind)
        single = cls.of(walks, kind, 0)
        return {single.name(walks, n): tuple(single.dead(n)) for n in range(single.every)}

    def name(self, walks: Walks, case: int) -> str:
        """What fails in a case: its group, or its nodes and links."""
        if self.names:
            return self.names[case]
        return " and ".join(map(walks.name, self.dead(case)))

    @property
    def tried(self) -> int:
        """The number of cases that are walked."""
        return self.every if self.rows is None else len(self.rows)

    @property
    def at_once(self) -> int:
        """The number of elements that fail in a case."""
        return 2 if self.rows is None else self.rows.shape[1]

    def dead(self, case: int) -> list[int]:
        """The failed elements of a case."""
        if self.rows is None:
            return list(divmod(case, self.elements))
        return [element for element in self.rows[case].tolist() if element < self.elements]


def _drawn(elements: int, at_once: int, sample: int, seed: int) -> Numbers:
    """int64[sample, at_once]: `sample` different sets of `at_once` of the elements, by chance."""
    random = np.random.default_rng(seed)
    chosen: set[tuple[int, ...]] = set()
    while len(chosen) < sample:
        case = tuple(sorted(random.integers(elements, size=at_once).tolist()))
        if len(set(case)) == at_once:
            chosen.add(case)
    return np.array(sorted(chosen))


@dataclass(frozen=True, slots=True)
class Walked:
    """All paths of hosts' packets, and what failures do to them, by kind."""

    alternates: Alternates
    """All paths while nothing is down."""
    failures: tuple[FailureReport, ...]
    """One report for each kind of failure."""


def walk(
    build: Build,
    kinds: Sequence[str],
    progress: Progress | None = None,
    destinations: Numbers | None = None,
    walks: Walks | None = None,
    workers: Workers = THIS_PROCESS,
) -> Walked:
    """Walk every path that packets of hosts may take, and try every failure of one link or switch.

    Args:
        build: its tables and wiring are walked.
        kinds: some of "link" and "node".
        progress: called with destinations done and all.
        destinations: int64[D], ascending: the pairs towards these alone; None: all with hosts.
        walks: of this build, where they are made already.
        workers: that share the destinations.

    Raises:
        InputError: a failure can leave a marked packet no path.
    """
    walks = walks or Walks.of(build, None if destinations is None else len(destinations))
    cases = tuple(FailureCases.of(walks, kind, 0) for kind in kinds)
    for of_kind in cases:
        _require_paths(walks, of_kind)
    look = BlockWalk(partial(_single, tuple(kinds), cases), None if workers.remote else walks)
    reports = tuple(_report(walks, *case) for case in zip(kinds, cases, strict=True))
    parts = look.over(build, workers, progress, destinations)
    return reduce(_both, parts, Walked(Alternates(), reports))


def walk_failures(
    build: Build,
    kind: str,
    sample: int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
    destinations: Numbers | None = None,
    walks: Walks | None = None,
    workers: Workers = THIS_PROCESS,
) -> FailureReport:
    """Try every failure of a kind; of several at once, at most a sample.

    Args:
        build: its tables and wiring are walked.
        kind: of `compilers.proof.failures.risk_cases`.
        sample: the most cases of several failures to try; None: all pairs if that is quick, else
            `SAMPLE`.
        seed: of the sample.
        progress: called with destinations done and all.
        destinations: int64[D], ascending: the pairs towards these alone; None: all with hosts.
        walks: of this build, where they are made already.
        workers: that share the destinations.

    Raises:
        InputError: so many failures can leave a marked packet no path, or there are no groups of
            this kind.
    """
    if kind in ("link", "node"):
        return walk(build, (kind,), progress, destinations, walks, workers).failures[0]
    walks = walks or Walks.of(build, None if destinations is None else len(destinations))
    if sample is None:
        quick = kind == "2" and build.forwarding.repairs and packets(build) <= PAIRS_UP_TO
        sample = comb(walks.elements, 2) if quick else SAMPLE
    if kind.isdecimal():
        cases = FailureCases.of(walks, kind, sample, seed)
    else:
        cases = FailureCases.of_groups(walks, kind, sample, seed)
    _require_paths(walks, cases)
    look = BlockWalk(partial(_exactly, kind, cases), None if workers.remote else walks)
    parts = look.over(build, workers, progress, destinations)
    return reduce(_merged, parts, _report(walks, kind, cases))


def _require_paths(walks: Walks, cases: FailureCases) -> None:
    """Pass if every switch spreads marked packets over more links than can be down there.

    Then one of these links is always up, so marked packets are never lost, and where they go from
    there is followed without failures.

    Raises:
        InputError: so many failures can leave a marked packet no path.
    """
    onward = walks.program.onward
    if not len(onward):
        return
    fewest = int(np.count_nonzero(onward, axis=2)[walks.program.far >= 0].min())
    most = cases.at_once
    if fewest <= most and cases.names:
        most = max(_down_at_one(walks, cases.dead(case)) for case in range(cases.tried))
    if fewest <= most:
        required = f"fewer than {fewest} failures at once where packets are marked, a larger q, "
        raise InputError.of(required + "or another balance", f"{most}", key="failures")


def _down_at_one(walks: Walks, dead: list[int]) -> int:
    """The most links of one switch that are down, or lead to a switch that is down.

    dead: the failed elements; switches among them are not counted.
    """
    program = walks.program
    down = np.isin(program.cable, dead) | np.isin(walks.links + program.far, dead)
    count: Numbers = np.count_nonzero(down & (program.far >= 0), axis=1)
    count[[element - walks.links for element in dead if element >= walks.links]] = 0
    return int(count.max())


def _single(
    kinds: tuple[str, ...], cases: tuple[FailureCases, ...], walks: Walks, block: Numbers
) -> Walked:
    """What the packets to a block of destinations do without failures, and under single ones."""
    quick = walks.follow_single_failures(block, "link" in kinds, "node" in kinds)
    reports = [
        _report(walks, kind, of_kind, quick.link if kind == "link" else quick.node)
        for kind, of_kind in zip(kinds, cases, strict=True)
    ]
    if not len(quick.suspect):
        return Walked(quick.alternates, tuple(reports))
    alternates = walks.follow_cases(quick.suspect, NO_CASES).alternates
    for i, (kind, of_kind) in enumerate(zip(kinds, cases, strict=True)):
        exact = _exactly(kind, of_kind, walks, quick.suspect)
        reports[i] = _merged(reports[i], exact)
    return Walked(quick.alternates.joined(alternates), tuple(reports))


def _exactly(kind: str, cases: FailureCases, walks: Walks, block: Numbers) -> FailureReport:
    """The report on the packets to some destinations, by the rule itself, with all lost pairs."""
    if cases.rows is None:
        lengths, lost = walks.follow_pairs_of_failures(block)
        return _report(walks, kind, cases, lengths, lost, block)
    walked = walks.follow_cases(block, cases.rows)
    return _report(walks, kind, cases, walked.lengths, walked.lost, block)


def _report(
    walks: Walks,
    kind: str,
    cases: FailureCases,
    lengths: Lengths = Lengths(),  # noqa: B008 (a frozen value)
    lost: Numbers = NO_ROWS,
    block: Numbers = NO_DESTINATIONS,
) -> FailureReport:
    """The report on a block of destinations.

    Args:
        walks: of the build.
        kind: the kind of failures.
        cases: its cases.
        lengths: the lengths of paths under these.
        lost: int64[m, 4], the lost pairs, as in `CasesWalked.lost`.
        block: int64[D], the destinations.
    """
    build, ends = walks.build, int(np.count_nonzero(walks.has_hosts))
    lost = lost[np.lexsort((lost[:, 2], lost[:, 1], lost[:, 0]))]
    case, source, destination = lost[:, 0], lost[:, 1], block[lost[:, 2]]
    repairs = build.forwarding.repairs and len(lost)
    first = (column[:LOSS_EXAMPLES].tolist() for column in (case, source, destination))
    return FailureReport(
        kind=kind,
        cases=cases.tried,
        all_cases=cases.every,
        lost_pairs=len(lost),
        looped=int(lost[:, 3].sum()),
        max_hops=lengths.max_hops,
        stretch=lengths.stretch,
        losses=tuple(
            FailureLoss(cases.name(walks, c), s, d) for c, s, d in zip(*first, strict=True)
        ),
        cut_off=disconnected(walks, cases.dead, case, source, destination) if repairs else 0,
        pairs=cases.tried * ends * (ends - 1),
    )


def _both(walked: Walked, more: Walked) -> Walked:
    """What two blocks of destinations show together."""
    pairs = zip(walked.failures, more.failures, strict=True)
    reports = tuple(_merged(first, second) for first, second in pairs)
    return Walked(walked.alternates.joined(more.alternates), reports)


def _merged(report: FailureReport, more: FailureReport) -> FailureReport:
    """The report on the destinations of both, of the same cases."""
    return replace(
        report,
        lost_pairs=report.lost_pairs + more.lost_pairs,
        looped=report.looped + more.looped,
        max_hops=max(report.max_hops, more.max_hops),
        stretch=max(report.stretch, more.stretch),
        losses=(report.losses + more.losses)[:LOSS_EXAMPLES],
        cut_off=report.cut_off + more.cut_off,
    )


def disconnected(
    walks: Walks,
    dead: Callable[[int], list[int]],
    case: Numbers,
    source: Numbers,
    destination: Numbers,
) -> int:
    """How many of n pairs of switches are not joined by any path while their case has failed.

    Args:
        walks: of the build, without failures.
        dead: gives the failed elements of a case.
        case: int64[n], the case of each pair.
        source: int64[n].
        destination: int64[n].
    """
    intact = neighbour_table(walks.build.topology.graph)
    count = 0
    for number in np.unique(case).tolist():
        component = components(_without(intact, walks, dead(number)))
        pairs = case == number
        apart = component[source[pairs]] != component[destination[pairs]]
        count += int(np.count_nonzero(apart))
    return count


def _without(intact: NDArray[np.int64], walks: Walks, down: list[int]) -> NDArray[np.int64]:
    """A copy of the neighbour table without the elements that are down."""
    table, none = intact.copy(), len(intact) - 1
    for element in down:
        if element >= walks.links:
            table[table == element - walks.links] = none
        else:
            u, v = walks.link_ends[element]
            table[u, table[u] == v] = none
            table[v, table[v] == u] = none
    return table
