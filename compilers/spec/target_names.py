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


def _built_in_targets() -> dict[str, str]:
    """Return the module of each target of the core, below `compilers.targets`, by its name.

    A module of the folder of tools is a target if it has templates; others are helpers of tools.
    """
    templates = Path(__file__).parents[2] / "templates"
    targets = Path(__file__).parents[1] / "targets"
    systems = (file.parent.name for file in targets.glob("*/target.py"))
    modules = (file.stem for file in (targets / TOOLS_FOLDER).glob("*.py"))
    tools = (name for name in modules if (templates / name).is_dir())
    module_of_target = {name: f"{name}.target" for name in systems}
    module_of_target |= {name: f"{TOOLS_FOLDER}.{name}" for name in tools}
    return dict(sorted(module_of_target.items()))


BUILT_IN: Mapping[str, str] = _built_in_targets()
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
    """Return the systems of the core by other names that people use for them."""
    packages = {name: import_module(f"{TARGETS_PACKAGE}.{name}") for name in BUILT_IN_SYSTEMS}
    return {
        alias: name
        for name, package in packages.items()
        for alias in getattr(package, "ALIASES", ())
    }


def meant_target(misspelt: str, names: Iterable[str]) -> str:
    """Return the target that is likely meant by a name that no target has; "" for none.

    Args:
        misspelt: what a user wrote.
        names: the targets that may be meant. Aliases of systems are compared, too.
    """
    nearest_name = nearest(misspelt, [*names, *aliases()])
    return aliases().get(nearest_name, nearest_name)


def target_names() -> list[str]:
    """Return the names of all installed targets."""
    return sorted({*SHIPPED, *registered(TARGETS)})


def system_names() -> list[str]:
    """Return the names that `system` of a fabric.yaml may have: installed targets that forward."""
    return sorted({*SHIPPED_SYSTEMS, *registered(TARGETS)})
