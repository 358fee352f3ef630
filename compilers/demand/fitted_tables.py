"""The pass of a compile that fits the weights of classes to the demand of `routing.demand`.

A class of a switch has a *group* of next hops: the minimal port and the alternates. The *share* of
a next hop is the part of the class's traffic that takes it. Its weight is the share as an integer.

- For a file of flows, the fit finds the shares that load the hottest link least (`weight_fit`).
- For the word `worst-case`, it finds the shares whose worst traffic loads the hottest link least
  (`worst_case`).

In shapes, G is the number of groups, and W the most next hops of a group.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from compilers.demand.demand_file import host_traffic
from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import FlowPaths, fit
from compilers.demand.whole_weights import TOTALS, as_integer_weights, round_shares
from compilers.demand.worst_case import ROUNDS, worst_case
from compilers.tables.build import Build
from inventory.problems import InputError, install_extra
from inventory.yamlfile import TextFile

MOST_CROSSINGS = 30_000_000
"""The most arcs that all flows of a demand cross on all their paths; a crossing takes 80 bytes."""
MOST_MATCHED = 400_000
"""The most crossings for a fit to the worst traffic, which looks for a matching for each link in
each round. With a PolarFly of q = 9, near this limit, it takes a minute or two."""
WITHOUT_FIT = (
    "remove it, and choose a minimal_share by `polarfab throughput BUILD --tradeoff`, or name a "
    "file of flows: weights are fitted to the worst traffic in small fabrics"
)
"""What to do where the worst traffic cannot be fitted, as a finding's text ends."""


def fit_to_demand(build: Build, file: TextFile | None, largest: float) -> Build:
    """Return a build with the weights that carry a demand best.

    Classes that no flow of the demand uses keep their weights.

    Args:
        build: with equal weights.
        file: of the demand; None for the worst traffic that hosts can send.
        largest: the largest share of a next hop, from 0 to 1.

    Raises:
        InputError: the file has mistakes or flows of switches without hosts, or there are more
            flows and paths than can be followed.
    """
    fluid = Fluid.of(build)
    if file is None:
        paths, weights = _fit_to_worst_traffic(build, fluid, largest)
    else:
        traffic = host_traffic(build, file)
        paths = _flow_paths(fluid, traffic, MOST_CROSSINGS, file.name)
        weights = round_shares(paths, fit(paths, largest), largest).weights
    classes = build.tables.classes
    weight = np.array(classes.weight)
    # A fabric-wide number of a class, as `ManyPackets` has it: s·(C + 2) + c is class c of switch
    # s.
    numbers_a_switch = fluid.forwarding.class_numbers_a_switch
    switch, egress_class = np.divmod(paths.class_number, numbers_a_switch)
    weight[switch, egress_class] = weights.astype(np.uint16)
    return replace(
        build,
        tables=replace(build.tables, classes=replace(classes, weight=weight)),
        forwarding=replace(build.forwarding, weights="fitted"),
    )


def _flow_paths(fluid: Fluid, traffic: Traffic, most: int, file: str = "") -> FlowPaths:
    """Return the paths of flows by each of their next hops.

    Args:
        fluid: follows the flows.
        traffic: the flows.
        most: how many arcs the flows may cross together.
        file: of the demand, for messages; "" for the worst traffic.

    Raises:
        InputError: the flows cross more arcs than that.
    """
    try:
        return fluid.paths(traffic, most)
    except OverflowError:
        fewer_flows = "leave out the smallest: classes without a demand keep equal shares"
        rounds = "" if file else f": up to {ROUNDS} rounds look for the worst traffic of every link"
        raise InputError.of(
            file=file,
            key="demand" if file else "routing.demand",
            required=f"flows whose paths cross at most {most:,} links together{rounds}",
            given=f"{len(traffic.source):,} flows, whose paths cross more",
            todo=fewer_flows if file else WITHOUT_FIT,
        ) from None


def _fit_to_worst_traffic(
    build: Build, fluid: Fluid, largest: float
) -> tuple[FlowPaths, NDArray[np.int64]]:
    """Return the paths of all flows that hosts can send, and weights for the worst traffic.

    Of all weights, these load their hottest link least, each under the traffic that is worst for
    them.

    Returns:
        The paths, and the weights, int64[G, W].

    Raises:
        InputError: SciPy is missing, or the fabric is too large.
    """
    if not find_spec("scipy"):
        raise InputError.of(
            key="routing.demand",
            required="scipy, which looks for the worst traffic",
            given="a Python without it",
            todo=f"{install_extra('placement')}, or name a file of flows",
        )
    with_hosts = np.flatnonzero(build.topology.endpoints)
    count = len(with_hosts)
    traffic = Traffic.of(np.repeat(with_hosts, count), np.tile(with_hosts, count))
    paths = _flow_paths(fluid, traffic, MOST_MATCHED)
    return paths, as_integer_weights(worst_case(paths, traffic, largest).shares, max(TOTALS))
