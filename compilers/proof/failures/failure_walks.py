"""Walk the packets of a build under failures, and report lost pairs and the lengths of paths.

An *element* is what can fail: a cable, by its number from 0 to E - 1, or switch s, as E + s. A
*case* of a kind of failure is a set of elements that are down together (`risk_cases`). For each
kind a `FailureReport` says how many cases were tried, which pairs of switches lose packets, and how
long repaired paths become. No controller acts: switches do what their tables say.

`verify` (`compilers.proof.walks.delivery`) calls `walk` for single links and nodes, and
`walk_failures` for any other kind. Packets are followed by `compilers.forwarding.walks`, a block of
destinations at a time. Where one element fails, tabulated next hops are enough (`single_failures`).
In all other cases, and where packets are lost, the forwarding rule is asked for each hop
(`failure_sets`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.failure_sets import (
    PAIR_CASE,
    PAIR_COLUMN,
    PAIR_FOR_EVER,
    PAIR_SOURCE,
)
from compilers.forwarding.walks import (
    NO_CASES,
    NO_ROWS,
    BlockWalk,
    HostPathFigures,
    Lengths,
    Numbers,
    Progress,
    Walks,
    packets,
)
from compilers.proof.failures.risk_cases import (
    as_rows,
    cases_at_once,
    is_file,
    named_elements,
    union_of_groups,
)
from compilers.tables.build import Build
from compilers.topology.distance import components, neighbour_table
from compilers.workers.shards import THIS_PROCESS, Workers
from inventory.problems import InputError

LOSS_EXAMPLES = 10
"""The most lost pairs that a report names."""
NO_DESTINATIONS = np.zeros(0, np.int64)
"""An empty block of destinations."""
SAMPLE = 1000
"""How many cases of several failures at once are tried by default."""
PAIRS_UP_TO = 1 << 22
"""The most packets for which all pairs of failures are walked by default: in about ten seconds."""


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
        """The part of all pairs that loses packets, from 0 to 1."""
        return self.lost_pairs / self.pairs if self.pairs else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class FailureCases:
    """The cases of a kind of failure: how many there are, and which are tried."""

    all_cases: int
    """How many cases there are."""
    elements: int
    """E + S, the number of cables and switches."""
    rows: Numbers | None
    """int64[n, F], the failed elements of each case that is tried; smaller cases are filled up with
    E + S.

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
        nodes = walks.cable_count + np.flatnonzero(walks.cabled)
        elements_in_all = walks.elements
        if kind in ("link", "node"):
            single = np.arange(walks.cable_count) if kind == "link" else nodes
            return cls(len(single), elements_in_all, single[:, None])
        elements = np.concatenate((np.arange(walks.cable_count), nodes))
        size = int(kind)
        all_cases = comb(len(elements), size)
        if all_cases > sample:
            sets = _sample_of_sets(len(elements), size, sample, seed)
            return cls(all_cases, elements_in_all, elements[sets])
        if size == 2 and not walks.program.every_hop:
            return cls(all_cases, elements_in_all, None)
        rows = np.array(list(combinations(elements.tolist(), size)))
        return cls(all_cases, elements_in_all, rows)

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
        # For each kind, the names of its groups and the elements of each group.
        groups = [cls._groups(walks, single_kind) for single_kind in kinds]
        names = [list(of_kind) for of_kind in groups]
        elements = [list(of_kind.values()) for of_kind in groups]
        most = sample if len(kinds) > 1 else len(names[0])
        # A choice has the index of a group of each kind.
        choices, all_cases = cases_at_once(elements, len({*kinds}) == 1, most, seed)
        cases = [
            union_of_groups([elements[i][n] for i, n in enumerate(choice)]) for choice in choices
        ]
        case_names = [" and ".join(names[i][n] for i, n in enumerate(choice)) for choice in choices]
        rows = as_rows(cases, walks.elements)
        return cls(all_cases, walks.elements, rows, tuple(case_names))

    @classmethod
    def _groups(cls, walks: Walks, kind: str) -> dict[str, tuple[int, ...]]:
        """The elements of every group of one kind, by the group's name."""
        if kind not in ("link", "node"):
            return named_elements(walks.build, kind)
        single = cls.of(walks, kind, 0)
        return {
            single.name(walks, case): tuple(single.failed(case)) for case in range(single.all_cases)
        }

    def name(self, walks: Walks, case: int) -> str:
        """What fails in a case: its group, or its nodes and links."""
        if self.names:
            return self.names[case]
        return " and ".join(map(walks.name, self.failed(case)))

    @property
    def tried(self) -> int:
        """The number of cases that are walked."""
        return self.all_cases if self.rows is None else len(self.rows)

    @property
    def at_once(self) -> int:
        """The most elements that fail in a case."""
        return 2 if self.rows is None else self.rows.shape[1]

    def failed(self, case: int) -> list[int]:
        """The failed elements of a case."""
        if self.rows is None:
            return list(divmod(case, self.elements))
        return [element for element in self.rows[case].tolist() if element < self.elements]


def _sample_of_sets(elements: int, at_once: int, sample: int, seed: int) -> Numbers:
    """int64[sample, at_once]: `sample` different sets of `at_once` of the elements, at random."""
    random = np.random.default_rng(seed)
    sets: set[tuple[int, ...]] = set()
    while len(sets) < sample:
        numbers = tuple(sorted(random.integers(elements, size=at_once).tolist()))
        if len(set(numbers)) == at_once:
            sets.add(numbers)
    return np.array(sorted(sets))


@dataclass(frozen=True, slots=True)
class WalkResults:
    """The results of a walk: figures of all paths of hosts' packets, and a report for each kind."""

    alternates: HostPathFigures
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
) -> WalkResults:
    """Walk every path that packets of hosts may take, and try every failure of one link or switch.

    Args:
        build: its tables and wiring are walked.
        kinds: some of "link" and "node".
        progress: called with destinations done and all.
        destinations: int64[D], ascending: the pairs towards these alone; None: all with hosts.
        walks: of this build, where they exist already.
        workers: the processes among which the destinations are divided.

    Raises:
        InputError: a failure can leave a marked packet no path.
    """
    walks = walks or Walks.of(build, None if destinations is None else len(destinations))
    cases = tuple(FailureCases.of(walks, kind, 0) for kind in kinds)
    for of_kind in cases:
        _require_paths(walks, of_kind)
    walk_block = partial(_single_failures, tuple(kinds), cases)
    block_walk = BlockWalk(walk_block, None if workers.remote else walks)
    no_packets = WalkResults(
        HostPathFigures(),
        tuple(_report(walks, kind, of_kind) for kind, of_kind in zip(kinds, cases, strict=True)),
    )
    parts = block_walk.over(build, workers, progress, destinations)
    return reduce(_merge_results, parts, no_packets)


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
    """Try every failure of a kind; of several failures at once, at most a sample.

    Args:
        build: its tables and wiring are walked.
        kind: of `compilers.proof.failures.risk_cases`.
        sample: the most cases of several failures to try; None: all pairs if that is quick, else
            `SAMPLE`.
        seed: of the sample.
        progress: called with destinations done and all.
        destinations: int64[D], ascending: the pairs towards these alone; None: all with hosts.
        walks: of this build, where they exist already.
        workers: the processes among which the destinations are divided.

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
    walk_block = partial(_by_rule, kind, cases)
    block_walk = BlockWalk(walk_block, None if workers.remote else walks)
    parts = block_walk.over(build, workers, progress, destinations)
    return reduce(_merge_reports, parts, _report(walks, kind, cases))


def _require_paths(walks: Walks, cases: FailureCases) -> None:
    """Pass if every switch spreads marked packets over more links than can be down there.

    A *mark* in a packet tells the next switch to send it over any of its links but some: it spreads
    the packet. The links that are left, by the ingress link, are `Program.onward`. If one of them
    is always up, marked packets are never lost.

    Raises:
        InputError: so many failures can leave a marked packet no path.
    """
    onward = walks.program.onward
    if not len(onward):
        return
    fewest_links = int(np.count_nonzero(onward, axis=2)[walks.program.far >= 0].min())
    most_down = cases.at_once
    if fewest_links <= most_down and cases.names:
        most_down = max(_down_at_one(walks, cases.failed(case)) for case in range(cases.tried))
    if fewest_links <= most_down:
        required = (
            f"fewer than {fewest_links} failures at once where packets are marked, a larger q, "
        )
        raise InputError.of(required + "or another balance", f"{most_down}", key="failures")


def _down_at_one(walks: Walks, failed: list[int]) -> int:
    """The most links that a switch loses that is up itself: to cables or neighbours that are down.

    Args:
        walks: of the build.
        failed: the failed elements.
    """
    program = walks.program
    down = np.isin(program.cable, failed) | np.isin(walks.cable_count + program.far, failed)
    count: Numbers = np.count_nonzero(down & (program.far >= 0), axis=1)
    count[[element - walks.cable_count for element in failed if element >= walks.cable_count]] = 0
    return int(count.max())


def _single_failures(
    kinds: tuple[str, ...], cases: tuple[FailureCases, ...], walks: Walks, block: Numbers
) -> WalkResults:
    """What the packets to a block of destinations do without failures, and under single ones.

    Destinations to which tabulated next hops cannot show that all packets arrive (`suspect`) are
    walked again by the rule.
    """
    quick = walks.follow_single_failures(block, "link" in kinds, "node" in kinds)
    reports = [
        _report(walks, kind, of_kind, quick.link if kind == "link" else quick.node)
        for kind, of_kind in zip(kinds, cases, strict=True)
    ]
    if not len(quick.suspect):
        return WalkResults(quick.alternates, tuple(reports))
    alternates = walks.follow_cases(quick.suspect, NO_CASES).alternates
    for i, (kind, of_kind) in enumerate(zip(kinds, cases, strict=True)):
        of_suspect = _by_rule(kind, of_kind, walks, quick.suspect)
        reports[i] = _merge_reports(reports[i], of_suspect)
    return WalkResults(quick.alternates.joined(alternates), tuple(reports))


def _by_rule(kind: str, cases: FailureCases, walks: Walks, block: Numbers) -> FailureReport:
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
    build, with_hosts = walks.build, int(np.count_nonzero(walks.has_hosts))
    # By case, then by source, then by destination.
    lost = lost[np.lexsort((lost[:, PAIR_COLUMN], lost[:, PAIR_SOURCE], lost[:, PAIR_CASE]))]
    case, source = lost[:, PAIR_CASE], lost[:, PAIR_SOURCE]
    destination = block[lost[:, PAIR_COLUMN]]
    counts_cut_off = build.forwarding.repairs and len(lost)
    examples = (column[:LOSS_EXAMPLES].tolist() for column in (case, source, destination))
    return FailureReport(
        kind=kind,
        cases=cases.tried,
        all_cases=cases.all_cases,
        lost_pairs=len(lost),
        looped=int(lost[:, PAIR_FOR_EVER].sum()),
        max_hops=lengths.max_hops,
        stretch=lengths.stretch,
        losses=tuple(
            FailureLoss(cases.name(walks, c), s, d) for c, s, d in zip(*examples, strict=True)
        ),
        cut_off=(
            disconnected(walks, cases.failed, case, source, destination) if counts_cut_off else 0
        ),
        pairs=cases.tried * with_hosts * (with_hosts - 1),
    )


def _merge_results(walked: WalkResults, more: WalkResults) -> WalkResults:
    """The results for two blocks of destinations together."""
    pairs = zip(walked.failures, more.failures, strict=True)
    reports = tuple(_merge_reports(first, second) for first, second in pairs)
    return WalkResults(walked.alternates.joined(more.alternates), reports)


def _merge_reports(report: FailureReport, more: FailureReport) -> FailureReport:
    """The report on the destinations of two reports together, which have the same cases."""
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
    failed: Callable[[int], list[int]],
    case: Numbers,
    source: Numbers,
    destination: Numbers,
) -> int:
    """How many of n pairs of switches are not joined by any path while their case has failed.

    Args:
        walks: of the build, without failures.
        failed: gives the failed elements of a case.
        case: int64[n], the case of each pair.
        source: int64[n].
        destination: int64[n].
    """
    intact = neighbour_table(walks.build.topology.graph)
    count = 0
    for number in np.unique(case).tolist():
        component = components(_without(intact, walks, failed(number)))
        pairs = case == number
        apart = component[source[pairs]] != component[destination[pairs]]
        count += int(np.count_nonzero(apart))
    return count


def _without(intact: NDArray[np.int64], walks: Walks, down: list[int]) -> NDArray[np.int64]:
    """A copy of the neighbour table without the elements that are down."""
    table, none = intact.copy(), len(intact) - 1  # lists are padded with `none`
    for element in down:
        if element >= walks.cable_count:
            table[table == element - walks.cable_count] = none
        else:
            u, v = walks.link_ends[element]
            table[u, table[u] == v] = none
            table[v, table[v] == u] = none
    return table
