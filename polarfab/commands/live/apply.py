"""`polarfab apply`: move a running fabric to another build, without losing a packet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from polarfab.output import json_option, print_json, progress, say
from polarfab.verification_output import say_caveats


@click.command("apply")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.option("--to", "url", metavar="URL", required=True, help="The controller's management API.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file whose first line is a token that the controller accepts.",
)
@click.option(
    "--ca",
    "authority",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The authority of the controller's certificate (PEM), for https.",
)
@click.option("--accept-loss", is_flag=True, help="Go on although pairs of hosts lose packets.")
@click.option("--unverified", is_flag=True, help="Take a build that verify has not passed on.")
@json_option
def command(
    folder: Path,
    url: str,
    token_file: Path | None,
    authority: Path | None,
    accept_loss: bool,
    unverified: bool,
    as_json: bool,
) -> None:
    """Have the controller at URL move its fabric to BUILD, round by round.

    At the first refusal the rounds are taken back and the running build stays: exit code 1.
    `polarfab plan BUILD --to URL` shows before what it would do.
    """
    from polarfab.fabric import Fabric

    fabric = Fabric.load(folder)
    say_caveats(fabric)
    with progress("moving") as report:
        state = fabric.apply(
            url,
            token_file,
            authority,
            accept_loss=accept_loss,
            unverified=unverified,
            progress=report,
        )
    if as_json:
        print_json(state)
    else:
        say(_words(state, fabric.build.identity))
    if state["state"] == "failed":
        raise click.exceptions.Exit(1)


def _words(state: dict[str, Any], identity: str) -> str:
    if state["state"] == "none":
        return f"the fabric has build {identity}; its switches are read again"
    if state["state"] == "failed":
        return f"build {state['from']} stays: {state['reason']}"
    return f"moved from build {state['from']} to {state['to']} in {state['rounds']} rounds"
