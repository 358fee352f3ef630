"""Checks of observations against the prediction, each mismatch by name, and their result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.proof.explanation import find_switch
from compilers.tables.fib import FAULTS
from compilers.topology.distance import distances, neighbour_table
from inventory.problems import InputError
from mininet_scenarios.scenario.engine import (
    SILENT,
    Check,
    Counts,
    Engine,
    Exercise,
    HostSample,
    Mismatch,
    Observation,
)
from mininet_scenarios.scenario.scenario_file import Expect, ExpectAtTop
from mininet_scenarios.verdict.predict import N, Prediction


class Examiner:
    """Compares observations of a build's hosts with the prediction from its tables."""

    def __init__(self, prediction: Prediction, hosts: HostSample) -> None:
        self.build, self.hosts, self.prediction = prediction.build, hosts, prediction
        self.fewest, self.most = map(self._of_hosts, (prediction.fewest, prediction.most))

    def compare(
        self, what: str, counts: Counts, seen: Observation, counted: bool = True
    ) -> list[Check]:
        """Packets, hops and (where they are `counted`) links of one round, against the tables."""
        checks = [
            self._arrived(f"{what}: arrived", counts, seen),
            self._hops(f"{what}: hops as predicted", counts, seen),
        ]
        if counted:
            checks.append(self._links(f"{what}: link counters as predicted", counts, seen))
        return checks

    def usual(self) -> ExpectAtTop:
        """What is expected of the fabric as it comes up, where a scenario does not say."""
        most = int(self.most.max()) if self.prediction.varies else self.build.topology.diameter
        return ExpectAtTop.model_construct(
            delivered=len(self.hosts) * (len(self.hosts) - 1),
            max_hops=most,
            minimal=not self.build.forwarding.several_paths,
        )

    def judge(
        self,
        what: str,
        expect: Expect,
        sent: NDArray[np.bool_],
        longest: NDArray[np.int64],
        engine: Engine,
    ) -> list[Check]:
        """What is expected of a round, whatever the tables say.

        Args:
            what: the round, in names of checks.
            expect: the expectations.
            sent: bool[H, H], the pairs that packets were sent between.
            longest: of an `Observation`.
            engine: tells the paths of packets.
        """
        checks, lost = list[Check](), sent & (longest == SILENT)
        if expect.delivered is not None:
            delivered = int(np.count_nonzero(sent & ~lost))
            short: tuple[Mismatch, ...] = ()
            if delivered != expect.delivered:
                tables = [
                    FAULTS.get(h, "the tables deliver it") for h in self.fewest[lost].tolist()
                ]
                said = [f"lost ({words})" for words in tables]
                short = self._pairs(lost, ["delivered"] * len(said), said)
            checks.append(Check(f"{what}: delivered", expect.delivered, delivered, short))
        if expect.max_hops is not None:
            most = np.full_like(self.most, expect.max_hops)
            checks.append(self.within(f"{what}: at most {expect.max_hops} hops", most, longest))
        if expect.minimal:
            graph = self.build.topology.graph
            shortest = distances(neighbour_table(graph), np.arange(graph.order)).T
            checks.append(self.within(f"{what}: shortest paths", self._of_hosts(shortest), longest))
        if expect.paths:
            checks.append(self.check_paths(what, expect.paths, engine))
        return checks

    def check_paths(self, what: str, wanted: Sequence[Sequence[str]], engine: Engine) -> Check:
        """Whether packets pass the nodes that a scenario names.

        Raises:
            InputError: a node of that name is not there, or has no host that takes part.
        """
        names = self.build.wiring.names
        routes = [tuple(find_switch(self.build, word) for word in path) for path in wanted]
        first = {int(s): i for i, s in reversed(list(enumerate(self.hosts.switch)))}
        for route in routes:
            for end in (route[0], route[-1]):
                if end not in first:
                    required = "paths between nodes with hosts that take part"
                    raise InputError.of(required, names[end], key="expect.paths")
        pairs = np.array([(first[route[0]], first[route[-1]]) for route in routes])
        seen = engine.paths(self.hosts.pairs(pairs))
        mismatches = tuple(
            Mismatch(
                f"{names[route[0]]} → {names[route[-1]]}",
                " ".join(names[v] for v in route),
                " ".join(taken),
            )
            for route, taken in zip(routes, seen, strict=True)
            if tuple(names[v] for v in route) != taken
        )
        return Check.of(f"{what}: paths", len(routes), mismatches)

    def _arrived(self, name: str, counts: Counts, seen: Observation) -> Check:
        """Check which packets arrived, but for pairs that arrive by some of their paths only."""
        sure, never = self.fewest >= 0, self.most < 0
        expected, judged = np.where(sure, counts, 0), (counts > 0) & (sure | never)
        wrong = judged & (seen.arrived != expected)
        mismatches = self._pairs(wrong, _packets(expected[wrong]), _packets(seen.arrived[wrong]))
        return Check.of(name, int(np.count_nonzero(judged)), mismatches)

    def _hops(self, name: str, counts: Counts, seen: Observation) -> Check:
        """A check that packets that arrived crossed as many links as the tables allow."""
        arrived = (counts > 0) & (seen.longest != SILENT)
        right = (seen.shortest >= self.fewest) & (seen.longest <= self.most)
        wrong = arrived & ~right
        expected = _hops(self.fewest[wrong], self.most[wrong])
        mismatches = self._pairs(wrong, expected, _hops(seen.longest[wrong]))
        return Check.of(name, int(np.count_nonzero(arrived)), mismatches)

    def _links(self, name: str, counts: Counts, seen: Observation) -> Check:
        """A check that every link carried as many packets as the tables allow."""
        wiring = self.build.wiring
        packets = self.hosts.by_switch(counts, len(wiring.names))
        bounds = self.prediction.load_bounds(packets)
        switch, link = np.nonzero(wiring.far >= 0)
        port, loads = wiring.port[switch, link], self.of_links(seen.loads)
        least, limit = bounds.fewest[switch, port], bounds.most[switch, port]
        mismatches = tuple(
            Mismatch(
                self._link(int(switch[i]), int(link[i])),
                f"{_between(int(least[i]), int(limit[i]))} packets",
                str(loads[i]),
            )
            for i in np.flatnonzero((loads < least) | (loads > limit))
        )
        return Check.of(name, len(port), mismatches)

    def of_links(self, loads: Mapping[str, NDArray[N]]) -> NDArray[N]:
        """[E], each direction of each link, of an `Observation`; 0 for a switch not there."""
        wiring, nothing = self.build.wiring, np.zeros_like(next(iter(loads.values())))
        ports = np.stack([loads.get(name, nothing) for name in wiring.names])
        switch, link = np.nonzero(wiring.far >= 0)
        return ports[switch, wiring.port[switch, link]]

    def within(self, name: str, most: NDArray[np.int64], longest: NDArray[np.int64]) -> Check:
        """Which of the longest paths seen have at most so many links, int64[H, H]."""
        arrived = longest != SILENT
        beyond = arrived & (longest > most)
        mismatches = self._pairs(beyond, _hops(most[beyond]), _hops(longest[beyond]))
        return Check.of(name, int(np.count_nonzero(arrived)), mismatches)

    def _of_hosts(self, of_switches: NDArray[np.integer]) -> NDArray[np.int64]:
        """int64[H, H] from a value for each pair of switches."""
        switch = self.hosts.switch
        return of_switches[switch[:, None], switch].astype(np.int64)

    def _pairs(
        self, where: NDArray[np.bool_], expected: Iterable[str], seen: Iterable[str]
    ) -> tuple[Mismatch, ...]:
        """The mismatches of pairs of hosts."""
        names = self.hosts.names
        return tuple(
            Mismatch(f"{names[i]} → {names[j]}", *texts)
            for (i, j), *texts in zip(np.argwhere(where).tolist(), expected, seen, strict=True)
        )

    def _link(self, switch: int, link: int) -> str:
        """A link by its switches and ports, in words."""
        wiring = self.build.wiring
        far, port, far_port = (
            int(x[switch, link]) for x in (wiring.far, wiring.port, wiring.far_port)
        )
        port_name, far_port_name = wiring.port_name(switch, port), wiring.port_name(far, far_port)
        return f"link {wiring.names[switch]} {port_name} → {wiring.names[far]} {far_port_name}"


def histogram(hops: NDArray[np.int64], pairs: NDArray[np.bool_]) -> dict[int, int]:
    """How many of the pairs take how many hops; those that don't arrive are left out."""
    values, counts = np.unique(hops[pairs & (hops >= 0)], return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _packets(counts: NDArray[np.int64]) -> list[str]:
    """Counts of packets in words."""
    return ["1 packet" if n == 1 else f"{n} packets" for n in counts.tolist()]


def _hops(hops: NDArray[np.int64], most: NDArray[np.int64] | None = None) -> list[str]:
    """Numbers of hops in words, with bounds where these differ; faults by their names."""
    limits = hops if most is None else most
    return [
        FAULTS.get(h, f"{_between(h, limit)} {'hop' if limit == 1 else 'hops'}")
        for h, limit in zip(hops.tolist(), limits.tolist(), strict=True)
    ]


def _between(least: int, most: int) -> str:
    """A number, or two bounds of it."""
    return f"{least}" if least == most else f"{least} to {most}"


@dataclass(frozen=True, slots=True)
class Happened:
    """An event, and how the fabric was from then on."""

    what: str
    """What the event is called."""
    at: float
    """Seconds after the timeline began, when it had happened."""
    pairs: int | None = None
    """The ordered pairs of hosts that could be sent packets; None if none were sent."""
    expected: int | None = None
    """The pairs that the tables deliver for certain; None if no packets were sent."""
    possible: int | None = None
    """These, and the pairs that the tables deliver by some of their paths only: a hash that no one
    predicts chooses the path. None if no packets were sent.
    """
    reached: int | None = None
    """The pairs that were delivered; None if no packets were sent."""
    max_hops: int | None = None
    """The links on the longest path that was seen."""
    lost: int | None = None
    """The probe packets of pairs that the tables deliver which never came; None without a probe."""
    worst: int | None = None
    """The most such packets of one pair; None without a probe."""
    converged: float | None = None
    """Seconds from the event until the last of them was sent, 0 if none was lost; None without a
    probe.
    """
    repaired: float | None = None
    """Seconds in which the controller routed around the failure, or back, by its own clock; None if
    it changed nothing.
    """


@dataclass(frozen=True, slots=True, eq=False)
class CarriedRate:
    """The rates of flows, in Mb/s."""

    pattern: str
    """The pattern of the flows."""
    protocol: str
    """The transport protocol."""
    offered: NDArray[np.float64]
    """float64[n], what each flow offered."""
    carried: NDArray[np.float64]
    """float64[n], what arrived of each flow."""
    fair: NDArray[np.float64]
    """float64[n], what max-min fairness gives each flow."""
    loads: NDArray[np.float64]
    """float64[E], the rate over each direction of each link."""

    def ratios(self) -> dict[str, float]:
        """The parts of what was offered that arrived, and that fairness gives."""
        offered = float(self.offered.sum())
        return {
            "carried": round(float(self.carried.sum()) / offered, 4),
            "fair": round(float(self.fair.sum()) / offered, 4),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """The packets of a probe, counted by stretches of time after the timeline began."""

    stretch: float
    """The seconds of a stretch."""
    sent: NDArray[np.int64]
    """int64[n], the packets sent in each stretch."""
    received: NDArray[np.int64]
    """int64[n], those of them that came."""

    def as_dict(self) -> dict[str, Any]:
        """Counts, in all and by stretches."""
        columns = self.received.tolist(), self.sent.tolist()
        return {
            "sent": int(self.sent.sum()),
            "received": int(self.received.sum()),
            "stretch_seconds": self.stretch,
            "received_of_sent": [list(row) for row in zip(*columns, strict=True)],
        }


@dataclass(frozen=True, slots=True, eq=False)
class PairsReached:
    """The pairs of hosts that reach each other after an event."""

    what: str
    """What the event is called."""
    sure: NDArray[np.bool_]
    """bool[H, H], the ordered pairs that the tables deliver, there and back."""
    reached: NDArray[np.bool_]
    """bool[H, H], those of them that were delivered there and back."""

    @classmethod
    def of(cls, what: str, sure: NDArray[np.bool_], reached: NDArray[np.bool_]) -> PairsReached:
        """The pairs that are delivered both ways."""
        both = sure & sure.T
        return cls(what, both, reached & both)


@dataclass(slots=True)
class Result:
    """The result of a rehearsal."""

    pairs: int
    """The ordered pairs of hosts that take part."""
    delivered: int = 0
    """How many of them were delivered at first."""
    predicted_hops: dict[int, int] = field(default_factory=dict)
    """The number of pairs by the links that the tables predict; empty if alternates leave that to
    the switches.
    """
    seen_hops: dict[int, int] = field(default_factory=dict)
    """The number of pairs by the links that their packets crossed."""
    caught: str = ""
    """How the checks found a wrong table that was put in place on purpose; "" without one."""
    checks: list[Check] = field(default_factory=list)
    """All checks."""
    seconds: dict[str, float] = field(default_factory=dict)
    """The duration of each step."""
    happened: list[Happened] = field(default_factory=list)
    """The events of the timeline."""
    slowed: list[str] = field(default_factory=list)
    """The intervals at which the probe by itself lost packets, so that a longer one was taken."""
    loads: NDArray[np.int64] | None = None
    """int64[E], the packets over each direction of each link in the round of all pairs."""
    watched: Watched | None = None
    """The packets of the probe; None without one."""
    throughput: CarriedRate | None = None
    """The rates of the flows; None without flows."""
    exercise: Exercise | None = None
    """The exercise of every rule; None without one."""
    reached: dict[int, PairsReached | None] = field(default_factory=dict)
    """The pairs that reach each other, by the number of the timeline's event, -1 before it. Events
    that are undone are left out. None if no packets were sent.
    """

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(check.passed for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """The result for JSON."""
        flows = self.throughput
        return {
            "passed": self.passed,
            "pairs": self.pairs,
            "delivered": self.delivered,
            "hops": {"predicted": self.predicted_hops, "seen": self.seen_hops},
            "caught": self.caught,
            "checks": [{**asdict(check), "passed": check.passed} for check in self.checks],
            "timeline": [asdict(event) for event in self.happened],
            "probe": self.watched.as_dict() | {"slowed": self.slowed} if self.watched else None,
            "throughput": flows
            and {
                "pattern": flows.pattern,
                "protocol": flows.protocol,
                "flows": len(flows.offered),
                "offered_mbps": round(float(flows.offered.sum()), 3),
                **flows.ratios(),
            },
            "rules": self.exercise and self.exercise.as_dict(),
            "seconds": self.seconds,
        }


def rule_checks(exercise: Exercise, of: str = "") -> list[Check]:
    """The checks of an exercise, `of` before their names."""
    missed = tuple(Mismatch(words, "packets", "none") for words in exercise.missed)
    rules = Check.of("rules exercised", exercise.due, missed)
    return [replace(check, name=of + check.name) for check in (rules, *exercise.checks)]


def rules_in_words(exercise: Exercise) -> str:
    """`930 of 2,010; 1,080 wait until a port fails`."""
    words = f"{exercise.exercised:,} of {exercise.rules:,}"
    waiting = len(exercise.waiting)
    return words + (f"; {waiting:,} wait until a port fails" if waiting else "")
