"""What the tools ansible and containerlab share: the files of another target that they push."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType

from compilers.tables.build import Build
from compilers.targets.options import Chosen, Option, Options
from compilers.targets.rendering.text_target import nodes
from compilers.targets.routed.static_routes import bad_nodes
from compilers.targets.target import Target
from inventory.problems import InputError, few

SYSTEM, CONFIGS = "system", "configs"
REMOTE_FOLDER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./-]{0,254}")


def push_options(*systems: str) -> Options:
    """The options of a tool that pushes the files of one of these targets."""
    return MappingProxyType(
        {
            SYSTEM: Option.choice("Whose files are pushed.", *systems),
            CONFIGS: Option(
                "The folder with them, as seen from what is written; the system's name if empty.",
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


def node_list(build: Build, chosen: Chosen) -> list[PushedNode]:
    """Every node with a program.

    Raises:
        InputError: names that are no file names.
    """
    if problems := bad_nodes(build):
        raise InputError(few(problems))
    configs = chosen[CONFIGS].rstrip("/") or chosen[SYSTEM]
    return [
        PushedNode(vertex, name, build.wiring.management[vertex], f"{configs}/{name}")
        for vertex, name in nodes(build)
    ]


class PushTarget(Target):
    """A tool that brings up, or pushes to, what another target configures; it forwards nothing."""

    whole_fabric = True

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`: a tool takes every build."""
