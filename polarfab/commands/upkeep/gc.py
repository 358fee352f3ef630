"""`polarfab gc`: remove what killed processes left."""

from __future__ import annotations

from pathlib import Path

import click

from polarfab.output.verb_output import json_option, print_json, say


@click.command("gc")
@click.argument("place", metavar="[PLACE]", type=click.Path(path_type=Path), default=Path())
@json_option
def command(place: Path, as_json: bool) -> None:
    """Remove unfinished parts (.NAME.*.part) in the folder PLACE, and those beside it of its name.

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
