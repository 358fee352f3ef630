"""The least memory that work on a fabric takes: what cannot fit is refused before it begins.

It is the same for every family: so many bytes for each end of a link, and so many for each ordered
pair of switches where a row is stored for each pair. The factors are the lowest of whole processes:
PolarStar of 627,570 switches takes 71 bytes for each end of a link, PolarFly of 16,257 takes 125,
with repairs 480.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compilers.memory import GB, available
from compilers.spec.policy import LARGEST_SEARCH, constructs_classes
from compilers.topology.families import (
    build_topology,
    check_topology,
    family_named,
    family_of,
    parameters,
)
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Topology
from inventory.problems import Finding, InputError, KeyPath

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from compilers.spec.fabric_spec import FabricSpec
    from compilers.tables.build import Build

IDLE = 66 * 10**6
"""Bytes of a process that has imported what it needs."""
GRAPH = 12
"""Bytes for each end of a link, of a graph alone."""
TABLES = 70
"""Bytes for each end of a link, of wiring and classes, and of measures of a graph."""
REPAIRS = 370
"""The same with alternates or repairs."""
ROW = 2
"""Bytes for each ordered pair of switches whose egress class is stored."""
SEARCH = 60
"""The same where alternates or repairs are searched."""
FLOWS = 80
"""Bytes for each ordered pair of switches while traffic of all pairs is followed."""
CHANNELS = 27
"""The same while channels are counted."""
SCALES = ("q", "nodes", "h", "k", "n")
"""Parameters that a family grows with, the first of them that it has."""
WIDEST_GAP = 200
"""Numbers in a row that may be no member of a family: prime powers, degrees that do not fit."""


@dataclass(frozen=True, slots=True)
class MemoryBound:
    """A fabric, and what work on it stores."""

    family: Family
    parameters: Mapping[str, int | str]
    switches: int
    degree: int
    """The most links of a switch; 0 where no formula tells."""
    per_end: int
    """Bytes for each end of a link."""
    per_pair: int = 0
    """Bytes for each ordered pair of switches."""

    @classmethod
    def of_family(cls, family: str, values: Mapping[str, int | str | None]) -> MemoryBound:
        """The graph of a family, whose parameters are right."""
        known = parameters(family, values)
        member = family_of(family)
        return cls(member, known, member.order(known), member.degree(known) or 0, GRAPH)

    @classmethod
    def of_topology(cls, topology: Topology) -> MemoryBound:
        """Measures and pictures of a graph."""
        degree = int(topology.graph.degrees.max(initial=0))
        family = family_of(topology.family)
        return cls(family, topology.parameters, topology.graph.order, degree, TABLES)

    @classmethod
    def of_spec(cls, spec: FabricSpec) -> MemoryBound:
        """Compiling and proving a fabric."""
        family, values = spec.topology.family, spec.topology.parameters()
        bound = cls.of_family(family, values)
        if not bound.degree and bound.switches <= LARGEST_SEARCH:
            bound = cls.of_topology(build_topology(family, values))
        forwarding = spec.routing.forwarding(spec.topology.q or 0, family)
        return bound.with_tables(forwarding.has_alternates or forwarding.repairs)

    @classmethod
    def of_build(cls, build: Build) -> MemoryBound:
        """Proving or writing what a build holds."""
        classes = build.tables.classes
        spread = bool(classes.alternate.shape[2] or classes.protection.shape[2])
        return cls.of_topology(build.topology).with_tables(spread)

    def with_tables(self, spread: bool) -> MemoryBound:
        """The same fabric with its tables; spread: these have alternates or repairs."""
        family, values = self.family, self.parameters
        if not spread:
            computed = family.constructed or family.hierarchy(values) > 1
            return replace(self, per_end=TABLES, per_pair=0 if computed else ROW)
        computed = family.constructed or constructs_classes(family, values, self.switches)
        return replace(self, per_end=REPAIRS, per_pair=0 if computed else SEARCH)

    def measured(self) -> MemoryBound:
        """The same graph, to be measured or drawn."""
        return replace(self, per_end=TABLES)

    def storing(self, per_pair: int) -> MemoryBound:
        """The same work, with so many bytes more for each pair of switches."""
        return replace(self, per_pair=self.per_pair + per_pair)

    @property
    def needed(self) -> int:
        """Bytes that a process takes at least."""
        ends = self.switches * self.degree
        return IDLE + self.per_end * ends + self.per_pair * self.switches**2

    @property
    def fits(self) -> bool:
        """Whether the machine, control groups and limits of the process leave as much."""
        return self.needed <= available()

    def findings(self, path: KeyPath = ()) -> Iterator[Finding]:
        """A fabric that does not fit: what it needs, what there is, and what would fit."""
        if self.fits:
            return
        links = f" of up to {self.degree:,} links" if self.degree else ""
        size = f"{self.switches:,} switches{links} take at least {self.needed / GB:,.1f} GB"
        fitting = self._largest()
        yield Finding(
            path,
            f"a fabric that fits into memory: {size}",
            f"{available() / GB:,.1f} GB available",
            f"take a smaller fabric{fitting}, or a machine with more memory",
        )

    def require(self) -> None:
        """Pass where memory can hold it.

        Raises:
            InputError: it cannot.
        """
        if problems := [finding.problem() for finding in self.findings()]:
            raise InputError(problems)

    def _largest(self) -> str:
        """The largest member of the family that fits: `: q fits up to 127`; "" where none does."""
        name = next((word for word in SCALES if isinstance(self.parameters.get(word), int)), "")
        if not name or family_named(self.family.name) is None:
            return ""
        low, high = 1, int(self.parameters[name])
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._with(name, middle).fits else (low, middle)
        for value in range(low, max(1, low - WIDEST_GAP), -1):
            smaller = self._with(name, value)
            if smaller.fits and not check_topology(self.family.name, smaller.parameters):
                return f": {name} fits up to {value}"
        return ""

    def _with(self, name: str, value: int) -> MemoryBound:
        """The same work on another member of the family."""
        values = {**self.parameters, name: value}
        switches = self.family.order(values)
        degree = self.family.degree(values) or self.degree
        return replace(self, parameters=values, switches=switches, degree=degree)


def require_graph(family: str, values: Mapping[str, int | str | None]) -> None:
    """Pass where memory can hold the graph of a family.

    Raises:
        InputError: it cannot, or its parameters are wrong.
    """
    if wrong := check_topology(family, values):
        raise InputError(wrong)
    MemoryBound.of_family(family, values).require()


def beyond_memory(spec: FabricSpec) -> Iterator[Finding]:
    """A fabric that memory cannot compile: what is needed and what is there."""
    yield from MemoryBound.of_spec(spec).findings(("topology", "q"))
