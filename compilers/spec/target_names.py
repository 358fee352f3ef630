"""Names of targets: polarfab's own, and those that installed packages register.

A target of polarfab is a module of `compilers/targets/` with a folder of templates of its name. A
package registers one by an entry point of the group `polarfab.targets`; nothing of it is imported
here, nor any target of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from compilers.entry_points import TARGETS, registered
from inventory.problems import nearest

TOOLS_FOLDER = "push"
"""Of targets that forward nothing: they bring up others, or push what is rendered for others."""

VENDORS = {
    "arista": "eos",
    "cisco": "nxos",
    "cumulus": "nvue",
    "juniper": "junos",
    "nokia": "srlinux",
    "nvidia": "nvue",
    "openvswitch": "ovs",
}
"""The targets that people look for by another name."""


def _modules() -> dict[str, str]:
    templates = Path(__file__).parents[2] / "templates"
    files = (Path(__file__).parents[1] / "targets").glob("*/*.py")
    there = sorted((p.stem, p.parent.name) for p in files if (templates / p.stem).is_dir())
    return {name: f"{folder}.{name}" for name, folder in there}


BUILT_IN: Mapping[str, str] = _modules()
"""The module of each target of polarfab, below `compilers.targets`."""
BUILT_IN_SYSTEMS = tuple(n for n, m in BUILT_IN.items() if not m.startswith(f"{TOOLS_FOLDER}."))
"""Those that forward."""


def meant_target(word: str, names: Iterable[str]) -> str:
    """The target that a word, or a vendor like it, means; "" for none."""
    near = nearest(word, [*names, *VENDORS])
    return VENDORS.get(near, near)


def target_names() -> list[str]:
    """Every target that is installed."""
    return sorted({*BUILT_IN, *registered(TARGETS)})


def system_names() -> list[str]:
    """Targets that `targets` of a fabric.yaml may name: those that forward."""
    return sorted({*BUILT_IN_SYSTEMS, *registered(TARGETS)})
