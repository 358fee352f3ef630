"""`polarfab cables`: prints the cable schedule of a fabric, for the people who lay the cables."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from polarfab.family_choice import fabric_at
from polarfab.output.earlier_build import with_earlier_ports
from polarfab.output.verb_output import (
    chosen_format,
    json_option,
    print_facts,
    print_table,
    say_written,
    write_file,
)
from polarfab.shared_options import format_option, output_option

CABLE_FORMS = ("csv", "markdown", "netbox", "labels", "bom", "hosts", "panels")
"""The formats of a whole schedule."""


@click.command("cables")
@click.argument("subject", metavar="FABRIC|BUILD")
@format_option(*CABLE_FORMS)
@output_option("a file; else standard output")
@click.option("--rack", help="Only cables with an end in this rack.")
@json_option
def command(
    subject: str,
    form: str | None,
    output: Path | None,
    rack: str | None,
    as_json: bool,
) -> None:
    """The cable schedule of a build, or of a fabric.yaml before it is compiled.

    Without --format a summary is printed, with it the whole schedule. Several planes have one
    schedule. With --rack, all formats but `bom` are of this rack only.

    The cables of a fabric.yaml are as `compile` would plan them: those in ./build stay, if that is
    a build of the fabric. Without a build all are planned anew. A note says which.

    \b
    csv       every cable, both ends, type, length, bundle
    markdown  the same in a table per rack pair, for crews
    netbox    for NetBox's bulk import of cables
    labels    HTML to print, a label for each end
    bom       bill of materials, CSV
    hosts     the cables to hosts, CSV; with lengths where hosts have racks
    panels    ribbons to cassettes and trunks between these, CSV
    """
    from polarfab.cabling import cables

    chosen = chosen_format(form, as_json)
    if output and chosen == "table":
        raise click.UsageError("-o writes a file: say which with --format, as in --format csv")
    fabric = fabric_at(subject)
    if fabric.loaded:
        todo = "list its cables with `polarfab cables BUILD`"
        fabric = with_earlier_ports(fabric, named=None, todo=todo)
    schedule = cables(fabric, rack or "")
    if chosen != "table":
        text = schedule.text(chosen)
        if output is None:
            sys.stdout.writelines(text)
        else:
            write_file(output, text)
            say_written(output)
        return
    if rack:
        facts = [("cables", len(schedule)), ("metres", schedule.metres)]
        print_facts(f"{schedule.name}: cables with an end in {rack}", facts)
        return
    for summary in schedule.summaries():
        _print_summary(summary)
    if schedule.has_bill:
        items = [asdict(item) for item in schedule.bill()]
        print_table("materials", list(items[0]), [list(item.values()) for item in items])


def _print_summary(summary: dict[str, Any]) -> None:
    """Print the summary of a plane's cables, and of its panels."""
    # `loose` is how many cables are in no bundle.
    verbose: list[tuple[str, Any]] = [
        (key, summary[key]) for key in ("build", "loose") if key in summary
    ]
    pairs, bundles = summary["cluster_pairs"], summary["bundles"]
    verbose += [(f"cluster pairs with {size}", count) for size, count in pairs.items()]
    verbose += [(f"bundles of {size}", count) for size, count in bundles.items()]
    facts = [(word, summary[word]) for word in ("cables", "metres") if word in summary]
    print_facts(f"{summary['fabric']}: cables", facts, verbose)
    panels = summary.get("panels")
    if panels:
        print_facts("panels", [(word.replace("_", " "), count) for word, count in panels.items()])
