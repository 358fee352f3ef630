"""How well our simulator and BookSim agree: points of both as CSV, and a table for the manual.

`python -m tests.extensions.simulation.booksim.agreement CHECKOUT`, a checkout of IntelLabs/PolarFly
at `program.COMMIT`, builds BookSim and adds the points that `agreement.csv` lacks, on all cores; a
program that is built will do, too. Then, and without it, the table of `PAGE` is written. Delete
lines to have them measured again.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache, partial
from math import isnan, nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from extensions.simulation.build_simulation import network_for
from extensions.simulation.flit_router import FlitRouter
from extensions.simulation.latency_curve import simulate
from extensions.simulation.load_point import LEVELS, SimulationSettings
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork
from polarfab.fabric import Fabric
from tests.extensions.simulation.booksim import program

FILE = Path(__file__).parent / "agreement.csv"
PAGE = Path(__file__).parents[4] / "docs/evidence.md"
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
FAR = ("Dragonfly h = 2", "PolarStar IQ q = 3")
"""Of diameter 3."""
ROUTES = {
    "MIN": ("min", {"routing": "minimal"}),
    "MIN, stages overlap": ("min", {"routing": "minimal"}),
    "VAL": ("val", {"routing": "valiant", "paths": "table"}),
    "UGAL": ("ugallnew", {"routing": "ugal", "paths": "table"}),
    "UGAL, links counted": ("ugallinks", {"routing": "ugal", "paths": "table"}),
    "UGAL_PF": ("ugall4_pf", {"routing": "ugal-pf", "paths": "table"}),
}
"""Theirs, and our settings. UGAL draws four routers.

Their UGAL takes each leg for one or two links, whatever it has; `ugallinks` is the same but for
that. Their stages of several cycles take nothing meanwhile, unless they overlap."""
SATURATES = 0
HOLDING = ("routing=3", "crossbar=4")
"""Routers with a stage of several cycles."""
ROUTERS = (
    "speedup=1", "speedup=3", "routing=0", "credit=8", "islip=1", "islip=2", "islip=1,speedup=1",
    *HOLDING,
)  # fmt: skip
COUNTED = "their UGAL takes each leg for one or two links; with the links counted it agrees"
HELD = "their stage of several cycles takes nothing meanwhile; where stages overlap it agrees"
LOWER = "ours saturates by .03 less: not explained"
CHANCE = "all end in a deadlock, at which load is chance: packets of seeds 0 to 5 from .88 to .9"
APART = {
    ("Dragonfly h = 2", "UGAL", 0.3, ""): COUNTED,
    ("Dragonfly h = 2", "UGAL", SATURATES, ""): COUNTED,
    ("PolarStar IQ q = 3", "UGAL", SATURATES, ""): COUNTED,
    ("Slim Fly q = 5", "UGAL", SATURATES, ""): LOWER,
    **{("PolarFly q = 5", "MIN", 0.5, router): HELD for router in HOLDING},
    ("PolarFly q = 5", "UGAL_PF", SATURATES, ""): CHANCE,
}
"""Network, routes, load and router of those that do not agree under uniform traffic, and why."""
HEAD = "| paths | points: latency, saturation | BookSim | packets | flits |\n"
SIMULATORS = ("BookSim", *LEVELS)
FULL = 100.0
"""A load is above saturation where the mean latency is more cycles, or the network deadlocks."""
STEP = 0.01
WHOLE = (0, round(1 / STEP) + 1)
"""Steps between which saturation is looked for."""
AROUND = 10
"""Steps below and above the saturation of our packets among which BookSim's is looked for first."""


class Case(NamedTuple):
    """What is simulated; load 0: where it saturates. link: cycles. router: as `--router` says."""

    network: str
    pattern: str
    routes: str
    load: float
    link: int = 1
    router: str = ""

    @property
    def name(self) -> tuple[str, str, float, str]:
        """In `APART`."""
        return self.network, self.routes, self.load, self.router


class Agreement(NamedTuple):
    """A case with mean latencies in cycles, or the loads of saturation.

    deadlocks: of `SIMULATORS`, those whose run above that load ended in a deadlock.
    """

    case: Case
    theirs: float
    packet: float
    flit: float
    deadlocks: frozenset[str]


class _Run(NamedTuple):
    """Of one load. latency: None if it grew without end."""

    latency: float | None
    deadlock: bool


class _Found(NamedTuple):
    """The latency, or the last load below saturation and whether a deadlock ended the next."""

    value: float
    deadlock: bool


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
    yield from (Case(q5, "uniform", routes, 0.3, link=10) for routes in ROUTES if "," not in routes)
    for pattern in ("complement", "transpose", "hotspot", "shuffle", "reverse"):
        yield Case(q5, pattern, "MIN", 0.1)
    for network in NETWORKS:
        counted = ("UGAL, links counted",) if network in FAR else ()
        also = ("UGAL_PF",) if "PolarFly" in network else counted
        for routes in ("MIN", "VAL", "UGAL", *also):
            if network != q5:
                yield Case(network, "uniform", routes, 0.3)
            yield Case(network, "uniform", routes, 0)
    for q in (7, 9, 13):
        for routes, load in (("MIN", 0.7), ("VAL", 0.4), ("UGAL", 0.7), ("UGAL_PF", 0.7)):
            yield Case(f"PolarFly q = {q}", "uniform", routes, load)
    yield Case(q5, "perm2hop", "UGAL_PF", 0)
    for router in ROUTERS:
        yield Case(q5, "uniform", "MIN", 0.5, router=router)
    for network in (q5, "PolarFly q = 7", "Slim Fly q = 5"):
        for routes in ("MIN", "UGAL"):
            for load in (0.3, 0):
                yield Case(network, "uniform", routes, load, router="speedup=1")
    for router in (*HOLDING, "routing=2,crossbar=5,credit=0,speedup=1"):
        yield Case(q5, "uniform", "MIN, stages overlap", 0.5, router=router)


CASES = tuple(_cases())


@cache
def _build(network: str) -> Fabric:
    topology, _ = NETWORKS[network]
    return Fabric.from_spec({"name": "lab", "topology": topology})


def prepared(case: Case) -> tuple[SimulatedNetwork, HostTraffic, SimulationSettings]:
    """What both simulate."""
    hosts = NETWORKS[case.network][1]
    build = _build(case.network).build
    router = FlitRouter.read(case.router)
    settings = SimulationSettings(**ROUTES[case.routes][1], link=case.link, router=router)  # type: ignore[arg-type]
    traffic = HostTraffic.of_pattern(case.pattern, build.topology, hosts, 0)
    return network_for(build, hosts, settings), traffic, settings


def ours(case: Case, level: str) -> _Found:
    """Our mean latency, or the saturation."""
    network, traffic, settings = prepared(case)

    def run(load: float) -> _Run:
        asked = replace(settings, loads=(load,), level=level)
        point = simulate(network, traffic, asked).points[0]
        return _Run(point.mean_latency, bool(point.deadlock))

    return _found(case, run, *WHOLE)


def theirs(case: Case, booksim: Path) -> _Found:
    """BookSim's."""
    known = *prepared(case), ROUTES[case.routes][0]
    given = partial(program.run, booksim, *known, overlap="overlap" in case.routes)

    def run(load: float) -> _Run:
        printed = given(load)
        return _Run(printed.latency, printed.deadlock)

    near = 0 if case.load else round(ours(case, levels(case)[0]).value / STEP)
    return _found(case, run, max(near - AROUND, 0), near + AROUND)


def levels(case: Case) -> tuple[str, ...]:
    """That a case has; packets go through the usual router only."""
    return ("flit",) if case.router else LEVELS


def _found(case: Case, run: Callable[[float], _Run], below: int, above: int) -> _Found:
    """At the load of the case, or of the last load below saturation, between two steps."""
    if case.load:
        found = run(case.load)
        assert found.latency is not None, case
        return _Found(round(found.latency, 2), False)
    ends, deadlock = (below, above), False
    while above - below > 1:
        middle = (below + above) // 2
        found = run(middle * STEP)
        if found.deadlock or found.latency is None or found.latency > FULL:
            above, deadlock = middle, found.deadlock
        else:
            below = middle
    if ends != WHOLE and (below == ends[0] or above == ends[1]):
        return _found(case, run, *WHOLE)
    return _Found(round(below * STEP, 2), deadlock)


def read() -> dict[Case, Agreement]:
    """What was measured."""
    known = {}
    if FILE.exists():
        with FILE.open() as stream:
            for network, pattern, routes, load, link, router, *values, names in csv.reader(stream):
                case = Case(network, pattern, routes, float(load), int(link), router)
                deadlocks = frozenset(names.split())
                known[case] = Agreement(case, *map(float, values), deadlocks)
    return known


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


def _measured(case: Case, booksim: Path) -> tuple[float | str, ...]:
    known = {level: ours(case, level) for level in levels(case)}
    found = theirs(case, booksim), *(known.get(level, _Found(nan, False)) for level in LEVELS)
    names = zip(SIMULATORS, found, strict=True)
    return *(each.value for each in found), " ".join(name for name, each in names if each.deadlock)


def named(case: Case) -> bool:
    """Whether a case is one that does not agree, for a reason in `APART`."""
    return case.pattern == "uniform" and case.name in APART


def _furthest(below: list[Agreement], full: list[Agreement], level: int) -> str:
    """The largest differences of latencies, of BookSim's, and of saturations."""
    latencies = [each[level] / each.theirs - 1 for each in below]
    loads = [each[level] - each.theirs for each in full]
    if any(map(isnan, latencies + loads)):
        return "–"
    found = (f"{100 * max(latencies, key=abs):+.1f} %",) if below else ()
    return ", ".join((*found, *([f"{max(loads, key=abs):+.2f}"] if full else [])))


def table() -> str:
    """For the manual: the largest differences of each kind of paths, then the cases of `APART`."""
    points = read().values()
    kinds: dict[str, list[Agreement]] = {}
    for each in points:
        if not named(each.case):
            router = ", other routers" if each.case.router else ""
            kinds.setdefault(f"{each.case.routes}{router}", []).append(each)
    lines = [HEAD, "|" + "---|" * 5 + "\n"]
    for kind, alike in kinds.items():
        below = [each for each in alike if each.case.load]
        full = [each for each in alike if not each.case.load]
        away = [_furthest(below, full, n) for n in (2, 3)]
        lines.append(f"| {kind} | {len(below)}, {len(full)} | – | {' | '.join(away)} |\n")
    for case, *values, _ in (each for each in points if named(each.case)):
        what = f"latency at {case.load:g}" if case.load else "saturation"
        cells = " | ".join("–" if isnan(value) else f"{value:g}" for value in values)
        router = f", `{case.router}`" if case.router else ""
        lines.append(f"| {case.routes}{router} | {case.network}: {what} | {cells} |\n")
    return "".join(lines)


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
