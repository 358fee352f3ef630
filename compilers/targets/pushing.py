"""What targets that push the files of another target share: whose files, and where they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType

from compilers.build import Build
from compilers.targets import target
from compilers.targets.options import Chosen, Option, Options, choice
from compilers.targets.rendering import nodes
from compilers.targets.routed import NODE
from inventory.problems import InputError, Problem, few

SYSTEM, CONFIGS = "system", "configs"
FOLDER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./-]{0,254}")


def options(*systems: str) -> Options:
    """The options of a target that pushes the files of these."""
    return MappingProxyType(
        {
            SYSTEM: choice("Whose files are pushed.", *systems),
            CONFIGS: Option(
                "The folder with them, as seen from what is written; the system's name if empty.",
                "",
                "a path of letters, digits and . _ - /",
                lambda text: not text or FOLDER.fullmatch(text) is not None,
            ),
        }
    )


@dataclass(frozen=True, slots=True)
class Node:
    """A node to be configured: its management address ("" without one), its folder of files."""

    vertex: int
    name: str
    address: str
    folder: str


def node_list(build: Build, chosen: Chosen) -> list[Node]:
    """Every node with a program.

    Raises:
        InputError: names that are no file names.
    """
    found = list(nodes(build))
    problems = [
        Problem(
            key="nodes",
            required="a name of at most 63 letters, digits and . _ -, a letter or digit first",
            given=repr(name),
            todo="it becomes a host name and a file name",
        )
        for _, name in found
        if not NODE.fullmatch(name)
    ]
    if problems:
        raise InputError(few(problems))
    configs = chosen[CONFIGS].rstrip("/") or chosen[SYSTEM]
    return [
        Node(vertex, name, build.wiring.management[vertex], f"{configs}/{name}")
        for vertex, name in found
    ]


def files(chosen: Chosen) -> tuple[str, ...]:
    """The files of every node."""
    return target(chosen[SYSTEM]).FILES
