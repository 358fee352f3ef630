"""How a move of a running fabric ended, as lines or JSON."""

from __future__ import annotations

from time import localtime, strftime
from typing import Any

import click

from polarfab.output.verb_output import print_json, say


def say_moved(state: dict[str, Any], as_json: bool, identity: str) -> None:
    """Print how a move ended; exit code 1 if the running build stays, or the folder has another."""
    if as_json:
        print_json(state)
    else:
        say(_words(state, identity))
    if unwritten := state.get("unwritten"):
        say(f"the controller could not write it down: {unwritten}")
    if state["state"] == "failed" or unwritten:
        raise click.exceptions.Exit(1)


def _words(state: dict[str, Any], identity: str) -> str:
    if state["state"] == "none":
        return f"the fabric has build {identity}; its switches are read again"
    if state["state"] == "failed":
        return f"build {state['from']} stays: {state['reason']}"
    words = f"moved from build {state['from']} to {state['to']} in {state['rounds']} rounds"
    if state["until"]:
        until = strftime("%H:%M:%S", localtime(state["until"]))
        words += f"; unless polarfab apply --confirm comes before {until} the fabric goes back"
    return words
