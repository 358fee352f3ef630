"""Walks under failures: the way of every packet while links or switches are down.

No controller acts. From where a packet meets its first failure (`failure_starts`)
the forwarding rule is followed, a link at a time. All cases of two failures are walked by the
packets that meet both (`failure_pairs`); of more, or in a sample, each by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations
from math import comb

import numpy as np

from compilers.proof.failures.disconnected import disconnected
from compilers.proof.failures.failure_pairs import meeting_two
from compilers.proof.failures.failure_starts import starts
from compilers.proof.failures.risk_cases import (
    SINGLE,
    at_once,
    is_file,
    joined,
    named_elements,
    padded,
)
from compilers.proof.walks.forwarding import Forwarding, Numbers
from compilers.proof.walks.packet_states import (
    ARRIVED,
    LOOPED,
    BlockWalk,
    Followed,
    Progress,
    Reached,
    losers,
    packets,
)
from compilers.tables.build import Build
from compilers.workers.shards import THIS_PROCESS, Workers
from inventory.problems import InputError

LOSS_EXAMPLES = 10
SAMPLE = 1000
PAIRS_UP_TO = 1 << 22
"""The most packets for which all pairs of failures are walked by default, in ten seconds or so."""


@dataclass(frozen=True, slots=True)
class FailureLoss:
    """A pair of switches that loses packets while `failed` is down."""

    failed: str
    source: int
    destination: int


@dataclass(frozen=True, slots=True)
class FailureReport:
    """The effect of all failures of one kind on the pairs of switches that are left.

    kind: of `compilers.proof.failures.risk_cases`. cases: how many were tried,
    of `all_cases`. pairs: over all cases, of all switches with hosts. lost_pairs: those that lose
    packets on some way that their source may choose. looped: those whose packets are still
    forwarded after 64 links. max_hops: the longest path of a packet that met a failure and was
    delivered, in links. stretch: the most links that a repair adds to a packet's path. losses: the
    first few lost pairs. cut_off: the lost pairs that no path joins any more, counted if the build
    promises to repair. exact: whether a packet was found that takes max_hops, and one with this
    stretch; a certificate may know only that none does worse.
    """

    kind: str
    cases: int
    all_cases: int
    lost_pairs: int
    looped: int
    max_hops: int
    stretch: int
    losses: tuple[FailureLoss, ...]
    cut_off: int = 0
    pairs: int = 0
    exact: bool = True

    @property
    def lost_share(self) -> float:
        """The part of the pairs that is lost."""
        return self.lost_pairs / self.pairs if self.pairs else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class FailureCases:
    """The cases of a kind of failure that are tried, of `every` that there are.

    rows: int64[n, F], the dead elements of each case (`Forwarding.element`), beyond the last of
    them the number after all elements; None: all pairs of `elements`, of which case a·M + b has the
    elements a and b. names: of the cases, where they are not named by their elements.
    """

    every: int
    elements: int
    rows: Numbers | None
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, f: Forwarding, kind: str, sample: int, seed: int = 1) -> FailureCases:
        """All failures of one link or node; of several at once, `sample` cases at most."""
        nodes = f.links + np.flatnonzero((f.end.reshape(f.switches, -1) >= 0).any(axis=1))
        most = f.links + f.switches
        if kind in ("link", "node"):
            single = np.arange(f.links) if kind == "link" else nodes
            return cls(len(single), most, single[:, None])
        elements = np.concatenate((np.arange(f.links), nodes))
        every = comb(len(elements), int(kind))
        if every <= sample:
            more = combinations(elements.tolist(), int(kind))
            implied = int(kind) == 2 and not f.every_hop
            return cls(every, most, None if implied else np.array(list(more)))
        return cls(every, most, elements[_drawn(len(elements), int(kind), sample, seed)])

    @classmethod
    def of_groups(
        cls, build: Build, f: Forwarding, kind: str, sample: int, seed: int
    ) -> FailureCases:
        """Failures of groups that share a risk, or of one of several kinds at once.

        Raises:
            InputError: the build has no groups of this kind.
        """
        kinds, most = [kind] if is_file(kind) else kind.split("+"), f.links + f.switches
        parts = []
        for word in kinds:
            if word in ("link", "node"):
                each = cls.of(f, word, 0)
                parts.append({each.name(build, f, n): (*each.dead(n),) for n in range(each.every)})
            else:
                parts.append(named_elements(build, word))
        names, dead = [list(part) for part in parts], [list(part.values()) for part in parts]
        same = len({*kinds}) == 1
        numbers, every = at_once(dead, same, sample if len(parts) > 1 else len(names[0]), seed)
        cases = [joined([dead[i][n] for i, n in enumerate(case)]) for case in numbers]
        called = (" and ".join(names[i][n] for i, n in enumerate(case)) for case in numbers)
        return cls(every, most, padded(cases, most), tuple(called))

    def name(self, build: Build, f: Forwarding, case: int) -> str:
        """What fails in a case: its group, or its nodes and links."""
        if self.names:
            return self.names[case]
        return " and ".join(element_name(build, f, part) for part in self.dead(case))

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

    def walked(self, reached: Reached) -> Iterator[Followed]:
        """All packets that meet a failure of a case, each followed to its end."""
        if self.rows is None:
            return meeting_two(reached)
        return (Followed.of(reached.towards, met) for met in starts(reached, self.rows))


def _drawn(elements: int, at_once: int, sample: int, seed: int) -> Numbers:
    """int64[sample, at_once]: different sets of elements, by chance."""
    random = np.random.default_rng(seed)
    chosen: set[tuple[int, ...]] = set()
    while len(chosen) < sample:
        case = tuple(sorted(random.integers(elements, size=at_once).tolist()))
        if len(set(case)) == at_once:
            chosen.add(case)
    return np.array(sorted(chosen))


def walk_failures(
    build: Build,
    kind: str,
    sample: int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
    destinations: Numbers | None = None,
    forwarding: Forwarding | None = None,
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
        forwarding: of this build, where it is made already.
        workers: that share the destinations.

    Raises:
        InputError: so many failures can leave a marked packet no way, or there are no groups of
            this kind.
    """
    f = forwarding or Forwarding.of(build)
    if sample is None:
        quick = kind == "2" and build.protect != "none" and packets(build) <= PAIRS_UP_TO
        sample = comb(f.links + f.switches, 2) if quick else SAMPLE
    if kind in SINGLE[:2] or kind.isdecimal():
        cases = FailureCases.of(f, kind, sample, seed)
    else:
        cases = FailureCases.of_groups(build, f, kind, sample, seed)
    _require_ways(f, cases)
    walk = BlockWalk(partial(_block, kind, cases), None if workers.remote else f)
    none = _Tally(build, f, cases).report(kind)
    return reduce(_merged, walk.over(build, workers, progress, destinations), none)


def _require_ways(f: Forwarding, cases: FailureCases) -> None:
    """Pass when a switch spreads marked packets over more ways than can be down at it.

    Then one of them is always up, and its packets are followed without failures, too.
    """
    if not f.marks:
        return
    fewest = int(np.unpackbits(f.onward[f.end >= 0], axis=1).sum(axis=1, dtype=np.int64).min())
    most = cases.at_once
    if fewest <= most and cases.names:
        most = max(_down_at_one(f, cases.dead(case)) for case in range(cases.tried))
    if fewest <= most:
        required = f"fewer than {fewest} failures at once where packets are marked, a larger q, "
        raise InputError.of(required + "or another balance", f"{most}", key="failures")


def _down_at_one(f: Forwarding, dead: list[int]) -> int:
    """The most links of one switch that failures take, or lead to a switch that they take."""
    link, switch = (np.isin(element[: len(f.end)], dead) for element in f.element)
    count: Numbers = np.count_nonzero((link | switch).reshape(f.switches, f.slots), axis=1)
    count[[part - f.links for part in dead if part >= f.links]] = 0
    return int(count.max())


def _block(kind: str, cases: FailureCases, build: Build, reached: Reached) -> FailureReport:
    """The report on the packets towards some destinations."""
    tally = _Tally(build, reached.towards.forwarding, cases)
    tally.add(reached)
    return tally.report(kind)


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


class _Tally:
    """Counts over all cases, towards some destinations."""

    def __init__(self, build: Build, f: Forwarding, cases: FailureCases) -> None:
        self.build, self.f, self.cases = build, f, cases
        self.lost_pairs = self.looped = self.max_hops = self.stretch = self.cut_off = 0
        self.losses: list[FailureLoss] = []

    def add(self, reached: Reached) -> None:
        """Follow the packets towards some destinations and count the outcomes."""
        usual = self.f.walker.hops(reached.towards.destinations)
        for walked in self.cases.walked(reached.told_apart(self.cases.at_once)):
            arrived = walked.outcome == ARRIVED
            self._lengths(walked, arrived, usual)
            if not arrived.all():
                self._lose(reached)
                return

    def _lose(self, reached: Reached) -> None:
        """Follow all packets towards some destinations, and count those that are lost."""
        ends, none = self.build.topology.endpoints, np.zeros(0, np.int64)
        usual = self.f.walker.hops(reached.towards.destinations)
        lost, looped = [none], [none]
        for walked in self.cases.walked(reached):
            arrived, looping = (walked.outcome == word for word in (ARRIVED, LOOPED))
            self._lengths(walked, arrived, usual)
            if not arrived.all():
                lost.append(losers(reached, ends, walked.starts.take(~arrived)))
            if looping.any():
                looped.append(losers(reached, ends, walked.starts.take(looping)))
        self.looped += len(np.unique(np.concatenate(looped)))
        self._count(np.unique(np.concatenate(lost)), reached.towards.destinations)

    def _lengths(self, walked: Followed, arrived: Numbers, usual: Numbers) -> None:
        """The longest paths of the packets that arrived."""
        if arrived.any():
            met, hops = walked.starts.take(arrived), walked.hops[arrived]
            added = hops - met.hops - usual[met.arc // self.f.slots, met.column]
            self.max_hops = max(self.max_hops, int(hops.max()))
            self.stretch = max(self.stretch, int(added.max()))

    def _count(self, lost: Numbers, destinations: Numbers) -> None:
        """Count lost pairs, numbered as `losers` has them, and name the first."""
        self.lost_pairs += len(lost)
        before, column = np.divmod(lost, len(destinations))
        case, source = np.divmod(before, self.f.switches)
        destination = destinations[column]
        if self.build.protect != "none":
            graph, dead = self.build.topology.graph, self.cases.dead
            self.cut_off += disconnected(graph, self.f, dead, case, source, destination)
        first = LOSS_EXAMPLES - len(self.losses)
        named = (part[:first].tolist() for part in (case, source, destination))
        self.losses += [
            FailureLoss(self.cases.name(self.build, self.f, c), s, d)
            for c, s, d in zip(*named, strict=True)
        ]

    def report(self, kind: str) -> FailureReport:
        """The report on all cases."""
        ends = int(np.count_nonzero(self.build.topology.endpoints))
        return FailureReport(
            kind=kind,
            cases=self.cases.tried,
            all_cases=self.cases.every,
            lost_pairs=self.lost_pairs,
            looped=self.looped,
            max_hops=self.max_hops,
            stretch=self.stretch,
            losses=tuple(self.losses),
            cut_off=self.cut_off,
            pairs=self.cases.tried * ends * (ends - 1),
        )


def element_name(build: Build, f: Forwarding, element: int) -> str:
    """The name of a number of `Forwarding.element`: a node's name, or `A-B` for a link."""
    names = build.wiring.names
    if element >= f.links:
        return names[element - f.links]
    one, other = f.ends(element)
    return f"{names[one]}-{names[other]}"
