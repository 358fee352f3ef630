"""The earlier build of a fabric, whose ports of cables and hosts, and rack units, a new one keeps.

Verbs that compile, check, or list cables and equipment load it from a folder.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from inventory.problems import InputError
from polarfab.output.verb_output import say, warn

if TYPE_CHECKING:
    from polarfab.fabric import Fabric


def earlier_build(
    fabric: Fabric, named: Path | None, output: Path, require_match: bool = True
) -> Fabric | None:
    """The build whose cables, hosts and numbers stay: the named build, or the build in `output`.

    None: none is named, and `output` has no build, or with `require_match=False` none that fits.

    Args:
        fabric: the fabric that is compiled.
        named: the folder of the build that the user names; None if none.
        output: a folder that may hold a build.
        require_match: whether a build in `output` has to be one of this fabric, as for a verb that
            replaces it; otherwise a build that does not fit is passed over.

    Raises:
        InputError: the named build cannot be read; or the build in `output` has to be of this
            fabric, and is not, or cannot be read.
    """
    from compilers.cabling.installed_numbers import require_same_topology
    from compilers.tables.folders.folder_contents import fabric_name_in, is_build, real_path
    from polarfab.fabric import Fabric

    if named:
        return Fabric.load(named)
    loaded = fabric.loaded
    if loaded is None or not is_build(real_path(output)):
        return None
    name, todo = fabric_name_in(output), "compile into another folder, or move this build away"
    if name not in (fabric.name, f"{fabric.name}-p1"):
        if not require_match:
            return None
        required = f"a build of {fabric.name}, whose cables stay"
        subject = f"one of {name}" if name else "one that cannot be read"
        raise InputError.of(required, subject, todo, str(output))
    try:
        before = Fabric.load(output)
        require_same_topology(loaded, before.builds)
    except InputError as error:
        if not require_match:
            return None
        raise InputError(
            replace(problem, file=problem.file or str(output), todo=todo)
            for problem in error.problems
        ) from error
    return before


def with_earlier_ports(fabric: Fabric, named: Path | None, todo: str) -> Fabric:
    """A fabric, not compiled, that keeps the ports and rack units of its earlier build.

    Those are the ports that `compile` would plan. The earlier build is the named one; else ./build,
    if that is a build of this fabric with as many switches. Without any they are planned anew. A
    line on standard error says which it is.

    Args:
        fabric: a fabric from its spec.
        named: the folder of the build that the user names; None if none.
        todo: what to do to get the ports of a build that runs.

    Raises:
        InputError: the named build cannot be read, or is of another fabric.
    """
    before = earlier_build(fabric, named, Path("build"), require_match=False)
    if before and not named:
        switches = fabric.topology.graph.order
        if any(build.topology.graph.order != switches for build in before.builds):
            before = None
    keeping = fabric.keeping(before)
    loaded = keeping.loaded
    if before:
        say(f"cables, hosts and units are those of {before.folder}, as far as it has them")
    elif loaded and loaded.allocations:
        warn(
            f"planned without a build: numbers are those of {loaded.allocations_file}, but ports "
            "of cables and hosts, and units, are new and may differ from those that run; if a "
            f"build runs, {todo}"
        )
    else:
        say(f"planned without a build: ports and units are new; if a build runs, {todo}")
    return keeping
