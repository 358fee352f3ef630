"""The earlier build of a fabric, and warnings about its planned switches and lost links.

Verbs that compile or list cables load the earlier build, whose port numbers and addresses the new
one keeps. The warnings go to standard error, and are returned for the verb's JSON.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from inventory.problems import InputError
from polarfab.output.verb_output import say, warn

if TYPE_CHECKING:
    from polarfab.fabric import Fabric

MOST_NAMED = 10
"""The most names of a plane that are printed."""


def earlier_build(
    fabric: Fabric, named: Path | None, output: Path, is_replaced: bool = True
) -> Fabric | None:
    """The build whose cables, hosts and numbers stay: the named build, or the build in `output`.

    Args:
        fabric: the fabric that is compiled.
        named: the folder of the build that the user names; None if none.
        output: a folder that may hold a build.
        is_replaced: whether a build in `output` will be replaced.

    Raises:
        InputError: a build that is to be replaced is of another fabric, or cannot be read.
    """
    from compilers.cabling.fabric_numbers import require_same_topology
    from compilers.tables.folders.folder_contents import fabric_name_in, is_build, real_path
    from polarfab.fabric import Fabric

    if named:
        return Fabric.load(named)
    loaded = fabric.loaded
    if loaded is None or not is_build(real_path(output)):
        return None
    name, todo = fabric_name_in(output), "compile into another folder, or move this build away"
    if name not in (fabric.name, f"{fabric.name}-p1"):
        if not is_replaced:
            return None
        required = f"a build of {fabric.name}, whose cables stay"
        subject = f"one of {name}" if name else "one that cannot be read"
        raise InputError.of(required, subject, todo, str(output))
    try:
        before = Fabric.load(output)
        require_same_topology(loaded, before.builds)
    except InputError as error:
        if not is_replaced:
            return None
        raise InputError(
            replace(problem, file=problem.file or str(output), todo=todo)
            for problem in error.problems
        ) from error
    return before


def keeping_installed(fabric: Fabric, named: Path | None, todo: str) -> Fabric:
    """A fabric, not compiled, with the ports that `compile` would plan; says where they are from.

    Without a named build the ports are those of ./build, if that is a build of this fabric with as
    many switches. Without any build they are planned anew.

    Args:
        fabric: a fabric from its spec.
        named: the folder of the build that the user names; None if none.
        todo: what to do to get the ports of a build that runs.

    Raises:
        InputError: the named build cannot be read, or is of another fabric.
    """
    before = earlier_build(fabric, named, Path("build"), is_replaced=False)
    if before and not named:
        switches = fabric.topology.graph.order
        if any(build.topology.graph.order != switches for build in before.builds):
            before = None
    installed = fabric.keeping(before)
    loaded = installed.loaded
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
    return installed


def warn_of_planned(fabric: Fabric) -> list[str]:
    """Name the planned switches, the first ten of a plane, and say what their absence costs.

    Returns:
        The names of all planned switches.
    """
    from compilers.wiring.placed_fabric import each_plane
    from compilers.wiring.planned_nodes import PlannedNodes

    all_names: list[str] = []
    inventory = fabric.loaded.inventory if fabric.loaded else None
    if not (fabric.loaded and inventory):
        return all_names
    if all(node.state != "planned" for node in inventory.nodes):
        return all_names
    for planned in map(PlannedNodes.of, each_plane(fabric.loaded)):
        all_names += planned.names
        for sentence in planned.sentences[:MOST_NAMED]:
            warn(f"planned, and left out until it is installed: {sentence}")
        if len(planned.names) > MOST_NAMED:
            warn(f"and {len(planned.names) - MOST_NAMED:,} more")
        cost = planned.cost()
        if cost:
            warn(f"without planned switches: {cost}")
    return all_names


def warn_of_losses(fabric: Fabric) -> dict[str, list[str]]:
    """Name lost links and hosts, the first ten of a plane, and say what their loss costs.

    Returns:
        All names, by `lost_links` and `lost_hosts`.
    """
    from polarfab.cabling import lost_links

    all_names: dict[str, list[str]] = {"lost_links": [], "lost_hosts": []}
    inventory = fabric.loaded.inventory if fabric.loaded else None
    if not inventory:
        return all_names
    has_spares = len(inventory.nodes) > sum(len(build.wiring.names) for build in fabric.builds)
    has_disabled_ports = any(node.disabled_ports for node in inventory.nodes)
    if not (has_spares or inventory.dead_links or has_disabled_ports):
        return all_names
    for lost_of_plane in lost_links(fabric):
        for word, names in (("link", lost_of_plane.links), ("host", lost_of_plane.hosts)):
            all_names[f"lost_{word}s"] += names
            for name in names[:MOST_NAMED]:
                warn(f"lost {word}: {name}")
            if len(names) > MOST_NAMED:
                warn(f"and {len(names) - MOST_NAMED:,} more")
        cost = lost_of_plane.cost()
        if cost:
            warn(f"without them: {cost}")
        for move in lost_of_plane.moves[:MOST_NAMED]:
            warn(move)
    return all_names
