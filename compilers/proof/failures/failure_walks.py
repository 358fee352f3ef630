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
FAILURE_KINDS = ("link", "node", "2", "3")
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

    kind: "link", "node", "2" or "3" (so many links or nodes at once). cases: how many were tried,
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

    rows: int64[n, F], the dead elements of each case (`Forwarding.element`); None: all pairs of
    `elements`, of which case a·M + b has the elements a and b.
    """

    every: int
    elements: int
    rows: Numbers | None

    @classmethod
    def of(cls, f: Forwarding, kind: str, sample: int, seed: int = 1) -> FailureCases:
        """All failures of one element; of several at once, `sample` cases at most."""
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
        return list(divmod(case, self.elements)) if self.rows is None else self.rows[case].tolist()

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
        kind: one of `FAILURE_KINDS`.
        sample: the most cases of several failures to try; None: all pairs where that is quick, else
            `SAMPLE`.
        seed: of the sample.
        progress: called with destinations done and all.
        destinations: int64[D], ascending: the pairs towards these alone; None: all with hosts.
        forwarding: of this build, where it is made already.
        workers: that share the destinations.

    Raises:
        InputError: so many failures can leave a marked packet no way.
    """
    f = forwarding or Forwarding.of(build)
    if sample is None:
        quick = kind == "2" and build.protect != "none" and packets(build) <= PAIRS_UP_TO
        sample = comb(f.links + f.switches, 2) if quick else SAMPLE
    _require_ways(f, kind)
    cases = FailureCases.of(f, kind, sample, seed)
    walk = BlockWalk(partial(_block, kind, cases), None if workers.remote else f)
    none = _Tally(build, f, cases).report(kind)
    return reduce(_merged, walk.over(build, workers, progress, destinations), none)


def _require_ways(f: Forwarding, kind: str) -> None:
    """Pass when a switch spreads marked packets over more ways than elements fail.

    Then one of them is always up, and its packets are followed without failures, too.
    """
    at_once = int(kind) if kind.isdecimal() else 1
    if not f.marks:
        return
    fewest = int(np.unpackbits(f.onward[f.end >= 0], axis=1).sum(axis=1, dtype=np.int64).min())
    if fewest <= at_once:
        required = f"fewer than {fewest} failures at once where packets are marked, a larger q, "
        raise InputError.of(required + "or another balance", f"{at_once}", key="failures")


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
        self.losses += [FailureLoss(self._name(c), s, d) for c, s, d in zip(*named, strict=True)]

    def _name(self, case: int) -> str:
        """The names of the nodes and links that fail in a case."""
        return " and ".join(element_name(self.build, self.f, p) for p in self.cases.dead(case))

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
