"""`polarfab trees`: spanning trees for collectives and multicast."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from extensions.clusters.trees import KINDS
from polarfab.output.verb_output import (
    chosen_format,
    json_option,
    print_facts,
    print_json,
    print_table,
    say_written,
    write_file,
    write_files,
)
from polarfab.shared_options import format_option, output_option, shared

if TYPE_CHECKING:
    from compilers.choices import TreeKind
    from extensions.clusters.trees.allreduce_time import AllreduceTime
    from extensions.clusters.trees.tree_set import TreeSet

TREE_FORMS = ("openflow", "msccl")


@click.command("trees")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default=KINDS[0],
    help="No link in two trees, or short trees with two on a link.",
)
@click.option("--root", metavar="NODE", help="The root of every tree; else where it is least deep.")
@click.option(
    "--member",
    "members",
    metavar="NODE",
    multiple=True,
    help="Only the branches from --root to this switch (multicast); again for more.",
)
@shared("--fail", "", "failures")
@format_option(*TREE_FORMS)
@output_option("a folder for openflow, a file for msccl")
@json_option
def command(
    folder: Path,
    kind: TreeKind,
    root: str | None,
    members: tuple[str, ...],
    failures: tuple[str, ...],
    form: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Spanning trees of BUILD, as many as can be used at the same time.

    Disjoint trees are as many as there are. Low-depth trees are q, in PolarFly 3 links deep, in
    PolarStar 5; other families have fewer.

    \b
    openflow  OUT/<node>/trees.txt for ovs-ofctl bundle: multicast rows
    msccl     allreduce over the trees as XML, a rank a host
    """
    from polarfab.fabric import Fabric

    printed = chosen_format(form, as_json)
    if members and root is None:
        raise click.UsageError("--member needs --root: where the branches begin")
    if (output is None) != (printed in ("table", "json")):
        raise click.UsageError("-o is for --format openflow and --format msccl, which need it")
    from extensions.clusters.trees import trees

    found = trees(Fabric.load(folder), kind, root, failures, members)
    if output:
        _write(found, printed, output)
    elif printed == "json":
        print_json(found.as_dict() | {"allreduce": [time.as_dict() for time in _times(found)]})
    else:
        _print(found)


def _times(found: TreeSet) -> list[AllreduceTime]:
    """How long an allreduce takes, if all switches take part."""
    from extensions.clusters.trees.allreduce_time import SIZES, AllreduceTime

    return [AllreduceTime.of(found, size) for size in SIZES] if found.whole else []


def _write(found: TreeSet, form: str, output: Path) -> None:
    if form == "msccl":
        from extensions.clusters.trees.msccl_xml import msccl_xml

        write_file(output, [msccl_xml(found)])
        say_written(output)
    else:
        from extensions.clusters.trees.multicast_rows import FILE, multicast_files

        texts = {
            f"{name}/{FILE}": "\n".join([*lines, ""]) for name, lines in multicast_files(found)
        }
        write_files(output, "trees", found.build.identity, texts)


def _print(found: TreeSet) -> None:
    names = found.build.wiring.names
    facts = ("bound", "congestion", "bandwidth", "most_bandwidth")
    title = f"{found.build.name}: {len(found.trees)} {found.kind} trees"
    print_facts(title, [(word, getattr(found, word)) for word in facts])
    rows = [
        [number, names[tree.root], tree.depth, len(tree.edges)]
        + [number - 1 in found.remade] * bool(found.remade)
        for number, tree in enumerate(found.trees, 1)
    ]
    columns = ["tree", "root", "depth", "links"] + ["joined again"] * bool(found.remade)
    print_table("trees", columns, rows)
    if times := _times(found):
        columns = ["bytes", "trees", "ring", "forestcoll"]
        title = "allreduce over links of 400 Gbit/s, microseconds"
        print_table(title, columns, [[t.size, *(x * 1e6 for x in t.seconds)] for t in times])
