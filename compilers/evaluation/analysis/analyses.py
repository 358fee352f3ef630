"""The analyses by name, each as facts and a table for a command line or a plot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from compilers.evaluation.analysis import bisection as halves
from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.growth import grows, growth
from compilers.evaluation.analysis.link_load import uniform
from compilers.evaluation.analysis.neighbour_sums import Report
from compilers.evaluation.analysis.path_diversity import PATH_LENGTHS, diversity
from compilers.evaluation.analysis.resilience import RUNS, resilience
from compilers.topology.labelled_graph import Topology
from compilers.workers.shards import THIS_PROCESS, Workers
from inventory.problems import InputError, Problem, not_among


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the analyses: failure runs and their seed, racks to grow by, who works."""

    runs: int = RUNS
    seed: int = 0
    racks: int = 4
    workers: Workers = THIS_PROCESS


@dataclass(frozen=True, slots=True)
class Analysis:
    """facts: name → value. rows: the table, all with the same keys."""

    facts: dict[str, Any]
    rows: list[dict[str, Any]]


Analyser = Callable[[Topology, Options, Report | None], Analysis]


def check(names: list[str]) -> list[Problem]:
    """A problem for every unknown analysis."""
    return [not_among(name, ANALYSES, "what") for name in names if name not in ANALYSES]


def applicable(topology: Topology) -> list[str]:
    """The analyses that this topology and installation allow."""
    left_out = {"bisection": not halves.available(), "expansion": not grows(topology)}
    return [name for name in ANALYSES if not left_out.get(name)]


def analyse(
    topology: Topology, name: str, options: Options, report: Report | None = None
) -> Analysis:
    """One analysis of a topology.

    Raises:
        InputError: the name is unknown, the topology does not allow it, or a library is missing.
    """
    if problems := check([name]):
        raise InputError(problems)
    return ANALYSES[name](topology, options, report)


def _distances(topology: Topology, options: Options, report: Report | None) -> Analysis:
    found = distribution(topology, report, workers=options.workers)
    return Analysis(
        {"diameter": found.diameter, "mean": found.mean},
        [{"distance": d, "pairs": n} for d, n in enumerate(found.pairs) if n],
    )


def _paths(topology: Topology, _: Options, report: Report | None) -> Analysis:
    rows = [
        {
            "adjacent": each.adjacent,
            "ends": "-".join(each.ends),
            "middle": each.middle,
            "pairs": each.pairs,
            **{
                f"paths_{length}_{word}": counts[length - 1]
                for length in PATH_LENGTHS
                for word, counts in (("min", each.fewest), ("max", each.most))
            },
        }
        for each in diversity(topology, report)
    ]
    return Analysis({"classes": len(rows)}, rows)


def _load(topology: Topology, options: Options, report: Report | None) -> Analysis:
    found = uniform(topology, report, options.workers)
    facts = {
        "mean_distance": found.mean_distance,
        "mean_load": float(found.arcs.mean()),
        "max_load": float(found.arcs.max()),
        "utilisation": found.utilisation,
        "full_throughput_hosts": found.full_throughput_hosts,
    }
    return Analysis(facts, [{"load": load, "arcs": n} for load, n in found.histogram()])


def _bisection(topology: Topology, _: Options, report: Report | None) -> Analysis:  # noqa: ARG001
    found = halves.bisection(topology)
    facts = {"cut": found.cut, "links": found.links, "fraction": found.fraction}
    sides = ((0, ~found.half), (1, found.half))
    rows = [
        {
            "side": side,
            "nodes": int(half.sum()),
            "with_hosts": int((half & topology.endpoints).sum()),
        }
        for side, half in sides
    ]
    return Analysis(facts, rows)


def _resilience(topology: Topology, options: Options, report: Report | None) -> Analysis:
    given = options.runs, options.seed
    found = resilience(topology, *given, report=report, workers=options.workers)
    facts = {
        "runs": len(found.ratios),
        "seed": options.seed,
        "disconnection_min": found.ratios[0],
        "disconnection_median": found.median,
        "disconnection_max": found.ratios[-1],
    }
    return Analysis(facts, [asdict(point) for point in found.curve])


def _expansion(topology: Topology, options: Options, report: Report | None) -> Analysis:
    return Analysis(
        {"methods": ", ".join(grows(topology))},
        [asdict(each) for each in growth(topology, options.racks, report)],
    )


ANALYSES: dict[str, Analyser] = {
    "distances": _distances,
    "paths": _paths,
    "load": _load,
    "bisection": _bisection,
    "resilience": _resilience,
    "expansion": _expansion,
}
