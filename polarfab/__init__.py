"""polarfab, a fabric compiler: low-diameter topologies to verified forwarding tables.

The public Python API; what it needs is imported on first use:

    import polarfab
    build = polarfab.compile("fabric.yaml", "build")
    report = polarfab.verify(build)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compilers.targets.capabilities import Capabilities
    from compilers.targets.options import Option
    from compilers.targets.target import Target
    from polarfab.api import Build, InputError, Report, compile, load, topology, verify

__version__ = "0.1.0"
__all__ = [
    "Build",
    "Capabilities",
    "InputError",
    "Option",
    "Report",
    "Target",
    "compile",
    "load",
    "topology",
    "verify",
]
HOMES = {
    "Capabilities": "compilers.targets.capabilities",
    "Option": "compilers.targets.options",
    "Target": "compilers.targets.target",
}
"""The module of each name that is not in `polarfab.api`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'polarfab' has no attribute {name!r}")
    return getattr(import_module(HOMES.get(name, "polarfab.api")), name)
