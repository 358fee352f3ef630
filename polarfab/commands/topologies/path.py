"""`polarfab path`: prints minimal paths of a family by algebra, without a fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from polarfab.family_choice import parameter_options, read_parameters
from polarfab.output.verb_output import json_option, print_json, print_table, say

if TYPE_CHECKING:
    from compilers.forwarding.family_paths import PathStep


@click.command("path")
@click.argument("family", metavar="FAMILY")
@click.argument("source", type=int, metavar="SOURCE")
@click.argument("destination", type=int, metavar="DESTINATION")
@parameter_options
@click.option("--all", "every", is_flag=True, help="All minimal paths: in PN and OFT often q + 1.")
@json_option
def command(
    family: str,
    source: int,
    destination: int,
    q: int | None,
    supernode: str | None,
    degree: int | None,
    every: bool,
    as_json: bool,
) -> None:
    """A minimal path between two vertices, by the algebra of the family.

    Of polarfly, demi-pn, pn, oft and polarstar. No graph is built: each vertex follows from the
    vectors of others, as the last column shows. `polarfab explain` has the paths of a build, with
    its ports and weights.

    \b
        polarfab path polarfly --q 31 17 400
        polarfab path pn --q 5 0 40 --all
        polarfab path polarstar --q 5 --supernode paley --degree 2 0 154
    """
    from compilers.forwarding.family_paths import family_paths
    from compilers.topology.families import family_of
    from inventory.problems import InputError

    values = read_parameters((), q=q, supernode=supernode, degree=degree)
    parameters = {name: value for name, value in values.items() if value is not None}
    paths = family_paths(family, parameters)
    problems = paths.end_problems(source, "SOURCE") + paths.end_problems(destination, "DESTINATION")
    if problems:
        raise InputError(problems)
    vertex_paths = (
        paths.every_path(source, destination) if every else [paths.path(source, destination)]
    )
    step_paths = [[*paths.steps(path)] for path in vertex_paths]
    if as_json:
        steps = [[asdict(step) for step in path] for path in step_paths]
        print_json({"family": family, "parameters": parameters, "paths": steps})
        return
    title = family_of(family).title(parameters)
    for path in step_paths:
        _print_steps(path, title)
    count = len(paths.every_path(source, destination))
    if count > len(vertex_paths):
        say(f"one of {count} minimal paths: --all shows them")


def _print_steps(path: Sequence[PathStep], title: str) -> None:
    """Print a table with the vertices of a path, and the algebra that each follows from."""
    links = len(path) - 1
    rows = [
        (number, step.vertex, ", ".join(map(str, step.coordinates)), step.reason)
        for number, step in enumerate(path)
    ]
    heads = ("link", "vertex", "coordinates", "why")
    print_table(f"{title}: {links} link{'' if links == 1 else 's'}", heads, rows, whole=True)
