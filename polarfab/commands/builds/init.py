"""`polarfab init`: writes a fabric.yaml and an inventory.yaml that fit each other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import click

from compilers.spec.balance_words import DEMAND_FILE, TRAFFIC
from polarfab.family_choice import parameter_options, read_parameters
from polarfab.output.verb_output import json_option, print_json, say, write_new_files
from polarfab.shared_options import shared


@click.command("init")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.argument("family", metavar="[FAMILY]", required=False)
@click.argument("parameters", nargs=-1, metavar="[NAME=VALUE]...")
@parameter_options
@shared("--hosts-per-node", meaning="by default 1")
@click.option(
    "--traffic",
    type=click.Choice(TRAFFIC),
    help="Take the balance that fits this traffic; measured is read from traffic.csv.",
)
@shared("--name", meaning="of the fabric  [default: the folder's]")
@json_option
def command(
    folder: Path,
    family: str | None,
    parameters: tuple[str, ...],
    q: int | None,
    supernode: str | None,
    degree: int | None,
    hosts_per_node: int | None,
    traffic: str | None,
    name: str | None,
    as_json: bool,
) -> None:
    """Write a fabric.yaml and an inventory.yaml to begin with into DIR, with comments.

    FAMILY is polarfly, polarstar, pn, oft or one to compare with; without it you are asked. The two
    files fit each other, and leave ports and rack space to grow. Files that are there stay.

    \b
        polarfab init lab polarfly --q 7
        polarfab init lab polarfly --q 7 --traffic any
        polarfab init star polarstar --q 5 --supernode paley --degree 2
        polarfab init jelly jellyfish nodes=64 degree=8
    """
    from compilers.memory_bound import require_graph
    from compilers.wiring.starter_files import StarterFiles

    values = read_parameters(parameters, q=q, supernode=supernode, degree=degree)
    if family is None:
        try:
            family, values, hosts_per_node = _ask(folder, values, hosts_per_node)
        except click.Abort:
            click.echo(err=True)  # Ctrl-C leaves the cursor behind the question
            raise
    fabric_name = name or folder.resolve().name
    hosts = 1 if hosts_per_node is None else hosts_per_node
    require_graph(family, values)
    texts = StarterFiles.of(fabric_name, family, values, hosts, traffic=traffic or "").texts()
    files = write_new_files(folder, texts)
    if traffic == "measured" and not (folder / DEMAND_FILE).exists():
        say(f"to do: {folder / DEMAND_FILE}, a line source,destination,rate for each two switches")
    if as_json:
        print_json({"name": fabric_name, "files": [str(file) for file in files]})


class _Answers(NamedTuple):
    """What the user has chosen at the terminal."""

    family: str
    """The family of topologies."""
    parameters: dict[str, Any]
    """The values of the family's parameters, by name."""
    hosts_per_node: int
    """The hosts of each switch."""


def _ask(folder: Path, parameters: dict[str, Any], hosts: int | None) -> _Answers:
    """Ask the user for the family, and for the parameters and hosts that options do not set.

    Args:
        folder: the new folder, or a family where the user has left the folder out.
        parameters: the values of the family's parameters that options set, by name.
        hosts: the hosts of each switch; None if no option sets them.

    Raises:
        InputError: standard input is no terminal.
    """
    from compilers.topology.families import FAMILIES
    from compilers.topology.supernodes import SUPERNODE_KINDS
    from inventory.problems import InputError

    if not sys.stdin.isatty():
        todo = f"say one of {', '.join(FAMILIES)}, and --q; on a terminal you are asked"
        if folder.name in FAMILIES:
            todo = f"the folder comes first, as in: polarfab init lab {folder.name} --q 7"
        raise InputError.of("a family", "none", todo, key="FAMILY")
    family = click.prompt(
        "Family", type=click.Choice([*FAMILIES]), default=next(iter(FAMILIES)), err=True
    )
    questions: dict[str, tuple[str, click.ParamType[Any]]] = {
        "q": ("q, a prime power; a switch has about q + 1 links", click.INT),
        "supernode": ("Supernode", click.Choice([*SUPERNODE_KINDS])),
        "degree": ("Degree of the supernode", click.INT),
    }
    for name in FAMILIES[family].parameters:
        if parameters.get(name) is not None:
            continue
        if name in questions:
            text, kind = questions[name]
            parameters[name] = click.prompt(text, type=kind, err=True)
        elif name not in FAMILIES[family].optional:  # of a family of another package
            answer = click.prompt(name, type=click.STRING, err=True)
            parameters |= read_parameters((f"{name}={answer}",))
    if hosts is None:
        hosts = click.prompt("Hosts per switch", type=click.IntRange(0, 1024), default=1, err=True)
    return _Answers(family, parameters, hosts)
