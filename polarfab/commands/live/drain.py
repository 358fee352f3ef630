"""`polarfab drain`: have a running fabric route around a node, a link or what shares a risk."""

from __future__ import annotations

from pathlib import Path

import click

from polarfab.output.verb_output import json_option, print_json, say
from polarfab.shared_options import authority, controller_url, token_file


@click.command("drain")
@click.argument("what", metavar="A-B|NODE|GROUP")
@click.option("--end", is_flag=True, help="Use it again.")
@controller_url()
@token_file
@authority
@json_option
def command(
    what: str, end: bool, url: str, token_file: Path | None, authority: Path | None, as_json: bool
) -> None:
    """Route around a link, a node or a group of them until --end.

    GROUP is module:NODE/MODULE, cage:NODE/PORT, rack:RACK, trunk:RACK-RACK or risk:NAME, as in
    polarfab explain --fail. A drained node still has the packets of its own hosts. The controller
    refuses what would leave a pair without a path.
    """
    from controller.management.client import Client

    action = "undrain" if end else "drain"
    state = Client.to(url, "--to", token_file, authority).post(action, {"what": what})
    if as_json:
        print_json(state)
    else:
        say(f"drained by request: {', '.join(state['asked']) or 'nothing'}")
