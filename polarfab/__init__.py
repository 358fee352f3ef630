"""polarfab, a fabric compiler: low-diameter topologies to verified forwarding tables.

The public Python API. The module of a name is imported when the name is first used:

    import polarfab
    fabric = polarfab.Fabric.from_spec("fabric.yaml").compile()
    assert fabric.verify().passed
    fabric.save("build")

Some names are for packages that extend polarfab: `Target`, `Option`, `Capabilities` and `Build` for
a target, with `P2pTarget` and `Interfaces` for a router; `Addition` for files that are added to a
target of polarfab; `Family`, `Graph` and `Topology` for a family of topologies; `Balance` and
`Forwarding` for a balance.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compilers.readers.emitted_report import EmittedWrongError
    from compilers.spec.balances import Balance
    from compilers.spec.forwarding import Forwarding
    from compilers.tables.build import Build
    from compilers.targets.addition import Addition
    from compilers.targets.capabilities import Capabilities
    from compilers.targets.options import Option
    from compilers.targets.routed.interfaces import Interfaces
    from compilers.targets.routed.p2p_target import P2pTarget
    from compilers.targets.target import Target
    from compilers.topology.adjacency import Graph
    from compilers.topology.family import Family
    from compilers.topology.labelled_graph import Topology
    from inventory.problems import InputError
    from mininet_scenarios.run.rehearsal_plan import WrongTables
    from mininet_scenarios.scenario.engine import EngineError
    from polarfab.cabling import cable_paths, cables, check_wiring, lost_links
    from polarfab.drawing import chart, draw
    from polarfab.exports import export, netbox, to_networkx
    from polarfab.fabric import Fabric
    from polarfab.measures import analyse, guarantee, guarantees_after, throughput, tradeoff
    from polarfab.rehearsals import emulate, rehearse
    from polarfab.switches import apply, check_routes, push, running
    from polarfab.topologies import design, minimal_path, minimal_paths, topology

__version__ = "0.1.0"
__all__ = [
    "Addition",
    "Balance",
    "Build",
    "Capabilities",
    "EmittedWrongError",
    "EngineError",
    "Fabric",
    "Family",
    "Forwarding",
    "Graph",
    "InputError",
    "Interfaces",
    "Option",
    "P2pTarget",
    "Target",
    "Topology",
    "WrongTables",
    "analyse",
    "apply",
    "cable_paths",
    "cables",
    "chart",
    "check_routes",
    "check_wiring",
    "design",
    "draw",
    "emulate",
    "export",
    "guarantee",
    "guarantees_after",
    "lost_links",
    "minimal_path",
    "minimal_paths",
    "netbox",
    "push",
    "rehearse",
    "running",
    "throughput",
    "to_networkx",
    "topology",
    "tradeoff",
]
HOMES = {
    "Addition": "compilers.targets.addition",
    "Balance": "compilers.spec.balances",
    "Build": "compilers.tables.build",
    "Capabilities": "compilers.targets.capabilities",
    "EmittedWrongError": "compilers.readers.emitted_report",
    "EngineError": "mininet_scenarios.scenario.engine",
    "Fabric": "polarfab.fabric",
    "Family": "compilers.topology.family",
    "Forwarding": "compilers.spec.forwarding",
    "Graph": "compilers.topology.adjacency",
    "InputError": "inventory.problems",
    "Interfaces": "compilers.targets.routed.interfaces",
    "Option": "compilers.targets.options",
    "P2pTarget": "compilers.targets.routed.p2p_target",
    "Target": "compilers.targets.target",
    "Topology": "compilers.topology.labelled_graph",
    "WrongTables": "mininet_scenarios.run.rehearsal_plan",
    **dict.fromkeys(("cable_paths", "cables", "check_wiring", "lost_links"), "polarfab.cabling"),
    **dict.fromkeys(("chart", "draw"), "polarfab.drawing"),
    **dict.fromkeys(("export", "netbox", "to_networkx"), "polarfab.exports"),
    **dict.fromkeys(
        ("analyse", "guarantee", "guarantees_after", "throughput", "tradeoff"), "polarfab.measures"
    ),
    **dict.fromkeys(("emulate", "rehearse"), "polarfab.rehearsals"),
    **dict.fromkeys(("apply", "check_routes", "push", "running"), "polarfab.switches"),
    **dict.fromkeys(("design", "minimal_path", "minimal_paths", "topology"), "polarfab.topologies"),
}
"""The module of each public name; functions of extensions are registered by entry points."""


def __getattr__(name: str) -> Any:
    """Import a public name, or a function that an extension registers."""
    if name in HOMES:
        return getattr(import_module(HOMES[name]), name)
    if not name.startswith("_"):
        points = import_module("compilers.entry_points")
        for entry in points.registered(points.FUNCTIONS).get(name, ()):
            return points.load(entry)
    raise AttributeError(f"module 'polarfab' has no attribute {name!r}")


def __dir__() -> list[str]:
    """All public names, also those that are not imported yet."""
    points = import_module("compilers.entry_points")
    return [*globals(), *__all__, *points.registered(points.FUNCTIONS)]
