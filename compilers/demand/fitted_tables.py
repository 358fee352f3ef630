"""The pass that fits the weights of classes to the demand of `routing.demand`."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from compilers.demand.demand_file import read_demand
from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import FlowPaths, fit
from compilers.demand.whole_weights import PARTS, in_parts, rounded
from compilers.demand.worst_case import worst_case
from compilers.tables.build import Build
from inventory.problems import InputError, install_extra
from inventory.yamlfile import TextFile

MOST_CROSSINGS = 30_000_000
"""Arcs that all flows of a demand cross on all their paths; each takes 80 bytes while they fit."""
MOST_MATCHED = 400_000
"""The same where matchings are looked for: up to PolarFly q = 9."""


def with_demand(build: Build, file: TextFile | None, largest: float) -> Build:
    """A build whose weights carry a demand best; classes that it does not use keep theirs.

    Args:
        build: with equal weights.
        file: of the demand; None for the worst.
        largest: the largest share of an option, from 0 to 1.

    Raises:
        InputError: mistakes in the file, flows of switches without hosts, or more flows and paths
            than can be followed.
    """
    fluid = Fluid.of(build)
    if file is None:
        paths, weights = _against_the_worst(build, fluid, largest)
    else:
        traffic = _between_hosts(build, read_demand(file, build.wiring), file.name)
        paths = _paths(fluid, traffic, MOST_CROSSINGS, file.name)
        weights = rounded(paths, fit(paths, largest), largest).weights
    classes = build.tables.classes
    port, weight = np.asarray(classes.alternate), np.array(classes.weight)
    switch, number = np.divmod(paths.row, fluid.hops.classes + 2)
    weight[switch, number] = weights.astype(np.uint16)
    fitted = replace(classes, alternate=port, weight=weight)
    return replace(build, tables=replace(build.tables, classes=fitted))


def _between_hosts(build: Build, traffic: Traffic, file: str) -> Traffic:
    """The flows between switches that are there, as parts of the largest.

    Raises:
        InputError: a switch that is there has no hosts, or there are no flows.
    """
    here, ends = build.topology.present, build.topology.endpoints
    there = here[traffic.source] & here[traffic.destination]
    source, destination = traffic.source[there], traffic.destination[there]
    both = np.concatenate((source, destination))
    required, given = "rates between switches with hosts", "those of switches that are not there"
    bare = both[~ends[both]]
    if len(bare) or not len(both):
        given = f"{build.wiring.names[bare[0]]}, which has none" if len(bare) else given
        raise InputError.of(required, given, file=file, key="demand")
    return Traffic(source, destination, traffic.amount[there] / traffic.amount[there].max())


def _paths(fluid: Fluid, traffic: Traffic, most: int, file: str = "") -> FlowPaths:
    try:
        return fluid.paths(traffic, most)
    except OverflowError:
        smaller = "leave out the smallest: classes without a demand keep equal shares"
        raise InputError.of(
            file=file,
            key="demand" if file else "routing.demand",
            required=f"flows whose paths cross at most {most:,} links together",
            given=f"{len(traffic.source):,} flows, whose paths cross more",
            todo=smaller if file else "name a file of flows: the worst case is for small fabrics",
        ) from None


def _against_the_worst(
    build: Build, fluid: Fluid, largest: float
) -> tuple[FlowPaths, NDArray[np.int64]]:
    if not find_spec("scipy"):
        raise InputError.of(
            key="routing.demand",
            required="scipy, which looks for the worst traffic",
            given="a Python without it",
            todo=f"{install_extra('placement')}, or name a file of flows",
        )
    ends = np.flatnonzero(build.topology.endpoints)
    traffic = Traffic.of(np.repeat(ends, len(ends)), np.tile(ends, len(ends)))
    paths = _paths(fluid, traffic, MOST_MATCHED)
    return paths, in_parts(worst_case(paths, traffic, largest).shares, PARTS[-1])
