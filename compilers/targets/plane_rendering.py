"""Rendering of a fabric: the files of a target for every plane."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compilers.readers.emitted_report import EmittedWrongError
from compilers.tables.build import Build
from compilers.targets.options import choose
from compilers.targets.rendered_folder import put_rendered
from compilers.targets.rendering import nodes as nodes_of
from compilers.targets.target_lookup import target as target_of
from inventory.problems import InputError, Problem, did_you_mean, few, shown


@dataclass(frozen=True, slots=True)
class Rendering:
    """The files that were written for one plane: how many, how large, for how many nodes.

    checked: whether they were read back and say what the tables say; not_checked: why not.
    """

    build: str
    target: str
    folder: Path
    nodes: int
    files: int
    bytes: int
    checked: bool
    not_checked: str = ""


def render_planes(
    builds: Sequence[Build],
    target: str,
    folder: Path,
    templates: Path | None = None,
    options: Mapping[str, str] | None = None,
    nodes: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
    check: bool = True,
    accept: Collection[str] = (),
) -> tuple[Rendering, ...]:
    """Write the files in FOLDER/<node>/, or of several planes in FOLDER/plane-1/<node>/ and so on.

    They take the place of the target's earlier files there all at once.

    Args:
        builds: one a plane.
        target: the target's name.
        folder: where to.
        templates: a folder with templates of the user's own.
        options: of the target.
        nodes: names of the switches to write; none for all.
        progress: called with (switches done, all switches) for each plane.
        check: whether to read the files back and compare them with the tables.
        accept: see `Target.check_emitted`.

    Raises:
        EmittedWrongError: the files say something else than the tables.
        InputError: no switch has one of the names, or what the target's `render` raises.
    """
    chosen, wanted = target_of(target), _vertices(builds, nodes)
    given = choose(chosen.name, chosen.options, options)
    names = [f"plane-{plane}/" if len(builds) > 1 else "" for plane in range(1, len(builds) + 1)]

    def fill(beside: Path) -> tuple[Rendering, ...]:
        done = []
        for name, build, only in zip(names, builds, wanted, strict=True):
            if only == []:
                continue
            written = chosen.render(build, beside / name, templates, progress, options, only)
            count = int(build.topology.present.sum()) if only is None else len(only)
            why = chosen.unreadable(given, part=only is not None) if check else "not asked for"
            if not why:
                given_back = (build, beside / name, options, only, progress, accept)
                report = chosen.check_emitted(*given_back)
                if report.differences:
                    raise EmittedWrongError(report.moved(beside, folder))
            facts = (build.identity, target, folder / name, count)
            done.append(Rendering(*facts, written.files, written.bytes, not why, why))
        return tuple(done)

    identities = {name: build.identity for name, build in zip(names, builds, strict=True)}
    return put_rendered(folder, target, identities, fill, part=bool(nodes))


def _vertices(builds: Sequence[Build], names: Sequence[str]) -> list[list[int] | None]:
    """For each build the switches that have one of the names; None for all where none is given."""
    if not names:
        return [None] * len(builds)
    there = [{name: vertex for vertex, name in nodes_of(build)} for build in builds]
    problems = [
        Problem(
            key="--node",
            required="the name of a switch of the build",
            given=shown(name),
            todo=did_you_mean(name, set().union(*there)),
        )
        for name in dict.fromkeys(names)
        if not any(name in of_plane for of_plane in there)
    ]
    if problems:
        raise InputError(few(problems))
    chosen = dict.fromkeys(names)
    return [[of_plane[name] for name in chosen if name in of_plane] for of_plane in there]
