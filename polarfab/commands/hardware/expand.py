"""`polarfab expand`: the larger fabric, and only what must be added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarfab.family_choice import fabric_at
from polarfab.output.plane_output import alike, merged_reports, side_by_side
from polarfab.output.verb_output import (
    counted,
    json_option,
    print_facts,
    print_json,
    print_table,
    say,
    warn,
    write_file,
)
from polarfab.output.verification_output import stop_if_wrong
from polarfab.shared_options import output_option, shared

if TYPE_CHECKING:
    from compilers.expansion.growth_report import GrowthReport
    from compilers.proof.walks.delivery_report import Report
    from compilers.spec.fabric_file import LoadedFabric
    from polarfab.fabric import Fabric


@click.command("expand")
@click.argument("folder", metavar="BUILD|FABRIC")
@click.option(
    "--clusters",
    help="quadric:N for odd q, fan:N, nucleus for even q.",
)
@shared("--from", "BUILD is the same fabric with more of it installed; a fabric.yaml, too", "old")
@click.option(
    "--spec",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The fabric.yaml of BUILD: with it, that of the larger fabric is written, too.",
)
@output_option("a folder for the larger build; else only a report")
@json_option
def command(
    folder: str,
    clusters: str | None,
    old: Path | None,
    spec: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Plan clusters that are added to BUILD (or fabric.yaml) on unused ports.

    \b
    quadric  copies of the quadrics: the diameter stays 2
    fan      copies of other clusters: degrees near-equal, the diameter becomes 3
    nucleus  one node that makes even q regular

    Their nodes are the inventory's spares of the type, then new ones, which fill the inventory's
    racks that have room, then racks of their own. No cable is moved. With -o the larger build is
    written and verified, with OUTPUT-added-cables.csv next to it. From a fabric.yaml, or with
    --spec, OUTPUT-fabric.yaml and OUTPUT-inventory.yaml are written, too: compile these from then
    on, into OUTPUT.

    With several planes, every plane grows by the same clusters.

    With --from nothing new is planned. OLDBUILD has nodes that are not installed yet (`planned`),
    and BUILD is the same fabric with more of them installed: what has to be added is listed.
    """
    if (clusters is None) == (old is None):
        raise click.UsageError("say either --clusters or --from OLDBUILD")
    from polarfab.fabric import Fabric

    fabric = fabric_at(folder)
    growths = _remaining(fabric_at(str(old)), fabric) if old else _grown(fabric, clusters or "")
    if output is not None:
        _write(growths, output)
        files = Fabric.from_spec(spec) if spec else fabric
        if clusters and files.loaded:
            _write_files(files.loaded, fabric, growths, output)
    _warn_of_unreached(growths)
    if as_json:
        names = [growth.build.name for growth in growths]
        added = {
            "nodes_added": sum(len(growth.facts["nodes_added"]) for growth in growths),
            "cables_added": sum(growth.facts["cables_added"] for growth in growths),
        }
        print_json(merged_reports(names, [growth.as_dict() for growth in growths], added))
    else:
        for growth in growths:
            _print(growth.facts, "grown" if clusters else "more of it installed")


def _remaining(fabric: Fabric, whole: Fabric) -> list[GrowthReport]:
    """What is left to install of each plane; what is installed stays as it is."""
    if whole.loaded:
        whole = whole.compile(fabric)
    return [part.remaining(all_of_it) for part, all_of_it in side_by_side(fabric, whole)]


def _grown(fabric: Fabric, clusters: str) -> list[GrowthReport]:
    """Grow each plane, in racks that no other plane takes."""
    from compilers.expansion.growth_report import GrowthReport
    from polarfab.fabric import Fabric

    planes, grown = fabric.planes, list[GrowthReport]()
    for number, plane in enumerate(planes, 1):
        beside = [*(Fabric.of(growth.build) for growth in grown), *planes[number:]]
        grown.append(plane.expand(clusters, beside))
    return grown


def _write(growths: Sequence[GrowthReport], output: Path) -> None:
    from compilers.expansion.growth_report import added_cables
    from polarfab.fabric import Fabric

    reports: list[Report] = []

    def prove(written: Fabric) -> None:
        verification = written.verify()
        verification.require_marked()
        reports.extend(verification.reports)

    fabric = Fabric.of(*(growth.build for growth in growths)).save(output, prove)
    cables = output.with_name(f"{output.name}-added-cables.csv")
    write_file(cables, added_cables(growths))
    say(f"written: {output}, {cables}")
    for build, report in zip(fabric.builds, reports, strict=True):
        stop_if_wrong(build, report)


def _write_files(
    loaded: LoadedFabric, fabric: Fabric, growths: Sequence[GrowthReport], output: Path
) -> None:
    """Write fabric.yaml and inventory.yaml of the larger fabric beside its build."""
    from compilers.expansion.grown_files import grown_files

    names = [output.with_name(f"{output.name}-{word}.yaml") for word in ("fabric", "inventory")]
    larger = [growth.build for growth in growths]
    for name, text in zip(names, grown_files(loaded, fabric.builds, larger, names[1]), strict=True):
        write_file(name, text)
    say(f"written: {', '.join(map(str, names))}; compile the first from now on, into {output}")


def _warn_of_unreached(growths: Sequence[GrowthReport]) -> None:
    """Say which new switches need a management address before they can be configured."""
    from compilers.expansion.growth_report import WITHOUT_MANAGEMENT

    names = [name for growth in growths for name in growth.facts.get(WITHOUT_MANAGEMENT, ())]
    if names:
        warn(
            f"{counted(len(names), 'new switch')} without a management address: {_few(names)}; "
            "give each its `management` in the inventory of the larger fabric, and compile it"
        )


def _print(report: dict[str, Any], what: str) -> None:
    lists = [
        word for word, value in report.items() if isinstance(value, list) and word != "switches"
    ]
    facts = [(w, v) for w, v in report.items() if w not in (*lists, "switches")]
    facts += [(w, _few(report[w])) for w in lists]
    print_facts(f"{report['fabric']}{' ' if what == 'grown' else ': '}{what}", facts)
    words, rows = alike(report["switches"])
    # A column of removals is news where there is one.
    some = [i for i, word in enumerate(words) if "removed" not in word or any(r[i] for r in rows)]
    shown = [[row[i] for i in some] for row in rows]
    print_table("switches that stay", [words[i] for i in some], shown)


def _few(names: list[str]) -> str:
    more = f", … ({len(names)})" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more if names else "none"
