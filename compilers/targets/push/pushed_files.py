"""What targets that push the files of another target share: whose files, and where they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from compilers.tables.build import Build
from compilers.targets import target
from compilers.targets.options import Chosen, Option, Options, choice
from compilers.targets.rendering import Renderer, Written, nodes
from compilers.targets.routed.static_routes import bad_nodes
from inventory.problems import InputError, few

SYSTEM, CONFIGS = "system", "configs"
REMOTE_FOLDER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./-]{0,254}")


def options(*systems: str) -> Options:
    """The options of a target that pushes the files of these."""
    return MappingProxyType(
        {
            SYSTEM: choice("Whose files are pushed.", *systems),
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
    """A node to be configured: its management address ("" without one), its folder of files."""

    vertex: int
    name: str
    address: str
    folder: str


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


def variables(build: Build, chosen: Chosen) -> dict[str, Any]:
    """What the templates of these targets have in common; `files` are those of every node.

    Raises:
        InputError: names that are no file names.
    """
    return {
        "name": build.name,
        "identity": build.identity,
        "system": chosen[SYSTEM],
        "nodes": node_list(build, chosen),
        "files": target(chosen[SYSTEM]).FILES,
    }


def write_all(
    renderer: Renderer,
    out: Path,
    files: tuple[str, ...],
    values: Mapping[str, Any],
    progress: Callable[[int, int], None] | None,
) -> Written:
    """Write the files of the whole fabric; the variables have its `nodes`."""
    renderer.write(out, files, values)
    if progress:
        progress(len(values["nodes"]), len(values["nodes"]))
    return renderer.written
