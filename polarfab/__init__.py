"""polarfab, a fabric compiler: low-diameter topologies to verified forwarding tables.

The public Python API; what it needs is imported on first use:

    import polarfab
    fabric = polarfab.Fabric.from_spec("fabric.yaml").compile()
    assert fabric.verify().passed
    fabric.save("build")

`Target`, `Option`, `Capabilities` and `Build` are for packages that bring a target of their own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compilers.tables.build import Build
    from compilers.targets.capabilities import Capabilities
    from compilers.targets.options import Option
    from compilers.targets.target import Target
    from inventory.problems import InputError
    from mininet_scenarios.run.plane_emulation import emulate
    from polarfab.fabric import Fabric
    from polarfab.topologies import analyse, design, draw, reproduce, topology

__version__ = "0.1.0"
__all__ = [
    "Build",
    "Capabilities",
    "Fabric",
    "InputError",
    "Option",
    "Target",
    "analyse",
    "design",
    "draw",
    "emulate",
    "reproduce",
    "topology",
]
HOMES = {
    "Build": "compilers.tables.build",
    "Capabilities": "compilers.targets.capabilities",
    "Fabric": "polarfab.fabric",
    "InputError": "inventory.problems",
    "Option": "compilers.targets.options",
    "Target": "compilers.targets.target",
    "emulate": "mininet_scenarios.run.plane_emulation",
    **dict.fromkeys(("analyse", "design", "draw", "reproduce", "topology"), "polarfab.topologies"),
}
"""The module of each public name."""


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'polarfab' has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
