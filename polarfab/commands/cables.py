"""`polarfab cables`: every cable of a build, for the people who pull them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarfab.output import json_option, print_facts, print_table, say

if TYPE_CHECKING:
    from compilers.cabling.cable_plan import Cables
    from compilers.cabling.cable_rows import Rows
    from compilers.tables.build import Build

    Part = tuple[Build, Rows]

CABLE_FORMATS = ("csv", "markdown", "netbox", "labels", "bom", "hosts")


@click.command("cables")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(CABLE_FORMATS), help="What to write.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File; else stdout.")
@click.option("--phases", default=8, show_default=True, type=click.IntRange(1), help="How many.")
@click.option("--phase", type=click.IntRange(1), help="Only the cables of one phase.")
@click.option("--rack", default="", help="Only cables with an end in this rack.")
@json_option
def command(
    folder: Path,
    form: str | None,
    output: Path | None,
    phases: int,
    phase: int | None,
    rack: str,
    as_json: bool,
) -> None:
    """The cable schedule of BUILD: a summary, or in a format the whole of it.

    A folder of several planes gives that of all planes.

    \b
    csv       every cable, both ends, type, length, bundle, phase
    markdown  the same in a table a phase and rack pair, for crews
    netbox    for NetBox's bulk import of cables
    labels    HTML to print, a label for each end
    bom       bill of materials, CSV
    hosts     the cables to hosts, CSV; with lengths where the inventory says where hosts stand
    """
    from compilers.tables.build_folder import load
    from compilers.tables.plane_folders import builds_in

    if as_json and form:
        raise click.UsageError("--json and --format exclude each other")
    parts = [(build, _rows(build, phases, phase or 0)) for build in map(load, builds_in(folder))]
    if rack:
        parts = _of_rack(parts, rack)
    if form:
        _write(output, _text(form, parts))
        return
    summaries, bom = [_summary(*part) for part in parts], _bom(parts)
    if as_json:
        _write(output, _json(summaries, bom, parts))
        return
    for summary in summaries:
        _print(summary)
    print_table("materials", list(bom[0]), [list(entry.values()) for entry in bom])


def _rows(build: Build, phases: int, phase: int) -> Rows:
    from compilers.cabling.cable_plan import cables_of, hardware_of
    from compilers.cabling.cable_rows import Rows
    from compilers.cabling.phases import phases_of

    cables = cables_of(build.wiring, hardware_of(build))
    plan = phases_of(build.topology.graph, cables, phases)
    if phase > plan.count:
        raise click.BadParameter(f"there are {plan.count} phases", param_hint="--phase")
    return Rows.of(build.wiring, cables, plan, phase)


def _of_rack(parts: list[Part], name: str) -> list[Part]:
    """The parts with a rack of this name, and of them the cables that end in it."""
    from inventory.problems import nearest

    racks = [rows.cables.hardware.rack_names for _, rows in parts]
    if not any(name in names for names in racks):
        near = nearest(name, [word for names in racks for word in names])
        hint = f"; did you mean {near}?" if near else ""
        raise click.BadParameter(f"there is no rack {name}{hint}", param_hint="--rack")
    return [
        (build, rows.of_rack(names.index(name)))
        for (build, rows), names in zip(parts, racks, strict=True)
        if name in names
    ]


def _text(form: str, parts: list[Part]) -> Iterator[str]:
    from compilers.cabling import cable_formats as formats
    from compilers.cabling.bill import bill

    name = " and ".join(build.name for build, _ in parts)
    every = [rows for _, rows in parts]
    rows = chain.from_iterable(every)
    if form == "labels":
        return formats.as_labels(rows, f"{name}: cable labels")
    if form == "bom":
        pairs = ((build.wiring, rows.cables) for build, rows in parts)
        return formats.as_bill(bill(*pairs))
    if form == "hosts":
        return formats.as_host_csv(parts)
    if form == "netbox":
        return formats.as_netbox(rows, every[0].cables.kinds())
    if form == "csv":
        return formats.as_csv(rows)
    count = sum(len(rows.which) for rows in every)
    return chain((f"# {name}: {count:,} cables\n",), formats.as_markdown(rows))


def _bom(parts: list[Part]) -> list[dict[str, Any]]:
    from compilers.cabling.bill import bill

    words = ("kind", "name", "detail", "quantity")
    items = bill(*((build.wiring, rows.cables) for build, rows in parts))
    return [dict(zip(words, astuple(item), strict=True)) for item in items]


def _summary(build: Build, rows: Rows) -> dict[str, Any]:
    import numpy as np

    from compilers.cabling.phases import connected_pairs, working_pairs

    cables, plan = rows.cables, rows.phases
    bundles = cables.bundles.cables
    sizes, count = np.unique(bundles, return_counts=True)
    new = np.bincount(plan.cable, minlength=plan.count + 1)[1:]
    names = cables.hardware.rack_names
    working = working_pairs(build, plan)
    connected = connected_pairs(build.topology.graph, plan)
    return {
        "fabric": build.name,
        "build": build.identity,
        "cables": len(cables),
        "metres": float(cables.length.sum()),
        "loose": int((cables.bundle < 0).sum()),
        "bundles": {int(s): int(c) for s, c in zip(sizes, count, strict=True)},
        "cluster_pairs": _cluster_pairs(cables),
        "phases": [
            {
                "phase": p + 1,
                "racks": [names[r] for r in np.flatnonzero(plan.rack == p + 1)],
                "cables": int(new[p]),
                "working_pairs": int(working[p]),
                "connected_pairs": int(connected[p]),
            }
            for p in range(plan.count)
        ],
    }


def _cluster_pairs(cables: Cables) -> dict[int, int]:
    """How many pairs of clusters are joined by so many cables, whatever racks they stand in."""
    import numpy as np

    pairs, cluster = (
        np.sort(cables.bundles.clusters.astype(np.int64), axis=1),
        cables.bundles.cables,
    )
    apart = pairs[:, 0] != pairs[:, 1]
    order = len(cables.hardware.cluster_names)
    _, which = np.unique(pairs[apart] @ [order, 1], return_inverse=True)
    sizes, count = np.unique(np.bincount(which, cluster[apart]), return_counts=True)
    return {int(s): int(c) for s, c in zip(sizes, count, strict=True)}


def _print(summary: dict[str, Any]) -> None:
    facts = [(word, summary[word]) for word in ("build", "cables", "metres", "loose")]
    facts += [(f"cluster pairs with {s}", c) for s, c in summary["cluster_pairs"].items()]
    if summary["bundles"] != summary["cluster_pairs"]:
        facts += [(f"bundles of {s}", c) for s, c in summary["bundles"].items()]
    print_facts(f"{summary['fabric']}: cables", facts)
    phases = [{**entry, "racks": len(entry["racks"])} for entry in summary["phases"]]
    print_table("phases", list(phases[0]), [list(entry.values()) for entry in phases])


def _json(
    summaries: list[dict[str, Any]], bom: list[dict[str, Any]], parts: list[Part]
) -> Iterator[str]:
    """One document, the cables written one by one: there may be a million."""
    from compilers.cabling.cable_formats import as_records

    summary = summaries[0] if len(summaries) == 1 else {"planes": summaries}
    yield json.dumps({**summary, "bom": bom}, indent=2)[:-2] + ',\n  "schedule": ['
    comma = "\n"
    for record in as_records(chain.from_iterable(rows for _, rows in parts)):
        yield f"{comma}    {json.dumps(record)}"
        comma = ",\n"
    yield "\n  ]\n}\n"


def _write(output: Path | None, text: Iterable[str]) -> None:
    from inventory.problems import InputError, Problem

    if output is None:
        sys.stdout.writelines(text)
        return
    try:
        with output.open("w", encoding="utf-8", newline="") as file:
            file.writelines(text)
    except OSError as error:
        raise InputError(
            Problem(
                file=str(output),
                required="a file that can be written",
                given=error.strerror or str(error),
                todo="name another with -o",
            )
        ) from error
    say(f"written: {output}")
