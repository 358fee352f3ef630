"""A build made ready for walks: every packet, over every path, under every failure asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.program import LOOPS, Egress, egress_classes, program_of
from compilers.forwarding.rule import Program
from compilers.forwarding.single_failures import FIGURES, LONGEST, PATHS, SUSPECT
from compilers.tables.build import Build
from compilers.tables.walk import Walker

Numbers = NDArray[np.int64]
NO_CASES = np.zeros((0, 1), np.int64)
NO_ROWS = np.zeros((0, 4), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """The longest path of a packet that met a failure and was delivered, in links, and the most
    links that a repair adds; 0 where none was.
    """

    max_hops: int = 0
    stretch: int = 0

    def with_all(self, figures: NDArray[np.int64]) -> Lengths:
        """The longest of these and int64[n, 2]."""
        if not len(figures):
            return self
        most = np.maximum(figures.max(axis=0), (self.max_hops, self.stretch))
        return Lengths(*map(int, most))


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """Paths that hosts' packets may take without failures, as in `compilers.proof.walks.paths`."""

    paths: int = 0
    strays: int = 0
    max_hops: int = 0


@dataclass(frozen=True, eq=False)
class Walks:
    """What walks over a build ask: its program, and the tabulation of that."""

    build: Build
    program: Program
    walker: Walker

    @classmethod
    def of(cls, build: Build) -> Walks:
        """Lower the tables of a build to links."""
        return cls(build, program_of(build), Walker.of(build.tables, build.wiring.cables()))

    @cached_property
    def ends(self) -> NDArray[np.bool_]:
        """bool[S], the switches with hosts."""
        return np.ascontiguousarray(self.build.topology.endpoints)

    @cached_property
    def kernels(self) -> Any:
        """The loops, as fast as this build is large."""
        return LOOPS.kernels(packets(self.build))

    @cached_property
    def table(self) -> NDArray[np.int32]:
        """The switch behind each class's minimal link, of `minimal_next`."""
        table: NDArray[np.int32] = self.kernels.minimal_next(self.program)
        return table

    @cached_property
    def tabulated(self) -> tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.int16]]:
        """The next hops of `tabulate`."""
        step, shared, number = self.kernels.tabulate(self.program)
        return step, shared, number

    @property
    def elements(self) -> int:
        """E + S, the elements that can fail."""
        return self.program.cables + len(self.program.far)

    def egress(self, destinations: Numbers) -> Egress:
        """int16[D, S], of `egress_classes`."""
        return egress_classes(self.build, destinations, self.walker)

    def single(
        self, destinations: Numbers, link: bool, node: bool
    ) -> tuple[Paths, tuple[Lengths, Lengths], Numbers]:
        """All paths to some destinations, and under each failure of one link, and of one switch.

        Returns:
            The paths, the lengths under failures of links and of nodes, and the destinations to
            which packets are lost somewhere. Of these only the number of paths is counted.
        """
        figures = np.zeros((len(destinations), FIGURES + 4), np.int64)
        if self.program.every_hop:
            figures[:, SUSPECT] = True
            return Paths(), (Lengths(), Lengths()), destinations
        self.kernels.walk_paths(
            self.program,
            *self.tabulated,
            self.table,
            self.ends,
            link,
            node,
            self.egress(destinations),
            destinations,
            figures,
        )
        good = figures[:, SUSPECT] == 0
        paths = Paths(
            int(figures[good, PATHS].sum()), 0, int(figures[good, LONGEST].max(initial=0))
        )
        of_kind = (figures[good, FIGURES + 2 * kind : FIGURES + 2 * kind + 2] for kind in range(2))
        lengths, others = (Lengths().with_all(found) for found in of_kind)
        return paths, (lengths, others), destinations[~good]

    def cases(self, destinations: Numbers, rows: Numbers) -> tuple[Paths, Lengths, Numbers]:
        """All paths to some destinations, and under each set of failures.

        Args:
            destinations: int64[D].
            rows: int64[n, F], the elements that are down in each case; -1 beyond the last.

        Returns:
            The paths, the lengths under failures, and int64[m, 4] as in `walk_cases`: what is lost.
        """
        figures = np.zeros((len(destinations), FIGURES + 2), np.int64)
        case, part = np.nonzero(rows >= 0)
        element = rows[case, part]
        first = np.concatenate(
            ((0,), np.cumsum(np.bincount(element, minlength=self.elements)))
        ).astype(np.int64)
        lost: Numbers = self.kernels.walk_cases(
            self.program,
            self.ends,
            self.egress(destinations),
            destinations,
            self.table,
            np.ascontiguousarray(rows),
            first,
            case[np.argsort(element, kind="stable")].astype(np.int64),
            rows.shape[1] > 1,
            figures,
        )
        strays, longest = figures[:, SUSPECT].sum(), figures[:, LONGEST].max(initial=0)
        paths = Paths(int(figures[:, PATHS].sum()), int(strays), int(longest))
        return paths, Lengths().with_all(figures[:, FIGURES:]), lost

    def two(self, destinations: Numbers) -> tuple[Lengths, Numbers]:
        """All packets to some destinations that meet two failures, of all pairs.

        Returns:
            The lengths, and int64[m, 4] as in `lost_by_two`: what is lost.
        """
        figures = np.zeros((len(destinations), 3), np.int64)
        egress = self.egress(destinations)
        self.kernels.walk_two(self.program, self.ends, egress, destinations, self.table, figures)
        lengths, loses = Lengths().with_all(figures[:, :2]), figures[:, 2] > 0
        if not loses.any():
            return lengths, NO_ROWS
        failing = np.ones(self.elements, np.bool_)
        failing[self.program.cables :] = (self.program.far >= 0).any(axis=1)
        lost: Numbers = self.kernels.lost_by_two(
            self.program, self.ends, egress[loses], destinations[loses], failing
        )
        lost[:, 2] = np.flatnonzero(loses)[lost[:, 2]]
        return lengths, lost


def packets(build: Build) -> int:
    """The number of packets to follow without failures: pairs times ports of a class."""
    ends = int(np.count_nonzero(build.topology.endpoints))
    return ends * ends * int(build.tables.classes.weight.shape[2])


Progress = Callable[[int, int], None]
