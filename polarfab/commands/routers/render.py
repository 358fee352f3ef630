"""`polarfab render`: every switch's configuration for a target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from polarfab.output.verb_output import json_option, print_json, progress, say, warn
from polarfab.output.verification_output import say_caveats, say_emitted
from polarfab.shared_options import output_option, shared, target_options

if TYPE_CHECKING:
    from polarfab.fabric import Fabric

MOST_NAMED = 10
"""Changed files that are named one by one."""


@click.command("render")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@target_options(required=True)
@output_option("a folder", required=True)
@click.option(
    "--templates",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Templates of your own, in place of the target's, or in addition.",
)
@shared("--node", "or the switches of this type", "names")
@shared("--unverified")
@click.option("--no-check", is_flag=True, help="Do not read the files back.")
@shared("--accept")
@json_option
def command(
    folder: Path,
    target: str,
    output: Path,
    templates: Path | None,
    words: tuple[str, ...],
    names: tuple[str, ...],
    unverified: bool,
    no_check: bool,
    accept: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write the configuration of every switch of BUILD, in OUTPUT/<node>/.

    Where BUILD has several planes, in OUTPUT/plane-1/<node>/ and so on.

    What was written is read back and compared with the tables (`polarfab verify --emitted`);
    --no-check leaves that out.

    `polarfab targets` says what each target writes and which options --set takes; docs/ has a page
    per target.
    """
    from compilers.readers.emitted_report import EmittedWrongError
    from compilers.targets.options import read
    from polarfab.fabric import Fabric

    options = read(words)
    fabric = Fabric.load(folder)
    names = tuple(_of_types(fabric, names))
    if unverified:
        warn("warning: --unverified: these tables were not checked")
    else:
        say_caveats(fabric)
    try:
        with progress(f"rendering {target}") as bar:
            done = fabric.render(
                target,
                output,
                templates=templates,
                options=options,
                nodes=names,
                unverified=unverified,
                check=not no_check,
                accept=accept,
                progress=bar,
            )
    except EmittedWrongError as error:
        if as_json:
            print_json({"target": target, "emitted": error.report.as_dict()})
        say_emitted(error.report)
        raise click.exceptions.Exit(1) from error
    for each in done:
        for name in each.edited[:MOST_NAMED]:
            warn(f"written anew: {output / name}, which had been changed or removed")
        if (more := len(each.edited) - MOST_NAMED) > 0:
            warn(f"written anew: {more:,} more that had been changed or removed")
    for unproved in dict.fromkeys(each.unproved for each in done if each.unproved):
        warn(f"not proved: {unproved}")
    if as_json:
        facts = [{**asdict(each), "folder": str(each.folder)} for each in done]
        single = len(fabric.builds) == 1
        print_json(facts[0] if single else {"target": target, "planes": facts})
        return
    for each in done:
        kept = f", {each.kept:,} of {each.files:,} files as they were" if each.kept else ""
        say(f"{each.nodes} nodes of build {each.build} rendered in {each.folder}{kept}")
    if not no_check and done[0].not_checked:
        say(f"these files were not read back: {done[0].not_checked}")


def _of_types(fabric: Fabric, words: tuple[str, ...]) -> Iterator[str]:
    """The nodes of these names, and those with a program of these types.

    Raises:
        InputError: a word is almost a type, and no node.
    """
    from inventory.problems import InputError, nearest, shown

    found: dict[str, list[str]] = {}
    for build in fabric.builds:
        w = build.wiring
        for vertex in build.topology.present.nonzero()[0].tolist():
            found.setdefault(w.type_names[w.node_type[vertex]], []).append(w.names[vertex])
    known = {name for names in found.values() for name in names}
    for word in words:
        if word not in known and word not in found and (near := nearest(word, found)):
            required, todo = "the name of a switch of the build, or a type", f"did you mean {near}?"
            raise InputError.of(required, shown(word), todo, key="--node")
        yield from [word] if word in known else found.get(word, [word])
