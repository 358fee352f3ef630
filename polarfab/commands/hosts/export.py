"""`polarfab export`: the fabric as files for schedulers, collective libraries and simulators."""

from __future__ import annotations

from pathlib import Path

import click

from compilers.entry_points import EXPORTS, registered
from polarfab.output.verb_output import json_option, print_json, write_files


@click.command("export")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(list(registered(EXPORTS))),
    required=True,
    help="The program that is to read it.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder for the files; else one that is named by the format.",
)
@json_option
def command(folder: Path, form: str, output: Path | None, as_json: bool) -> None:
    """Tell schedulers which hosts of BUILD are near each other, and simulators how it routes.

    \b
    slurm       topology.conf as a tree and as blocks, topology.yaml with both
    topograph   a model for NVIDIA's Topograph
    kubernetes  labels of nodes: switch, cluster, fabric
    nccl        hosts in the order of a ring; with several planes settings
    simgrid     a platform with the tables' ways as routes; hosts for smpirun
    ns3         the tables, and a program whose switches forward by them
    booksim     a network and a configuration; the tables, which it cannot take

    Hosts are named as the inventory names them. For schedulers a folder of several planes is one
    cluster: a host with a port to each plane is one host. Simulators get a folder for each plane.
    """
    from polarfab.fabric import Fabric

    place = output or Path(form)
    fabric = Fabric.load(folder)
    files = fabric.export(form)
    write_files(place, form, fabric.name, files)
    if as_json:
        print_json({"folder": str(place), "format": form, "files": list(files)})
