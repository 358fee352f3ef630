"""A build before failures (`IntactBuild`), with the look-up arrays that repairs need.

To prepare them takes longer than a repair, so the controller does it once for a build.
`compilers.routing.link_repair` makes tables around failed links from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.routing.class_repair import ClassParts
from compilers.tables.build import Build
from compilers.tables.computed_array import ComputedArray
from compilers.tables.copy_on_write import CopyOnWrite
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Routes, Tables
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring


@dataclass(frozen=True, slots=True, eq=False)
class IntactBuild:
    """A build before failures, prepared once for any number of repairs."""

    tables: Tables
    """The tables of the build."""
    wiring: Wiring
    """All cables."""
    endpoints: NDArray[np.bool_]
    """bool[S], the switches with hosts."""
    diameter: int
    """The most links between two switches."""
    switch_at_port: NDArray[np.int32]
    """int32[S, ports + 1], the switch at each port, as of `Wiring.far_by_port()`."""
    fib: Fib
    """The tables joined with the cables."""
    link_of_class: NDArray[np.int64]
    """int64[S, C], the link of each class (its column in `Wiring.port`), K where there is none."""
    first_class: NDArray[np.int64]
    """int64[S, K + 1], the first class of each link, -1 where there is none."""
    egress: CopyOnWrite
    """`Routes.egress`, to be copied for every repair."""
    class_parts: ClassParts
    """The arrays of the classes, to be copied for every repair."""
    every_hop: bool
    """Whether packets are shared at every hop."""
    has_detours: bool
    """Whether packets of hosts are sent on detours: they are marked, or carry an intermediate."""
    marks: bool
    """Whether they are marked."""

    @classmethod
    def of(cls, build: Build) -> IntactBuild:
        """Prepare a build, which takes longer than a repair."""
        forwarding = build.forwarding
        return cls.of_tables(
            build.tables,
            build.wiring,
            build.topology,
            forwarding.every_hop,
            has_detours=forwarding.marks or forwarding.intermediates,
            marks=forwarding.marks,
        )

    @classmethod
    def of_tables(
        cls,
        tables: Tables,
        wiring: Wiring,
        topology: Topology,
        every_hop: bool = False,
        has_detours: bool = False,
        marks: bool = False,
    ) -> IntactBuild:
        """Prepare the tables of a fabric.

        Args:
            tables: before failures.
            wiring: all cables of the fabric.
            topology: says which switches are endpoints, and the diameter before failures.
            every_hop: whether packets are shared at every hop.
            has_detours: whether packets are marked, or carry an intermediate.
            marks: whether packets are marked.
        """
        classes, cables = tables.classes, wiring.far_by_port()
        switches, most_links = wiring.port.shape
        # int64[S, ports + 1], the link at each port, K where there is none.
        link_at_port = np.full((switches, cables.shape[1]), most_links)
        switch, link = np.nonzero(wiring.far >= 0)
        link_at_port[switch, wiring.port[switch, link]] = link
        routes = tables.routes
        if isinstance(routes.prefix, ComputedArray):  # repaired rows are stored ones
            tables = replace(tables, routes=replace(routes, prefix=np.asarray(routes.prefix)))
        link_of_class = np.take_along_axis(link_at_port, classes.port.astype(np.int64), axis=1)
        first_class = np.full((switches, most_links + 1), -1)
        # The first class of a link is written last, and stays.
        for class_number in reversed(range(link_of_class.shape[1])):
            first_class[np.arange(switches), link_of_class[:, class_number]] = class_number
        return cls(
            tables=tables,
            wiring=wiring,
            endpoints=topology.endpoints,
            diameter=topology.diameter,
            switch_at_port=cables,
            fib=Fib.of(tables, cables),
            link_of_class=link_of_class,
            first_class=first_class,
            egress=CopyOnWrite(routes.egress),
            class_parts=ClassParts.of(classes),
            every_hop=every_hop,
            has_detours=has_detours,
            marks=marks,
        )

    def fib_of(self, routes: Routes) -> Fib:
        """Return these routes and the build's classes, joined with the cables."""
        if routes.prefix is self.tables.routes.prefix:
            return replace(self.fib, routes=routes)
        return Fib.of(Tables(routes, self.tables.classes), self.switch_at_port)

    def cables_without(self, links: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return `switch_at_port` without some links, bool[S, K]: no switch is at their ports."""
        cables = self.switch_at_port.copy()
        switch, link = np.nonzero(links)
        cables[switch, self.wiring.port[switch, link]] = -1
        return cables
