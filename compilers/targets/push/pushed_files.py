"""What the tools ansible and containerlab share: the nodes, and the files of other targets.

A tool renders an inventory or a lab, which refers to files that another target has rendered. That
is the target of the option `system`, or the system of each node.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

from compilers.tables.build import Build
from compilers.targets.options import Chosen, Option, Options
from compilers.targets.rendering.renderer import installed_nodes
from compilers.targets.routed.router_problems import node_name_problems
from compilers.targets.target import Target
from inventory.problems import InputError, few

SYSTEM = "system"
"""The option with the target that writes the files of the switches."""
CONFIGS = "configs"
"""The option with the folder of these files."""
FOLDER_OF_SYSTEMS = "configs"
"""The folder, unless the option names another, where each node has files of its own system."""
REMOTE_FOLDER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./-]{0,254}")
"""`../configs`: the path of a folder."""


def push_options(*systems: str) -> Options:
    """The options of a tool that pushes the files of any of these systems."""
    return MappingProxyType(
        {
            SYSTEM: Option.choice("The target that writes the files of the switches.", *systems),
            CONFIGS: Option(
                "The folder with them, as seen from what is written; if empty, the system's name, "
                "or `configs` where nodes have systems of their own.",
                "",
                "a path of letters, digits and . _ - /",
                lambda text: not text or REMOTE_FOLDER.fullmatch(text) is not None,
            ),
        }
    )


@dataclass(frozen=True, slots=True)
class PushedNode:
    """A node to be configured."""

    vertex: int
    """The number of its vertex."""
    name: str
    """The name of the node."""
    address: str
    """Its management address; "" without one."""
    folder: str
    """The path of the folder with its files."""
    system: str
    """The name of the target that has rendered the files."""


def system_of_each(build: Build, chosen: Chosen) -> Sequence[str]:
    """The system of each vertex: its own, or that of the option if the build names none."""
    return build.systems or [chosen[SYSTEM]] * len(build.wiring.names)


def node_list(build: Build, chosen: Chosen) -> list[PushedNode]:
    """Every node that is installed.

    Raises:
        InputError: the name of a node cannot be a file name.
    """
    if problems := node_name_problems(build):
        raise InputError(few(problems))
    default_folder = FOLDER_OF_SYSTEMS if build.systems else chosen[SYSTEM]
    configs = chosen[CONFIGS].rstrip("/") or default_folder
    systems = system_of_each(build, chosen)
    return [
        PushedNode(
            vertex=vertex,
            name=name,
            address=build.wiring.management[vertex],
            folder=f"{configs}/{name}",
            system=systems[vertex],
        )
        for vertex, name in installed_nodes(build)
    ]


class PushTarget(Target):
    """A tool that loads the files that other targets have rendered, into switches or containers."""

    whole_fabric = True
    is_tool = True

    systems: ClassVar[Collection[str]]
    """The names of the systems whose files the tool can push."""

    def check(self, build: Build, options: Chosen | None = None) -> tuple[Build, Chosen]:
        """See `Target.check`: the option `system` replaces the systems of nodes.

        Raises:
            InputError: also if a node has a system whose files the tool cannot push.
        """
        if SYSTEM in (options or {}):
            build = replace(build, systems=())
        if unknown := sorted({*build.systems}.difference(self.systems)):
            required = f"nodes with {' or '.join(sorted(self.systems))} for target {self.name}"
            raise InputError.of(required, unknown[0], key="system")
        return super().check(build, options)

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`: a tool takes every build."""
