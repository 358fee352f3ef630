"""`polarfab draw`: a fabric as a picture or an interactive page, and plots of comparisons."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inventory.problems import InputError, Problem, nearest
from polarfab.output import say

if TYPE_CHECKING:
    from compilers.drawing.draw import Subject


@click.command("draw")
@click.argument("subject", metavar="FAMILY|BUILD")
@click.option("--q", type=int, help="Order of the field, a prime power.")
@click.option("--supernode", help="PolarStar: inductive-quad, paley or complete.")
@click.option("--degree", type=int, help="PolarStar: degree of the supernode.")
@click.option("--layout", "layout_name", default="", help="Racks: fans, stars, clusters, …")
@click.option("--rack", help="Highlight what leaves this rack: its name or number.")
@click.option("--pair", metavar="A,B", help="Highlight the links between two racks.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="FILE.svg or FILE.html."
)
def command(
    subject: str,
    q: int | None,
    supernode: str | None,
    degree: int | None,
    layout_name: str,
    rack: str | None,
    pair: str | None,
    output: Path,
) -> None:
    """Draw a topology or the fabric of a build folder.

    An HTML page is interactive and needs no network: hover a node, click two for the paths between
    them.

    \b
        polarfab draw polarfly --q 7 -o er7.svg
        polarfab draw polarfly --q 7 --pair quadrics,fan3 -o pair.svg
        polarfab draw polarstar --q 5 --supernode inductive-quad --degree 3 -o star.html
        polarfab draw build -o lab.html
    """
    from compilers.drawing.draw import draw

    interactive = _interactive(output)
    marked = _marked(rack, pair)
    found = _subject(subject, {"q": q, "supernode": supernode, "degree": degree})
    _write(output, draw(found, interactive, layout_name, marked))
    say(f"{found.title} drawn in {output}")


def _interactive(output: Path) -> bool:
    if output.suffix not in (".svg", ".html"):
        raise InputError(
            Problem(key="-o", required="FILE.svg or FILE.html", given=str(output), todo="")
        )
    return output.suffix == ".html"


def _marked(rack: str | None, pair: str | None) -> tuple[str, ...]:
    if rack is not None and pair is not None:
        raise click.UsageError("--rack and --pair exclude each other.")
    if pair is None:
        return () if rack is None else (rack,)
    names = tuple(word.strip() for word in pair.split(","))
    if len(names) != 2:
        raise InputError(Problem(key="--pair", required="two racks, as in 0,3", given=pair))
    return names


def _subject(word: str, parameters: dict[str, int | str | None]) -> Subject:
    from compilers.build import load
    from compilers.drawing.draw import of_build, of_topology
    from compilers.topologies import FAMILIES
    from compilers.topologies.select import build_topology

    if word in FAMILIES:
        return of_topology(build_topology(word, parameters))
    if not Path(word).is_dir():
        near = nearest(word, FAMILIES)
        raise InputError(
            Problem(
                required=f"a family ({', '.join(FAMILIES)}) or a build folder",
                given=word,
                todo=f"did you mean {near}?" if near else "",
            )
        )
    surplus = [
        Problem(key=f"--{name}", required="none with a build folder", given=str(value))
        for name, value in parameters.items()
        if value is not None
    ]
    if surplus:
        raise InputError(surplus)
    return of_build(load(Path(word)))


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(file)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(
            Problem(
                file=str(file),
                required="a file that can be written",
                given=error.strerror or str(error),
                todo="name another one with -o",
            )
        ) from error
