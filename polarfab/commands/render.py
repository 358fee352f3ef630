"""`polarfab render`: every switch's configuration for a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarfab.output import json_option, print_json, progress, say
from polarfab.target_choice import complete_target, known_target

if TYPE_CHECKING:
    from compilers.tables.build import Build
    from compilers.targets.options import Chosen


@click.command("render")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.option(
    "--target",
    metavar="TARGET",
    callback=known_target,
    shell_complete=complete_target,
    required=True,
    help="The system; `polarfab targets` lists them.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder to write."
)
@click.option(
    "--templates",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Templates of your own, instead of the target's or besides.",
)
@click.option(
    "--set",
    "words",
    metavar="NAME=VALUE",
    multiple=True,
    help="An option of the target; again for more.",
)
@click.option("--node", "names", multiple=True, help="Only this switch; again for more.")
@click.option("--unverified", is_flag=True, help="Take a build that verify has not passed on.")
@json_option
def command(
    folder: Path,
    target: str,
    output: Path,
    templates: Path | None,
    words: tuple[str, ...],
    names: tuple[str, ...],
    unverified: bool,
    as_json: bool,
) -> None:
    """Write the configuration of every switch of BUILD, in OUTPUT/<node>/.

    Where BUILD has several planes, in OUTPUT/plane-1/<node>/ and so on.

    `polarfab targets` says what each target writes and which options --set takes; docs/ has a page
    a target.
    """
    from compilers.tables.build_folder import load
    from compilers.tables.plane_folders import builds_in
    from compilers.tables.verified_mark import require_verified
    from compilers.targets.options import read

    options = read(words)
    folders = builds_in(folder)
    builds = [load(one) for one in folders]
    if unverified:
        say("warning: --unverified: nobody has checked that these tables forward")
    else:
        for one, build in zip(folders, builds, strict=True):
            require_verified(one, build)
    single = len(builds) == 1
    outputs = [output if single else output / one.name for one in folders]
    wanted = _wanted(builds, names)
    done = [
        _render(build, target, out, templates, options, only)
        for build, out, only in zip(builds, outputs, wanted, strict=True)
        if only is None or only
    ]
    if as_json:
        print_json(done[0] if single else {"target": target, "planes": done})
        return
    for facts in done:
        say(f"{facts['nodes']} nodes of build {facts['build']} rendered in {facts['folder']}")


def _render(
    build: Build,
    target: str,
    output: Path,
    templates: Path | None,
    options: Chosen,
    only: list[int] | None,
) -> dict[str, Any]:
    from compilers.targets.registry import target as target_of

    with progress(f"rendering {target}") as report:
        written = target_of(target).render(build, output, templates, report, options, only)
    return {
        "build": build.identity,
        "target": target,
        "folder": str(output),
        "nodes": int(build.topology.present.sum()) if only is None else len(only),
        "files": written.files,
        "bytes": written.bytes,
    }


def _wanted(builds: list[Build], names: tuple[str, ...]) -> list[list[int] | None]:
    """For each build the switches that have one of the names; None for all where none is given.

    Raises:
        InputError: no switch has one of them.
    """
    if not names:
        return [None] * len(builds)
    from compilers.targets.rendering import nodes
    from inventory.problems import InputError, Problem, few, nearest, shown

    there = [{name: vertex for vertex, name in nodes(build)} for build in builds]
    problems = [
        Problem(
            key="--node",
            required="the name of a switch of the build",
            given=shown(name),
            todo=f"did you mean {near}?" if (near := nearest(name, set().union(*there))) else "",
        )
        for name in dict.fromkeys(names)
        if not any(name in of_plane for of_plane in there)
    ]
    if problems:
        raise InputError(few(problems))
    chosen = dict.fromkeys(names)
    return [[of_plane[name] for name in chosen if name in of_plane] for of_plane in there]
