"""The shares that docs and README print of fabrics with a balance, and a command that does so.

    python -m benchmarks.carried_shares    # measures, rewrites the tables of README and two pages

A cell has three figures, in per cent of a host's rate: what every host can send under uniform
traffic, in a random permutation of hosts (the median of many), and what is guaranteed under any
traffic.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from compilers.balances.compact_valiant import FITTED
from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import fit
from compilers.evaluation.guarantee import guarantee
from compilers.evaluation.optimum import least_load
from compilers.evaluation.random_hosts import DRAWS, random_hosts_share
from compilers.evaluation.saturation import throughput
from compilers.evaluation.traffic import longest, random_hosts, uniform
from compilers.spec.balances import measured_balances
from compilers.tables.build import Build
from compilers.topology.labelled_graph import Topology
from inventory.problems import InputError
from polarfab import Fabric

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
POLICIES = ROOT / "docs/concepts/policies.md"
COMPARISON = ROOT / "docs/comparison.md"
FABRICS: dict[str, dict[str, int | str]] = {
    "PolarFly": {"family": "polarfly", "q": 7},
    "Jellyfish": {"family": "jellyfish", "nodes": 64, "degree": 8},
    "Slim Fly": {"family": "slimfly", "q": 5},
    "HyperX": {"family": "hyperx", "sides": "5x5"},
    "Dragonfly+": {"family": "megafly", "h": 6, "a": 12, "groups": 7},
    "fat tree k = 4": {"family": "fat-tree", "k": 4},
    "fat tree k = 6": {"family": "fat-tree", "k": 6, "pods": 6, "merged": 2},
}
"""By the beginning of a column's heading."""
HOSTS = 4
"""The hosts of a switch that has hosts; in a fat tree and a Dragonfly+ as many as it has
links."""
REFUSED = "refused"
"""What a cell has for a balance that a fabric does not take."""
NO_ROUTING = "no routing gets more"
"""The row of what distances alone allow."""
FOR_EACH = "the same, weights fitted to each traffic"
"""The row of the best routing that follows the traffic."""
BEST = "balance: compact-valiant, adjacent: bounce"
"""The routing whose weights are fitted."""
FOR_A_DEMAND = f"balance: compact-valiant{FITTED}"
"""The same as a balance of its own."""
FITS = 5
"""Permutations of hosts that weights are fitted to: a fit takes seconds."""
Shares = tuple[float, float, float | None]
"""What hosts can send under uniform traffic, in a random permutation, and under any traffic; the
last is None where weights follow the traffic."""


def build_of(topology: Mapping[str, int | str], policy: str) -> Build:
    """A fabric with the words of `routing:`, and `protect: node`.

    Raises:
        InputError: they cannot be combined.
    """
    routing = yaml.safe_load(f"{{{policy}, protect: node}}")
    hosts = hosts_of(topology)
    spec = {"name": "lab", "topology": topology, "hosts_per_node": hosts, "routing": routing}
    return Fabric.from_spec(spec).compile().build


def hosts_of(topology: Mapping[str, int | str]) -> int:
    """The hosts of a switch that has hosts."""
    if topology["family"] == "megafly":
        return int(topology["a"]) // 2
    return int(topology["k"]) if topology["family"] == "fat-tree" else HOSTS


def shares(topology: Mapping[str, int | str], policy: str) -> Shares | None:
    """The shares of a fabric with a routing; None if it is refused.

    Args:
        topology: of the fabric.
        policy: the words of `routing:`, or a row of another kind.
    """
    routing_of = {FOR_EACH: BEST, FOR_A_DEMAND: BEST, NO_ROUTING: "balance: minimal"}
    try:
        build = build_of(topology, routing_of.get(policy, policy))
    except InputError:
        return None
    hosts = hosts_of(topology)
    if policy == NO_ROUTING:
        return _bounds_by_distance(build.topology, hosts)
    of_uniform = throughput(build, "uniform", hosts)
    if policy in routing_of:
        fitted = of_uniform.adaptive or of_uniform.emitted
        return fitted.share, _fitted_to_random_hosts(build, hosts), None
    random = random_hosts_share(build, hosts)
    return of_uniform.emitted.share, random, guarantee(build, hosts).share


def _bounds_by_distance(topology: Topology, hosts: int) -> Shares:
    """What distances allow of uniform traffic, of random hosts, and of the longest permutation.

    A linear program gives less for some traffic, but only in small fabrics, and only where it ends
    in time: `evaluation.optimum`.
    """

    def bound(traffic: Traffic) -> float:
        """What hosts can send at most if all flows take shortest paths, and load links equally."""
        return min(1.0, 1 / (hosts * least_load(topology.graph, traffic)))

    random = median(bound(random_hosts(topology, hosts, number)) for number in range(DRAWS))
    return bound(uniform(topology, hosts, 0)), random, bound(longest(topology, hosts, 0))


def _fitted_to_random_hosts(build: Build, hosts: int) -> float:
    """The median share of permutations of hosts, weights fitted to each where that helps."""
    fluid, shares_of_draws = Fluid.of(build), []
    for number in range(FITS):
        traffic = random_hosts(build.topology, hosts, number)
        loads = [
            fit(fluid.paths(traffic)).loads,
            fluid.loads(traffic, fluid.minimal_shares()),
            fluid.loads_by_weights(traffic),
        ]
        least = min(float(load.max()) for load in loads)
        shares_of_draws.append(min(1.0, 1 / (hosts * least)))
    return median(shares_of_draws)


def cell(measured: Shares | None) -> str:
    """Three figures as a page prints them."""
    return REFUSED if measured is None else ", ".join(map(percent, measured)) + " %"


def percent(share: float | None) -> str:
    """A figure without its sign: whole, but for exact halves, as in 12.5; – where there is none."""
    if share is None:
        return "–"
    figure = round(100 * share, 6)  # without the rounding errors of a measured share
    return f"{figure:g}" if figure % 1 == 0.5 else f"{figure:.0f}"


def table(page: Path) -> list[list[str]]:
    """The cells of the table of figures of a page, heading first."""
    text = re.search(r"<!-- figures -->\n(.*?)<!-- end -->", page.read_text(), re.S)
    if not text:
        raise LookupError(page)
    rows = [[cell.strip(" `") for cell in row.split("|")[1:-1]] for row in text[1].splitlines()]
    return [rows[0], *rows[2:]]


def fabric_of(heading: str) -> dict[str, int | str]:
    """The topology of a column."""
    return next(topology for name, topology in FABRICS.items() if heading.startswith(name))


def _measured_lines(page: Path) -> Iterator[str]:
    """The lines of a page with its figures measured anew."""
    headings: list[str] = []
    inside = False
    for line in page.read_text().splitlines():
        inside = (inside or line == "<!-- figures -->") and line != "<!-- end -->"
        cells = [text.strip() for text in line.split("|")[1:-1]] if inside else []
        headings = headings or cells
        if not cells or not _is_policy(cells[0]):
            yield line
        elif page == README:
            of_polarfly = shares(FABRICS["PolarFly"], cells[0].strip("`")) or ()
            three = " | ".join(
                f"{percent(share)} %" if share is not None else "–" for share in of_polarfly
            )
            yield f"| {cells[0]} | {cells[1]} | {three} |"
        else:
            measured = (cell(shares(fabric_of(name), cells[0].strip("`"))) for name in headings[1:])
            yield f"| {cells[0]} | {' | '.join(measured)} |"


def _is_policy(text: str) -> bool:
    """Whether a row is that of a routing."""
    return text.startswith("`balance") or text in (FOR_EACH, NO_ROUTING)


def main(pages: Any = (README, POLICIES, COMPARISON)) -> None:
    """Measure, and rewrite the tables."""
    for page in pages:
        lines = []
        for line in _measured_lines(page):
            lines.append(line)
            if line.startswith("|"):
                sys.stderr.write(f"{line}\n")
        page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    print(measured_balances(), file=sys.stderr)
    main()
