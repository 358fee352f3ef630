"""`polarfab expand`: plans a larger fabric, and lists the nodes and cables to add."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarfab.family_choice import fabric_at
from polarfab.output.plane_output import counted_rows, merged_reports, side_by_side
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

MOST_NAMED = 8
"""The most names in a line."""


@click.command("expand")
@click.argument("folder", metavar="BUILD|FABRIC")
@click.option(
    "--clusters",
    help="quadric:N for odd q, fan:N, nucleus for even q.",
)
@shared(
    "--from",
    meaning="BUILD is the same fabric with more of it installed; a fabric.yaml, too",
    parameter="old",
)
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
    loaded = Fabric.from_spec(spec).loaded if spec else fabric.loaded
    growths = (
        _growths_to_install(fabric_at(str(old)), fabric)
        if old
        else _growths(fabric, loaded, clusters or "")
    )
    if output is not None:
        _write(growths, output)
        if clusters and loaded:
            _write_files(loaded, fabric, growths, output)
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
            _print_growth(growth.facts, " grown" if clusters else ": more of it installed")


def _growths_to_install(fabric: Fabric, larger_fabric: Fabric) -> list[GrowthReport]:
    """The nodes and cables of each plane that are left to install.

    Args:
        fabric: the fabric as it is installed.
        larger_fabric: the same fabric with more of it installed; compiled if it is not.
    """
    if larger_fabric.loaded:
        larger_fabric = larger_fabric.compile(fabric)
    return [
        installed.remaining(larger) for installed, larger in side_by_side(fabric, larger_fabric)
    ]


def _growths(fabric: Fabric, loaded: LoadedFabric | None, clusters: str) -> list[GrowthReport]:
    """Grow each plane by clusters, in racks that no other plane uses.

    Args:
        fabric: the planes.
        loaded: their files, with the limits of the node types; None if they are not known.
        clusters: see `Fabric.expand`.
    """
    from compilers.expansion.growth_report import GrowthReport
    from polarfab.fabric import Fabric

    planes, growths = fabric.planes, list[GrowthReport]()
    for number, plane in enumerate(planes, 1):
        other_planes = [*(Fabric.of(growth.build) for growth in growths), *planes[number:]]
        with_limits = Fabric(loaded, compiled=plane.builds)
        growths.append(with_limits.expand(clusters, other_planes))
    return growths


def _write(growths: Sequence[GrowthReport], output: Path) -> None:
    """Write and verify the larger build, and write the list of added cables."""
    from compilers.expansion.growth_report import added_cables
    from polarfab.fabric import Fabric

    reports: list[Report] = []

    def prove(written: Fabric) -> None:
        """Verify the build before it takes the place of an earlier one."""
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
    """Write the fabric.yaml and the inventory.yaml of the larger fabric next to its build."""
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
            f"{counted(len(names), 'new switch')} without a management address: "
            f"{_first_names(names)}; give each its `management` in the inventory of the larger "
            "fabric, and compile it"
        )


def _print_growth(report: dict[str, Any], title: str) -> None:
    """Print the facts of a plane's growth, and a table of the switches that stay.

    Args:
        report: `GrowthReport.facts`.
        title: follows the fabric's name.
    """
    lists = [
        word for word, value in report.items() if isinstance(value, list) and word != "switches"
    ]
    facts = [(word, value) for word, value in report.items() if word not in (*lists, "switches")]
    facts += [(word, _first_names(report[word])) for word in lists]
    print_facts(f"{report['fabric']}{title}", facts)
    heads, rows = counted_rows(report["switches"])
    # A column of removals is left out if nothing is removed.
    columns = [
        i for i, head in enumerate(heads) if "removed" not in head or any(row[i] for row in rows)
    ]
    printed_rows = [[row[i] for i in columns] for row in rows]
    print_table("switches that stay", [heads[i] for i in columns], printed_rows)


def _first_names(names: list[str]) -> str:
    """The first names, and how many there are; `none` for no name."""
    if not names:
        return "none"
    count = f", … ({len(names)})" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + count
