"""`polarfab rehearse`: moves an emulated fabric from one build to another, under traffic."""

from __future__ import annotations

from pathlib import Path

import click

from polarfab.output.emulation_output import run
from polarfab.output.verb_output import json_option
from polarfab.shared_options import run_options, shared


@click.command("rehearse")
@click.argument("folder", metavar="BUILD|FABRIC")
@shared("--from", parameter="old", required=True)
@shared("--engine", meaning="linux and frr cannot rehearse a move")
@shared("--framework", meaning="Ryu when both are installed")
@click.option(
    "--interval",
    default=0.1,
    metavar="SECONDS",
    type=click.FloatRange(0.001, 10),
    help="Time between two packets of a pair; longer where the machine is too busy.",
)
@click.option(
    "--pairs",
    default=0,
    type=click.IntRange(0, 100_000),
    help="How many pairs send all the time, by chance; 0 is all.",
)
@run_options
@shared("--unverified")
@json_option
def command(
    folder: str,
    old: Path,
    engine: str | None,
    framework: str | None,
    interval: float,
    pairs: int,
    keep: Path | None,
    report: Path | None,
    unverified: bool,
    as_json: bool,
) -> None:
    """Bring OLDBUILD up, have every host send to every other, move to BUILD, count lost packets.

    Both are build folders or fabric.yaml files. Switches and cables of both are brought up first.
    The controller moves the fabric in the rounds of `polarfab plan`. Then BUILD is checked in full.
    First the same traffic runs without a move, to see that the machine itself loses nothing. If it
    loses packets, the traffic is slowed down. If that does not help, the exit code is 1.

    \b
        polarfab rehearse larger --from build --report out
    """
    from mininet_scenarios.run.emulation import move_scenario

    scenario = move_scenario(
        str(old),
        new=folder,
        engine=engine or "auto",
        framework=framework,
        interval=interval,
        pairs=pairs,
    )
    # The command line, for the report.
    command_line = [
        "rehearse",
        folder,
        "--from",
        str(old),
        "--interval",
        f"{interval:g}",
        "--pairs",
        str(pairs),
    ]
    run(scenario, command_line, as_json, keep, report, unverified)
