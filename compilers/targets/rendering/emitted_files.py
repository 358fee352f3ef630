"""Rendered files read back: which target wrote a folder, and the check of every plane."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from compilers.readers.emitted_report import EmittedReport
from compilers.spec.target_names import SHIPPED
from compilers.tables.build import Build
from compilers.targets.rendering.text_target import nodes
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
        builds: one a plane.
        folder: where `PlaneRendering` wrote.
        target: the target's name; "" for the one whose files are there.
        options: those that were given to `render`.
        progress: called with (switches done, all switches) for each plane.
        accept: see `Target.check_emitted`.

    Raises:
        InputError: nothing is there that can be read back, or what the target's `check` raises.
    """
    folders = [folder / f"plane-{n}" for n in range(1, len(builds) + 1)]
    folders = folders if len(builds) > 1 else [folder]
    if target:
        _require_some(builds[0], folders[0], target)
    chosen = target_of(target or written_by(builds[0], folders[0]))
    found = []
    for plane, (build, out) in enumerate(zip(builds, folders, strict=True)):
        own = chosen.options_in(plane, options)
        found.append(chosen.check_emitted(build, out, own, None, progress, accept))
    return tuple(found)


def written_by(build: Build, folder: Path) -> str:
    """The name of the target of polarfab whose files are in a folder.

    Raises:
        InputError: no target's, or those of several.
    """
    here = _file_names(build, folder)
    fitting = {name: set(target_of(name).files) for name in SHIPPED}
    fitting = {name: files for name, files in fitting.items() if files <= here}
    # What one target writes can be a part of what another does.
    largest = [n for n, f in fitting.items() if not any(f < other for other in fitting.values())]
    if len(largest) == 1:
        return largest[0]
    raise InputError.of(
        file=str(folder),
        key="emitted",
        required="a folder with what `render` wrote for one target",
        given=f"files of {' and of '.join(largest)}" if largest else "none of its files",
        todo="say which with `target`" if largest else "give the folder that render -o wrote",
    )


def _require_some(build: Build, folder: Path, target: str) -> None:
    """Refuse a folder that has no file of a target, but those of another."""
    if not set(target_of(target).files) & _file_names(build, folder):
        try:
            other = written_by(build, folder)
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
    """The names of the files for all, for the first switch that has a folder, and for a host."""
    known = [name for _, name in nodes(build)]
    switch = next((folder / name for name in known if (folder / name).is_dir()), folder)
    host = next(folder.glob("hosts/*"), folder)
    return {path.name for place in (folder, switch, host) for path in place.glob("*")}
