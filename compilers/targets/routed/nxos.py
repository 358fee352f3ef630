"""The nxos target: a device config for NX-OS (docs/nxos.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.features import AGGREGATES
from compilers.targets.options import Chosen, choose
from compilers.targets.rendering import Renderer, Written
from compilers.targets.routed.interfaces import NXOS
from compilers.targets.routed.p2p_links import COMMON, OPTIONS, Numbered
from compilers.targets.template_check import known

__all__ = ["CAPABILITIES", "FILES", "OPTIONS", "render"]

FILES = ("nxos.cfg",)
VARIABLES = known(FILES, COMMON)
CAPABILITIES = Capabilities("nxos", frozenset({AGGREGATES}))


def render(
    build: Build,
    out: Path,
    templates: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    options: Chosen | None = None,
    only: Collection[int] | None = None,
) -> Written:
    """Write the files of every switch; see `compilers.targets.Target.render`."""
    chosen = choose("nxos", OPTIONS, options)
    require(build, chosen)
    renderer = Renderer("nxos", templates, VARIABLES, only)
    numbered = Numbered.of(build, NXOS, chosen)

    def write(vertex: int, name: str) -> None:
        renderer.write(out / name, FILES, numbered.variables(vertex))

    renderer.each(build, write, progress)
    return renderer.written


def require(build: Build, chosen: Chosen) -> None:  # noqa: ARG001
    """Pass when NX-OS can do what is asked; see `compilers.targets.Target.require`."""
    CAPABILITIES.require(build)
