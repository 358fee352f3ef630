"""`polarfab folder`: look after build folders and rendered ones."""

from __future__ import annotations

from pathlib import Path

import click

from polarfab.output.verb_output import json_option, print_facts, print_json, say, warn
from polarfab.shared_options import Words


@click.group("folder", cls=Words)
def command() -> None:
    """Check a folder, put its last build back, remove what killed processes left."""


@command.command("fsck")
@click.argument("folder", metavar="BUILD|RENDER", type=click.Path(path_type=Path))
@json_option
def fsck(folder: Path, as_json: bool) -> None:
    """Compare every file of BUILD or RENDER with its digest, and of BUILD type, shape and range.

    Also reported: files that no list names, what killed processes left next to it
    (`polarfab folder gc`), and the build that `polarfab folder rollback` would put back. Exit code
    1 when anything is damaged.
    """
    from compilers.targets.rendering.folder_check import as_dict, check_folder

    found = check_folder(folder)
    if as_json:
        print_json(as_dict(found))
    else:
        for problem in found.damaged:
            warn(f"damaged: {problem}")
        for name in found.strays:
            say(f"not listed: {folder / name}")
        for part in found.parts:
            say(f"left by a killed process: {part}; run: polarfab folder gc {folder}")
        facts: list[tuple[str, object]] = [
            ("builds", " ".join(found.builds) or None),
            ("files in order", found.files),
            ("damaged", len(found.damaged)),
        ]
        if found.verified is not None:
            facts += [("verified", found.verified), ("kept for rollback", found.kept or None)]
        print_facts(f"{folder}: {found.kind}", facts)
    if found.damaged:
        raise click.exceptions.Exit(1)


@command.command("rollback")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@json_option
def rollback(folder: Path, as_json: bool) -> None:
    """Put back the build that was proved before another one took its place in BUILD.

    The two change places in one step, so rolling back again undoes it. Render again what was
    rendered: the same options and templates write the same files as before. A running fabric goes
    back with `polarfab apply --undo`.
    """
    from compilers.tables.folders import build_folder

    kept = [build.identity for build in build_folder.rollback(folder)]
    if as_json:
        print_json({"folder": str(folder), "builds": kept})
    else:
        say(f"{folder} is build {' '.join(kept)} again; render again what was rendered")


@command.command("gc")
@click.argument("place", metavar="[PLACE]", type=click.Path(path_type=Path), default=Path())
@json_option
def gc(place: Path, as_json: bool) -> None:
    """Remove unfinished parts in the folder PLACE (.NAME.*.polarfab), and next to it those of it.

    Parts that a running process writes stay. A folder that was put aside while the process was
    killed is put back if its place is empty.
    """
    from compilers.tables.folders.generations import collect
    from inventory.problems import InputError

    there = place.exists() or place.is_symlink()
    found = collect(place)
    if not (there or found):
        raise InputError.of(
            "a folder or file, or parts of one", "nothing of this name", file=str(place)
        )
    if as_json:
        parts = [{"part": str(p), "put_back": str(back) if back else None} for p, back in found]
        print_json({"place": str(place), "parts": parts})
        return
    for part, back in found:
        say(f"put back: {back}" if back else f"removed: {part}")
    if not found:
        say("nothing is left by killed processes")
