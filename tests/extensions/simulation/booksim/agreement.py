"""How well our simulator and BookSim agree: points of both as CSV.

`python -m tests.extensions.simulation.booksim.agreement CHECKOUT`, a checkout of IntelLabs/PolarFly
at `program.COMMIT`, builds BookSim and adds the points that `agreement.csv` lacks; a program that
is built will do, too. Delete lines to have them measured again.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from extensions.simulation.build_simulation import network_for
from extensions.simulation.latency_curve import simulate
from extensions.simulation.load_point import LEVELS, LoadPoint, SimulationSettings
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork
from polarfab.fabric import Fabric
from tests.extensions.simulation.booksim import program

FILE = Path(__file__).parent / "agreement.csv"
NETWORKS = {
    "PolarFly q = 5": ({"family": "polarfly", "q": 5}, 3),
    "PolarFly q = 7": ({"family": "polarfly", "q": 7}, 4),
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
FULL = 100.0
"""A load is above saturation where the mean latency is more cycles."""
STEP = 0.01


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
    q5, q7 = "PolarFly q = 5", "PolarFly q = 7"
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
    for network in ("Slim Fly q = 5", "Dragonfly h = 2", "PolarStar IQ q = 3"):
        yield Case(network, "uniform", "MIN", 0.3)
    yield from (Case(q5, "uniform", routes, 0) for routes in ROUTES)
    yield Case(q5, "perm2hop", "UGAL_PF", 0)
    yield from (Case(q7, "uniform", routes, 0.4) for routes in ROUTES)
    yield from (Case(q7, "uniform", routes, 0) for routes in ROUTES)


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

    def point(load: float) -> LoadPoint:
        return simulate(network, traffic, replace(settings, loads=(load,), level=level)).points[0]

    return _found(case, lambda load: point(load).mean_latency)


def theirs(case: Case, booksim: Path) -> float:
    """BookSim's."""
    routes = ROUTES[case.routes][0]
    run = partial(program.run, booksim, *prepared(case), routes)
    return _found(case, lambda load: run(load).latency)


def _found(case: Case, latency: Callable[[float], float | None]) -> float:
    if case.load:
        found = latency(case.load)
        assert found is not None, case
        return round(found, 2)
    below, above = 0, round(1 / STEP) + 1
    while above - below > 1:
        middle = (below + above) // 2
        found = latency(middle * STEP)
        full = found is None or found > FULL
        below, above = (below, middle) if full else (middle, above)
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
    """Add what is not there."""
    known = read()
    for case in CASES:
        if case not in known:
            values = theirs(case, booksim), *(ours(case, level) for level in LEVELS)
            with FILE.open("a", newline="") as stream:
                csv.writer(stream, lineterminator="\n").writerow([*case, *values])


if __name__ == "__main__":
    given = Path(sys.argv[1])
    if given.is_dir():
        with TemporaryDirectory() as name:
            measure(program.build(given, Path(name)))
    else:
        measure(given)
