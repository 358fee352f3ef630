"""The switches that a user selects by name or by system, for `polarfab render`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from compilers.tables.build import Build
from compilers.targets.rendering.renderer import installed_nodes
from inventory.problems import InputError, Problem, did_you_mean, few, shown


def selected_vertices(builds: Sequence[Build], names: Sequence[str]) -> list[list[int] | None]:
    """For each build the vertices of the switches with one of the names; None for all.

    Raises:
        InputError: no build has a switch with one of the names.
    """
    if not names:
        return [None] * len(builds)
    vertices = [{name: vertex for vertex, name in installed_nodes(build)} for build in builds]
    all_names = set().union(*vertices)
    problems = [
        Problem(
            key="node",
            required="the name of a switch of the build",
            given=shown(name),
            todo=did_you_mean(name, all_names),
        )
        for name in dict.fromkeys(names)
        if name not in all_names
    ]
    if problems:
        raise InputError(few(problems))
    return [
        [vertex_of[name] for name in dict.fromkeys(names) if name in vertex_of]
        for vertex_of in vertices
    ]


def nodes_with_systems(
    builds: Sequence[Build], names: Sequence[str], systems: Collection[str]
) -> Sequence[str]:
    """The names of the switches that have one of some systems. A system is what a switch runs.

    Args:
        builds: a build for each plane.
        names: the names of the switches to select from; () for all.
        systems: the names of the systems; () for any.

    Raises:
        InputError: no switch of the builds, or none of those named, has one of the systems.
    """
    if not systems:
        return names
    system_of: dict[str, str] = {}
    for build in builds:
        if build.systems:
            system_of |= {name: build.systems[vertex] for vertex, name in installed_nodes(build)}
    _require_systems(systems, set(system_of.values()))
    candidates = names or tuple(system_of)
    # A name that is not in `system_of` is no switch. It stays selected, and `selected_vertices`
    # refuses it with a hint to similar names.
    selected = [name for name in candidates if name not in system_of or system_of[name] in systems]
    if not selected:
        required = f"a switch with system {' or '.join(systems)}"
        raise InputError.of(required, f"{names[0]}, with {system_of[names[0]]}", key="node")
    return selected


def _require_systems(systems: Collection[str], systems_of_build: set[str]) -> None:
    """Check that some switch has each of the systems.

    Raises:
        InputError: no switch has one of them.
    """
    unknown = [name for name in systems if name not in systems_of_build]
    if unknown:
        required = (
            f"a system of the build: {', '.join(sorted(systems_of_build)) or 'it names none'}"
        )
        todo = did_you_mean(unknown[0], systems_of_build)
        raise InputError.of(required, shown(unknown[0]), todo, key="system")
