"""`polarfab status`: prints the state of the fabric of a running controller."""

from __future__ import annotations

from time import localtime, strftime
from typing import Any

import click

from polarfab.durations import in_words
from polarfab.output.verb_output import counted, json_option, print_json, print_table, say, volume
from polarfab.shared_options import ControllerAddress, controller_options


@click.command("status")
@controller_options
@click.option("--history", is_flag=True, help="List the builds that the fabric held, instead.")
@json_option
def command(
    controller: ControllerAddress,
    history: bool,
    as_json: bool,
) -> None:
    """Show the fabric of the controller whose management API is at URL.

    Exit code 0 when every switch holds its program, no rows of others override it and no link is
    dead or doubtful, or when another controller leads, else 1.
    """
    client = controller.client()
    if history:
        _print_history(client.get("history"), as_json)
        return
    state = client.get("state")
    is_follower = state["role"] == "follower"
    links = state["dead_links"] + state.get("doubtful_links", 0)
    is_good = is_follower or (state["complete"] and not links and not state["shadowed"])
    if as_json:
        print_json(state)
    elif is_follower:
        say(f"{state['name']}: this controller follows; {state['leader'] or 'none'} leads")
    else:
        _print_state(state)
    if not is_good:
        raise click.exceptions.Exit(1)


def _print_state(state: dict[str, Any]) -> None:
    """Print the state of the fabric, then tables of unusual switches and of dead links."""
    proved = state["caveat"] or f"proved: {state['proved']}"
    links = counted(state["dead_links"], "dead link")
    doubtful = state.get("doubtful_links", 0)
    if doubtful:
        links += f", {counted(doubtful, 'doubtful link')}"
    say(
        f"{state['name']}, build {state['build']}: {state['in_sync']} of {len(state['switches'])} "
        f"switches in sync{_oldest_audit(state)}, {links}; {proved}; held for "
        f"{in_words(state['build_age'])}, this controller runs for {in_words(state['age'])}"
    )
    if state["trial_until"]:
        until = strftime("%H:%M:%S", localtime(state["trial_until"]))
        confirmation = f"polarfab apply --confirm comes before {until}"
        say(f"the build is on trial: unless {confirmation}, the fabric goes back")
    if waits_for := state.get("move_waits_for"):
        say(f"a move waits for {waits_for} between two rounds")
    if waits_for := state.get("change_waits_for"):
        say(f"a change of tables waits for switches that are away or not read yet: {waits_for}")
    elif state.get("repairing"):
        say("the tables are being changed")
    rows = [
        [
            switch["name"],
            switch["state"],
            in_words(switch["age"]),
            switch["peer"],
            _time_ago(switch["audited"]),
            switch["error"] or _remarks(switch),
        ]
        for switch in state["switches"]
        if volume() > 0 or switch["state"] != "in sync" or _remarks(switch)
    ]
    if rows:
        print_table("switches", ["node", "state", "for", "address", "audited", ""], rows)
    ends = ("node", "port", "far_node", "far_port")
    dead = [
        [*(link[end] for end in ends), in_words(link["age"]), link["reason"]]
        for link in state["links"]
    ]
    if dead:
        print_table("dead links", ["node", "port", "to", "its port", "for", ""], dead)


def _print_history(entries: list[dict[str, Any]], as_json: bool) -> None:
    """Print the builds that the fabric held, the newest first."""
    if as_json:
        print_json({"history": entries})
        return
    rows = [
        [
            strftime("%Y-%m-%d %H:%M:%S", localtime(entry["at"])),
            entry["build"],
            entry["name"],
            entry["by"],
            entry["proved"],
            "yes" if entry["kept"] else "no",
        ]
        for entry in reversed(entries)
    ]
    print_table("builds", ["since", "build", "name", "by", "proved", "can come back"], rows)


def _oldest_audit(state: dict[str, Any]) -> str:
    """The age of the oldest audit in words; "" if there was none."""
    oldest = state["oldest_audit"]
    return "" if oldest is None else f", the oldest audit {_time_ago(oldest)}"


def _time_ago(seconds: float | None) -> str:
    """The time since a switch was compared with its program, in words; "" if it was not."""
    return "" if seconds is None else f"{in_words(seconds)} ago"


def _remarks(switch: dict[str, Any]) -> str:
    """The unusual facts about a switch, in words."""
    words = []
    if switch["drained"]:
        words.append("drained")
    if switch["foreign"]:
        words.append(f"{counted(switch['foreign'], 'row')} of others")
    if switch["shadowed"]:
        words.append(f"{switch['shadowed']} of them over its program")
    return ", ".join(words)
