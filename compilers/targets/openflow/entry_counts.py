"""Counts the OpenFlow entries of the fullest switch, with and without egress classes.

`polarfab compile` prints both counts, as they show what egress classes save.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.targets.openflow.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class EntryCounts:
    """How many entries, flows and groups together, a switch has."""

    emitted: int
    """The number in its program, which has groups for each egress class."""
    naive: int
    """The number that a program with groups for each destination would have."""


def entries(build: Build) -> EntryCounts:
    """Count the entries of the fullest switch, with and without egress classes.

    Without classes each destination has groups of its own, and for each address family rows of its
    own that lead to them.
    """
    pipeline = Pipeline(build)
    counts = [_entries(pipeline, vertex) for vertex in _vertices_that_differ(build)]
    return EntryCounts(
        emitted=max(count.emitted for count in counts), naive=max(count.naive for count in counts)
    )


def _entries(pipeline: Pipeline, vertex: int) -> EntryCounts:
    """The entries of one switch."""
    build, families = pipeline.build, pipeline.family_count
    # int64[C] each: the groups of every egress class, and the rows that lead to them.
    group_count, row_count = np.zeros((2, build.tables.classes.port.shape[1]), np.int64)
    for group in pipeline.groups(vertex):
        group_count[group.egress] += group.is_new
        row_count[group.egress] += group.has_row
    prefix, egress = pipeline.routes(vertex)
    # A prefix is that of one switch, or an aggregate of several.
    destinations = np.where(prefix < build.tables.switches, 1, build.addressing.hierarchy)
    emitted = pipeline.row_count(vertex) + int(group_count.sum())
    # Without classes, entries of each destination replace those of routes and classes.
    with_classes = families * len(prefix) + group_count.sum() + row_count.sum()
    per_destination = (group_count + families * row_count)[egress]
    without_classes = (destinations * per_destination).sum()
    return EntryCounts(emitted, int(emitted - with_classes + without_classes))


def _vertices_that_differ(build: Build) -> NDArray[np.intp]:
    """A switch for each combination of numbers of routes, hosts, classes and ports.

    Switches with the same numbers have equally many entries.
    """
    classes = build.tables.classes
    numbers = (
        build.tables.routes.rows(),
        np.count_nonzero(build.wiring.host_port, axis=1),
        np.count_nonzero(classes.port, axis=1),
        np.count_nonzero(classes.protection, axis=(1, 2)),
        np.count_nonzero(classes.bounce, axis=(1, 2)),
    )
    return np.unique(np.stack(numbers), axis=1, return_index=True)[1]
