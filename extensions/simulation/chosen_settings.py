"""The settings of a simulation as a user chose them: checked, with failures as links.

`settings_for` makes the `SimulationSettings` that `build_simulation` and the other simulations of
the library take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

import numpy as np

from compilers.proof.name_lookup import find_failures
from compilers.tables.build import Build
from extensions.simulation.flit_router import USUAL_ROUTER, FlitRouter
from extensions.simulation.load_point import (
    LEVELS,
    OWN_PATH_POLICIES,
    PATHS,
    POLICIES,
    SCHEMES,
    USUAL_LOADS,
    SimulationSettings,
    TimedFailure,
)
from inventory.problems import InputError, at_key, not_among

CHOICES = {"routing": POLICIES, "scheme": SCHEMES, "level": LEVELS, "paths": PATHS}
"""The values that settings of these names may have."""
LEAST_VALUES = {
    "packet": 1,
    "buffer": 1,
    "vcs": 1,
    "warmup": 0,
    "period": 1,
    "periods": 1,
    "drain": 0,
    "flows": 0,
    "samples": 1,
    "runs": 1,
    "link": 1,
}
"""The least values that settings of these names may have."""


def settings_for(
    build: Build,
    loads: Sequence[float] = (),
    seed: int = 0,
    fail: Iterable[tuple[str, int]] = (),
    options: Mapping[str, int | str | float] | None = None,
) -> SimulationSettings:
    """The settings of a simulation of a build.

    Args:
        build: the build that is simulated; nodes and links of `fail` are looked up in it.
        loads: the offered loads; () for the usual ones.
        seed: the seed of all random numbers.
        fail: what goes down, a node or a link as `A-B`, and the cycle before which it does.
        options: fields of `SimulationSettings`; None stands for the usual value.

    Raises:
        InputError: there is no such node, link or setting, or a value is not allowed.
    """
    # Values of numpy become those of Python, which JSON can have.
    chosen = {
        name: int(value) if isinstance(value, np.integer) else value
        for name, value in (options or {}).items()
        if value is not None
    }
    _check_values(chosen)
    # So far it is the text that the user gave, from here on the router that it describes.
    chosen["router"] = FlitRouter.read(str(chosen.get("router", "")))  # type: ignore[assignment]
    for load in loads:
        if not 0 < load <= 1:
            required = "loads above 0 and up to 1, parts of what the hosts' links carry"
            raise InputError.of(required, f"{load:g}", key="load")
    with at_key("fail"):
        failures = tuple(TimedFailure(_links_down_with(build, name), cycle) for name, cycle in fail)
    settings = SimulationSettings(
        loads=tuple(loads) or USUAL_LOADS,
        seed=seed,
        failures=failures,
        **chosen,  # type: ignore[arg-type]
    )
    _check_together(settings)
    return settings


def _check_values(chosen: Mapping[str, object]) -> None:
    """Require that settings of these names exist and may have these values.

    Raises:
        InputError: there is no such setting, or its value is not allowed.
    """
    names = {field.name for field in fields(SimulationSettings)}
    for name, value in chosen.items():
        if name not in names:
            raise InputError.of("a setting of SimulationSettings", name, ", ".join(sorted(names)))
        if name in CHOICES and value not in CHOICES[name]:
            raise InputError(not_among(str(value), CHOICES[name], name))
        if name in LEAST_VALUES and not (isinstance(value, int) and value >= LEAST_VALUES[name]):
            raise InputError.of(f"a number from {LEAST_VALUES[name]}", str(value), key=name)


def _check_together(settings: SimulationSettings) -> None:
    """Require that the settings fit each other.

    Raises:
        InputError: two settings exclude each other, a failure comes too late, or a buffer is too
            small.
    """
    if settings.failures and settings.level == "flit":
        raise InputError.of("`level packet`, to have failures", "flit", key="level")
    if settings.router != USUAL_ROUTER and settings.level != "flit":
        raise InputError.of("`level flit`, to choose a router", settings.level, key="level")
    _check_needs_tables(settings)
    for failure in settings.failures:
        if failure.cycle >= settings.last:
            required = f"a cycle before {settings.last:,}, when the measurement ends"
            raise InputError.of(required, str(failure.cycle), key="fail")
    if settings.buffer < settings.vcs * settings.packet:
        required_buffer = (
            f"at least a packet of {settings.packet} flits for each of {settings.vcs} channels"
        )
        raise InputError.of(required_buffer, f"{settings.buffer} flits", key="buffer")


def _check_needs_tables(settings: SimulationSettings) -> None:
    """Require that packets follow the tables, if a setting needs that.

    Only routing by the tables supports failures and hashed flows. Policies with paths of their own
    use no tables.

    Raises:
        InputError: packets take paths of their own, and a setting is about tables.
    """
    for name, value in (("fail", settings.failures), ("flows", settings.flows)):
        if value and settings.routing in OWN_PATH_POLICIES:
            required = f"the rule of forwarding with `{name}`: minimal, emitted or adaptive"
            by_table = " by paths of the tables" if settings.paths == "table" else ""
            raise InputError.of(required, settings.routing + by_table, key="routing")


def _links_down_with(build: Build, name: str) -> tuple[tuple[int, int], ...]:
    """The links that go down with a link, a node or a group, as pairs of switches, each once.

    Raises:
        InputError: the build has no such link, node or group.
    """
    link_ends, far = build.wiring.link_ends().tolist(), build.wiring.far
    down: list[tuple[int, int]] = []
    for element in find_failures(build, name):
        # Elements are numbered: links first, then switches.
        if element < len(link_ends):
            down.append((link_ends[element][0], link_ends[element][1]))
        else:
            switch = element - len(link_ends)
            neighbours = np.unique(far[switch][far[switch] >= 0]).tolist()
            down += [(switch, neighbour) for neighbour in neighbours]
    return tuple(dict.fromkeys(down))
