"""What minimal routes carry of a traffic, by the fluid of `polarfab throughput`, at any size.

Nothing is simulated: it is the rate at which the hottest link is full. Queues lower what a
simulation accepts, so it is a bound for networks whose packets go minimally.
"""

from __future__ import annotations

from functools import cache

from compilers.demand.fluid import Fluid
from compilers.evaluation.saturation import loads_by_tables
from compilers.evaluation.traffic import PATTERNS, between_groups
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from extensions.papers.latency_curves import FARTHEST, PaperFabric

ALL_PATHS = {"balance": "ecmp", "transit": "ecmp"}
"""The `routing` of networks whose packets take any shortest path, evenly at every hop."""

FLUID = (
    "By the hottest link: what `polarfab throughput` estimates of minimal routes at the paper's"
    " size, without queues. Nothing is simulated for it."
)

READ_FLUID = "Read as of the load at which the hottest link of minimal routes is full."


@cache
def minimal_share(fabric: str, pattern: str) -> float:
    """The share of their rate at which hosts fill the hottest link of minimal routes, at most 1.

    Args:
        fabric: a `PaperFabric` as JSON, routed by `MIN` or over all shortest paths.
        pattern: the traffic; `adversarial` is between groups.
    """
    network = PaperFabric.of_text(fabric)
    build = network.build()
    if network.routes != "MIN":
        spec = {"name": "fluid", "topology": dict(network.topology), "routing": ALL_PATHS}
        build = compile_fabric(load_fabric(spec))
    topology, fluid = build.topology, Fluid.of(build)
    traffic = (
        between_groups(topology, network.group, FARTHEST, seed=0)
        if pattern == "adversarial"
        else PATTERNS[pattern](topology, network.hosts, 0)
    )
    load = loads_by_tables(build, fluid, traffic)
    return 1 / max(1.0, network.hosts * float(load.max()))
