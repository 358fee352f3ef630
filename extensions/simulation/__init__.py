"""Simulate packets, cycle by cycle, through the tables of a build.

The functions here are those of the library: `simulate` measures latency over load,
`completion_time` a collective operation, and `trace_times` the packets of a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compilers.forwarding.walks import Progress
    from extensions.simulation.collective_completion import CompletionTime
    from extensions.simulation.latency_curve import LatencyCurve
    from extensions.simulation.packet_trace import TraceTimes
    from polarfab.fabric import Fabric

ENTRY_POINTS = {
    "polarfab.verbs": {"simulate": "extensions.simulation.simulate_verb:command"},
    "polarfab.functions": {
        "simulate": "extensions.simulation:simulate",
        "completion_time": "extensions.simulation:completion_time",
        "trace_times": "extensions.simulation:trace_times",
    },
    "polarfab.exports": {"booksim": "extensions.simulation.booksim_network:of_planes"},
}


def simulate(
    fabric: Fabric,
    pattern: str = "uniform",
    loads: Sequence[float] = (),
    hosts: int = 0,
    seed: int = 0,
    fail: Iterable[tuple[str, int]] = (),
    progress: Progress | None = None,
    scheduler: str = "",
    demand: str | Path | None = None,
    **options: int | str | float,
) -> LatencyCurve:
    """Send packets through the tables, cycle by cycle, at each load.

    Args:
        fabric: the fabric; it is compiled if it is not yet.
        pattern: the traffic, one of the patterns of `throughput`, or a CSV file of rates between
            switches. The switch that sends or receives most does so at the offered load.
        loads: parts of what the hosts' links carry; () for a tenth, two tenths … all of it.
        hosts: how many hosts each switch has; 0 for as many as it was built with.
        seed: the seed of all random numbers; the same seed has the same result.
        fail: what goes down, a node or a link as `A-B`, and the cycle before which it does.
        progress: called with the number of loads that are done, and of all.
        scheduler: the address of a Dask scheduler whose workers share the loads.
        demand: a file of rates of any name, in place of a pattern.
        options: fields of `extensions.simulation.load_point.SimulationSettings`.

    Raises:
        InputError: there is no such pattern, node or link, a setting is not allowed, or there is
            too little memory.
    """
    from compilers.evaluation.pattern_traffic import RATES_SUFFIX
    from compilers.memory_bound import FLOW_BYTES, MemoryBound
    from compilers.workers.local_processes import workers_at
    from extensions.simulation.build_simulation import simulate_build
    from extensions.simulation.chosen_settings import settings_for

    MemoryBound.of_build(fabric.build).storing(FLOW_BYTES).require()
    settings = settings_for(fabric.build, loads, seed, fail, options)
    file = demand or (pattern if pattern.endswith(RATES_SUFFIX) else None)
    traffic = Path(file) if file else pattern
    with workers_at(scheduler, zip((fabric.build,), fabric.folders)) as workers:  # noqa: B905
        return simulate_build(
            fabric.build,
            pattern=traffic,
            hosts=hosts,
            settings=settings,
            progress=progress,
            workers=workers,
        )


def completion_time(
    fabric: Fabric,
    collective: str,
    size: int = 1 << 16,
    hosts: int = 0,
    seed: int = 0,
    fail: Iterable[tuple[str, int]] = (),
    **options: int | str | float,
) -> CompletionTime:
    """Simulate a collective operation over all hosts, numbered switch by switch.

    Args:
        fabric: the fabric; it is compiled if it is not yet.
        collective: `ring-allreduce`, `tree-allreduce`, `all-to-all` or `sweep3d`.
        size: the bytes of the vector that is reduced, or of each message.
        hosts: how many hosts each switch has; 0 for as many as it was built with.
        seed: the seed of the paths that packets take.
        fail: what goes down, a node or a link as `A-B`, and the cycle before which it does. Packets
            on a link that goes down are lost, and not sent again: a collective that needs one of
            them does not end.
        options: fields of `extensions.simulation.load_point.SimulationSettings`.

    Raises:
        InputError: there is no such collective, a setting is not allowed, there are too many
            messages, or there is too little memory.
    """
    from compilers.memory_bound import FLOW_BYTES, MemoryBound
    from extensions.simulation import collective_completion
    from extensions.simulation.chosen_settings import settings_for

    MemoryBound.of_build(fabric.build).storing(FLOW_BYTES).require()
    options |= collective_completion.TO_THE_END
    settings = settings_for(fabric.build, (), seed, fail, options)
    return collective_completion.completion_time(fabric.build, collective, size, hosts, settings)


def trace_times(
    fabric: Fabric,
    file: str | Path,
    hosts: int = 0,
    seed: int = 0,
    fail: Iterable[tuple[str, int]] = (),
    **options: int | str | float,
) -> TraceTimes:
    """Simulate the packets of a file: lines of cycle, source, destination and flits.

    Args:
        fabric: the fabric; it is compiled if it is not yet.
        file: the trace; hosts in it are numbered switch by switch.
        hosts: how many hosts each switch has; 0 for as many as it was built with.
        seed: the seed of the paths that packets take.
        fail: what goes down, as for `completion_time`.
        options: fields of `extensions.simulation.load_point.SimulationSettings`.

    Raises:
        InputError: a line is wrong, a setting is not allowed, or there is too little memory.
    """
    from compilers.memory_bound import FLOW_BYTES, MemoryBound
    from extensions.simulation.chosen_settings import settings_for
    from extensions.simulation.collective_completion import TO_THE_END
    from extensions.simulation.packet_trace import trace_times as trace_times_of_build

    MemoryBound.of_build(fabric.build).storing(FLOW_BYTES).require()
    settings = settings_for(fabric.build, (), seed, fail, options | TO_THE_END)
    return trace_times_of_build(fabric.build, Path(file), hosts, settings)
