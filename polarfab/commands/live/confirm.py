"""`polarfab confirm`: keep the build that a running fabric has on trial."""

from __future__ import annotations

from pathlib import Path

import click

from polarfab.output.verb_output import json_option, print_json, say
from polarfab.shared_options import authority, controller_url, token_file


@click.command("confirm")
@controller_url()
@token_file
@authority
@json_option
def command(url: str, token_file: Path | None, authority: Path | None, as_json: bool) -> None:
    """Keep the build that was applied with --confirm-within.

    Without this the fabric goes back to the build before when the time is over, also if the
    controller was killed or restarted meanwhile.
    """
    from polarfab.controller_client import Client

    state = Client.to(url, "--to", token_file, authority).post("confirm", {})
    if as_json:
        print_json(state)
    else:
        say(f"build {state.get('to') or state['build']} stays")
