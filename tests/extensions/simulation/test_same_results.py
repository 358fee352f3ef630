"""The same seed has the same result, bit by bit, however fast the loops are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

import numpy as np

from compilers.tables.build import Build
from extensions.simulation.build_simulation import network_for
from extensions.simulation.channel_counts import with_channels
from extensions.simulation.chosen_settings import settings_for
from extensions.simulation.collective_completion import COLLECTIVES, run_messages
from extensions.simulation.host_messages import HostMessages
from extensions.simulation.load_point import SimulationSettings
from extensions.simulation.measurement import Measurement
from extensions.simulation.simulated_network import HostTraffic
from polarfab.fabric import Fabric

PLAIN = {"family": "polarfly", "q": 5}
GRID = {"family": "hyperx", "sides": "3x3"}
SHORT = {"warmup": 200, "period": 150, "periods": 2, "drain": 600}
PROTECTED = {"protect": "link"}
BUILDS = {
    "minimal": (PLAIN, {}),
    "protected": (PLAIN, PROTECTED),
    "compact": (PLAIN, {"balance": "compact-valiant", **PROTECTED}),
    "bounce": (PLAIN, {"balance": "compact-valiant", "adjacent": "bounce"}),
    "valiant": (PLAIN, {"balance": "valiant", **PROTECTED}),
    "spread": (PLAIN, {"balance": "spread", **PROTECTED}),
    "shared": (GRID, {"balance": "ecmp", "transit": "ecmp", **PROTECTED}),
    "slimfly": ({"family": "slimfly", "q": 5}, {}),
}
CASES: dict[str, tuple[dict, ...]] = {
    "minimal": (
        {},
        {"load": 0.05},
        {"load": 1.0, "vcs": 1, "buffer": 8, "drain": 3000},
        {"load": 0.9, "packet": 1, "link": 3},
        {"load": 0.8, "packet": 3, "buffer": 36},
        {"load": 0.8, "packet": 5, "buffer": 45, "vcs": 3, "link": 7},
        {"load": 0.6, "metres": 0.5, "seed": 3},
        {"load": 0.9, "hosts": 5, "pattern": "tornado", "scheme": "hop"},
        {"load": 0.9, "scheme": "valley", "vcs": 6, "buffer": 96},
        {"load": 0.5, "pattern": "hotspot", "vcs": 20, "buffer": 160},
        {"load": 0.7, "routing": "ugal", "pattern": "perm2hop"},
        {"load": 0.5, "routing": "ugal", "paths": "table", "samples": 1},
        {"load": 0.4, "pattern": "perm1hop", "routing": "ugal-pf", "paths": "table"},
        {"load": 0.4, "routing": "valiant"},
        {"load": 0.4, "routing": "valiant", "paths": "table", "scheme": "hop", "vcs": 8},
        {"load": 0.6, "routing": "shortest", "hosts": 1},
        {"load": 0.5, "routing": "ugal-pf", "pattern": "perm1hop"},
        {"load": 0.9, "routing": "ugal-pf", "paths": "table", "threshold": 0.02, "packet": 3},
    ),
    "protected": ({"fail": "5"}, {"fail": "0-1", "load": 0.9, "packet": 3}),
    "compact": (
        {"load": 0.6},
        {"load": 0.6, "routing": "adaptive", "pattern": "perm2hop", "threshold": 0.25},
        {"load": 0.7, "routing": "adaptive", "packet": 3, "link": 2},
        {"load": 0.5, "flows": 3},
        {"fail": "7"},
    ),
    "bounce": (
        {"load": 0.8, "pattern": "perm1hop", "routing": "adaptive"},
        {"load": 0.6, "scheme": "valley", "vcs": 8, "routing": "adaptive"},
    ),
    "valiant": ({"load": 0.4}, {"load": 0.4, "routing": "minimal"}, {"fail": "2"}),
    "spread": ({"load": 0.4}, {"load": 0.4, "flows": 2}, {"fail": "3"}),
    "shared": ({"load": 0.7}, {"fail": "4"}),
    "slimfly": ({"load": 0.6, "routing": "ugal"}, {"load": 0.95, "routing": "shortest"}),
}  # fmt: skip


def known(run: Measurement, *more: object) -> str:
    """What a run says, in short: a digest of it, with every draw of chance, and what is read."""
    state = run.state
    arrays = (state.latency, state.hops, state.carried_flits, state.streams, state.counts)
    text = repr((run.next_cycle, run.mean_latencies, run.packets_in_network, more)).encode()
    told = sha256(b"".join((text, *(np.ascontiguousarray(each).tobytes() for each in arrays))))
    return told.hexdigest()[:16]


def asked(build: Build, case: dict, level: str) -> str:
    given = {**SHORT, **case, "level": level}
    load, hosts = given.pop("load", 0.5), given.pop("hosts", 3)
    pattern, fail = given.pop("pattern", "uniform"), given.pop("fail", "")
    failures = [(_word(build, fail), 301)] if fail else []
    settings = settings_for(build, (load,), given.pop("seed", 0), failures, given)
    network = network_for(build, hosts, settings)
    settings = with_channels(build, network, settings)
    traffic = HostTraffic.of_pattern(pattern, build.topology, hosts, 0)
    run = Measurement.of(network, traffic, settings, load)
    point = run.point()
    read = f"{point.accepted:.3f} {point.mean_latency or 0:.2f} {point.lost} {point.deadlock}"
    return f"{known(run, point)} {read}"


def _word(build: Build, fail: str) -> str:
    """A node, or the first link of one, by its names."""
    names, (node, *link) = build.wiring.names, map(int, fail.split("-"))
    return f"{names[node]}-{names[build.wiring.far[node, 0]]}" if link else names[node]


def messages(build: Build, name: str, packets: int, settings: SimulationSettings) -> str:
    network = network_for(build, 2, settings)
    made = COLLECTIVES[name](2 * network.switches)
    run, state, cycles = run_messages(
        build, network, settings,
        lambda arcs: HostMessages.of(arcs, *made[:4], packets), packets * len(made.source),
    )  # fmt: skip
    return f"{known(run, state.messages.done_cycle.tobytes())} {cycles}"


def test_every_run_is_what_it_was(golden: Callable[[str, str], None]) -> None:
    lines = []
    for name, (topology, routing) in BUILDS.items():
        spec = {"name": "lab", "topology": topology}
        build = Fabric.from_spec({**spec, "routing": routing} if routing else spec).build
        for case in CASES[name]:
            for level in ("packet",) if "fail" in case else ("packet", "flit"):
                words = " ".join(f"{key}={value}" for key, value in case.items())
                lines.append(f"{name} {words} {level}: {asked(build, case, level)}")
        if name == "protected":
            for collective in ("tree-allreduce", "all-to-all"):
                settings = replace(settings_for(build), packet=3)
                found = messages(build, collective, 2, settings)
                lines.append(f"{name} {collective}: {found}")
    golden("\n".join(lines) + "\n", "same_results.txt")
