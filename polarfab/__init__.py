"""polarfab, a fabric compiler: low-diameter topologies to verified forwarding tables.

The public Python API; what it needs is imported on first use:

    import polarfab
    build = polarfab.compile("fabric.yaml", "build")
    report = polarfab.verify(build)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polarfab.api import Build, InputError, Report, compile, load, topology, verify

__version__ = "0.1.0"
__all__ = ["Build", "InputError", "Report", "compile", "load", "topology", "verify"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'polarfab' has no attribute {name!r}")
    from polarfab import api

    return getattr(api, name)
