"""`polarfab rollback`: put the last proved build back, in a folder or in a running fabric."""

from __future__ import annotations

from pathlib import Path

import click

from inventory.problems import InputError
from polarfab.output.move_output import say_moved
from polarfab.output.verb_output import json_option, print_json, progress, say
from polarfab.shared_options import authority, controller_url, token_file


@click.command("rollback")
@click.argument("folder", metavar="[BUILD]", type=click.Path(path_type=Path), required=False)
@controller_url(usual=None, more="its fabric instead of a folder")
@click.option(
    "--build", "identity", default="", metavar="IDENTITY", help="Which build; the one before."
)
@token_file
@authority
@json_option
def command(
    folder: Path | None,
    url: str | None,
    identity: str,
    token_file: Path | None,
    authority: Path | None,
    as_json: bool,
) -> None:
    """Put back the build that was proved before another one took its place in BUILD.

    The two change places in one step, so rolling back again undoes it. Render again what was
    rendered: the same options and templates write the same files as before.

    With --to the fabric of the controller there goes back to the build that it held before, round
    by round; `polarfab status --history` lists the builds that can come back.
    """
    if (folder is None) == (url is None):
        given = "neither" if folder is None else "both"
        raise InputError.of("BUILD, or --to URL", given, key="BUILD")
    if folder is None:
        _running(url or "", identity, token_file, authority, as_json)
        return
    from compilers.tables.folders.plane_folders import rollback

    kept = [build.identity for build in rollback(folder)]
    if as_json:
        print_json({"folder": str(folder), "builds": kept})
    else:
        say(f"{folder} is build {' '.join(kept)} again; render again what was rendered")


def _running(
    url: str, identity: str, token_file: Path | None, authority: Path | None, as_json: bool
) -> None:
    from polarfab.controller_client import Client

    client = Client.to(url, "--to", token_file, authority)
    with progress("moving") as report:
        state = client.roll_back(identity, report)
    say_moved(state, as_json, str(state.get("to") or state.get("build")))
