"""The protocol of an engine: its hosts, the events it applies, the observations it returns.

An engine is registered in `engine_kinds` with the `Ability`s that it declares; a scenario that
needs another is refused by name before anything is started. Every engine sends packets, counts them
at links, cuts cables and runs a probe; of the methods of `Engine` these are called only with an
ability:

| ability | what the engine does |
|---|---|
| events | `apply` takes more than cables that are cut and mended |
| flows | `carry`: TCP or UDP flows at a rate, for throughput |
| rates | links are as fast as `Setup.rate` says |
| paths | `paths`: the switches that a packet passes |
| rules | `exercise`: packets that reach every rule of the live program (else not checked) |

Time is the engine's own (`now`, `wait`, in seconds): `time.monotonic` where packets are real, which
all processes of a machine share, and a clock that only `wait` moves where they are not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.rule import Array, Program
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A pair or a link that did not behave as expected."""

    where: str
    """The pair or the link."""
    expected: str
    """What was expected, in words."""
    seen: str
    """What was seen, in words."""

    def __str__(self) -> str:
        """`h0 → h9: expected 2 hops, seen 3 hops`."""
        return f"{self.where}: expected {self.expected}, seen {self.seen}"


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation, and how far it was met."""

    name: str
    """What is expected."""
    required: int
    """The number of cases."""
    seen: int
    """The number of cases that passed."""
    mismatches: tuple[Mismatch, ...] = ()
    """The cases that did not pass."""

    @classmethod
    def of(cls, name: str, cases: int, mismatches: tuple[Mismatch, ...]) -> Check:
        """A check of cases that each pass or are where there are mismatches."""
        return cls(name, cases, cases - len({m.where for m in mismatches}), mismatches)

    @property
    def passed(self) -> bool:
        """Whether it was met."""
        return self.seen == self.required and not self.mismatches


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise of every rule."""

    rules: int
    """The number of flows and group buckets of the program."""
    due: int
    """How many of them packets can reach, and must have reached."""
    missed: tuple[str, ...]
    """Those of the due rules that no packet has reached."""
    waiting: tuple[str, ...]
    """The rules that no packet reaches as long as every port is up, in words."""
    checks: tuple[Check, ...]
    """Checks of packets, compared whole where they arrive, and of the shares of ports (or of links
    in a fabric that marks packets).
    """

    @property
    def exercised(self) -> int:
        """How many rules packets have reached."""
        return self.rules - len(self.missed) - len(self.waiting)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: counts, and the rules that no packet has reached."""
        counts = {"all": self.rules, "due": self.due, "exercised": self.exercised}
        return counts | {"missed": list(self.missed), "waiting": list(self.waiting)}


Progress = Callable[[int, int], None]
"""Called with how much of a step is done, and how much it is in all."""
Step = Callable[[str, str], AbstractContextManager[Progress]]
"""Opens a step, by a short name and in words; its value is called with the step's progress."""
Counts = NDArray[np.int64]
"""int64[H, H]: packets from each host to each other host."""
HostPair = tuple[str, str]
"""The names of a sending and a receiving host."""
Ability = Literal["events", "flows", "rates", "paths", "rules", "repair"]
SILENT = -1
"""The number of hops if no packet arrived."""


class EngineError(Exception):
    """The engine failed; the text gives the reason and the place of the logs."""


@dataclass(frozen=True, slots=True)
class HostSample:
    """The H hosts that take part."""

    switch: NDArray[np.int64]
    """int64[H], the switch of each host."""
    number: NDArray[np.int64]
    """int64[H], the number of each host at its switch."""
    names: tuple[str, ...]
    """The names of the hosts."""

    @classmethod
    def of(cls, build: Build, most: int | None = None) -> HostSample:
        """All hosts of a build, or the first `most` of each switch, switch by switch."""
        here = build.wiring.host_port > 0
        if most is not None:
            here = here[:, :most]
        switch, number = np.nonzero(here)
        width = build.wiring.host_port.shape[1]
        names = (
            build.wiring.host_names[s * width + i] for s, i in zip(switch, number, strict=True)
        )
        return cls(switch, number, tuple(names))

    def __len__(self) -> int:
        return len(self.names)

    def every_pair(self) -> Counts:
        """int64[H, H]: one packet for each ordered pair of different hosts."""
        return 1 - np.eye(len(self), dtype=np.int64)

    def numbers(self, names: Sequence[str]) -> NDArray[np.int64]:
        """int64[n]: the number of each host, SILENT for one that does not take part."""
        number = {name: i for i, name in enumerate(self.names)}
        return np.array([number.get(name, SILENT) for name in names], np.int64)

    def ends(self, pairs: Sequence[HostPair]) -> NDArray[np.int64]:
        """int64[n, 2]: the numbers of both hosts of each pair, SILENT for one that is missing."""
        return self.numbers([name for pair in pairs for name in pair]).reshape(-1, 2)

    def pairs(self, numbers: NDArray[np.int64]) -> list[HostPair]:
        """The names of pairs, int64[n, 2]."""
        return [(self.names[i], self.names[j]) for i, j in numbers.tolist()]

    def by_switch(self, counts: Counts, switches: int) -> Counts:
        """int64[S, S]: packets from switch to switch."""
        packets = np.zeros((switches, switches), np.int64)
        np.add.at(packets, (self.switch[:, None], self.switch), counts)
        return packets


@dataclass(frozen=True, slots=True)
class Setup:
    """The parameters of an engine."""

    builds: tuple[Build, ...]
    """The build that the fabric begins with, and those that it moves to."""
    folders: tuple[Path, ...]
    """The folders of the builds."""
    work: Path
    """The folder for logs."""
    cabled: int = 0
    """The number of the build that is cabled, which has all switches and links of the others."""
    hosts: int | None = None
    """How many of each switch's hosts take part; None for all."""
    framework: str = ""
    """The controller's framework; "" for the first that is installed."""
    unverified: bool = False
    """Whether builds are taken that verification has found wrong."""
    temporary: bool = True
    """Whether the folder for logs is removed after the run."""
    patience: float = 60
    """Seconds until every switch must have its program."""
    rate: float | None = None
    """The rate of every link between switches, in Mb/s; None for as fast as they go."""
    repair: bool = False
    """Whether the controller routes around failures."""

    @property
    def build(self) -> Build:
        """What is cabled."""
        return self.builds[self.cabled]


class Exchanged(NamedTuple):
    """The results of a round of packets between all H hosts of an engine, and of its S switches."""

    arrived: Counts
    """int64[H, H], how many packets arrived from host to host."""
    shortest: Counts
    """int64[H, H], the fewest links that one of them crossed, by its time to live; SILENT where
    none came.
    """
    longest: Counts
    """int64[H, H], the most links that one of them crossed; SILENT where none came."""
    loads: NDArray[np.int64]
    """int64[S, ports + 1], the packets that left each switch by each port meanwhile."""

    @classmethod
    def of(
        cls,
        pairs: NDArray[np.int64],
        hops: NDArray[np.int16],
        hosts: int,
        loads: NDArray[np.int64],
    ) -> Exchanged:
        """The results of packets that were followed one by one.

        Args:
            pairs: int64[n, 2], the sending and the receiving host of each packet.
            hops: int16[n], links that each has crossed, SILENT where it was lost.
            hosts: how many hosts there are.
            loads: as in the field.
        """
        came = hops != SILENT
        ends = tuple(pairs[came].T)
        arrived = np.zeros((hosts, hosts), np.int64)
        longest = np.full((hosts, hosts), SILENT, np.int64)
        shortest = np.full((hosts, hosts), np.iinfo(np.int64).max)
        np.add.at(arrived, ends, 1)
        np.maximum.at(longest, ends, hops[came])
        np.minimum.at(shortest, ends, hops[came])
        return cls(arrived, np.where(arrived > 0, shortest, SILENT), longest, loads)


@dataclass(frozen=True, slots=True)
class Observation:
    """The results of a round of packets between H hosts that were named."""

    arrived: Counts
    """int64[H, H], how many packets arrived from host to host."""
    shortest: NDArray[np.int64]
    """int64[H, H], the fewest links that one of them crossed, by its time to live; SILENT where
    none came.
    """
    longest: NDArray[np.int64]
    """int64[H, H], the most links that one of them crossed; SILENT where none came."""
    loads: Mapping[str, NDArray[np.int64]]
    """For each switch int64[ports + 1], the packets that left it by each port meanwhile."""


@dataclass(frozen=True, slots=True)
class ControllerRepair:
    """What the controller tells of its repair of the last event."""

    seconds: float | None = None
    """Seconds from the detection of the failure until all switches hold the tables around it; None
    if nothing was repaired.
    """
    suppressed: frozenset[tuple[str, str]] = frozenset()
    """Links that flap, which traffic is routed around although they are up; by their two switches,
    with ascending names.
    """


@dataclass(frozen=True, slots=True)
class Diversion:
    """A wrong table on purpose."""

    switch: str
    """The switch with the wrong table."""
    egress: int
    """The egress class that is diverted."""
    port: int
    """The port by which it leaves."""


@dataclass(frozen=True, slots=True)
class PhysicalChange:
    """Cables are cut or mended; switches lose power or have it again.

    All links of a switch without power and those of its hosts are down at both ends. With power
    again it comes back without tables, and asks the controller for them.
    """

    links: tuple[tuple[str, str], ...] = ()
    """The cables, by the two switches of each."""
    switches: tuple[str, ...] = ()
    """The switches."""
    up: bool = False
    """Whether cables are mended and power returns."""


@dataclass(frozen=True, slots=True)
class Miswire:
    """The cables u–v and x–y change places at v and y: now u–y and x–v."""

    one: tuple[str, str]
    """The cable u–v."""
    other: tuple[str, str]
    """The cable x–y."""
    repaired: bool = False
    """Whether the same two cables are put back where they belong."""


@dataclass(frozen=True, slots=True)
class ControllerChange:
    """The controller is killed (SIGKILL), or started again."""

    running: bool
    """Whether it is started."""
    round: int | None = None
    """The round, from 1, of the move under way at whose beginning it is killed; None for now."""


@dataclass(frozen=True, slots=True)
class BuildChange:
    """The fabric is to move to a build in rounds (docs/how-to/move.md).

    Where no controller runs, the next one that is started has that build.
    """

    build: int
    """The number of the build."""


Event = PhysicalChange | Miswire | ControllerChange | BuildChange


@dataclass(frozen=True, slots=True)
class Probed:
    """The packets of a probe, one row each, in the order of sending."""

    pair: NDArray[np.int64]
    """int64[n], which of the pairs the packet belongs to."""
    sent: NDArray[np.float64]
    """float64[n], `Engine.now` when it left its host."""
    received: NDArray[np.float64]
    """float64[n], `Engine.now` when it came to the other host; NaN where it never did."""
    hops: NDArray[np.int16]
    """int16[n], the links that it has crossed; SILENT where it never came."""

    @classmethod
    def of(
        cls,
        pairs: int,
        sent: Sequence[float] | NDArray[np.float64],
        received: NDArray[np.float64],
        hops: Counts,
    ) -> Probed:
        """The packets of a probe that sends over one pair after the other, again and again."""
        pair = np.arange(len(sent)) % max(1, pairs)
        return cls(pair, np.array(sent), received, hops.astype(np.int16))


@dataclass(frozen=True, slots=True)
class Flows:
    """n flows between some hosts."""

    source: NDArray[np.int64]
    """int64[n], the number of the sending host."""
    destination: NDArray[np.int64]
    """int64[n], the number of the receiving host."""
    rate: NDArray[np.float64]
    """float64[n], what each flow offers in Mb/s. TCP takes what it gets up to that."""
    protocol: Literal["udp", "tcp"] = "udp"
    """The transport protocol."""
    parallel: int = 1
    """The connections of a flow."""


Rates = NDArray[np.float64]
"""Rates in Mb/s."""


class FlowRates(NamedTuple):
    """How fast n flows arrived, and what left S switches meanwhile."""

    flows: Rates
    """float64[n], what arrived of each flow."""
    ports: Rates
    """float64[S, ports + 1], what left each switch by each port."""


class CarriedFlows(NamedTuple):
    """`FlowRates` with the switches by name."""

    flows: Rates
    """float64[n], what arrived of each flow."""
    ports: Mapping[str, Rates]
    """For each switch float64[ports + 1], what left it by each port."""


class Engine(ABC):
    """An engine brings a build up and sends packets over it. Switches and hosts are known by their
    names.
    """

    name: str
    """The name of the engine."""
    build: Build
    """The build that is cabled."""
    hosts: HostSample
    """The hosts that take part, by which the engine numbers them itself."""
    versions: tuple[int, ...]
    """The versions of the Internet protocol that it can send."""
    controlled: bool = True
    """Whether switches have a controller."""

    @abstractmethod
    def start(self, step: Step) -> None:
        """Bring up switches, links and hosts; the controller programs every switch."""

    def send(
        self, hosts: Sequence[str], counts: Counts, progress: Progress, version: int = 4
    ) -> Observation:
        """Send packets between these hosts, from all at once, and see which arrive."""
        number = self.hosts.numbers(hosts)
        taking_part = np.flatnonzero(number >= 0)
        among_named = np.ix_(taking_part, taking_part)
        among_all = np.ix_(number[taking_part], number[taking_part])
        all_counts = np.zeros((len(self.hosts), len(self.hosts)), np.int64)
        all_counts[among_all] = counts[among_named]
        exchanged = self.exchange(all_counts, progress, version)

        def of_named(table: Counts, absent: int) -> Counts:
            """The part of a table for the named hosts, with a value for those that are missing."""
            part = np.full_like(counts, absent)
            part[among_named] = table[among_all]
            return part

        return Observation(
            arrived=of_named(exchanged.arrived, 0),
            shortest=of_named(exchanged.shortest, SILENT),
            longest=of_named(exchanged.longest, SILENT),
            loads=dict(zip(self.build.wiring.names, exchanged.loads, strict=True)),
        )

    @abstractmethod
    def exchange(self, counts: Counts, progress: Progress, version: int) -> Exchanged:
        """Send packets between all hosts that take part, int64[H, H] from host to host."""

    @abstractmethod
    def divert(self, diversion: Diversion) -> None:
        """Put a wrong table in place."""

    @abstractmethod
    def restore(self) -> None:
        """Put the right table back."""

    @abstractmethod
    def now(self) -> float:
        """Seconds on the engine's clock."""

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Let time pass on that clock."""

    @abstractmethod
    def apply(self, event: Event) -> None:
        """Apply an event; returns when it has happened, before switches or the controller react."""

    @abstractmethod
    def settle(self, patience: float) -> str:
        """Wait until switches and controller have finished reacting to the applied events.

        Returns:
            Why the fabric has not moved to another build, and has the old one again; else "".

        Raises:
            EngineError: they have not after `patience` seconds.
        """

    def repaired(self) -> ControllerRepair:
        """What the controller tells of its repair of the events before the last `settle`."""
        return ControllerRepair()

    @abstractmethod
    def probe_start(self, pairs: Sequence[HostPair], interval: float) -> None:
        """Start to send a packet over each pair of hosts every `interval` s."""

    @abstractmethod
    def probe_stop(self) -> Probed:
        """Stop sending, wait for packets in flight, and return the record of all."""

    def carry(self, hosts: Sequence[str], flows: Flows, seconds: float) -> CarriedFlows:
        """Run all flows between these hosts at once for `seconds`."""
        number = self.hosts.numbers(hosts)
        source, destination = number[flows.source], number[flows.destination]
        rates = self.flow(replace(flows, source=source, destination=destination), seconds)
        return CarriedFlows(
            rates.flows, dict(zip(self.build.wiring.names, rates.ports, strict=True))
        )

    @abstractmethod
    def flow(self, flows: Flows, seconds: float) -> FlowRates:
        """Run all flows for `seconds`; the hosts are numbered as in `hosts`."""

    @abstractmethod
    def paths(self, pairs: Sequence[HostPair]) -> tuple[tuple[str, ...], ...]:
        """The switches that a packet of each pair of hosts passes, first to last."""

    def exercise(self, repairs: bool, progress: Progress) -> Exercise:  # noqa: ARG002
        """Let packets reach every rule; with `repairs` those, too, that wait for dead ports.

        Raises:
            EngineError: no switch of this engine has rules.
        """
        raise EngineError(f"engine {self.name} has no rules that packets could reach")

    @abstractmethod
    def stop(self, step: Step) -> None:
        """Take everything down; harmless at any time."""


def hops_of(time_to_live: int) -> int:
    """The links that a packet has crossed, by its TTL: each switch, the last too, takes 1 of 64."""
    return MOST_HOPS - 1 - time_to_live


Link = tuple[str, str]
"""Two switches, by name."""
LINK_DOWN = np.array([-4])
"""The element number of all links that do not work under an outage."""


@dataclass(frozen=True, slots=True, eq=False)
class PresentCabling:
    """The cables of a fabric as they are now, of S switches with K links."""

    far: Array
    """int32[S, K], the switch at the far end of each link, as `Program.far`."""
    far_link: Array
    """int[S, K], the number of the link at its far end, as `Program.far_link`."""
    works: NDArray[np.bool_]
    """bool[S, K], whether the cable is whole and both ends have power."""


@dataclass(frozen=True, slots=True)
class Outage:
    """What is out of order."""

    links: frozenset[Link] = field(default_factory=frozenset)
    """The cables that are cut, by their two switches with ascending names."""
    switches: frozenset[str] = field(default_factory=frozenset)
    """The switches without power."""
    miswires: tuple[Miswire, ...] = ()
    """The pairs of cables that have changed places."""

    def after(self, event: Event) -> Outage:
        """The outage after one more event."""
        match event:
            case PhysicalChange(links, switches, up):
                cut, dark = {ordered(link) for link in links}, frozenset(switches)
                if up:
                    return replace(self, links=self.links - cut, switches=self.switches - dark)
                return replace(self, links=self.links | cut, switches=self.switches | dark)
            case Miswire(one, other, repaired):
                wrong = Miswire(one, other)
                if repaired:
                    return replace(self, miswires=tuple(m for m in self.miswires if m != wrong))
                return replace(self, miswires=(*self.miswires, wrong))
        return self

    @property
    def links_around(self) -> Outage:
        """The same without exchanged cables: what the ports of switches tell a controller."""
        return replace(self, miswires=())

    def up(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """bool[S]: which of these switches have power."""
        return np.array([name not in self.switches for name in names], np.bool_)

    def cabling(self, whole: Program, names: Sequence[str]) -> PresentCabling:
        """The cables under this outage.

        A link is named by the two switches that it joins in the whole fabric, and cut at the first
        of them. Links that name a switch which is not there are left out.

        Args:
            whole: the fabric without any outage.
            names: of its switches.
        """
        far, far_link = whole.far.copy(), whole.far_link.copy()
        works, number = far >= 0, {name: v for v, name in enumerate(names)}

        def end(near: str, other: str) -> tuple[int, int]:
            """The place of a link in the arrays: a switch, and the number of the link there."""
            switch = number[near]
            return switch, int(np.flatnonzero(whole.far[switch] == number[other])[0])

        for wrong in self.miswires:
            (u, v), (x, y) = wrong.one, wrong.other
            for one, other in ((end(u, v), end(y, x)), (end(x, y), end(v, u))):
                far[one], far_link[one] = other
                far[other], far_link[other] = one
        for link in self.links:
            if number.keys() >= set(link):
                works[end(*sorted(link, key=number.__getitem__))] = False
        works[~self.up(names)] = False
        works &= works[far, far_link]
        return PresentCabling(far, far_link, works)

    def program(self, whole: Program, names: Sequence[str]) -> Program:
        """What switches hold, over cables as they are now; dead links are `LINK_DOWN`."""
        now = self.cabling(whole, names)
        cable = np.where((now.far >= 0) & ~now.works, np.int32(LINK_DOWN[0]), whole.cable)
        return whole._replace(far=now.far, far_link=now.far_link, cable=cable)


def ordered(link: Link) -> Link:
    """A link with ascending names."""
    return min(link), max(link)
