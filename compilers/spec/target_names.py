"""Names of targets: polarfab's own, and those that installed packages register.

A *target* is what polarfab writes files for. It is either a *system*, the operating system of
switches, or a *tool* that starts other systems or pushes files, and does not forward itself. A
system is a folder of `compilers/targets/` with a module `target`; a tool is a module of its folder
`push/`. Each has a folder of templates of its name. An extension or a package registers a target by
an entry point of the group `polarfab.targets`. No target is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

from compilers.entry_points import TARGETS, registered, shipped
from inventory.problems import nearest

TOOLS_FOLDER = "push"
"""The folder of tools."""
TARGETS_PACKAGE = f"{__package__.removesuffix('spec')}targets"
"""The package of the targets of the core."""


def _modules() -> dict[str, str]:
    """Return the module of each target of the core, below `compilers.targets`, by its name."""
    templates = Path(__file__).parents[2] / "templates"
    targets = Path(__file__).parents[1] / "targets"
    modules = {
        file.parent.name: f"{file.parent.name}.target" for file in targets.glob("*/target.py")
    }
    tools = (file.stem for file in (targets / TOOLS_FOLDER).glob("*.py"))
    modules |= {name: f"{TOOLS_FOLDER}.{name}" for name in tools if (templates / name).is_dir()}
    return dict(sorted(modules.items()))


BUILT_IN: Mapping[str, str] = _modules()
"""The module of each target of the core, below `compilers.targets`."""
_TOOLS = {name for name, module in BUILT_IN.items() if module.startswith(f"{TOOLS_FOLDER}.")}
"""The names of the tools."""
BUILT_IN_SYSTEMS = tuple(name for name in BUILT_IN if name not in _TOOLS)
"""The systems of the core."""
SHIPPED = tuple(sorted({*BUILT_IN, *shipped(TARGETS)}))
"""The targets of polarfab and of its extensions."""
SHIPPED_SYSTEMS = tuple(name for name in SHIPPED if name not in _TOOLS)
"""The systems of polarfab and of its extensions."""


@cache
def aliases() -> Mapping[str, str]:
    """Return other names that people use for systems of the core, each with the system's name."""
    packages = {name: import_module(f"{TARGETS_PACKAGE}.{name}") for name in BUILT_IN_SYSTEMS}
    return {
        alias: name
        for name, package in packages.items()
        for alias in getattr(package, "ALIASES", ())
    }


def meant_target(word: str, names: Iterable[str]) -> str:
    """Return the target that a word likely means, by any of its names; "" for none."""
    nearest_name = nearest(word, [*names, *aliases()])
    return aliases().get(nearest_name, nearest_name)


def target_names() -> list[str]:
    """Return the names of all installed targets."""
    return sorted({*SHIPPED, *registered(TARGETS)})


def system_names() -> list[str]:
    """Return the names that `system` of a fabric.yaml may have: installed targets that forward."""
    return sorted({*SHIPPED_SYSTEMS, *registered(TARGETS)})
