"""The engines by name: the abilities of each, and its construction.

`mininet_scenarios.run.emulation` chooses an engine, requires its abilities, and makes it here.
"""

from __future__ import annotations

from inventory.problems import InputError, Problem
from mininet_scenarios.scenario.engine import Ability, Engine, Setup

ENGINES: dict[str, frozenset[Ability]] = {
    # Open vSwitch, Mininet hosts and the real controller, in namespaces of their own.
    "mininet": frozenset({"events", "rules", "flows", "rates", "repair", "intermediates"}),
    # A thousand switches in one Open vSwitch, and the real controller; no hosts.
    "ovs-fabric": frozenset({"events", "rules", "paths", "repair", "intermediates"}),
    # Linux kernels, and FRR's daemons, with the rendered configurations of these targets.
    "linux": frozenset(),
    "frr": frozenset(),
    # The packet walker and max-min fair flows: no packet is sent.
    "model": frozenset({"events", "flows", "rates", "paths", "repair", "intermediates"}),
}
"""The abilities of each engine (`mininet_scenarios.scenario.engine`): to apply the events of a
timeline, to send packets to all rules, to send flows, to limit the rates of links, to observe the
path of each pair, to let a controller repair the tables, and to have switches choose intermediates.
An engine with rules runs the controller, on Ryu or os-ken."""


def make(name: str, setup: Setup) -> Engine:
    """Make an engine. Only its own modules are imported, as Mininet may not be installed."""
    if name == "model":
        from mininet_scenarios.engines.model_engine import ModelEngine

        return ModelEngine(setup)
    from mininet_scenarios.engines.inner_engine import FabricEngine, MininetEngine, RoutedEngine

    if name == "mininet":
        return MininetEngine(setup)
    return FabricEngine(setup) if name == "ovs-fabric" else RoutedEngine(setup, name)


def require(name: str, purposes: dict[Ability, str]) -> None:
    """Require that an engine has the abilities that a scenario needs.

    Args:
        name: of `ENGINES`.
        purposes: by ability that is needed, the part of the scenario that needs it.

    Raises:
        InputError: the engine lacks abilities; one problem for each of them.
    """
    able_engines = [engine for engine, abilities in ENGINES.items() if purposes.keys() <= abilities]
    todo = f"use `engine {' or '.join(able_engines)}`" if able_engines else "leave it out"
    problems = []
    for ability, purpose in purposes.items():
        if ability not in ENGINES[name]:
            problems.append(
                Problem(
                    key=f"engine {name}",
                    required=f"an engine that can do {purpose} ({ability})",
                    given=name,
                    todo=todo,
                )
            )
    if problems:
        raise InputError(problems)
