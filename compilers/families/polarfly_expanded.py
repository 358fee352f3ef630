"""The family `polarfly-expanded`: PolarFly that has grown by copies of clusters.

`compilers.topology.replicated_clusters` has the graph. No algebra routes it. Old switches keep the
routes of the PolarFly that it grew from, as far as these are still shortest paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from compilers.families.polarfly import PolarFly
from compilers.topology.family import Family
from compilers.topology.labelled_graph import EXPANDED, Parameters, Topology
from compilers.topology.layout import Layout
from compilers.topology.polarity import check_q, order
from inventory.problems import Problem

if TYPE_CHECKING:
    from compilers.topology.replicated_clusters import Expansion

LARGEST = 8192
"""The most switches of the PolarFly that grows. Routes of the grown fabric are searched, for which
one distance for each pair of switches is in memory."""
CLUSTERS = re.compile(r"(?P<kind>[a-z]+):(?P<count>[0-9]{1,4})")
"""A kind of clusters and how many: `quadric:2`."""


class ExpandedPolarFly(Family):
    """PolarFly with more clusters than q has."""

    name = f"{PolarFly.name}{EXPANDED}"
    parameters: tuple[str, ...] = ("q", "clusters")
    described = True  # its only member is the fabric that has grown

    def check(self, parameters: Parameters) -> list[Problem]:
        """Return the problems of q, and of the clusters at this q."""
        from compilers.topology.replicated_clusters import growth_problems

        if problems := check_q(parameters["q"]):
            return problems
        q, text = int(parameters["q"]), str(parameters["clusters"])
        if order(q) > LARGEST:
            required = f"a PolarFly of at most {LARGEST:,} switches, to grow"
            return [Problem(required, f"{order(q)}", key="q")]
        match = CLUSTERS.fullmatch(text)
        if match is None:
            required, todo = "a kind of clusters and how many", "write it like quadric:2"
            return [Problem(required, text, todo, key="clusters")]
        return growth_problems(_first_polarfly(q), match["kind"], int(match["count"]))

    def order(self, parameters: Parameters) -> int:
        """Return the number of switches, those of the copies included."""
        return self.build(parameters).graph.order

    def build(self, parameters: Parameters) -> Topology:
        """Build the PolarFly of this q, and copy its clusters."""
        return _expansion(int(parameters["q"]), str(parameters["clusters"])).topology

    def routes(self, topology: Topology) -> Any:
        """Return shortest paths, of which old switches keep those of the first PolarFly."""
        from compilers.routing.minimal_routes import routes

        first = _first_polarfly(int(topology.parameters["q"]))
        egress = np.asarray(PolarFly().routes(first).egress[:]).astype(np.int64)
        # Class k of PolarFly's routes is link k. Larger values stand for no link.
        most_links = first.graph.padded().shape[1]
        earlier_links = np.where(egress < most_links, egress, -1)
        return routes(topology, earlier_links)

    def layouts(self, topology: Topology) -> Mapping[str, Any]:
        """Return the layout `fans`, with a rack of its own for each copy of a cluster."""
        q, clusters = int(topology.parameters["q"]), str(topology.parameters["clusters"])

        def fans(_topology: Topology, start: int | None) -> Layout:
            return _expansion(q, clusters, start).layout

        return {"fans": fans}


@cache
def _first_polarfly(q: int) -> Topology:
    """Return the PolarFly that a fabric grew from."""
    return PolarFly().build({"q": q})


@cache
def _expansion(q: int, clusters: str, start: int | None = None) -> Expansion:
    """Return a grown PolarFly, with its clusters.

    Args:
        q: of the PolarFly that it grew from.
        clusters: a kind of clusters and how many: `quadric:2`.
        start: the quadric that the layout begins with; None for the first.
    """
    from compilers.topology.replicated_clusters import expand

    kind, _, count = clusters.partition(":")
    return expand(_first_polarfly(q), kind, int(count), start)
