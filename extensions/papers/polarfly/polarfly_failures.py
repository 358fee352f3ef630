"""Figure 14 of the PolarFly paper: diameter and mean distance while links fail (§IX).

`broken_links` reproduces the figure and returns its claims as `Evidence`; `polarfly_paper` lists
it. ER_q is PolarFly's graph; a quadric is a vertex with a loop in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compilers.drawing.plots import failures
from compilers.evaluation.analysis.resilience import FailurePoint, Resilience, resilience
from compilers.topology.families import build_topology
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.failure_medians import disconnects_later
from extensions.papers.graphs import diameter_of, matrix_of
from extensions.papers.polarfly.polarfly_networks import TABLE_V

RUNS = 100
"""The number of runs with failing links of each network."""
FEW_FAILURES, MANY_FAILURES = 0.05, 0.55
"""Fractions of failed links that the paper's text names."""
FRACTION_ERROR = 0.01
"""How far the fraction of failed links of a point may be from that of a claim."""
DISCONNECTED = 99
"""Stands for the diameter of a disconnected network: more than any diameter here, so that the claim
on a diameter fails."""


def broken_links(_quick: bool) -> Evidence:
    """Figure 14: diameter and mean distance while links fail, of 100 runs the median one."""
    names = ("PF", "SF", "DF1", "JF", "FT")
    runs = {name: resilience(TABLE_V[name].topology(), RUNS) for name in names}
    rows = {
        name: [
            {
                "fraction": point.fraction,
                "diameter": point.diameter,
                "mean_distance": point.mean_distance,
            }
            for point in run.curve
        ]
        for name, run in runs.items()
    }
    networks = "; ".join(f"{name} {TABLE_V[name].title()}" for name in names)
    setup = (
        f"Networks of Table V, without DF2, of which the text says nothing here: {networks}.",
        "Of 100 runs that end when switches with hosts are disconnected, the one with the median"
        " part of failed links.",
    )
    return Evidence(_failure_claims(runs), panels=failures(list(rows.items())), setup=setup)


def _failure_claims(runs: Mapping[str, Resilience]) -> tuple[PaperClaim, ...]:
    """What the paper says of figure 14.

    Args:
        runs: the runs with failing links, by the abbreviation of the network.
    """
    curve, medians = runs["PF"].curve, {name: run.median for name, run in runs.items()}
    diameter_growth = {
        name: _largest_diameter(run.curve, FEW_FAILURES) - _largest_diameter(run.curve, 0)
        for name, run in runs.items()
    }
    return (
        PaperClaim(
            statement="PolarFly: diameter 4 with 5 % of links failed, in the median run",
            printed=4,
            computed=_largest_diameter(curve, FEW_FAILURES),
        ),
        PaperClaim(
            statement="PolarFly: still 4 with 55 % failed, in the median run",
            printed=4,
            computed=_largest_diameter(curve, MANY_FAILURES),
        ),
        *(
            PaperClaim(
                statement=f"ER_7: diameter with {failed.element} failed, {end}",
                printed=failed.printed,
                computed=diameter,
            )
            for failed in diameters_without_one(7)
            for end, diameter in (
                ("least", failed.least_diameter),
                ("most", failed.most_diameter),
            )
        ),
        *(
            PaperClaim(
                statement=f"{name} disconnects at a similar part of links: over PolarFly's",
                printed=1,
                computed=medians[name] / medians["PF"],
                reading_error=0.05,
                interpretation="Read as 5 % apart at most.",
            )
            for name in ("SF", "JF")
        ),
        disconnects_later("Slim Fly marginally later", runs["PF"], runs["SF"]),
        *(
            disconnects_later(f"{direct} later than {name}", runs[name], runs[direct])
            for direct in ("PF", "SF")
            for name in ("FT", "DF1")
        ),
        *(
            PaperClaim.of_order(
                says=f"{name}'s diameter grows more rapidly than JF's: by how much with 5 % failed",
                first=diameter_growth[name],
                relation=">",
                second=diameter_growth["JF"],
            )
            for name in ("PF", "SF")
        ),
    )


QUADRIC = 0
"""The kind of vertex of a quadric in `polarfly` (`Topology.kind`)."""


@dataclass(frozen=True, slots=True)
class FailedElement:
    """The diameters of ER_q after one element of a kind has failed."""

    element: str
    """The kind of element that fails, in words."""
    printed: int
    """The diameter that the paper prints."""
    least_diameter: int
    """The smallest diameter over all elements of the kind."""
    most_diameter: int
    """The largest diameter over all elements of the kind."""


def diameters_without_one(q: int) -> tuple[FailedElement, ...]:
    """The diameters of ER_q without one link of a quadric, another link, or a switch."""
    topology = build_topology("polarfly", {"q": q})
    adjacent = matrix_of(topology.graph)
    diameters_of_quadric_links, diameters_of_other_links = list[int](), list[int]()
    for u, v in topology.graph.edges().tolist():
        without_link = adjacent.copy()
        without_link[u, v] = without_link[v, u] = False
        has_quadric = (topology.kind[[u, v]] == QUADRIC).any()
        diameters = diameters_of_quadric_links if has_quadric else diameters_of_other_links
        diameters.append(diameter_of(without_link))
    diameters_of_switches = []
    for switch in range(topology.graph.order):
        without_switch = np.delete(np.delete(adjacent, switch, 0), switch, 1)
        diameters_of_switches.append(diameter_of(without_switch))
    return (
        _failed_element("a link of a quadric", 4, diameters_of_quadric_links),
        _failed_element("another link", 3, diameters_of_other_links),
        _failed_element("a switch", 3, diameters_of_switches),
    )


def _failed_element(what: str, printed: int, diameters: Sequence[int]) -> FailedElement:
    """The diameters of one kind of element, given those without each element."""
    return FailedElement(what, printed, min(diameters), max(diameters))


def _largest_diameter(curve: Sequence[FailurePoint], fraction: float) -> int:
    """The largest diameter near a fraction of failed links; DISCONNECTED without a diameter."""
    near = (point for point in curve if abs(point.fraction - fraction) < FRACTION_ERROR)
    return max(point.diameter or DISCONNECTED for point in near)
