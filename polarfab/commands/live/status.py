"""`polarfab status`: the state of the fabric that a running controller has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from polarfab.output import json_option, print_json, print_table, say

URL = "http://127.0.0.1:8080"


@click.command("status")
@click.argument("url", metavar="URL", default=URL)
@click.option(
    "--ca",
    "authority",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The authority of the controller's certificate (PEM), for https.",
)
@click.option("--all", "everything", is_flag=True, help="List every switch, not only those amiss.")
@json_option
def command(url: str, authority: Path | None, everything: bool, as_json: bool) -> None:
    """Show the fabric of the controller whose management API is at URL (http://127.0.0.1:8080).

    Exit code 0 when every switch holds its program, no rows of others stand over it and no link is
    dead, or when another controller leads, else 1.
    """
    from controller.management.client import Client

    state = Client.to(url, "URL", authority=authority).get("state")
    follows = state["role"] == "follower"
    good = follows or (state["complete"] and not state["dead_links"] and not state["shadowed"])
    if as_json:
        print_json(state)
    elif follows:
        say(f"{state['name']}: this controller stands by; {state['leader'] or 'none'} leads")
    else:
        _show(state, everything)
    if not good:
        raise click.exceptions.Exit(1)


def _show(state: dict[str, Any], everything: bool) -> None:
    proved = state["caveat"] or f"proved: {state['proved']}"
    say(
        f"{state['name']}, build {state['build']}: {state['in_sync']} of {len(state['switches'])} "
        f"switches in sync{_audited(state)}, {state['dead_links']} dead links; {proved}"
    )
    rows = [
        [one["name"], one["state"], one["peer"], _age(one["audited"]), one["error"] or _rest(one)]
        for one in state["switches"]
        if everything or one["state"] != "in sync" or _rest(one)
    ]
    if rows:
        print_table("switches", ["node", "state", "address", "audited", ""], rows)
    dead = [[link["node"], link["port"]] for link in state["links"] if link["dead"]]
    if dead:
        print_table("dead links, from both ends", ["node", "port"], dead)


def _audited(state: dict[str, Any]) -> str:
    oldest = state["oldest_audit"]
    return "" if oldest is None else f", the oldest audit {_age(oldest)}"


def _age(seconds: float | None) -> str:
    """How long ago a switch was compared with its program."""
    return "" if seconds is None else f"{seconds:.0f} s ago"


def _rest(one: dict[str, Any]) -> str:
    words = ["drained"] * one["drained"]
    words += [f"{one['foreign']} rows of others"] * bool(one["foreign"])
    words += [f"{one['shadowed']} of them over its program"] * bool(one["shadowed"])
    return ", ".join(words)
