"""`polarfab init`: a fabric.yaml and an inventory.yaml that fit each other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from compilers.spec.balance_words import DEMAND_FILE, TRAFFIC
from polarfab.family_choice import given_parameters, parameter_options
from polarfab.output.verb_output import json_option, print_json, say, write_new_files
from polarfab.shared_options import shared


@click.command("init")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.argument("family", metavar="[FAMILY]", required=False)
@click.argument("parameters", nargs=-1, metavar="[NAME=VALUE]...")
@parameter_options
@shared("--hosts-per-node")
@click.option(
    "--traffic",
    type=click.Choice(TRAFFIC),
    help="Take the balance that fits it; measured is read from traffic.csv.",
)
@shared("--name", "of the fabric  [default: the folder's]")
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

    given = given_parameters(parameters, q=q, supernode=supernode, degree=degree)
    if family is None:
        try:
            family, given, hosts_per_node = _asked(given, hosts_per_node)
        except click.Abort:
            click.echo(err=True)  # Ctrl-C leaves the cursor behind the question
            raise
    named = name or folder.resolve().name
    hosts = 1 if hosts_per_node is None else hosts_per_node
    require_graph(family, given)
    texts = StarterFiles.of(named, family, given, hosts, traffic=traffic or "").texts()
    files = write_new_files(folder, texts)
    if traffic == "measured" and not (folder / DEMAND_FILE).exists():
        say(f"to do: {folder / DEMAND_FILE}, a line source,destination,rate for each two switches")
    if as_json:
        print_json({"name": named, "files": [str(file) for file in files]})


def _asked(given: dict[str, Any], hosts: int | None) -> tuple[str, dict[str, Any], int]:
    """The family, its parameters and the hosts per switch, from the user at the terminal.

    Raises:
        InputError: there is no terminal to ask at.
    """
    from compilers.topology.families import FAMILIES
    from compilers.topology.supernodes import SUPERNODE_KINDS
    from inventory.problems import InputError

    if not sys.stdin.isatty():
        todo = f"say one of {', '.join(FAMILIES)}, and --q; on a terminal you are asked"
        raise InputError.of("a family", "none", todo, key="FAMILY")
    family = click.prompt(
        "Family", type=click.Choice([*FAMILIES]), default=next(iter(FAMILIES)), err=True
    )
    questions: dict[str, tuple[str, click.ParamType[Any]]] = {
        "q": ("q, a prime power; a switch has about q + 1 links", click.INT),
        "supernode": ("Supernode", click.Choice([*SUPERNODE_KINDS])),
        "degree": ("Degree of the supernode", click.INT),
    }
    for word in FAMILIES[family].parameters:
        if given.get(word) is None:
            text, kind = questions[word]
            given[word] = click.prompt(text, type=kind, err=True)
    if hosts is None:
        hosts = click.prompt("Hosts per switch", type=click.IntRange(0, 1024), default=1, err=True)
    return family, given, hosts
