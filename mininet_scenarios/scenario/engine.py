"""The interface of an engine, which brings a build up and sends packets over it.

`engine_kinds` lists the engines with their abilities. A scenario that needs an ability which its
engine lacks is refused before anything is started. Every engine sends packets, counts them at
links, cuts cables and runs a probe. These methods and events need an ability:

| ability | what the engine does |
|---|---|
| events | `apply` takes more than cables that are cut and mended |
| flows | `carry`: TCP or UDP flows at a rate, for throughput |
| rates | links are as fast as `Setup.rate` says |
| paths | `paths`: the switches that a packet passes |
| repair | a controller routes around failures |
| rules | `exercise`: packets that reach every rule of the live program |
| intermediates | switches choose intermediates for packets, as `balance: valiant` needs |

Each engine has a clock of its own (`now`, `wait`, in seconds). With real packets this is
`time.monotonic`, which all processes of a machine share. Without them, only `wait` moves the clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from mininet_scenarios.scenario.observations import (
    SILENT,
    CarriedFlows,
    ControllerRepair,
    Counts,
    Exercise,
    FlowRates,
    Flows,
    Observation,
    PacketExchange,
    ProbePackets,
)
from mininet_scenarios.scenario.outage import Event

Progress = Callable[[int, int], None]
"""Takes how much of a step is done, and how much the whole step is."""
Step = Callable[[str, str], AbstractContextManager[Progress]]
"""Opens a step, by a short name and in words. The context's value takes the step's progress."""
HostPair = tuple[str, str]
"""The names of a sending and a receiving host."""
Ability = Literal["events", "flows", "rates", "paths", "rules", "repair", "intermediates"]
"""What an engine can do; the module's docstring says it of each."""


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
        has_host = build.wiring.host_port > 0
        if most is not None:
            has_host = has_host[:, :most]
        switch, number = np.nonzero(has_host)
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
        """int64[n]: the number of each host, SILENT for a host that does not take part."""
        number = {name: i for i, name in enumerate(self.names)}
        return np.array([number.get(name, SILENT) for name in names], np.int64)

    def ends(self, pairs: Sequence[HostPair]) -> NDArray[np.int64]:
        """int64[n, 2]: the numbers of both hosts of each pair, SILENT for a missing host."""
        return self.numbers([name for pair in pairs for name in pair]).reshape(-1, 2)

    def switch_pairs(self, pairs: Sequence[HostPair]) -> SwitchPairs:
        """The switches of both hosts of each pair."""
        ends = self.ends(pairs)
        take_part = (ends[:, 0] >= 0) & (ends[:, 1] >= 0)
        switches = np.zeros_like(ends)
        switches[take_part] = self.switch[ends[take_part]]
        return SwitchPairs(take_part, switches[:, 0], switches[:, 1])

    def pairs(self, numbers: NDArray[np.int64]) -> list[HostPair]:
        """The names of pairs, int64[n, 2]."""
        return [(self.names[i], self.names[j]) for i, j in numbers.tolist()]

    def by_switch(self, counts: Counts, switches: int) -> Counts:
        """int64[S, S]: packets from switch to switch."""
        packets = np.zeros((switches, switches), np.int64)
        np.add.at(packets, (self.switch[:, None], self.switch), counts)
        return packets


@dataclass(frozen=True, slots=True)
class SwitchPairs:
    """The switches of n pairs of hosts."""

    take_part: NDArray[np.bool_]
    """bool[n], whether both hosts of a pair take part."""
    source: NDArray[np.int64]
    """int64[n], the switch of the first host; 0 for a pair that does not take part."""
    destination: NDArray[np.int64]
    """int64[n], the same of the second host."""


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
        """The build that is cabled."""
        return self.builds[self.cabled]


@dataclass(frozen=True, slots=True)
class Diversion:
    """A wrong table on purpose."""

    switch: str
    """The switch with the wrong table."""
    egress: int
    """The egress class that is diverted."""
    port: int
    """The port by which it leaves."""


class Engine(ABC):
    """Brings a build up and sends packets over it. Callers name switches and hosts."""

    name: str
    """The name of the engine."""
    build: Build
    """The build that is cabled."""
    hosts: HostSample
    """The hosts that take part; the engine's own methods number hosts by it."""
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
        """Send packets between these hosts, from all at once, and return which arrived.

        Args:
            hosts: the names of H hosts; a host that does not take part neither sends nor receives.
            counts: int64[H, H], the packets from each host to each other host.
            progress: takes how many packets have arrived.
            version: of the Internet protocol.
        """
        number = self.hosts.numbers(hosts)
        taking_part = np.flatnonzero(number >= 0)
        among_named = np.ix_(taking_part, taking_part)
        among_all = np.ix_(number[taking_part], number[taking_part])
        all_counts = np.zeros((len(self.hosts), len(self.hosts)), np.int64)
        all_counts[among_all] = counts[among_named]
        exchanged = self.exchange(all_counts, progress, version)

        def of_named(table: Counts, absent: int) -> Counts:
            """The part of a table for the named hosts, with a value for missing hosts."""
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
    def exchange(self, counts: Counts, progress: Progress, version: int) -> PacketExchange:
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
        """Let time pass on the engine's clock."""

    @abstractmethod
    def apply(self, event: Event) -> None:
        """Apply an event; returns when it has happened, before switches or the controller react."""

    @abstractmethod
    def settle(self, patience: float) -> str:
        """Wait until switches and controller have finished reacting to the applied events.

        Returns:
            Why the fabric has not moved to another build, and has the old one again; else "".

        Raises:
            EngineError: they have not finished after `patience` seconds.
        """

    def repaired(self) -> ControllerRepair:
        """The controller's repair of the events before the last `settle`."""
        return ControllerRepair()

    @abstractmethod
    def probe_start(self, pairs: Sequence[HostPair], interval: float) -> None:
        """Start to send a packet over each pair of hosts every `interval` seconds."""

    @abstractmethod
    def probe_stop(self) -> ProbePackets:
        """Stop sending, wait for packets in flight, and return the record of all packets."""

    def carry(self, hosts: Sequence[str], flows: Flows, seconds: float) -> CarriedFlows:
        """Run all flows between these hosts at once for so many seconds."""
        number = self.hosts.numbers(hosts)
        source, destination = number[flows.source], number[flows.destination]
        rates = self.flow(replace(flows, source=source, destination=destination), seconds)
        return CarriedFlows(
            rates.flows, dict(zip(self.build.wiring.names, rates.ports, strict=True))
        )

    @abstractmethod
    def flow(self, flows: Flows, seconds: float) -> FlowRates:
        """Run all flows for so many seconds; hosts are numbered as in `self.hosts`."""

    @abstractmethod
    def paths(self, pairs: Sequence[HostPair]) -> tuple[tuple[str, ...], ...]:
        """The switches that a packet of each pair of hosts passes, first to last."""

    def exercise(self, repairs: bool, progress: Progress) -> Exercise:  # noqa: ARG002
        """Let packets reach every rule; with `repairs` also the rules that wait for dead ports.

        Raises:
            EngineError: no switch of this engine has rules.
        """
        raise EngineError(f"engine {self.name} has no rules that packets could reach")

    @abstractmethod
    def stop(self, step: Step) -> None:
        """Take everything down; harmless at any time."""
