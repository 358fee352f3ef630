"""What `import polarfab` offers: the stages of the compiler, one function each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from compilers.pipeline import compile_fabric
from compilers.proof.delivery import Report
from compilers.proof.delivery import verify as walk_all
from compilers.spec.fabric_file import load_fabric
from compilers.tables import build_folder
from compilers.tables.build import Build
from compilers.tables.build_folder import load
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from inventory.problems import InputError

__all__ = ["Build", "InputError", "Report", "compile", "load", "topology", "verify"]

Progress = Callable[[int, int], None]


def topology(family: str, **parameters: int | str) -> Topology:
    """The topology of a family: `topology("polarfly", q=7)`.

    Raises:
        InputError: there is no such family, or its parameters have no construction.
    """
    return build_topology(family, parameters)


def compile(fabric: str | Path, folder: str | Path) -> Build:
    """Compile fabric.yaml (and the inventory it names) into a build folder.

    Raises:
        InputError: the inputs are wrong or the folder cannot be written.
    """
    return build_folder.save(compile_fabric(load_fabric(str(fabric))), Path(folder))


def verify(
    build: Build | str | Path, progress: Progress | None = None, failures: Sequence[str] = ()
) -> Report:
    """Walk every ordered pair of a build through its tables; under failures of these kinds too.

    Raises:
        InputError: not a build folder.
    """
    found = build if isinstance(build, Build) else load(Path(build))
    return walk_all(found, progress, failures)
