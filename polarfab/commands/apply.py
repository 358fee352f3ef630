"""`polarfab apply`: move a running fabric to another build, without losing a packet."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from polarfab.output import json_option, print_json, progress, say

STATUS_POLL = 0.2
"""Seconds between two questions how far the move is."""


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
    from compilers.tables.build_folder import load
    from compilers.tables.verified_mark import require_verified
    from controller.management.client import Client
    from controller.rollout.build_archive import pack

    build = load(folder)
    if not unverified:
        require_verified(folder, build)
    client = Client.to(url, "--to", token_file, authority)
    options = f"?accept_loss={accept_loss:d}&unverified={unverified:d}"
    state = client.post(f"apply{options}", pack(folder))
    with progress("moving") as report:
        while state["state"] not in ("done", "failed", "none"):
            if report:
                report(state["round"], state["rounds"])
            time.sleep(STATUS_POLL)
            state = client.get("move")
    if as_json:
        print_json(state)
    else:
        say(_words(state, build.identity))
    if state["state"] == "failed":
        raise click.exceptions.Exit(1)


def _words(state: dict[str, Any], identity: str) -> str:
    if state["state"] == "none":
        return f"the fabric has build {identity}; its switches are read again"
    if state["state"] == "failed":
        return f"build {state['from']} stays: {state['reason']}"
    return f"moved from build {state['from']} to {state['to']} in {state['rounds']} rounds"
