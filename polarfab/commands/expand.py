"""`polarfab expand`: the larger fabric, and only what must be added."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarfab.output import json_option, print_facts, print_json, print_table, say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from compilers.cabling.cable_plan import Cables
    from compilers.cabling.cable_rows import Rows
    from compilers.expansion.grow import Grown
    from compilers.expansion.remaining import Rest
    from compilers.tables.build import Build

RACKS = re.compile(r"([a-z]+)(?::([0-9]{1,4}))?")


@click.command("expand")
@click.argument("fabric", metavar="BUILD|FABRIC")
@click.option("--racks", help="quadric:N or fan:N for odd q, nucleus for even q.")
@click.option("--to", metavar="BUILD|FABRIC", help="The same fabric with more of it installed.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Folder for the larger build."
)
@json_option
def command(
    fabric: str, racks: str | None, to: str | None, output: Path | None, as_json: bool
) -> None:
    """Plan racks that are added to BUILD (or fabric.yaml) on unused ports.

    \b
    quadric  copies of the quadrics' rack: the diameter stays 2
    fan      copies of other racks: degrees stay near-equal, the diameter becomes 3
    nucleus  one node that makes even q regular

    No cable is moved. With -o the larger build is written and verified, with
    OUTPUT-added-cables.csv beside it; `cables`, `render` and the rest take it like any other.

    With --to nothing new is planned: what is added between BUILD, of which parts were not installed
    (`compile --phase`, or nodes that are planned), and the same fabric with more of it.
    """
    from compilers.cabling.cable_formats import as_records
    from compilers.expansion.grow import grow

    if (racks is None) == (to is None):
        raise click.UsageError("say either --racks or --to")
    if to is not None:
        _install(_build(fabric), _build(to), output, as_json)
        return
    match = RACKS.fullmatch(racks or "")
    if match is None:
        raise click.BadParameter("write it like quadric:2, fan:1 or nucleus", param_hint="--racks")
    build = _build(fabric)
    found = grow(build, match[1], int(match[2] or 1))
    report = as_dict(build, found)
    rows = _rows(found.build, found.cables, found.added)
    if output is not None:
        _write(found.build, rows, output)
    if as_json:
        print_json(report | {"added": list(as_records(rows))})
    else:
        _print(report, f"{report['fabric']} grown")


def _install(build: Build, larger: Build, output: Path | None, as_json: bool) -> None:
    from compilers.cabling.cable_formats import as_records
    from compilers.expansion.remaining import rest_of

    found = rest_of(build, larger)
    report = rest_as_dict(build, larger, found)
    rows = _rows(larger, found.cables, found.added)
    if output is not None:
        _write(larger, rows, output)
    if as_json:
        print_json(report | {"added": list(as_records(rows))})
    else:
        _print(report, f"{report['fabric']}: more of it installed")


def _build(fabric: str) -> Build:
    from compilers.pipeline import compile_fabric
    from compilers.spec.fabric_file import load_fabric
    from compilers.tables.build_folder import load

    return load(Path(fabric)) if Path(fabric).is_dir() else compile_fabric(load_fabric(fabric))


def as_dict(build: Build, found: Grown) -> dict[str, Any]:
    """The plan in numbers, and what changes at each switch that stands."""
    names, old = found.build.wiring.names, build.topology.graph.order
    known, spare = found.cables.hardware, found.spare.tolist()
    changes = {word: values.tolist() for word, values in found.changes.items()}
    return {
        "fabric": build.name,
        "topology": found.build.topology.title(),
        "nodes": len(names),
        "diameter": found.build.topology.diameter,
        "nodes_added": list(names[old:]),
        "racks_added": [known.rack_names[r] for r in sorted(set(known.rack[old:].tolist()))],
        "cables": len(found.cables),
        "cables_added": len(found.added),
        "cables_moved": found.moved,
        "racks_that_fit": found.fits,
        "least_ports_left": min(spare),
        "nodes_without_ports_left": [n for n, left in zip(names, spare, strict=True) if not left],
        "switches": [
            {"node": names[v], "ports_left": spare[v], **{w: changes[w][v] for w in changes}}
            for v in range(old)
        ],
    }


def rest_as_dict(build: Build, larger: Build, found: Rest) -> dict[str, Any]:
    """What is added, in numbers."""
    names, known = larger.wiring.names, found.cables.hardware
    changes = {word: values.tolist() for word, values in found.changes.items()}
    stand = build.topology.present.nonzero()[0].tolist()
    old = set(known.rack[stand].tolist())
    racks = sorted(set(known.rack[found.nodes].tolist()) - old)
    return {
        "fabric": build.name,
        "topology": larger.topology.title(),
        "nodes": int(larger.topology.present.sum()),
        "nodes_added": [names[v] for v in found.nodes.tolist()],
        "racks_added": [known.rack_names[r] for r in racks],
        "cables": len(found.cables),
        "cables_added": len(found.added),
        "cables_moved": found.moved,
        "cables_relabelled": found.relabelled,
        "nodes_renamed": found.renamed,
        "switches": [{"node": names[v], **{w: changes[w][v] for w in changes}} for v in stand],
    }


def _rows(build: Build, cables: Cables, added: NDArray[np.int64]) -> Rows:
    from compilers.cabling.cable_rows import Rows
    from compilers.cabling.phases import phases_of

    phases = phases_of(build.topology.graph, cables, 1)
    return replace(Rows.of(build.wiring, cables, phases), which=added)


def _write(larger: Build, rows: Rows, output: Path) -> None:
    from compilers.cabling.cable_formats import as_csv
    from compilers.tables.build_folder import save
    from polarfab.commands.verify import check, failed

    build = save(larger, output)
    report = check(build, output, None)
    beside = output.with_name(f"{output.name}-added-cables.csv")
    beside.write_text("".join(as_csv(rows)), encoding="utf-8")
    say(f"written: {output}, {beside}")
    if not report.passed:
        failed(build, report)


def _print(report: dict[str, Any], title: str) -> None:
    wanted = ("nodes_added", "racks_added", "nodes_without_ports_left")
    lists = [word for word in wanted if word in report]
    facts = [(w.replace("_", " "), v) for w, v in report.items() if w not in (*lists, "switches")]
    facts += [(w.replace("_", " "), _few(report[w])) for w in lists]
    print_facts(title, facts)
    alike = Counter(
        tuple(value for word, value in switch.items() if word != "node")
        for switch in report["switches"]
    )
    columns = ["switches", *(w.replace("_", " ") for w in report["switches"][0] if w != "node")]
    print_table("switches that stand", columns, [(n, *key) for key, n in sorted(alike.items())])


def _few(names: list[str]) -> str:
    more = f", … ({len(names)})" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more if names else "none"
