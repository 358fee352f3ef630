"""Walk the packets of a build under failures, and report lost pairs and the lengths of paths.

A *case* of a kind of failure is a set of elements (cables and switches) that are down together
(`failure_cases`). For each kind a `FailureReport` says how many cases were tried, which pairs of
switches lose packets, and how long repaired paths become. No controller acts: switches do what
their tables say.

`verify` (`compilers.proof.walks.delivery`) calls `walk` for single links and nodes, and
`walk_failures` for any other kind. Packets are followed by `compilers.forwarding.walks`, a block of
destinations at a time. Where one element fails, tabulated next hops are enough (`single_failures`).
In all other cases, and where packets are lost, the forwarding rule is asked for each hop
(`failure_sets`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from math import comb

import numpy as np

from compilers.forwarding.failure_sets import (
    PAIR_CASE,
    PAIR_COLUMN,
    PAIR_FOR_EVER,
    PAIR_SOURCE,
)
from compilers.forwarding.walks import (
    NO_CASES,
    NO_LOST_PAIRS,
    BlockWalk,
    HostPathFigures,
    Numbers,
    PathLengths,
    Progress,
    Walks,
    packet_count,
)
from compilers.proof.failures.cut_off import count_cut_off
from compilers.proof.failures.failure_cases import AT_ONCE, FailureCases
from compilers.proof.failures.risk_cases import names_of_failures
from compilers.spec.policy import PROTECTED_FAILURES
from compilers.tables.build import Build
from compilers.workers.shards import THIS_PROCESS, Workers
from inventory.problems import InputError

LOSS_EXAMPLES = 10
"""The most lost pairs that a report names."""
NO_DESTINATIONS = np.zeros(0, np.int64)
"""An empty block of destinations."""
SAMPLE = 1000
"""How many cases of several failures at once are tried by default."""
PAIRS_UP_TO = 1 << 22
"""The most packets for which all pairs of failures are walked by default. It takes ten seconds."""


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
    """True if some packet was seen with this `max_hops`, and some packet with this `stretch`. False
    if both are bounds: a proof shows only that no packet has more."""

    @property
    def lost_share(self) -> float:
        """The fraction of all pairs that loses packets, from 0 to 1."""
        return self.lost_pairs / self.pairs if self.pairs else 0.0


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
    # Every failure of one link or switch is tried, so the size of a sample does not matter.
    cases_of_kind = {kind: FailureCases.of_elements(walks, kind, sample=0) for kind in kinds}
    for kind, cases in cases_of_kind.items():
        _require_paths(build, walks, kind, cases)
    block_walk = BlockWalk(
        partial(_single_failures, cases_of_kind), None if workers.remote else walks
    )
    no_packets = WalkResults(
        HostPathFigures(),
        tuple(_report(walks, kind, cases) for kind, cases in cases_of_kind.items()),
    )
    results = block_walk.over(build, workers, progress, destinations)
    return reduce(_merge_results, results, no_packets)


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
        return walk(
            build,
            kinds=(kind,),
            progress=progress,
            destinations=destinations,
            walks=walks,
            workers=workers,
        ).failures[0]
    walks = walks or Walks.of(build, None if destinations is None else len(destinations))
    if sample is None:
        quick = kind == "2" and build.forwarding.repairs and packet_count(build) <= PAIRS_UP_TO
        sample = comb(walks.elements, 2) if quick else SAMPLE
    if kind.isdecimal():
        cases = FailureCases.of_elements(walks, kind, sample, seed)
    else:
        cases = FailureCases.of_groups(walks, kind, sample, seed)
    _require_paths(build, walks, kind, cases)
    block_walk = BlockWalk(partial(_by_rule, kind, cases), None if workers.remote else walks)
    reports = block_walk.over(build, workers, progress, destinations)
    no_packets = _report(walks, kind, cases)
    return reduce(_merge_reports, reports, no_packets)


def _require_paths(build: Build, walks: Walks, kind: str, cases: FailureCases) -> None:
    """Pass if every switch spreads marked packets over more links than can be down there.

    A *mark* in a packet tells the next switch to spread it: to send it over a random link out of
    those that `Program.onward` allows for its ingress link. If one of these is always up, marked
    packets are never lost.

    Raises:
        InputError: so many failures can leave a marked packet no path.
    """
    onward = walks.program.onward
    if not len(onward):
        return
    fewest_links = int(np.count_nonzero(onward, axis=2)[walks.program.far >= 0].min())
    most_down = cases.failures_a_case
    if fewest_links <= most_down and cases.names:
        most_down = max(
            _most_links_down(walks, cases.failed(case)) for case in range(cases.tried_count)
        )
    if fewest_links <= most_down:
        required = (
            f"fewer than {fewest_links} failures at once where packets are marked, a larger q, "
            "or another balance"
        )
        is_promised = kind in PROTECTED_FAILURES.get(build.forwarding.protect, ())
        key = "routing.protect" if is_promised else "failures"
        raise InputError.of(required, f"{most_down}", key=key)


def _most_links_down(walks: Walks, failed: list[int]) -> int:
    """How many links any switch that is up loses at most, as cables or neighbours are down.

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
    cases_of_kind: dict[str, FailureCases], walks: Walks, block: Numbers
) -> WalkResults:
    """What the packets to a block of destinations do without failures, and under single ones.

    Destinations to which tabulated next hops cannot show that all packets arrive (`suspect`) are
    walked again by the rule.
    """
    tabulated = walks.follow_single_failures(
        block, "link" in cases_of_kind, "node" in cases_of_kind
    )
    lengths = {"link": tabulated.link, "node": tabulated.node}
    reports = [_report(walks, kind, cases, lengths[kind]) for kind, cases in cases_of_kind.items()]
    results = WalkResults(tabulated.alternates, tuple(reports))
    suspect = tabulated.suspect_destinations
    if not len(suspect):
        return results
    reports = [_by_rule(kind, cases, walks, suspect) for kind, cases in cases_of_kind.items()]
    alternates = walks.follow_cases(suspect, NO_CASES).alternates
    return _merge_results(results, WalkResults(alternates, tuple(reports)))


def _by_rule(kind: str, cases: FailureCases, walks: Walks, block: Numbers) -> FailureReport:
    """The report on the packets to some destinations, by the rule itself, with all lost pairs."""
    if cases.tried_cases is None:  # all pairs
        lengths, lost = walks.follow_pairs_of_failures(block)
        return _report(walks, kind=kind, cases=cases, lengths=lengths, lost=lost, block=block)
    walked = walks.follow_cases(block, cases.tried_cases)
    return _report(
        walks, kind=kind, cases=cases, lengths=walked.lengths, lost=walked.lost_pairs, block=block
    )


def _report(
    walks: Walks,
    kind: str,
    cases: FailureCases,
    lengths: PathLengths = PathLengths(),  # noqa: B008 (a frozen value)
    lost: Numbers = NO_LOST_PAIRS,
    block: Numbers = NO_DESTINATIONS,
) -> FailureReport:
    """The report on a block of destinations; by default no packet was followed, or none was lost.

    Args:
        walks: of the build.
        kind: the kind of failures.
        cases: its cases.
        lengths: the lengths of paths under these.
        lost: int64[m, 4], the lost pairs, as in `CaseWalks.lost_pairs`.
        block: int64[D], the destinations, which columns of `lost` index.
    """
    switches_with_hosts = int(np.count_nonzero(walks.has_hosts))
    # By case, then by source, then by destination.
    lost = lost[np.lexsort((lost[:, PAIR_COLUMN], lost[:, PAIR_SOURCE], lost[:, PAIR_CASE]))]
    case, source = lost[:, PAIR_CASE], lost[:, PAIR_SOURCE]
    destination = block[lost[:, PAIR_COLUMN]]
    # Where switches repair nothing, nobody asks whether a repair was possible.
    counts_cut_off = walks.build.forwarding.repairs and len(lost)
    examples = (column[:LOSS_EXAMPLES].tolist() for column in (case, source, destination))
    return FailureReport(
        kind=kind,
        cases=cases.tried_count,
        all_cases=cases.all_cases,
        lost_pairs=len(lost),
        looped=int(lost[:, PAIR_FOR_EVER].sum()),
        max_hops=lengths.max_hops,
        stretch=lengths.stretch,
        losses=tuple(
            FailureLoss(cases.name(walks, c), s, d) for c, s, d in zip(*examples, strict=True)
        ),
        cut_off=count_cut_off(walks, cases, case, source, destination) if counts_cut_off else 0,
        pairs=cases.tried_count * switches_with_hosts * (switches_with_hosts - 1),
    )


def of_other_plane(report: FailureReport, walked: Build, build: Build) -> FailureReport:
    """The report on a plane that forwards and fails as the walked one, with its own names.

    Args:
        report: on the plane that was walked.
        walked: the build of this plane.
        build: of the other plane.
    """
    if not report.losses:
        return report
    kind = report.kind
    pairs = zip(names_of_failures(walked, kind), names_of_failures(build, kind), strict=True)
    renamed = dict(pairs)
    losses = (
        replace(loss, failed=AT_ONCE.join(renamed[name] for name in loss.failed.split(AT_ONCE)))
        for loss in report.losses
    )
    return replace(report, losses=tuple(losses))


def _merge_results(walked: WalkResults, more: WalkResults) -> WalkResults:
    """The results for two blocks of destinations together."""
    pairs = zip(walked.failures, more.failures, strict=True)
    reports = tuple(_merge_reports(first, second) for first, second in pairs)
    return WalkResults(walked.alternates.combined(more.alternates), reports)


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
