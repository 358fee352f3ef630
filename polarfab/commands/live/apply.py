"""`polarfab apply`: moves a running fabric to another build, keeps it, or goes back."""

from __future__ import annotations

from pathlib import Path
from time import localtime, strftime
from typing import Any

import click

from inventory.problems import first_names
from polarfab.durations import Seconds
from polarfab.output.verb_output import counted, json_option, print_json, progress, say
from polarfab.output.verification_output import say_caveats
from polarfab.shared_options import ControllerAddress, controller_options, shared

MOST_NAMED = 6
"""Absent switches that are named."""


@click.command("apply")
@click.argument("folder", metavar="[BUILD]", type=click.Path(path_type=Path), required=False)
@controller_options
@click.option("--accept-loss", is_flag=True, help="Go on although pairs of hosts lose packets.")
@shared("--unverified")
@click.option(
    "--confirm-within",
    type=Seconds(),
    default=0,
    show_default=False,
    metavar="TIME",
    help="Go back after this time (90s, 10m, 2h) unless `polarfab apply --confirm` comes before.",
)
@click.option("--confirm", is_flag=True, help="Keep the build that is on trial.")
@click.option("--undo", is_flag=True, help="Go back to the build before, or to BUILD, an identity.")
@json_option
def command(
    folder: Path | None,
    controller: ControllerAddress,
    accept_loss: bool,
    unverified: bool,
    confirm_within: int,
    confirm: bool,
    undo: bool,
    as_json: bool,
) -> None:
    """Have the controller at URL move its fabric to BUILD, round by round.

    At the first refusal the rounds are taken back and the running build stays: exit code 1.
    `polarfab plan BUILD --to URL` shows before what it would do.

    With --confirm-within the build is on trial: without `polarfab apply --confirm` the fabric goes
    back when the time is over, also if the controller was killed or restarted meanwhile.

    \b
        polarfab apply build --confirm-within 10m
        polarfab apply --confirm
        polarfab apply --undo                    the build before
        polarfab apply 3f2a91c04d5e6b78 --undo   one of `status --history`
    """
    moves = folder is not None and not undo
    has_move_options = bool(accept_loss or unverified or confirm_within)
    if [moves, confirm, undo].count(True) != 1 or (has_move_options and not moves):
        raise click.UsageError("say BUILD and its options, --confirm alone, or --undo alone")
    if confirm:
        state = controller.client().post("confirm", {})
        if as_json:
            print_json(state)
        else:
            say(f"build {state.get('to') or state['build']} stays")
        return
    with progress("moving") as report:
        if undo or folder is None:  # without --undo there is a folder, as was checked above
            _say_absent(controller)
            state = controller.client().roll_back(str(folder or ""), report)
            identity = str(state.get("to") or state.get("build"))
        else:
            from polarfab.fabric import Fabric
            from polarfab.switches import apply

            fabric = Fabric.load(folder)
            identity = fabric.build.identity
            say_caveats(fabric)
            _say_absent(controller)
            state = apply(
                fabric,
                controller.url,
                controller.token_file,
                controller.authority,
                accept_loss=accept_loss,
                unverified=unverified,
                progress=report,
                confirm_within=confirm_within,
            )
    _say_moved(state, as_json, identity)


def _say_absent(controller: ControllerAddress) -> None:
    """Name the switches that a move has to wait for, because they are not connected.

    Raises:
        InputError: the controller does not answer.
    """
    from controller.rollout.rollout import ROLLOUT_PATIENCE

    state = controller.client().get("state")
    if state["role"] == "follower":
        return  # it refuses the move at once
    names = [switch["name"] for switch in state["switches"] if switch["state"] == "absent"]
    if names:
        say(
            f"the controller waits {ROLLOUT_PATIENCE:.0f} s at most for switches that are not "
            f"connected: {first_names(names, MOST_NAMED)}"
        )


def _say_moved(state: dict[str, Any], as_json: bool, identity: str) -> None:
    """Print how a move ended.

    Args:
        state: the controller's answer.
        as_json: whether to print the answer as JSON.
        identity: the identity of the build that the fabric moves to.

    Raises:
        Exit: with code 1 if the running build stays, or the controller could not store the new one.
    """
    if as_json:
        print_json(state)
    else:
        say(_move_in_words(state, identity))
    unwritten = state.get("unwritten")
    if unwritten:
        say(f"the controller could not write it down: {unwritten}")
    if state["state"] == "failed" or unwritten:
        raise click.exceptions.Exit(1)


def _move_in_words(state: dict[str, Any], identity: str) -> str:
    """The end of a move in words."""
    if state["state"] == "none":  # no move: the fabric has this build already
        return f"the fabric has build {identity}; its switches are read again"
    if state["state"] == "failed":
        return f"build {state['from']} stays: {state['reason']}"
    rounds = counted(state["rounds"], "round")
    words = f"moved from build {state['from']} to {state['to']} in {rounds}"
    if state["until"]:
        until = strftime("%H:%M:%S", localtime(state["until"]))
        words += f"; unless polarfab apply --confirm comes before {until} the fabric goes back"
    return words
