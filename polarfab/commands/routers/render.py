"""`polarfab render`: writes the configuration of every switch for a target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from polarfab.output.verb_output import counted, json_option, print_json, progress, say, warn
from polarfab.output.verification_output import say_caveats, say_emitted
from polarfab.shared_options import output_option, shared, target_options

if TYPE_CHECKING:
    from compilers.targets.rendering.plane_rendering import Rendering
    from polarfab.fabric import Fabric

MOST_NAMED = 10
"""Changed files that are named one by one."""


@click.command("render")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@target_options(more="else each switch for its own, as fabric.yaml and the inventory name it")
@output_option("a folder", required=True)
@click.option(
    "--templates",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Templates of your own, in place of the target's, or in addition.",
)
@shared("--node", meaning="or the switches of this type", parameter="names")
@click.option("--system", "systems", multiple=True, help="Only the switches with this system.")
@shared("--unverified")
@click.option("--no-check", is_flag=True, help="Do not read the files back.")
@shared("--accept")
@json_option
def command(
    folder: Path,
    target: str | None,
    output: Path,
    templates: Path | None,
    option_words: tuple[str, ...],
    names: tuple[str, ...],
    systems: tuple[str, ...],
    unverified: bool,
    no_check: bool,
    accept: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write the configuration of every switch of BUILD, in OUTPUT/<node>/.

    Each switch has the files of its own system, as fabric.yaml and the inventory name it; with
    --target all have those of one.
    Where BUILD has several planes, in OUTPUT/plane-1/<node>/ and so on.

    What was written is read back and compared with the tables (`polarfab verify --emitted`);
    --no-check leaves that out.

    `polarfab targets` says what each target writes and which options --set takes; docs/ has a page
    per target.
    """
    from compilers.readers.emitted_report import EmittedWrongError
    from compilers.targets.options import read
    from polarfab.fabric import Fabric

    options = read(option_words)
    fabric = Fabric.load(folder)
    names = tuple(_node_names(fabric, names))
    if unverified:
        warn("warning: --unverified: these tables were not checked")
    else:
        say_caveats(fabric)
    try:
        with progress(f"rendering {target or 'by system'}") as bar:
            renderings = fabric.render(
                target or "",
                output,
                templates=templates,
                options=options,
                nodes=names,
                systems=systems,
                unverified=unverified,
                check=not no_check,
                accept=accept,
                progress=bar,
            )
    except EmittedWrongError as error:
        if as_json:
            print_json({"target": error.report.target, "emitted": error.report.as_dict()})
        say_emitted(error.report)
        raise click.exceptions.Exit(1) from error
    _warn_of(renderings, output)
    if as_json:
        facts = [{**asdict(plane), "folder": str(plane.folder)} for plane in renderings]
        single = len(fabric.builds) == 1
        print_json(facts[0] if single else {"target": renderings[0].target, "planes": facts})
        return
    _say_rendered(renderings)
    if not no_check and renderings[0].not_checked:
        say(f"these files were not read back: {renderings[0].not_checked}")


def _say_rendered(renderings: Sequence[Rendering]) -> None:
    """Say how many nodes were rendered in which folder, and how many files did not change."""
    for plane in renderings:
        unchanged = f", {plane.kept:,} of {plane.files:,} files as they were" if plane.kept else ""
        nodes = counted(plane.nodes, "node")
        say(f"{nodes} of build {plane.build} rendered in {plane.folder}{unchanged}")


def _warn_of(renderings: Sequence[Rendering], output: Path) -> None:
    """Say which files others had changed, and what the check of the files does not prove."""
    for plane in renderings:
        for name in plane.edited[:MOST_NAMED]:
            warn(f"written anew: {output / name}, which had been changed or removed")
        unnamed = len(plane.edited) - MOST_NAMED
        if unnamed > 0:
            warn(f"written anew: {unnamed:,} more that had been changed or removed")
    for unproved in dict.fromkeys(plane.unproved for plane in renderings if plane.unproved):
        warn(f"not proved: {unproved}")


def _node_names(fabric: Fabric, names_or_types: tuple[str, ...]) -> Iterator[str]:
    """The names of the nodes that --node means, by a node's own name or its type.

    A word that is neither is passed on; the rendering refuses it.

    Raises:
        InputError: a word is neither, and almost a type.
    """
    from inventory.problems import InputError, nearest, shown

    by_type: dict[str, list[str]] = {}
    for build in fabric.builds:
        wiring = build.wiring
        for vertex in build.topology.present.nonzero()[0].tolist():
            by_type.setdefault(wiring.type_names[wiring.node_type[vertex]], []).append(
                wiring.names[vertex]
            )
    node_names = {name for names in by_type.values() for name in names}
    for word in names_or_types:
        if word in node_names:
            yield word
        elif word in by_type:
            yield from by_type[word]
        else:
            meant_type = nearest(word, by_type)
            if meant_type:
                required = "the name of a switch of the build, or a type"
                raise InputError.of(
                    required, shown(word), f"did you mean {meant_type}?", key="--node"
                )
            yield word
