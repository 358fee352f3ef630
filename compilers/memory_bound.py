"""A lower bound of the memory that work on a fabric takes, so that too large fabrics fail early.

Compiles, proofs, measures and pictures call `MemoryBound.require` before they begin.

The bound has two terms: bytes for each end of a link, and bytes for each ordered pair of switches
if a value is stored for each pair. The factors are the lowest that were measured of whole
processes, for any family: a PolarStar of 627,570 switches takes 71 bytes for each end of a link, a
PolarFly of 16,257 switches takes 125, and with repairs 480.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compilers.memory import GB, available
from compilers.spec.policy import LARGEST_SEARCH, constructed_instead_of_searched
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

IDLE_BYTES = 66 * 10**6
"""The bytes of a process that has imported its modules."""
GRAPH_BYTES = 12
"""The bytes for each end of a link, for a graph alone."""
TABLE_BYTES = 70
"""The bytes for each end of a link, for wiring and classes, or for measures of a graph."""
REPAIR_BYTES = 370
"""The bytes for each end of a link, for wiring and classes with alternates or repairs."""
ROW_BYTES = 2
"""The bytes for each ordered pair of switches, where egress classes are stored."""
SEARCH_BYTES = 60
"""The bytes for each ordered pair of switches, where alternates or repairs are searched."""
FLOW_BYTES = 80
"""The bytes for each ordered pair of switches, while traffic of all pairs is followed."""
CHANNEL_BYTES = 27
"""The bytes for each ordered pair of switches, while channels are counted."""
SIZE_PARAMETERS = ("q", "nodes", "h", "k", "n")
"""Parameters that families grow with; the first that a family has is used."""
WIDEST_GAP = 200
"""The most consecutive numbers without a member of a family, such as between prime powers."""


@dataclass(frozen=True, slots=True)
class MemoryBound:
    """The size of a fabric, and the memory that some work on it takes."""

    family: Family
    """The family of the fabric."""
    parameters: Mapping[str, int | str]
    """The parameters of the member."""
    switches: int
    """The number of switches."""
    degree: int
    """The most links of a switch; 0 where no formula is known."""
    per_end: int
    """The bytes for each end of a link."""
    per_pair: int = 0
    """The bytes for each ordered pair of switches."""

    @classmethod
    def of_family(cls, family: str, values: Mapping[str, int | str | None]) -> MemoryBound:
        """Return the bound for building a graph, for parameters that pass the family's check."""
        graph_family, arguments = family_of(family), parameters(family, values)
        return cls(
            family=graph_family,
            parameters=arguments,
            switches=graph_family.order(arguments),
            degree=graph_family.degree(arguments) or 0,
            per_end=GRAPH_BYTES,
        )

    @classmethod
    def of_topology(cls, topology: Topology) -> MemoryBound:
        """Return the bound for measures and pictures of a graph."""
        degree = int(topology.graph.degrees.max(initial=0))
        family = family_of(topology.family)
        return cls(family, topology.parameters, topology.graph.order, degree, TABLE_BYTES)

    @classmethod
    def of_spec(cls, spec: FabricSpec) -> MemoryBound:
        """Return the bound for compiling and proving a fabric."""
        family, values = spec.topology.family, spec.topology.parameters()
        bound = cls.of_family(family, values)
        if not bound.degree and bound.switches <= LARGEST_SEARCH:
            bound = cls.of_topology(build_topology(family, values))
        forwarding = spec.routing.forwarding(spec.topology.q or 0, family)
        return bound.with_tables(forwarding.has_alternates or forwarding.repairs)

    @classmethod
    def of_build(cls, build: Build) -> MemoryBound:
        """Return the bound for proving or writing a build."""
        classes = build.tables.classes
        has_other_ports = bool(classes.alternate.shape[2] or classes.protection.shape[2])
        return cls.of_topology(build.topology).with_tables(has_other_ports)

    def with_tables(self, has_other_ports: bool) -> MemoryBound:
        """Return the bound for the fabric with its tables.

        Args:
            has_other_ports: whether classes have alternates or repairs besides the minimal port.
        """
        family, values = self.family, self.parameters
        if not has_other_ports:
            is_computed = family.constructed or family.hierarchy(values) > 1
            return replace(self, per_end=TABLE_BYTES, per_pair=0 if is_computed else ROW_BYTES)
        is_computed = family.constructed or constructed_instead_of_searched(
            family, values, self.switches
        )
        return replace(self, per_end=REPAIR_BYTES, per_pair=0 if is_computed else SEARCH_BYTES)

    def measured(self) -> MemoryBound:
        """Return the bound for measuring or drawing the same graph."""
        return replace(self, per_end=TABLE_BYTES)

    def storing(self, per_pair: int) -> MemoryBound:
        """Return the bound for the same work with more bytes for each ordered pair of switches."""
        return replace(self, per_pair=self.per_pair + per_pair)

    @property
    def needed(self) -> int:
        """The bytes that a process takes at least."""
        ends = self.switches * self.degree
        return IDLE_BYTES + self.per_end * ends + self.per_pair * self.switches**2

    @property
    def fits(self) -> bool:
        """Whether so much memory is available."""
        return self.needed <= available()

    def findings(self, path: KeyPath = ()) -> Iterator[Finding]:
        """Yield a finding if the fabric does not fit: what it needs, and what would fit."""
        if self.fits:
            return
        links = f" of up to {self.degree:,} links" if self.degree else ""
        size = f"{self.switches:,} switches{links} take at least {self.needed / GB:,.1f} GB"
        yield Finding(
            path,
            f"a fabric that fits into memory: {size}",
            f"{available() / GB:,.1f} GB available",
            f"take a smaller fabric{self._largest_that_fits()}, or a machine with more memory",
        )

    def require(self) -> None:
        """Pass when the fabric fits into memory.

        Raises:
            InputError: it does not.
        """
        if problems := [finding.problem() for finding in self.findings()]:
            raise InputError(problems)

    def _largest_that_fits(self) -> str:
        """Return in words which member of the family fits: `: q fits up to 127`; "" if unknown."""
        name = next(
            (key for key in SIZE_PARAMETERS if isinstance(self.parameters.get(key), int)), ""
        )
        if not name or family_named(self.family.name) is None:
            return ""
        # The bound grows with the parameter, so bisection finds the largest number that fits. Below
        # it the largest member is searched, as not every number has one.
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
        """Return the bound for the same work with another value of a parameter."""
        values = {**self.parameters, name: value}
        switches = self.family.order(values)
        degree = self.family.degree(values) or self.degree
        return replace(self, parameters=values, switches=switches, degree=degree)


def require_graph(family: str, values: Mapping[str, int | str | None]) -> None:
    """Pass when the graph of a member of a family fits into memory.

    Raises:
        InputError: it does not, or the parameters are wrong.
    """
    if problems := check_topology(family, values):
        raise InputError(problems)
    MemoryBound.of_family(family, values).require()


def memory_findings(spec: FabricSpec) -> Iterator[Finding]:
    """Yield a finding if a fabric cannot be compiled in the memory that is available."""
    yield from MemoryBound.of_spec(spec).findings(("topology", "q"))
