"""`polarfab emulate`: brings a scenario up on an engine, checks it, and takes it down."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from polarfab.output.emulation_output import run
from polarfab.output.verb_output import json_option, print_json, print_table
from polarfab.shared_options import run_options, shared

if TYPE_CHECKING:
    from mininet_scenarios.scenario.scenario_file import LoadedScenario


@click.command("emulate")
@click.argument("scenario", metavar="SCENARIO", required=False)
@shared("--engine", meaning="else what the scenario says")
@shared("--framework", meaning="Ryu when both are installed")
@run_options
@click.option(
    "--cli",
    "prompt",
    is_flag=True,
    help="When all is checked, Mininet's prompt inside; path, fail, heal and load know the fabric.",
)
@shared("--unverified", meaning="what its tables do wrong is reported")
@json_option
def command(
    scenario: str | None,
    engine: str | None,
    framework: str | None,
    keep: Path | None,
    report: Path | None,
    prompt: bool,
    unverified: bool,
    as_json: bool,
) -> None:
    """Bring SCENARIO up, prove that a wrong table would be seen, check every pair and every link.

    SCENARIO is the name of one that comes with polarfab (without it they are listed), a scenario
    file, or a build folder. Real Open vSwitch, Mininet hosts and the real controller run in
    namespaces of their own, which end with the run, also when it is killed: the host is not
    touched. Every host sends to every other; hops (from the TTL) and the counter of every link must
    be what the tables predict.

    \b
        polarfab emulate first-light-q3
        polarfab emulate build/ --framework os-ken --keep logs/
    """
    from mininet_scenarios.run.emulation import with_engine
    from mininet_scenarios.scenario.scenario_file import load_scenario

    if scenario is None:
        if engine or framework or keep or report or prompt or unverified:
            raise click.UsageError("name the SCENARIO that these options are for")
        _list_scenarios(as_json)
        return
    terminal = _terminal(engine) if prompt else ""
    loaded = with_engine(load_scenario(scenario), "mininet" if prompt else engine, framework)
    run(loaded, ["emulate", scenario], as_json, keep, report, unverified, terminal)


def _terminal(engine: str | None) -> str:
    """The device of the terminal at standard input, for the prompt.

    Args:
        engine: the engine that the command line names; None if it names none.

    Raises:
        InputError: the engine has no prompt, or standard input is no terminal.
    """
    from inventory.problems import InputError

    if engine not in {None, "auto", "mininet"}:
        required = "mininet with --cli, as no other engine has a prompt"
        raise InputError.of(required, str(engine), "leave one of the two out", key="--engine")
    if not sys.stdin.isatty():
        raise InputError.of("a terminal on standard input", "something else", key="--cli")
    return os.ttyname(sys.stdin.fileno())


def _list_scenarios(as_json: bool) -> None:
    """Print the scenarios that come with polarfab."""
    from mininet_scenarios.scenario.scenario_file import load_scenario, shipped

    loaded = {name: load_scenario(name) for name in shipped()}
    rows = [
        {"name": name, "topology": _topology_in_words(scenario), "engine": scenario.scenario.engine}
        for name, scenario in loaded.items()
    ]
    if as_json:
        print_json(rows)
    else:
        print_table("Scenarios", ["name", "topology", "engine"], [[*row.values()] for row in rows])


def _topology_in_words(loaded: LoadedScenario) -> str:
    """The family and the parameters of a scenario's fabric."""
    if loaded.fabric is None:
        raise ValueError("a scenario of a build folder has no fabric.yaml")
    spec = loaded.fabric.spec.topology
    return " ".join([spec.family, *(f"{k}={v}" for k, v in spec.parameters().items())])
