"""Hosts by what they are near to: those of a switch, those of a cluster or supernode, all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import hardware_of
from compilers.tables.build import Build
from inventory.problems import InputError


@dataclass(frozen=True, slots=True)
class SwitchHosts:
    """A switch with hosts: its vertex, its name, that of its cluster, those of its hosts."""

    vertex: int
    name: str
    cluster: str
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostGroups:
    """The hosts of a fabric, a host with a port to each plane once.

    name: of the fabric. switches: those that have hosts, cluster by cluster, as the first plane
    that has the switch calls them. The names of switches, clusters and the fabric differ.
    """

    name: str
    switches: tuple[SwitchHosts, ...]

    @classmethod
    def of(cls, builds: Sequence[Build]) -> HostGroups:
        """The groups of these planes.

        Raises:
            InputError: the fabric has no hosts.
        """
        there = np.logical_or.reduce([build.wiring.host_port > 0 for build in builds])
        found: dict[int, SwitchHosts] = {}
        for build in reversed(builds):
            found |= {switch.vertex: switch for switch in _switches(build, there)}
        if not found:
            todo = "compile it with hosts_per_node: 1 or more"
            raise InputError.of("a fabric with hosts", "none", todo, key="hosts_per_node")
        known = hardware_of(builds[0])
        order = np.argsort(known.cluster, kind="stable").tolist()
        name = builds[0].name if len(builds) == 1 else builds[0].name.removesuffix("-p1")
        taken = {switch.name for switch in found.values()} | {
            switch.cluster for switch in found.values()
        }
        return cls(_unlike(name, taken), tuple(found[v] for v in order if v in found))

    def clusters(self) -> Iterator[tuple[str, tuple[SwitchHosts, ...]]]:
        """The name and the switches of each cluster that has hosts."""
        for name, members in groupby(self.switches, key=lambda switch: switch.cluster):
            yield name, tuple(members)

    def hosts(self) -> Iterator[str]:
        """The names of all hosts, switch by switch."""
        return (host for switch in self.switches for host in switch.hosts)


def _switches(build: Build, there: NDArray[np.bool_]) -> Iterator[SwitchHosts]:
    """Those of a plane; there: bool[S, P], the hosts that have a port to some plane."""
    wiring, known = build.wiring, hardware_of(build)
    per_node = wiring.host_port.shape[1]
    taken = set(wiring.names)
    clusters = [_unlike(name, taken) for name in known.cluster_names]
    for v in np.flatnonzero(there.any(axis=1) & build.topology.present).tolist():
        hosts = tuple(wiring.host_names[v * per_node + h] for h in np.flatnonzero(there[v]))
        yield SwitchHosts(v, wiring.names[v], clusters[int(known.cluster[v])], hosts)


def _unlike(name: str, taken: set[str]) -> str:
    """The name, with `-all` behind it while that is what something else is called."""
    while name in taken:
        name += "-all"
    return name
