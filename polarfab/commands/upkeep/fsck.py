"""`polarfab fsck`: a build or a rendered folder, every file against its digest."""

from __future__ import annotations

from pathlib import Path

import click

from polarfab.output.verb_output import json_option, print_facts, print_json, say, warn


@click.command("fsck")
@click.argument("folder", metavar="BUILD|RENDER", type=click.Path(path_type=Path))
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Compare every file of BUILD or RENDER with its digest, and of BUILD type, shape and range.

    Also reported: files that no list names, what killed processes left beside it (`polarfab gc`),
    and the build that `polarfab rollback` would put back. Exit code 1 when anything is damaged.
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
            say(f"left by a killed process: {part}; run: polarfab gc {folder}")
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
