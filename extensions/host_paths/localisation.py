"""Finds the link or switch that has failed, from the probes that were lost and those that arrived.

`polarfab hosts localise` and the library's `probing` make a `Probing`: the probes of a fabric
(`probe_set`), and what each crosses. A probe is a packet to a *carrier*, an IPv6 address that names
the switches of its path. Links and switches are *elements*. When an element fails, exactly the
probes that cross it are lost. So an element explains a report if all lost probes cross it, and no
probe that arrived crosses it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.targets.options import Chosen
from extensions.host_paths.host_path_set import Carriers
from extensions.host_paths.probe_set import least_probe_count, probe_set
from inventory.problems import InputError, first_names

Numbers = NDArray[np.int64]
MOST_NAMED = 8
"""The most elements that a sentence names."""


@dataclass(frozen=True, slots=True)
class ProbePath:
    """A probe and its path."""

    number: int
    """The number of the probe, counted over all planes."""
    plane: int
    """The plane of the path, from 0."""
    nodes: tuple[int, ...]
    """The vertices of the switches on the path."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Probing:
    """The probes of a fabric, and what each crosses."""

    builds: tuple[Build, ...]
    """The build of every plane."""
    carriers: Carriers
    """How carriers are written."""
    probes: tuple[ProbePath, ...]
    """The probes of all planes."""
    fewest: int
    """A lower bound: no set of fewer probes crosses all links in both directions."""
    links: Numbers
    """int64[E, 3], the plane and both switches of every link, the smaller first."""
    switches: Numbers
    """int64[N, 2], the plane and the vertex of every switch."""
    crossing: Numbers
    """int64[2, n], element and probe, once for each probe that crosses the element. Elements are
    numbered: element i is link i below E, and switch i - E from E on."""

    def __repr__(self) -> str:
        """`<Probing: 100 probes over 224 links>`."""
        return f"<Probing: {len(self.probes):,} probes over {len(self.links):,} links>"

    @classmethod
    def of(cls, builds: Sequence[Build], options: Chosen | None = None) -> Probing:
        """A small set of probes for every plane.

        Args:
            builds: the build of every plane.
            options: the options of target srv6, which carries the probes.

        Raises:
            InputError: a switch has no hosts, or srv6 cannot carry them.
        """
        carriers = Carriers.of(builds, options)
        probes: list[ProbePath] = []
        paths_of_graph: dict[bytes, list[tuple[int, ...]]] = {}
        """The paths of probes by the bytes of `Wiring.far`: planes are mostly the same graph."""
        least_probes = 0
        for plane, build in enumerate(builds):
            graph = build.wiring.far.tobytes()
            _require_hosts(build)
            neighbours = [row[row >= 0].tolist() for row in build.wiring.far]
            if graph not in paths_of_graph:
                paths_of_graph[graph] = probe_set(neighbours, carriers.longest)
            least_probes += least_probe_count(neighbours, carriers.longest)
            for nodes in paths_of_graph[graph]:
                probes.append(ProbePath(len(probes), plane, nodes))
        crossings = _Crossings.of(builds, probes)
        return cls(
            builds=tuple(builds),
            carriers=carriers,
            probes=tuple(probes),
            fewest=least_probes,
            links=crossings.links,
            switches=crossings.switches,
            crossing=crossings.crossing,
        )

    def name(self, element: int) -> str:
        """The name of an element: `A-B` for a link, the node's name for a switch."""
        if element < len(self.links):
            plane, first, second = self.links[element].tolist()
            names = self.builds[plane].wiring.names
            return f"{names[first]}-{names[second]}"
        plane, switch = self.switches[element - len(self.links)].tolist()
        return str(self.builds[plane].wiring.names[switch])

    def alike(self) -> list[list[str]]:
        """The names of elements that no report can distinguish, as the same probes cross them."""
        element, probe = self.crossing
        # The names of elements, by the probes that cross them.
        groups: dict[tuple[int, ...], list[str]] = {}
        # Sorted by element and cut where the element changes: a part has the probes of an element.
        by_element = np.lexsort((probe, element))
        starts = np.flatnonzero(np.diff(element[by_element])) + 1
        elements = np.split(element[by_element], starts)
        probes = np.split(probe[by_element], starts)
        for repeated_element, probes_of_element in zip(elements, probes, strict=True):
            names = groups.setdefault(tuple(probes_of_element.tolist()), [])
            names.append(self.name(int(repeated_element[0])))
        return [names for names in groups.values() if len(names) > 1]

    def carrier(self, probe: ProbePath) -> str:
        """The address that a probe is sent to: that of the first host at its last switch."""
        ports = self.builds[probe.plane].wiring.host_port[probe.nodes[-1]]
        host = int(np.flatnonzero(ports)[0])
        return self.carriers.of_path(probe.plane, probe.nodes, host)

    def as_dict(self, probe: ProbePath) -> dict[str, Any]:
        """A probe for JSON.

        The keys are `probe` (its number), `plane` (from 1), `source` and `destination` (the first
        hosts of its ends), `nodes` (the names of its switches) and `sids` (its carrier, as a list).
        """
        wiring = self.builds[probe.plane].wiring
        width = wiring.host_port.shape[1]
        ends = (probe.nodes[0], probe.nodes[-1])
        hosts = [int(np.flatnonzero(wiring.host_port[end])[0]) + end * width for end in ends]
        return {
            "probe": probe.number,
            "plane": probe.plane + 1,
            "source": wiring.host_names[hosts[0]],
            "destination": wiring.host_names[hosts[1]],
            "nodes": [wiring.names[node] for node in probe.nodes],
            "sids": [self.carrier(probe)],
        }

    def localise(self, lost: Collection[int], arrived: Collection[int]) -> Localisation:
        """The elements whose failure explains which probes were lost and which arrived.

        Args:
            lost: the numbers of the probes that were lost.
            arrived: the numbers of the probes that arrived. The report tells nothing of all others.
        """
        lost_over = self._crossings_of(lost)  # of each element, how many lost probes cross it
        may_be_down = (self._crossings_of(arrived) == 0) & (lost_over > 0)
        candidates = self._names(may_be_down & (lost_over == len(lost)))
        if candidates:
            return Localisation(
                lost=len(lost),
                arrived=len(arrived),
                candidates=candidates,
                one_way=(),
                together=(),
                parts=(),
            )
        return Localisation(
            lost=len(lost),
            arrived=len(arrived),
            candidates=(),
            one_way=self._arcs_of_probe(next(iter(lost))) if len(lost) == 1 else (),
            together=self._one_in_each_plane(lost, arrived),
            parts=self._names(may_be_down),
        )

    def _names(self, is_listed: NDArray[np.bool_]) -> tuple[str, ...]:
        """The names of elements.

        Args:
            is_listed: bool[E + N], whether each element is one of them.
        """
        return tuple(self.name(element) for element in np.flatnonzero(is_listed).tolist())

    def _crossings_of(self, probes: Collection[int]) -> Numbers:
        """int64[E + N]: how many of these probes cross each element."""
        is_listed = np.zeros(len(self.probes), np.bool_)
        is_listed[list(probes)] = True
        element, probe = self.crossing
        count = len(self.links) + len(self.switches)
        return np.bincount(element[is_listed[probe]], minlength=count)

    def _one_in_each_plane(
        self, lost: Collection[int], arrived: Collection[int]
    ) -> tuple[str, ...]:
        """The one element of each plane that explains its lost probes.

        () if fewer than two planes lost probes, or in some of these planes none or several do.
        """
        planes = sorted({self.probes[number].plane for number in lost})
        if len(planes) < 2:
            return ()
        causes = []
        for plane in planes:
            lost_here = {number for number in lost if self.probes[number].plane == plane}
            arrived_here = {number for number in arrived if self.probes[number].plane == plane}
            causes.append(self.localise(lost_here, arrived_here).found)
        return tuple(causes) if all(causes) else ()

    def _arcs_of_probe(self, number: int) -> tuple[str, ...]:
        """The links of a probe in its direction, by the names of their switches."""
        probe = self.probes[number]
        names = self.builds[probe.plane].wiring.names
        return tuple(
            f"{names[switch]}->{names[next_switch]}"
            for switch, next_switch in pairwise(probe.nodes)
        )


@dataclass(frozen=True, slots=True)
class Localisation:
    """What may have failed, by a report of probes.

    | report | fields that are not empty |
    |---|---|
    | no probe was lost | none |
    | one element explains it, or any of several does | `candidates` |
    | one probe was lost, and no element explains that | `one_way`, perhaps `parts` |
    | one element in each of several planes explains it | `together`, perhaps `parts` |
    | several elements have failed | `parts` |
    | nothing explains it | none |
    """

    lost: int
    """How many probes were lost."""
    arrived: int
    """How many probes arrived."""
    candidates: tuple[str, ...]
    """Links and switches each of which explains the whole report by itself."""
    one_way: tuple[str, ...]
    """The links that the only lost probe crosses, in its direction: one of them may be down in this
    direction alone, so that the probe of the other direction arrived."""
    together: tuple[str, ...]
    """One element in each of several planes. They have failed together: the element of a plane
    explains the probes of that plane."""
    parts: tuple[str, ...]
    """The elements that may be parts of the cause, where no single element is the cause: a lost
    probe crosses each of them, and no probe that arrived does."""

    @property
    def found(self) -> str:
        """The one link or switch that explains the report, "" where there is none or several."""
        return self.candidates[0] if len(self.candidates) == 1 else ""

    def sentence(self) -> str:
        """What the report tells, in words."""
        if not self.lost:
            return "no probe was lost: every link that was probed forwards in both directions"
        if self.found:
            return f"{self.found} is down"
        if self.candidates:
            names = first_names(self.candidates, MOST_NAMED)
            return f"one of these is down, the report does not say which: {names}"
        if self.one_way:
            return (
                "one of these links is down in this direction only, or the access link of a host "
                f"at an end: {first_names(self.one_way, MOST_NAMED)}"
            )
        if self.together:
            return f"{' and '.join(self.together)} are down"
        if self.parts:
            return (
                "no single link or switch explains the report; several have failed, which may be "
                f"among these: {first_names(self.parts, MOST_NAMED)}"
            )
        return "no link or switch explains the report: every one that a lost probe crosses forwards"


def _require_hosts(build: Build) -> None:
    """Require hosts at every switch.

    Raises:
        InputError: some switch has none.
    """
    has_hosts = (build.wiring.host_port > 0).any(axis=1)
    without_hosts = np.flatnonzero(build.topology.present & ~has_hosts).tolist()
    if without_hosts:
        names = [build.wiring.names[v] for v in without_hosts]
        raise InputError.of(
            "hosts at every switch, where probes begin and end", first_names(names, MOST_NAMED)
        )


class _Crossings(NamedTuple):
    """The links and switches of all planes, and the probes that cross them: fields of `Probing`."""

    links: Numbers
    """int64[E, 3], as `Probing.links`."""
    switches: Numbers
    """int64[N, 2], as `Probing.switches`."""
    crossing: Numbers
    """int64[2, n], as `Probing.crossing`."""

    @classmethod
    def of(cls, builds: Sequence[Build], probes: Sequence[ProbePath]) -> _Crossings:
        """Number the links that probes cross, and all switches."""
        sizes = [len(build.wiring.names) for build in builds]
        switches = np.array(
            [(plane, vertex) for plane, size in enumerate(sizes) for vertex in range(size)],
            np.int64,
        )
        # Switches are numbered over all planes here: those of plane p from first[p] on.
        first = np.cumsum([0, *sizes])
        # The arcs of all probes: tail, head, and the number of the probe.
        arcs = [
            (first[probe.plane] + switch, first[probe.plane] + next_switch, probe.number)
            for probe in probes
            for switch, next_switch in pairwise(probe.nodes)
        ]
        tail, head, number = np.array(arcs, np.int64).T
        # The link of each arc; both ends of a link are in one plane.
        ends = np.sort(np.stack((tail, head)), axis=0)
        link_ends, link = np.unique(ends, axis=1, return_inverse=True)
        plane = switches[link_ends[0], 0]
        links = np.column_stack((plane, link_ends[0] - first[plane], link_ends[1] - first[plane]))
        # A probe crosses the link, the tail and the head of each of its arcs.
        element = np.concatenate((link.ravel(), len(links) + tail, len(links) + head))
        crossing = np.unique(np.stack((element, np.tile(number, 3))), axis=1)
        return cls(links.astype(np.int64), switches, crossing)
