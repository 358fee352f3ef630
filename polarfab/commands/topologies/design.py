"""`polarfab design`: which fabrics fit a radix, a size or a hardware type, and how they compare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inventory.problems import InputError
from polarfab.output.verb_output import (
    chosen_format,
    json_option,
    print_csv,
    print_json,
    print_table,
    say,
    write_file,
)

if TYPE_CHECKING:
    from compilers.evaluation.comparison.candidates import Candidate

HEADINGS = {
    "nodes": "nodes",
    "radix": "radix",
    "links": "links",
    "diameter": "most hops",
    "moore_efficiency": "Moore share",
    "mean_distance": "mean hops",
    "hosts_per_node": "hosts per node",
    "cost_per_host": "$ per host",
    "power_per_host": "W per host",
    "bundles": "bundles",
    "optical_ports_per_host_uniform": "optical ports per host",
}


def _range(value: str) -> range:
    """`15` or `8..128` as a range with both ends in it."""
    found = re.fullmatch(r"([0-9]{1,4})(?:\.\.([0-9]{1,4}))?", value)
    low, high = (int(n or found[1]) for n in found.groups()) if found else (0, 0)
    if not 2 <= low <= high <= 4096:
        raise InputError.of("2 to 4096 or a range as in 8..128", value, key="--radix")
    return range(low, high + 1)


@click.command("design")
@click.option(
    "--radix",
    metavar="N|N..M",
    callback=lambda _ctx, _param, value: None if value is None else _range(value),
    help="Fabric ports per node; a range as in 8..128.",
)
@click.option("--modules", type=click.IntRange(1, 512), help="Hardware: optical modules per node.")
@click.option("--links", type=click.IntRange(1, 512), help="Hardware: links per module.")
@click.option("--min-nodes", type=click.IntRange(1, 10_000_000), help="Leave out smaller fabrics.")
@click.option(
    "--family", "names", metavar="FAMILY", multiple=True, help="Only this family; may be repeated."
)
@click.option("--baselines", is_flag=True, help="Also the families that the papers compare with.")
@click.option("--best", is_flag=True, help="Only the largest of each family at each radix.")
@click.option("--sort", "key", default="nodes", show_default=True, help="A key of --json.")
@click.option("--prices", "file", type=click.Path(path_type=Path), help="YAML with other prices.")
@click.option("--table", help="A table of the papers, as in polarfly-5 or projective-4.")
@click.option(
    "--format", "form", type=click.Choice(["table", "csv", "json"]), help="csv has every column."
)
@click.option(
    "--write",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a fabric.yaml of the first that polarfab compiles; never over a file.",
)
@json_option
def command(
    radix: range | None,
    modules: int | None,
    links: int | None,
    min_nodes: int | None,
    names: tuple[str, ...],
    baselines: bool,
    best: bool,
    key: str,
    file: Path | None,
    table: str | None,
    form: str | None,
    write: Path | None,
    as_json: bool,
) -> None:
    """List the fabrics that can be built, and compare them. Sizes come from formulas.

    \b
        polarfab design --radix 32                  largest first; a family with none of
                                                    exactly that radix gives the next below
        polarfab design --radix 8..128 --best       exactly these radixes
        polarfab design --modules 4 --links 8       a node with 4 x 8 fabric ports
        polarfab design --min-nodes 5000            at the smallest radix of each family
        polarfab design --table polarfly-5          a table of the papers, beside its print
        polarfab design --radix 8 --family polarfly --write fabric.yaml
    """
    from polarfab.topologies import design

    printed = chosen_format(form, as_json)
    as_csv, as_json = printed == "csv", printed == "json"
    if table is not None:
        _table(table, as_csv, as_json)
        return
    if modules or links:
        if radix or not (modules and links):
            raise click.UsageError("--modules and --links go together, without --radix")
        radix = _range(f"{modules * links}")
    if radix is None and min_nodes is None:
        raise click.UsageError("say --radix, --modules and --links, or --min-nodes")
    ports = radix[0] if radix and len(radix) == 1 else radix
    found = design(
        ports,
        min_nodes or 1,
        links_per_module=links,
        families=names,
        baselines=baselines,
        best=best,
        sort=key,
        prices=file,
    )
    _show(found, _title(radix, min_nodes), as_csv, as_json)
    if write is not None:
        _write(found, write)


def _title(radix: range | None, min_nodes: int | None) -> str:
    ports = "the smallest radix" if radix is None else f"radix {radix[0]}"
    if radix is not None and len(radix) > 1:
        ports += f" to {radix[-1]}"
    return f"fabrics of {ports}" + (f" with {min_nodes:,} nodes or more" if min_nodes else "")


def _show(found: Sequence[Candidate], title: str, as_csv: bool, as_json: bool) -> None:
    from compilers.evaluation.comparison.candidates import parameter_text

    rows = [each.row() for each in found]
    if as_json:
        print_json(rows)
    elif as_csv:
        texts = [{**row, "parameters": parameter_text(row["parameters"])} for row in rows]
        print_csv(texts)
    else:
        body = [
            [each.name, *(row[key] for key in HEADINGS)]
            for each, row in zip(found, rows, strict=True)
        ]
        print_table(title, ["fabric", *HEADINGS.values()], body)
    if not rows:
        click.echo(f"there are no {title}", err=True)


def _write(found: Sequence[Candidate], file: Path) -> None:
    """A fabric.yaml of the first of these that polarfab compiles.

    Raises:
        InputError: it compiles none of them, or the file is there.
    """
    from compilers.topology.families import FAMILIES
    from compilers.wiring.starter_files import StarterFiles

    if file.exists():
        raise InputError.of("a new file", "one that is there", "name another", str(file))
    chosen = next((each for each in found if each.design.family in FAMILIES), None)
    if chosen is None:
        required = f"one of {', '.join(FAMILIES)} among the fabrics"
        raise InputError.of(required, "none", "list others", key="--write")
    parameters, hosts = chosen.known.parameters, chosen.row()["hosts_per_node"]
    text = StarterFiles.of("fabric", chosen.design.family, parameters, hosts).fabric()
    write_file(file, [text], "name another one with --write")
    say(f"written: {file}: {chosen.name} with {hosts} hosts per node")


def _table(name: str, as_csv: bool, as_json: bool) -> None:
    from compilers.evaluation.comparison.paper_tables import paper_table

    found = paper_table(name)
    if as_json:
        print_json(found.as_dict())
    elif as_csv:
        print_csv([dict(zip(found.columns, row, strict=True)) for row in found.rows])
    else:
        print_table(found.title, found.columns, found.rows)
        for note in found.corrections:
            click.echo(f"corrected: {note}")
