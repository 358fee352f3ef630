"""How well our simulator and BookSim agree: points of both as CSV, and a table for the manual.

`python -m tests.extensions.simulation.booksim.agreement CHECKOUT`, a checkout of IntelLabs/PolarFly
at `program.COMMIT`, builds BookSim and adds the points that `agreement.csv` lacks, on all cores; a
program that is built will do, too. Then, and without it, the table of the manual is written. Delete
lines to have them measured again.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from extensions.simulation.build_simulation import network_for
from extensions.simulation.latency_curve import simulate
from extensions.simulation.load_point import LEVELS, SimulationSettings
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork
from polarfab.fabric import Fabric
from tests.extensions.simulation.booksim import program

FILE = Path(__file__).parent / "agreement.csv"
PAGE = Path(__file__).parents[4] / "docs/how-to/simulate.md"
NETWORKS = {
    "PolarFly q = 5": ({"family": "polarfly", "q": 5}, 3),
    "PolarFly q = 7": ({"family": "polarfly", "q": 7}, 4),
    "PolarFly q = 9": ({"family": "polarfly", "q": 9}, 5),
    "PolarFly q = 13": ({"family": "polarfly", "q": 13}, 7),
    "Slim Fly q = 5": ({"family": "slimfly", "q": 5}, 4),
    "Dragonfly h = 2": ({"family": "dragonfly", "h": 2, "a": 4}, 2),
    "PolarStar IQ q = 3": (
        {"family": "polarstar", "q": 3, "supernode": "inductive-quad", "degree": 3},
        2,
    ),
}
ROUTES = {
    "MIN": ("min", {"ways": "minimal"}),
    "VAL": ("val", {"ways": "valiant", "paths": "table"}),
    "UGAL": ("ugallnew", {"ways": "ugal", "paths": "table"}),
    "UGAL_PF": ("ugall4_pf", {"ways": "adaptive"}),
}
"""Theirs, and our settings. UGAL draws four routers; UGAL_PF takes any neighbour."""
ROUTING = {"balance": "compact-valiant", "disjoint": "none"}
HEAD = "| network, traffic, routes | load | BookSim, seed 1 | packets | flits |"
FULL = 100.0
"""A load is above saturation where the mean latency is more cycles."""
STEP = 0.01
WHOLE = (0, round(1 / STEP) + 1)
"""Steps between which saturation is looked for."""
AROUND = 10
"""Steps below and above the saturation of our packets among which BookSim's is looked for first."""


class Case(NamedTuple):
    """What is simulated; load 0: where it saturates. link: cycles."""

    network: str
    pattern: str
    routes: str
    load: float
    link: int = 1


class Agreement(NamedTuple):
    """A case with mean latencies in cycles, or the loads of saturation."""

    case: Case
    theirs: float
    packet: float
    flit: float


def _cases() -> Iterator[Case]:
    q5 = "PolarFly q = 5"
    for routes, loads in (
        ("MIN", (0.1, 0.5, 0.7)),
        ("VAL", (0.1, 0.3, 0.4)),
        ("UGAL", (0.1, 0.5, 0.7)),
        ("UGAL_PF", (0.5, 0.7)),
    ):
        yield from (Case(q5, "uniform", routes, load) for load in loads)
    yield from (Case(q5, "perm2hop", "UGAL_PF", load) for load in (0.1, 0.3, 0.5))
    yield from (Case(q5, "uniform", routes, 0.3, link=10) for routes in ROUTES)
    for pattern in ("complement", "transpose", "hotspot", "shuffle", "reverse"):
        yield Case(q5, pattern, "MIN", 0.1)
    for network in NETWORKS:
        for routes in ROUTES if "PolarFly" in network else ("MIN", "VAL", "UGAL"):
            if network != q5:
                yield Case(network, "uniform", routes, 0.3)
            yield Case(network, "uniform", routes, 0)
    for q in (7, 9, 13):
        for routes, load in (("MIN", 0.7), ("VAL", 0.4), ("UGAL", 0.7), ("UGAL_PF", 0.7)):
            yield Case(f"PolarFly q = {q}", "uniform", routes, load)
    yield Case(q5, "perm2hop", "UGAL_PF", 0)


CASES = tuple(_cases())


@cache
def _build(network: str, routed: bool) -> Fabric:
    topology, _ = NETWORKS[network]
    routing = {"routing": ROUTING} if routed else {}
    return Fabric.from_spec({"name": "lab", "topology": topology, **routing})


def prepared(case: Case) -> tuple[SimulatedNetwork, HostTraffic, SimulationSettings]:
    """What both simulate."""
    hosts = NETWORKS[case.network][1]
    build = _build(case.network, case.routes == "UGAL_PF").build
    settings = SimulationSettings(**ROUTES[case.routes][1], link=case.link)  # type: ignore[arg-type]
    traffic = HostTraffic.of_pattern(case.pattern, build.topology, hosts, 0)
    return network_for(build, hosts, settings), traffic, settings


def ours(case: Case, level: str) -> float:
    """Our mean latency, or the saturation."""
    network, traffic, settings = prepared(case)

    def latency(load: float) -> float | None:
        asked = replace(settings, loads=(load,), level=level)
        return simulate(network, traffic, asked).points[0].mean_latency

    return _found(case, latency, *WHOLE)


def theirs(case: Case, booksim: Path) -> float:
    """BookSim's."""
    run = partial(program.run, booksim, *prepared(case), ROUTES[case.routes][0])
    near = 0 if case.load else round(ours(case, "packet") / STEP)
    below, above = max(near - AROUND, 0), near + AROUND
    return _found(case, lambda load: run(load).latency, below, above)


def _found(case: Case, latency: Callable[[float], float | None], below: int, above: int) -> float:
    """The latency at the load of the case, or the last load below saturation, between two steps."""
    if case.load:
        found = latency(case.load)
        assert found is not None, case
        return round(found, 2)
    ends = below, above
    while above - below > 1:
        middle = (below + above) // 2
        found = latency(middle * STEP)
        full = found is None or found > FULL
        below, above = (below, middle) if full else (middle, above)
    if ends != WHOLE and (below == ends[0] or above == ends[1]):
        return _found(case, latency, *WHOLE)
    return round(below * STEP, 2)


def read() -> dict[Case, Agreement]:
    """What was measured."""
    if not FILE.exists():
        return {}
    with FILE.open() as stream:
        rows = [Case(a, b, c, float(d), int(e)) for a, b, c, d, e, *_ in csv.reader(stream)]
        stream.seek(0)
        values = [[float(x) for x in row[5:]] for row in csv.reader(stream)]
    return {case: Agreement(case, *each) for case, each in zip(rows, values, strict=True)}


def measure(booksim: Path) -> None:
    """Add what is not there, the long ones first."""
    known = read()
    with ProcessPoolExecutor() as pool:
        asked = {
            pool.submit(_measured, case, booksim): case
            for case in sorted(CASES, key=lambda case: (case.load, len(case.network)))
            if case not in known
        }
        for done in as_completed(asked):
            with FILE.open("a", newline="") as stream:
                csv.writer(stream, lineterminator="\n").writerow([*asked[done], *done.result()])


def _measured(case: Case, booksim: Path) -> tuple[float, ...]:
    return theirs(case, booksim), *(ours(case, level) for level in LEVELS)


def table() -> str:
    """For the manual: latencies, then saturation."""
    known = read()
    lines = [
        HEAD,
        "|---|---|---|---|---|",
    ]
    for case in CASES:
        if case in known:
            each = known[case]
            link = f", links of {case.link} cycles" if case.link > 1 else ""
            what = f"{case.network}, {case.pattern}, {case.routes}{link}"
            lines.append(f"| {what} | {_row(each)} |")
    return "\n".join(lines) + "\n"


def _row(each: Agreement) -> str:
    if each.case.load:
        away = (f"{x:.1f} ({x / each.theirs - 1:+.1%})" for x in each[2:])
        return " | ".join((f"{each.case.load:g}", f"{each.theirs:.1f}", *away))
    return " | ".join(("saturates at", *(f"{x:.2f}" for x in each[1:])))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        given = Path(sys.argv[1])
        if given.is_dir():
            with TemporaryDirectory() as name:
                measure(program.build(given, Path(name)))
        else:
            measure(given)
    before, _, rest = PAGE.read_text().partition(HEAD)
    PAGE.write_text(before + table() + rest[rest.index("\n\n") + 1 :])
