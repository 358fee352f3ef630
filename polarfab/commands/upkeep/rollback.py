"""`polarfab rollback`: put the last proved build back."""

from __future__ import annotations

from pathlib import Path

import click

from polarfab.output import json_option, print_json, say


@click.command("rollback")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Put back the build that was proved before another one took its place in BUILD.

    The two change places in one step, so rolling back again undoes it. Render again what was
    rendered: the same options and templates write the same files as before.
    """
    from compilers.tables.last_build import rollback

    kept = [build.identity for build in rollback(folder)]
    if as_json:
        print_json({"folder": str(folder), "builds": kept})
    else:
        say(f"{folder} is build {' '.join(kept)} again; render again what was rendered")
