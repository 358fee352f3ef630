"""Builds on nodes with several modules, made without files."""

from __future__ import annotations

from functools import cache
from typing import Any

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build


@cache
def modular(
    q: int, modules: int, size: int = 8, placement: str = "spread", **routing: str
) -> Build:
    """A PolarFly on nodes whose links are on `modules` modules of `size` ports."""
    topology = {"family": "polarfly", "q": q}
    return on_modules(topology, modules, size, placement, **{"protect": "module", **routing})


def on_modules(
    topology: dict[str, Any], modules: int, size: int, placement: str = "spread", **routing: str
) -> Build:
    """Any fabric on nodes with so many modules of so many ports for links."""
    optics = {"name": "m{module}/{}", "modules": modules, "count": size, "role": "fabric"}
    ports = [optics, {"name": "h{}", "count": 4, "role": "host"}]
    inventory = {
        "node_types": {"leaf": {"ports": ports, "units": 1}},
        "generate": {"type": "leaf", "racks": {"units": 8}},
        "placement": {"modules": placement},
    }
    keys = {"name": "lab", "topology": topology, "routing": routing, "inventory": inventory}
    return compile_fabric(load_fabric(keys))
