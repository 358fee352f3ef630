"""The junos target: a device config for Junos (docs/junos.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.features import AGGREGATES, INGRESS, WEIGHTS
from compilers.targets.options import Chosen, choose
from compilers.targets.rendering import Renderer, Written
from compilers.targets.routed.interfaces import JUNOS
from compilers.targets.routed.junos_ingress import entering
from compilers.targets.routed.p2p_links import COMMON, OPTIONS, Numbered
from compilers.targets.template_check import known

__all__ = ["CAPABILITIES", "FILES", "OPTIONS", "render"]

FILES = ("junos.set",)
VARIABLES = known(FILES, COMMON, "entering4 entering6")
CAPABILITIES = Capabilities("junos", frozenset({AGGREGATES, INGRESS, WEIGHTS}))


def render(
    build: Build,
    out: Path,
    templates: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    options: Chosen | None = None,
    only: Collection[int] | None = None,
) -> Written:
    """Write the files of every switch; see `compilers.targets.Target.render`."""
    chosen = choose("junos", OPTIONS, options)
    require(build, chosen)
    renderer = Renderer("junos", templates, VARIABLES, only)
    numbered = Numbered.of(build, JUNOS, chosen)

    def write(vertex: int, name: str) -> None:
        variables = {**numbered.variables(vertex), **entering(numbered, vertex)}
        renderer.write(out / name, FILES, variables)

    renderer.each(build, write, progress)
    return renderer.written


def require(build: Build, chosen: Chosen) -> None:  # noqa: ARG001
    """Pass when Junos can do what is asked; see `compilers.targets.Target.require`."""
    CAPABILITIES.require(build)
