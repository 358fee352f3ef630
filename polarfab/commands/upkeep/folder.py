"""`polarfab folder`: checks, restores and cleans folders of builds and of rendered files."""

from __future__ import annotations

from pathlib import Path

import click

from polarfab.output.verb_output import json_option, print_facts, print_json, say, warn


@click.command("folder")
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option("--undo", is_flag=True, help="Go back to the build before, the last that was proved.")
@click.option("--clean", is_flag=True, help="Remove what killed processes left in and beside it.")
@json_option
def command(folder: Path, undo: bool, clean: bool, as_json: bool) -> None:
    """Compare every file of a build or of rendered files with its digest.

    In a build, the type, shape and range of every array are checked, too. The report names files
    that no list names, what killed processes left beside the folder (--clean removes it), and the
    build that --undo would put back. Exit code 1 when anything is damaged.

    --undo puts the last proved build before this one back, and keeps this one: a second --undo
    exchanges them again. Render again what was rendered: the same options and templates write the
    same files as before. A running fabric goes back with `polarfab apply --undo`.
    """
    if undo and clean:
        raise click.UsageError("--undo and --clean are two commands: give one of them")
    if undo:
        _undo(folder, as_json)
    elif clean:
        _clean(folder, as_json)
    else:
        _check(folder, as_json)


def _check(folder: Path, as_json: bool) -> None:
    """Compare the files with their digests, and print what is damaged."""
    from compilers.targets.rendering.folder_check import as_dict, check_folder

    state = check_folder(folder)
    if as_json:
        print_json(as_dict(state))
    else:
        for problem in state.damaged:
            warn(f"damaged: {problem}")
        for name in state.strays:
            say(f"not listed: {folder / name}")
        for part in state.parts:
            say(f"left by a killed process: {part}; run: polarfab folder {folder} --clean")
        facts: list[tuple[str, object]] = [
            ("builds", " ".join(state.builds) or None),
            ("files in order", state.files),
            ("damaged", len(state.damaged)),
        ]
        if state.verified is not None:
            facts += [("verified", state.verified), ("kept for --undo", state.kept or None)]
        print_facts(f"{folder}: {state.kind}", facts)
    if state.damaged:
        raise click.exceptions.Exit(1)


def _undo(folder: Path, as_json: bool) -> None:
    """Put the build back that was proved before the present one."""
    from compilers.tables.folders.build_folder import put_back

    builds = [build.identity for build in put_back(folder)]
    if as_json:
        print_json({"folder": str(folder), "builds": builds})
    else:
        say(f"{folder} is build {' '.join(builds)} again; render again what was rendered")


def _clean(folder: Path, as_json: bool) -> None:
    """Remove the files that killed processes left in a folder and next to it."""
    from compilers.tables.folders.leftover_parts import remove_all_parts
    from inventory.problems import InputError

    existed = folder.exists()
    parts = remove_all_parts(folder)
    if not existed and not parts:
        required = "a folder or file, or what a killed process left of one"
        raise InputError.of(required, "nothing of this name", file=str(folder))
    if as_json:
        rows = [
            {"part": str(part), "put_back": str(restored) if restored else None}
            for part, restored in parts
        ]
        print_json({"folder": str(folder), "parts": rows})
        return
    for part, restored in parts:
        say(f"put back: {restored}" if restored else f"removed: {part}")
    if not parts:
        say("nothing is left by killed processes")
