"""Walks of all packets: over every path, and while links or switches are down.

No controller acts. Failures of one link or one switch are walked by the tabulated rule
(`compilers.forwarding.single_failures`), all others by the rule itself (`failure_sets`).
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
NO_DESTINATIONS = np.zeros(0, np.int64)
SAMPLE = 1000
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
    """Whether a packet was found that takes max_hops, and one with this stretch; a proof may know
    only that none does worse."""

    @property
    def lost_share(self) -> float:
        """The part of the pairs that is lost."""
        return self.lost_pairs / self.pairs if self.pairs else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class FailureCases:
    """The cases of a kind of failure that are tried."""

    every: int
    """How many cases there are."""
    elements: int
    """E + S, how many links and switches there are."""
    rows: Numbers | None
    """int64[n, F], the elements that are down in each case (`Program`), E + S beyond the last;
    None: all pairs of `elements`, of which case a·M + b has the elements a and b."""
    names: tuple[str, ...] = ()
    """Of the cases, where they are not named by their elements."""

    @classmethod
    def of(cls, walks: Walks, kind: str, sample: int, seed: int = 1) -> FailureCases:
        """All failures of one link or node; of several at once, `sample` cases at most."""
        nodes = walks.links + np.flatnonzero(walks.cabled)
        most = walks.elements
        if kind in ("link", "node"):
            single = np.arange(walks.links) if kind == "link" else nodes
            return cls(len(single), most, single[:, None])
        elements = np.concatenate((np.arange(walks.links), nodes))
        every = comb(len(elements), int(kind))
        if every <= sample:
            more = combinations(elements.tolist(), int(kind))
            implied = int(kind) == 2 and not walks.program.every_hop
            return cls(every, most, None if implied else np.array(list(more)))
        return cls(every, most, elements[_drawn(len(elements), int(kind), sample, seed)])

    @classmethod
    def of_groups(cls, walks: Walks, kind: str, sample: int, seed: int) -> FailureCases:
        """Failures of groups that share a risk, or of one of several kinds at once.

        Raises:
            InputError: the build has no groups of this kind.
        """
        kinds, most = [kind] if is_file(kind) else kind.split("+"), walks.elements
        parts = []
        for word in kinds:
            if word in ("link", "node"):
                single = cls.of(walks, word, 0)
                parts.append(
                    {single.name(walks, n): (*single.dead(n),) for n in range(single.every)}
                )
            else:
                parts.append(named_elements(walks.build, word))
        names, dead = [list(part) for part in parts], [list(part.values()) for part in parts]
        same = len({*kinds}) == 1
        numbers, every = at_once(dead, same, sample if len(parts) > 1 else len(names[0]), seed)
        cases = [joined([dead[i][n] for i, n in enumerate(case)]) for case in numbers]
        called = (" and ".join(names[i][n] for i, n in enumerate(case)) for case in numbers)
        return cls(every, most, padded(cases, most), tuple(called))

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
        """The elements that are down in a case."""
        if self.rows is None:
            return list(divmod(case, self.elements))
        return [part for part in self.rows[case].tolist() if part < self.elements]


def _drawn(elements: int, at_once: int, sample: int, seed: int) -> Numbers:
    """int64[sample, at_once]: different sets of elements, by chance."""
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
        sample: the most cases of several failures to try; None: all pairs where that is quick, else
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
    look = BlockWalk(partial(_judged, kind, cases), None if workers.remote else walks)
    parts = look.over(build, workers, progress, destinations)
    return reduce(_merged, parts, _report(walks, kind, cases))


def _require_paths(walks: Walks, cases: FailureCases) -> None:
    """Pass when a switch spreads marked packets over more links than can be down at it.

    Then one of them is always up, and its packets are followed without failures, too.
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
    """The most links of one switch that failures take, or lead to a switch that they take."""
    program = walks.program
    down = np.isin(program.cable, dead) | np.isin(walks.links + program.far, dead)
    count: Numbers = np.count_nonzero(down & (program.far >= 0), axis=1)
    count[[part - walks.links for part in dead if part >= walks.links]] = 0
    return int(count.max())


def _single(
    kinds: tuple[str, ...], cases: tuple[FailureCases, ...], walks: Walks, block: Numbers
) -> Walked:
    """The paths to some destinations, and what single failures do to packets to them."""
    alternates, lengths, suspects = walks.single(block, "link" in kinds, "node" in kinds)
    reports = [
        _report(walks, kind, of_kind, lengths[kind == "node"])
        for kind, of_kind in zip(kinds, cases, strict=True)
    ]
    if not len(suspects):
        return Walked(alternates, tuple(reports))
    also, _, _ = walks.cases(suspects, NO_CASES)
    for i, (kind, of_kind) in enumerate(zip(kinds, cases, strict=True)):
        exact = _judged(kind, of_kind, walks, suspects)
        reports[i] = _merged(reports[i], exact)
    return Walked(alternates.and_also(also), tuple(reports))


def _judged(kind: str, cases: FailureCases, walks: Walks, block: Numbers) -> FailureReport:
    """The report on the packets to some destinations, by the rule itself."""
    if cases.rows is None:
        lengths, lost = walks.two(block)
    else:
        _, lengths, lost = walks.cases(block, cases.rows)
    return _report(walks, kind, cases, lengths, lost, block)


def _report(
    walks: Walks,
    kind: str,
    cases: FailureCases,
    lengths: Lengths = Lengths(),  # noqa: B008 (a frozen value)
    lost: Numbers = NO_ROWS,
    block: Numbers = NO_DESTINATIONS,
) -> FailureReport:
    """The report on what is `lost` to a block of destinations; int64[m, 4] of `Walks.cases`."""
    build, ends = walks.build, int(np.count_nonzero(walks.ends))
    lost = lost[np.lexsort((lost[:, 2], lost[:, 1], lost[:, 0]))]
    case, source, destination = lost[:, 0], lost[:, 1], block[lost[:, 2]]
    promised = build.forwarding.repairs and len(lost)
    first = (part[:LOSS_EXAMPLES].tolist() for part in (case, source, destination))
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
        cut_off=disconnected(walks, cases.dead, case, source, destination) if promised else 0,
        pairs=cases.tried * ends * (ends - 1),
    )


def _both(one: Walked, other: Walked) -> Walked:
    """The walks to the destinations of both."""
    pairs = zip(one.failures, other.failures, strict=True)
    reports = tuple(_merged(mine, also) for mine, also in pairs)
    return Walked(one.alternates.and_also(other.alternates), reports)


def _merged(one: FailureReport, other: FailureReport) -> FailureReport:
    """The report on the destinations of both."""
    return replace(
        one,
        lost_pairs=one.lost_pairs + other.lost_pairs,
        looped=one.looped + other.looped,
        max_hops=max(one.max_hops, other.max_hops),
        stretch=max(one.stretch, other.stretch),
        losses=(one.losses + other.losses)[:LOSS_EXAMPLES],
        cut_off=one.cut_off + other.cut_off,
    )


def disconnected(
    walks: Walks,
    dead: Callable[[int], list[int]],
    case: Numbers,
    source: Numbers,
    destination: Numbers,
) -> int:
    """The number of pairs, of n, without a path while the elements of their case are down.

    Args:
        walks: over the fabric without failures.
        dead: the elements that are down in a case.
        case: int64[n], the case of each pair.
        source: int64[n].
        destination: int64[n].
    """
    intact = neighbour_table(walks.build.topology.graph)
    count = 0
    for number in np.unique(case).tolist():
        part = components(_left(intact, walks, dead(number)))
        pairs = case == number
        count += int(np.count_nonzero(part[source[pairs]] != part[destination[pairs]]))
    return count


def _left(intact: NDArray[np.int64], walks: Walks, down: list[int]) -> NDArray[np.int64]:
    """The neighbour table without the elements that are down."""
    table, none = intact.copy(), len(intact) - 1
    for element in down:
        if element >= walks.links:
            table[table == element - walks.links] = none
        else:
            u, v = walks.link_ends[element]
            table[u, table[u] == v] = none
            table[v, table[v] == u] = none
    return table
