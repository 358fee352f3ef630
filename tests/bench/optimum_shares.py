"""The table of docs/how-to/fit-weights.md: what fitted weights carry of the optimum over all paths.

    python -m tests.bench.optimum_shares [RADIX…]

It takes minutes from radix 29 on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

from compilers.demand.all_paths import path_optimum
from compilers.demand.fluid import Fluid
from compilers.demand.weight_fit import fit
from compilers.evaluation.traffic import PATTERNS
from compilers.topology.families import BASELINES, FAMILIES
from compilers.topology.labelled_graph import Topology
from polarfab.fabric import Fabric

SHOWN = ("tornado", "longest")
ROUTING = {"balance": "compact-valiant", "disjoint": "none", "adjacent": "bounce"}
PARAMETERS: tuple[tuple[int, str, dict[str, int | str]], ...] = (
    (8, "polarfly", {"q": 7}),
    (7, "slimfly", {"q": 5}),
    (8, "jellyfish", {"nodes": 57, "degree": 8, "seed": 1}),
    (8, "polarstar", {"q": 4, "supernode": "inductive-quad", "degree": 3}),
    (14, "polarfly", {"q": 13}),
    (13, "slimfly", {"q": 9}),
    (14, "jellyfish", {"nodes": 183, "degree": 14, "seed": 1}),
    (20, "polarfly", {"q": 19}),
    (19, "slimfly", {"q": 13}),
    (20, "jellyfish", {"nodes": 381, "degree": 20, "seed": 1}),
    (12, "polarstar", {"q": 8, "supernode": "inductive-quad", "degree": 3}),
    (32, "polarfly", {"q": 31}),
    (29, "slimfly", {"q": 19}),
    (32, "jellyfish", {"nodes": 993, "degree": 32, "seed": 1}),
)


class Shares(NamedTuple):
    """Of what hosts can send: what the ways carry, what no paths exceed, what some paths carry."""

    ways: float
    optimum: float
    routed: float


def shares(topology: Topology, hosts: int, pattern: str) -> Shares:
    """With fitted weights over the ways of tables, bounced ones included."""
    traffic = PATTERNS[pattern](topology, hosts, 0)
    family = {"family": topology.family, **topology.parameters}
    fabric = Fabric.from_spec({"name": "bench", "topology": family, "routing": ROUTING})
    paths = Fluid.of(fabric.build).paths(traffic)
    best = path_optimum(topology.graph, traffic, enough=1 / hosts)
    loads = float(fit(paths).loads.max()), *best
    ways, most, some = (min(1.0, 1 / (hosts * load)) for load in loads)
    return Shares(ways, most, some)


def table(radices: set[int]) -> Iterator[str]:
    """Lines of Markdown."""
    for radix, family, parameters in PARAMETERS:
        if radices and radix not in radices:
            continue
        topology = {**FAMILIES, **BASELINES}[family].build(parameters)
        hosts = round(radix / topology.diameter + 0.01)
        cells = []
        for pattern in SHOWN:
            found = shares(topology, hosts, pattern)
            reached = max(found.routed, found.ways)
            between = f"{reached:.0%} to " * (round(reached, 2) < round(found.optimum, 2))
            part = found.ways / found.optimum
            cells.append(f"{found.ways:.0%} | {between}{found.optimum:.0%} | {part:.0%}")
        order = f"{topology.graph.order:,}"
        yield f"| {radix} | {topology.title()} | {order} | {hosts} | {' | '.join(cells)} |"


if __name__ == "__main__":
    for line in table(set(map(int, sys.argv[1:]))):
        print(line, flush=True)
