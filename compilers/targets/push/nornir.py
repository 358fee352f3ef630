"""The nornir target: an inventory for SimpleInventory that names another target's files
(docs/automation.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from compilers.tables.build import Build
from compilers.targets.options import Chosen, choose
from compilers.targets.push import pushed_files
from compilers.targets.rendering import Renderer, Written, require_all
from compilers.targets.template_check import known

FILES = ("config.yaml", "hosts.yaml", "groups.yaml", "defaults.yaml")
VARIABLES = known(FILES, "name identity system platform nodes files")
NORNIR_PLATFORMS = {
    "frr": "linux",
    "linux": "linux",
    "sonic": "linux",
    "eos": "eos",
    "nxos": "nxos_ssh",
    "junos": "junos",
    "srlinux": "srl",
}
"""The platform of a system in the words of NAPALM and its community drivers."""
OPTIONS = pushed_files.options(*NORNIR_PLATFORMS)


def render(
    build: Build,
    out: Path,
    templates: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    options: Chosen | None = None,
    only: Collection[int] | None = None,
) -> Written:
    """Write OUT/hosts.yaml and the files beside it; see `compilers.targets.Target.render`."""
    require_all("nornir", only)
    chosen = choose("nornir", OPTIONS, options)
    renderer = Renderer("nornir", templates, VARIABLES)
    how = {"platform": NORNIR_PLATFORMS[chosen[pushed_files.SYSTEM]]}
    return pushed_files.write_all(
        renderer, out, FILES, pushed_files.variables(build, chosen) | how, progress
    )
