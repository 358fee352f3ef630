"""Reads the rendered files of every plane of a fabric, and compares them with the tables.

`check_planes` finds out which target has written a folder, and which switches have files there. The
target then reads the files and compares what they say with the compiled tables
(`Target.check_emitted`). `polarfab verify --emitted` calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from compilers.readers.emitted_report import EmittedReport
from compilers.spec.target_names import SHIPPED
from compilers.tables.build import Build
from compilers.targets.node_systems import SYSTEMS, builds_for, system_target
from compilers.targets.rendering.rendered_folder import plane_prefixes, rendered_lists
from compilers.targets.rendering.renderer import installed_nodes
from compilers.targets.target_lookup import target as target_of
from inventory.problems import InputError


def check_planes(
    builds: Sequence[Build],
    folder: Path,
    target: str = "",
    options: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    accept: Collection[str] = (),
) -> tuple[EmittedReport, ...]:
    """Compare FOLDER/<node>/, or of several planes FOLDER/plane-1/<node>/ and so on, with tables.

    Args:
        builds: a build for each plane.
        folder: the folder that `PlaneRendering` wrote.
        target: the name of the target; "": it is found by the files in the folder.
        options: the options that `render` got.
        progress: called with (switches done, all switches) for each plane.
        accept: see `Target.check_emitted`.

    Raises:
        InputError: no file can be read back, or what the target's `check` raises.
    """
    prefixes = plane_prefixes(len(builds))
    listed = rendered_lists(folder) or {}
    if target:
        _require_files_of(builds[0], folder / prefixes[0], target)
    else:  # from here on "" stands for each node's own system
        target = _target_that_wrote(builds[0], folder / prefixes[0], listed)
    reports = []
    for plane, (build, prefix) in enumerate(zip(builds_for(builds, target), prefixes, strict=True)):
        system = target_of(target) if target else system_target(build, builds)
        paths = {path for files in listed.get(system.name, {}).values() for path in files}
        listed_nodes = {
            path.removeprefix(prefix).split("/")[0] for path in paths if path.startswith(prefix)
        }
        plane_folder = folder / prefix
        if paths and not listed_nodes and not plane_folder.is_dir():
            continue  # only switches of other planes were rendered
        only = None
        if not system.whole_fabric:
            only = _vertices_with_files(build, plane_folder, listed_nodes)
        plane_options = system.options_in(plane, options)
        report = system.check_emitted(build, plane_folder, plane_options, only, progress, accept)
        reports.append(report)
    return tuple(reports)


def _target_that_wrote(build: Build, folder: Path, listed: Collection[str]) -> str:
    """The name of the target whose files are in a folder; "" for the system of each node.

    Where the manifest lists files of `SYSTEMS`, each node was rendered for its own system. A folder
    without a manifest is taken for one of these, too, if the build names the systems of its nodes.

    Args:
        build: the build of the first plane.
        folder: the folder of the first plane.
        listed: the names of the targets whose files the manifest lists.

    Raises:
        InputError: see `writer_of`.
    """
    may_have_own_systems = not listed and build.systems != ()
    if SYSTEMS in listed or may_have_own_systems:
        return ""
    return writer_of(build, folder)


def _vertices_with_files(build: Build, folder: Path, listed: set[str]) -> list[int] | None:
    """The vertices of the switches whose files a folder has.

    None stands for all switches, also where the folder has no manifest: then files of a switch that
    are missing are an error.

    Args:
        build: what was rendered.
        folder: the folder of a plane.
        listed: the names of the nodes whose files the manifest lists.
    """
    vertices = list(installed_nodes(build))
    selected = [v for v, name in vertices if name in listed or (folder / name).is_dir()]
    if not listed or len(selected) == len(vertices):
        return None
    return selected


def writer_of(build: Build, folder: Path) -> str:
    """The name of the target, one of polarfab's own, whose files are in a folder.

    Raises:
        InputError: they are files of no target, or of several.
    """
    present = _file_names(build, folder)
    files_of = {name: set(target_of(name).files) for name in SHIPPED}
    complete = {name: files for name, files in files_of.items() if files <= present}
    # If a target writes all files of another and more, the folder with all of them is its own.
    writers = [
        name
        for name, files in complete.items()
        if not any(files < more_files for more_files in complete.values())
    ]
    if len(writers) == 1:
        return writers[0]
    raise InputError.of(
        file=str(folder),
        key="emitted",
        required="a folder with what `render` wrote for one target",
        given=f"files of {' and of '.join(writers)}" if writers else "none of its files",
        todo="say which with `target`" if writers else "give the folder that `render` wrote",
    )


def _require_files_of(build: Build, folder: Path, target: str) -> None:
    """Refuse a folder that has no file of the named target, and the files of another one.

    Raises:
        InputError: the folder has the files of another target.
    """
    if not set(target_of(target).files) & _file_names(build, folder):
        try:
            other = writer_of(build, folder)
        except InputError:
            return
        raise InputError.of(
            file=str(folder),
            key="target",
            required=f"files of {target}",
            given=f"files of {other}",
            todo=f"`target {other}`, or the folder that was rendered for {target}",
        )


def _file_names(build: Build, folder: Path) -> set[str]:
    """The names of the files in a folder, and in it in the folders of one switch and one host."""
    names = [name for _, name in installed_nodes(build)]
    switch = next((folder / name for name in names if (folder / name).is_dir()), folder)
    host = next(folder.glob("hosts/*"), folder)
    return {path.name for parent in (folder, switch, host) for path in parent.glob("*")}
