"""The library's measures of graphs, and of the traffic that a fabric carries by its tables.

`polarfab.analyse` measures a graph; `throughput`, `guarantee`, `guarantees_after` and `tradeoff`
compute rates of hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inventory.problems import InputError
from polarfab.topologies import require_within

if TYPE_CHECKING:
    from compilers.evaluation.analysis.analyses import Analysis
    from compilers.evaluation.failure_guarantees import FailureGuarantee
    from compilers.evaluation.guarantee import Guarantee
    from compilers.evaluation.saturation import PatternThroughput
    from compilers.evaluation.tradeoff import TradeoffPoint
    from compilers.forwarding.walks import Progress
    from compilers.tables.build import Build
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
    """Measure a graph; returns the analyses by name.

    Args:
        topology: the graph.
        what: some of distances, paths, load, bisection, resilience, expansion; () for all that
            apply.
        runs: how many times links fail in random order.
        seed: the seed of the failures.
        clusters: how many clusters to grow by.
        progress: called with (done, all) in each analysis.
        scheduler: the address of a Dask scheduler whose workers share distances, load, resilience.

    Raises:
        InputError: there is no such analysis or scheduler, or the analysis does not apply to this
            graph, lacks a library, or needs more memory than there is.

    Example:
        >>> import polarfab
        >>> graph = polarfab.topology("polarfly", q=3)
        >>> polarfab.analyse(graph, ["distances"])["distances"].facts["diameter"]
        2
    """
    from compilers.evaluation.analysis.analyses import (
        AnalysisOptions,
        applicable,
        unknown_analysis_problems,
    )
    from compilers.evaluation.analysis.analyses import analyse as analyse_topology
    from compilers.memory_bound import MemoryBound
    from compilers.workers.local_processes import workers_at

    require_within("runs", runs, 1, 10**6)
    require_within("clusters", clusters, 0, 1000)
    names = what or applicable(topology)
    problems = unknown_analysis_problems(list(names))
    if problems:
        raise InputError(problems)
    if not scheduler:
        MemoryBound.of_topology(topology).require()
    with workers_at(scheduler) as workers:
        options = AnalysisOptions(runs, seed, clusters, workers)
        return {name: analyse_topology(topology, name, options, progress) for name in names}


def throughput(
    fabric: Fabric,
    patterns: str | Sequence[str] = (),
    hosts: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
    scheduler: str = "",
) -> tuple[PatternThroughput, ...]:
    """The throughput of traffic patterns at saturation, by the tables.

    Args:
        fabric: the fabric; it is compiled if it is not.
        patterns: the name of a pattern, a CSV file of rates, or several of them; () for all
            patterns with names.
        hosts: how many hosts each switch has, with links of one speed; 0 for as built.
        seed: the seed of random patterns.
        progress: called with (patterns done, all patterns).
        scheduler: the address of a Dask scheduler whose workers share the patterns.

    Raises:
        InputError: there is no such pattern, no such scheduler, or too little memory.

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> polarfab.throughput(fabric, ["uniform"])[0].minimal.share
        1.0
    """
    from compilers.evaluation.saturation import saturations
    from compilers.memory_bound import FLOW_BYTES, MemoryBound
    from compilers.workers.local_processes import workers_at

    if isinstance(patterns, str):
        patterns = (patterns,)
    if not scheduler:
        bound = MemoryBound.of_build(fabric.build)
        all_pairs = not patterns or "uniform" in patterns
        if all_pairs:  # uniform traffic has a flow for each pair, which is stored
            bound = bound.storing(FLOW_BYTES)
        bound.require()
    with workers_at(scheduler, zip(fabric.builds, fabric.folders)) as workers:  # noqa: B905
        return saturations(
            fabric.build,
            patterns=patterns,
            hosts=hosts,
            seed=seed,
            progress=progress,
            workers=workers,
        )


def guarantee(
    fabric: Fabric | Build, hosts: int = 0, progress: Progress | None = None
) -> Guarantee:
    """The share of its rate that every host gets under any traffic, computed exactly by the tables.

    No host sends or receives more than the rate of its link (the hose model). The guarantee names
    the link that is full first, and a traffic that fills it.

    Args:
        fabric: the fabric, which is compiled if it is not; or a build.
        hosts: how many hosts each switch has; 0 for as built.
        progress: called with (links looked at, all links).

    Raises:
        InputError: scipy is not installed, or there is too little memory.

    Example:
        >>> import polarfab
        >>> spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "hosts_per_node": 2}
        >>> guarantee = polarfab.guarantee(polarfab.Fabric.from_spec(spec))
        >>> guarantee.share, guarantee.link, len(guarantee.traffic)
        (0.25, (0, 1), 2)
    """
    from compilers.evaluation.guarantee import guarantee as guarantee_of_build
    from compilers.memory_bound import MemoryBound
    from compilers.tables.build import Build

    build = fabric if isinstance(fabric, Build) else fabric.build
    MemoryBound.of_build(build).require()
    return guarantee_of_build(build, hosts, progress)


def guarantees_after(
    fabric: Fabric | Build,
    kind: str,
    hosts: int = 0,
    progress: Progress | None = None,
    sample: int = 0,
    seed: int = 0,
) -> tuple[FailureGuarantee, ...]:
    """The guarantees with each link, switch, module or rack down, the worst first.

    Args:
        fabric: the fabric, which is compiled if it is not; or a build.
        kind: link, node, or another kind of failures that `verify` tries.
        hosts: how many hosts each switch has; 0 for as built.
        progress: called with (cases looked at, all cases).
        sample: how many cases, drawn by chance; 0 for all, in large fabrics for as many as take
            minutes.
        seed: the seed of the sample.

    Raises:
        InputError: scipy is not installed, there are no such failures, or the fabric is too large.

    Example:
        >>> import polarfab
        >>> spec = {"name": "lab", "topology": {"family": "polarfly", "q": 2}, "hosts_per_node": 1}
        >>> spec["routing"] = {"protect": "node"}
        >>> worst, *others = polarfab.guarantees_after(polarfab.Fabric.from_spec(spec), "link")
        >>> worst.element, round(worst.share, 2), len(others)
        ('0-5', 0.33, 8)
    """
    from compilers.evaluation.failure_guarantees import failure_guarantees
    from compilers.tables.build import Build

    build = fabric if isinstance(fabric, Build) else fabric.build
    return failure_guarantees(
        build, kind=kind, hosts_per_node=hosts, progress=progress, sample=sample, seed=seed
    )


def tradeoff(
    fabric: Fabric | Build, hosts: int = 0, progress: Progress | None = None
) -> tuple[TradeoffPoint, ...]:
    """The rates of uniform traffic and of any traffic, by the share on minimal paths.

    Args:
        fabric: the fabric, which is compiled if it is not; or a build.
        hosts: how many hosts each switch has; 0 for as built.
        progress: called with (shares computed, all shares).

    Raises:
        InputError: scipy is not installed, or the balance has only minimal paths.

    Example:
        >>> import polarfab
        >>> spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "hosts_per_node": 4}
        >>> spec["routing"] = {"balance": "spread"}
        >>> equal, *parts = polarfab.tradeoff(polarfab.Fabric.from_spec(spec))
        >>> [(p.minimal_share, round(p.uniform, 2), round(p.guaranteed, 2)) for p in parts[::5]]
        [(0.0, 0.23, 0.15), (0.5, 0.32, 0.2), (1.0, 0.5, 0.12)]
    """
    from compilers.evaluation.tradeoff import tradeoff as tradeoff_of_build
    from compilers.tables.build import Build

    build = fabric if isinstance(fabric, Build) else fabric.build
    return tradeoff_of_build(build, hosts_per_node=hosts, progress=progress)
