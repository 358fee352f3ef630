"""`polarfab apply`: move a running fabric to another build, without losing a packet."""

from __future__ import annotations

from pathlib import Path

import click

from polarfab.durations import Seconds
from polarfab.output.move_output import say_moved
from polarfab.output.verb_output import json_option, progress
from polarfab.output.verification_output import say_caveats
from polarfab.shared_options import authority, controller_url, token_file, unverified_option


@click.command("apply")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@controller_url()
@token_file
@authority
@click.option("--accept-loss", is_flag=True, help="Go on although pairs of hosts lose packets.")
@unverified_option()
@click.option(
    "--confirm-within",
    type=Seconds(),
    default=0,
    metavar="TIME",
    help="Go back after this time (90s, 10m, 2h) unless polarfab confirm comes before.",
)
@json_option
def command(
    folder: Path,
    url: str,
    token_file: Path | None,
    authority: Path | None,
    accept_loss: bool,
    unverified: bool,
    confirm_within: int,
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
            confirm_within=confirm_within,
        )
    say_moved(state, as_json, fabric.build.identity)
