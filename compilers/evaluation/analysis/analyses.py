"""The analyses of a topology by name, as `polarfab analyse` prints them: facts and a table.

`analyse` takes a topology and the name of an analysis, and returns an `Analysis`. The library and
the verb call it. Each analysis is computed in a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from compilers.evaluation.analysis.bisection import available as bisection_available
from compilers.evaluation.analysis.bisection import bisection
from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.growth import growth, growth_methods
from compilers.evaluation.analysis.link_load import uniform
from compilers.evaluation.analysis.neighbour_sums import Report
from compilers.evaluation.analysis.path_diversity import PATH_LENGTHS, diversity
from compilers.evaluation.analysis.resilience import RUNS, resilience
from compilers.topology.labelled_graph import Topology
from compilers.workers.shards import THIS_PROCESS, Workers
from inventory.problems import InputError, Problem, not_among


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """Options of the analyses. Each analysis takes those that it needs."""

    runs: int = RUNS
    """The runs of random failures."""
    seed: int = 0
    """The seed of these runs."""
    racks: int = 4
    """The most racks by which the fabric grows."""
    workers: Workers = THIS_PROCESS
    """The processes that share the work."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result of an analysis."""

    facts: dict[str, Any]
    """Values of the whole topology, by their names in JSON. Each analysis has its own."""
    rows: list[dict[str, Any]]
    """The table: a value for each column's name in JSON, the same names in all rows."""


Analyser = Callable[[Topology, AnalysisOptions, Report | None], Analysis]
"""A function from a topology, options, and a function that reports progress, to the result."""


def unknown_analysis_problems(names: list[str]) -> list[Problem]:
    """A problem for every unknown analysis."""
    return [not_among(name, ANALYSES, "what") for name in names if name not in ANALYSES]


def applicable(topology: Topology) -> list[str]:
    """The analyses that this topology and installation allow."""
    is_available = {"bisection": bisection_available(), "expansion": bool(growth_methods(topology))}
    return [name for name in ANALYSES if is_available.get(name, True)]


def analyse(
    topology: Topology, name: str, options: AnalysisOptions, report: Report | None = None
) -> Analysis:
    """One analysis of a topology.

    Raises:
        InputError: the name is unknown, the topology does not allow it, or a library is missing.
    """
    if problems := unknown_analysis_problems([name]):
        raise InputError(problems)
    return ANALYSES[name](topology, options, report)


def _distances(topology: Topology, options: AnalysisOptions, report: Report | None) -> Analysis:
    """The distances between nodes with hosts, a row for each distance."""
    distances = distribution(topology, report, workers=options.workers)
    return Analysis(
        {"diameter": distances.diameter, "mean": distances.mean},
        [{"distance": d, "pairs": n} for d, n in enumerate(distances.pairs) if n],
    )


def _paths(topology: Topology, _: AnalysisOptions, report: Report | None) -> Analysis:
    """The fewest and most paths between two vertices, a row for each class of pairs."""
    rows = [
        {
            "adjacent": paths.adjacent,
            "ends": "-".join(paths.ends),
            "middle": paths.middle,
            "pairs": paths.pairs,
            **{
                f"paths_{length}_{extreme}": counts[length - 1]
                for length in PATH_LENGTHS
                for extreme, counts in (("min", paths.fewest), ("max", paths.most))
            },
        }
        for paths in diversity(topology, report)
    ]
    return Analysis({"classes": len(rows)}, rows)


def _load(topology: Topology, options: AnalysisOptions, report: Report | None) -> Analysis:
    """The loads of arcs under uniform traffic, a row for each load."""
    load = uniform(topology, report, options.workers)
    facts = {
        "mean_distance": load.mean_distance,
        "mean_load": float(load.arcs.mean()),
        "max_load": float(load.arcs.max()),
        "utilisation": load.utilisation,
        "full_throughput_hosts": load.full_throughput_hosts,
    }
    return Analysis(facts, [{"load": value, "arcs": n} for value, n in load.histogram()])


def _bisection(topology: Topology, _: AnalysisOptions, report: Report | None) -> Analysis:  # noqa: ARG001
    """The smallest cut that METIS finds, a row for each side of it."""
    smallest = bisection(topology)
    facts = {"cut": smallest.cut, "links": smallest.links, "fraction": smallest.fraction}
    rows = [
        {
            "side": side,
            "nodes": int(nodes.sum()),
            "with_hosts": int((nodes & topology.endpoints).sum()),
        }
        for side, nodes in enumerate((~smallest.one_side, smallest.one_side))
    ]
    return Analysis(facts, rows)


def _resilience(topology: Topology, options: AnalysisOptions, report: Report | None) -> Analysis:
    """The resilience to random link failures, a row for each point of the curve."""
    failures = resilience(
        topology, options.runs, options.seed, report=report, workers=options.workers
    )
    facts = {
        "runs": len(failures.ratios),
        "seed": options.seed,
        "disconnection_min": failures.ratios[0],
        "disconnection_median": failures.median,
        "disconnection_max": failures.ratios[-1],
    }
    return Analysis(facts, [asdict(point) for point in failures.curve])


def _expansion(topology: Topology, options: AnalysisOptions, report: Report | None) -> Analysis:
    """The figures of a PolarFly that grows, a row for each addition."""
    return Analysis(
        {"methods": ", ".join(growth_methods(topology))},
        [asdict(step) for step in growth(topology, options.racks, report)],
    )


ANALYSES: dict[str, Analyser] = {
    "distances": _distances,
    "paths": _paths,
    "load": _load,
    "bisection": _bisection,
    "resilience": _resilience,
    "expansion": _expansion,
}
"""The analyses by name."""
