"""`polarfab rehearse`: move an emulated fabric from one build to another, under traffic."""

from __future__ import annotations

from pathlib import Path

import click

from polarfab.output.emulation_output import run
from polarfab.output.verb_output import json_option
from polarfab.shared_options import framework_option, run_options, unverified_option


@click.command("rehearse")
@click.argument("old")
@click.argument("new")
@click.option(
    "--engine",
    type=click.Choice(["auto", "mininet", "ovs-fabric", "model"]),
    default="auto",
    show_default=True,
    help="What to run on; auto is Mininet where it can run.",
)
@framework_option
@click.option(
    "--interval",
    default=0.1,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(0.001, 10),
    help="Between two packets of a pair; longer where the machine is too busy for that.",
)
@click.option(
    "--pairs",
    default=0,
    show_default=True,
    type=click.IntRange(0, 100_000),
    help="How many pairs send all the time, by chance; 0 is all.",
)
@run_options
@unverified_option()
@json_option
def command(
    old: str,
    new: str,
    engine: str,
    framework: str | None,
    interval: float,
    pairs: int,
    keep: Path | None,
    report: Path | None,
    unverified: bool,
    as_json: bool,
) -> None:
    """Bring OLD up, let every host send to every other, move to NEW, and see that nobody loses.

    OLD and NEW are build folders or fabric.yaml files. Switches and cables of both are brought up
    first. The controller moves the fabric in the rounds of `polarfab plan`. Then NEW is checked in
    full. Before that the probe runs while nothing happens: where it loses packets by itself, it is
    slowed down, and where that does not help, the exit code is 1.

    \b
        polarfab rehearse build larger --report out
    """
    from mininet_scenarios.run.move_scenario import move_scenario

    loaded = move_scenario(old, new, engine, framework, interval, pairs)
    again = ["rehearse", old, new, "--interval", f"{interval:g}", "--pairs", str(pairs)]
    run(loaded, again, as_json, keep, report, unverified)
