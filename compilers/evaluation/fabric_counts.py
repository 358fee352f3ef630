"""Counts of a compiled fabric: nodes, links, hosts, table entries."""

from __future__ import annotations

from dataclasses import dataclass

from compilers.tables.build import Build
from compilers.targets.openflow.flow_tables import entries


@dataclass(frozen=True, slots=True)
class FabricCounts:
    """The size of a build.

    routes and classes: of all switches together. openflow_entries: rows and groups of the largest
    switch as they are pushed. openflow_entries_naive: the same with one group per destination.
    """

    build: str
    fabric: str
    topology: str
    nodes: int
    links: int
    hosts: int
    routes: int
    classes: int
    openflow_entries: int
    openflow_entries_naive: int

    @classmethod
    def of(cls, build: Build) -> FabricCounts:
        """The counts of a build."""
        openflow = entries(build)
        return cls(
            build=build.identity,
            fabric=build.name,
            topology=build.topology.title(),
            nodes=int(build.topology.present.sum()),
            links=build.topology.graph.size,
            hosts=int((build.wiring.host_port > 0).sum()),
            routes=int(build.tables.routes.rows().sum()),
            classes=int((build.tables.classes.port > 0).sum()),
            openflow_entries=openflow.emitted,
            openflow_entries_naive=openflow.naive,
        )
