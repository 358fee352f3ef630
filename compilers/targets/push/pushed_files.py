"""What the tools ansible and containerlab share: the files of another target that they push."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

from compilers.tables.build import Build
from compilers.targets.options import Chosen, Option, Options
from compilers.targets.rendering.text_target import nodes
from compilers.targets.routed.router_problems import bad_nodes
from compilers.targets.target import Target
from inventory.problems import InputError, few

SYSTEM, CONFIGS = "system", "configs"
OF_NODES = "configs"
"""The usual folder of files that each node has of its own system."""
REMOTE_FOLDER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./-]{0,254}")


def push_options(*systems: str) -> Options:
    """The options of a tool that pushes the files of one of these targets."""
    return MappingProxyType(
        {
            SYSTEM: Option.choice("The target whose files are pushed.", *systems),
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
    name: str
    address: str
    """Its management address, "" without one."""
    folder: str
    """The folder with its files."""
    system: str
    """The target whose files these are."""


def system_of_each(build: Build, chosen: Chosen) -> Sequence[str]:
    """The system of each vertex: its own, or that of the option where the build names none."""
    return build.systems or [chosen[SYSTEM]] * len(build.wiring.names)


def node_list(build: Build, chosen: Chosen) -> list[PushedNode]:
    """Every node with a program.

    Raises:
        InputError: names that are no file names.
    """
    if problems := bad_nodes(build):
        raise InputError(few(problems))
    usual = OF_NODES if build.systems else chosen[SYSTEM]
    configs, systems = chosen[CONFIGS].rstrip("/") or usual, system_of_each(build, chosen)
    return [
        PushedNode(
            vertex, name, build.wiring.management[vertex], f"{configs}/{name}", systems[vertex]
        )
        for vertex, name in nodes(build)
    ]


class PushTarget(Target):
    """A tool that brings up, or pushes to, what another target configures; it forwards nothing."""

    whole_fabric = True
    of_others = True

    handled: ClassVar[Collection[str]]
    """The systems whose files it can push."""

    def check(self, build: Build, options: Chosen | None = None) -> tuple[Build, Chosen]:
        """See `Target.check`: the option `system` goes before the systems of nodes.

        Raises:
            InputError: also a node with a system whose files it cannot push.
        """
        if SYSTEM in (options or {}):
            build = replace(build, systems=())
        if unknown := sorted({*build.systems}.difference(self.handled)):
            required = f"nodes with {' or '.join(sorted(self.handled))} for target {self.name}"
            raise InputError.of(required, unknown[0], key="system")
        return super().check(build, options)

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`: a tool takes every build."""
