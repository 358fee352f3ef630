"""`polarfab rehearse`: move an emulated fabric from one build to another, under traffic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from polarfab.emulating import Run
from polarfab.output import json_option

if TYPE_CHECKING:
    from mininet_scenarios.scenario.scenario_file import LoadedScenario


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
@click.option(
    "--framework",
    type=click.Choice(["ryu", "os-ken"]),
    help="The controller's framework; Ryu when both are installed.",
)
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
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep builds and all logs in this folder.",
)
@click.option(
    "--report",
    metavar="DIR|FILE",
    type=click.Path(path_type=Path),
    help="Write a report: FILE.html, FILE.xml (JUnit), FILE.json, or all three into DIR.",
)
@click.option("--unverified", is_flag=True, help="Take builds that verify has not passed on.")
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
    loaded = _scenario(old, new, engine, framework, interval, pairs)
    again = ["rehearse", old, new, "--interval", f"{interval:g}", "--pairs", str(pairs)]
    Run(loaded, again, as_json, keep, report, unverified).perform()


def _scenario(
    old: str, new: str, engine: str, framework: str | None, interval: float, pairs: int
) -> LoadedScenario:
    """One move, all pairs under a probe, no packet lost."""
    from compilers.spec.fabric_file import load_fabric
    from compilers.tables.build_folder import load
    from mininet_scenarios.scenario.scenario_file import LoadedScenario
    from mininet_scenarios.scenario.scenario_format import Scenario

    folder = Path(old) if Path(old).is_dir() else None
    fabric = None if folder else load_fabric(old)
    name = load(folder).name if folder else fabric.spec.name if fabric else ""
    scenario = Scenario.model_validate(
        {
            "name": name,
            "engine": engine,
            "framework": framework,
            "traffic": {"probe": {"interval": interval, "pairs": pairs}},
            "timeline": [{"build": new, "expect": {"lost": 0, "converged_within": 0}}],
        }
    )
    return LoadedScenario(scenario, folder=folder, fabric=fabric)
