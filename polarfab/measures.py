"""Measures of a graph, and of what the tables of a fabric carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inventory.problems import InputError
from polarfab.topologies import require_within

if TYPE_CHECKING:
    from compilers.evaluation.analysis.analyses import Analysis
    from compilers.evaluation.saturation import PatternThroughput
    from compilers.forwarding.walks import Progress
    from compilers.topology.labelled_graph import Topology
    from polarfab.fabric import Fabric


def analyse(
    topology: Topology,
    what: Sequence[str] = (),
    runs: int = 100,
    seed: int = 0,
    clusters: int = 4,
    progress: Progress | None = None,
    scheduler: str = "",
) -> dict[str, Analysis]:
    """Measure a graph: facts and rows by the name of the analysis.

    Args:
        topology: the graph.
        what: some of distances, paths, load, bisection, resilience, expansion; none for all that
            apply.
        runs: of random failures.
        seed: of the failures.
        clusters: how many clusters to grow by.
        progress: called with (done, all) in each analysis.
        scheduler: the address of a Dask scheduler whose workers share distances, load, resilience.

    Raises:
        InputError: there is no such analysis, it is not for this graph, lacks a library, or takes
            more memory than there is; or there is no such scheduler.
    """
    from compilers.evaluation.analysis.analyses import Options, applicable, check
    from compilers.evaluation.analysis.analyses import analyse as analysed
    from compilers.memory_bound import MemoryBound
    from compilers.workers.local_processes import workers_at

    require_within(("runs", runs, 1, 10**6), ("clusters", clusters, 0, 1000))
    names = what or applicable(topology)
    if problems := check(list(names)):
        raise InputError(problems)
    if not scheduler:
        MemoryBound.of_topology(topology).require()
    with workers_at(scheduler) as workers:
        options = Options(runs, seed, clusters, workers)
        return {name: analysed(topology, name, options, progress) for name in names}


def throughput(
    fabric: Fabric,
    patterns: Sequence[str] = (),
    hosts: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
    scheduler: str = "",
) -> tuple[PatternThroughput, ...]:
    """The saturation of traffic patterns, by the tables.

    Args:
        fabric: compiled, or it is compiled now.
        patterns: names of patterns, none for all.
        hosts: a switch; 0 for as built.
        seed: of the patterns that chance has a part in.
        progress: called with (patterns done, all patterns).
        scheduler: the address of a Dask scheduler whose workers share the patterns.

    Raises:
        InputError: there is no such pattern, no such scheduler, or too little memory.
    """
    from compilers.evaluation.saturation import saturations
    from compilers.memory_bound import FLOWS, MemoryBound
    from compilers.workers.local_processes import workers_at

    if not scheduler:
        bound = MemoryBound.of_build(fabric.build)
        all_pairs = not patterns or "uniform" in patterns
        (bound.storing(FLOWS) if all_pairs else bound).require()
    with workers_at(scheduler, zip(fabric.builds, fabric.folders)) as workers:  # noqa: B905
        return saturations(fabric.build, patterns, hosts, seed, progress, workers)
