"""`polarfab hosts localise`: probes over all links, and what failed when some are lost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from polarfab.output.verb_output import (
    chosen_format,
    json_option,
    print_csv,
    print_json,
    print_table,
    say,
)
from polarfab.shared_options import format_option, shared

if TYPE_CHECKING:
    from extensions.host_paths.localisation import Probing


@click.command("localise")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.argument("report", metavar="[REPORT]", type=click.Path(path_type=Path), required=False)
@shared("--set", "those of target srv6", "words")
@format_option("csv")
@json_option
def command(
    folder: Path, report: Path | None, words: tuple[str, ...], form: str | None, as_json: bool
) -> None:
    """The fewest probes that cross every link of BUILD in both directions; what failed, by REPORT.

    Without REPORT: the probes, each a path from a host to another with its SRv6 carrier. With
    REPORT, which tells of each probe whether it arrived: the link or switch that is down. Two
    candidates that the report cannot distinguish are both named. Ends with 1 if something is down.

    \b
        polarfab hosts localise build --format csv > probes.csv
        polarfab hosts localise build report.csv   (columns probe,result: 17,lost)
    """
    from compilers.targets.options import read
    from extensions.host_paths import probing as probing_of
    from extensions.host_paths.probe_report import ProbeReport
    from polarfab.fabric import Fabric

    printed = chosen_format(form, as_json)
    probing = probing_of(Fabric.load(folder), read(words))
    if report is None:
        _print(probing, printed)
        return
    if printed == "csv":
        raise click.UsageError("--format csv prints the probes; leave REPORT or --format csv out")
    reported = ProbeReport.read(report, [probing.carrier(probe) for probe in probing.probes])
    found = probing.localise(reported.lost, reported.arrived)
    if printed == "json":
        print_json({"found": found.found or None, **asdict(found), "sentence": found.sentence()})
    else:
        click.echo(found.sentence())
    if unknown := len(probing.probes) - found.lost - found.arrived:
        say(f"the report does not tell of {unknown:,} of {len(probing.probes):,} probes")
    if found.found:
        say(f"paths without it: polarfab hosts paths {folder} SRC DST --fail {found.found}")
    if found.lost:
        raise click.exceptions.Exit(1)


def _print(probing: Probing, form: str) -> None:
    rows = [probing.as_dict(probe) for probe in probing.probes]
    links = len(probing.links)
    switches = sum(int(build.topology.present.sum()) for build in probing.builds)
    if form == "csv":
        print_csv([row | {"nodes": " ".join(row["nodes"]), "sids": row["sids"][0]} for row in rows])
        return
    alike = probing.alike()
    if form == "json":
        counts = {"links": links, "switches": switches, "fewest": probing.fewest}
        print_json({**counts, "alike": alike, "probes": rows})
        return
    print_table(
        f"{len(rows):,} probes over {links:,} links and {switches:,} switches",
        ["probe", "plane", "path", "from", "to", "carrier"],
        [
            [
                *(row["probe"], row["plane"], " ".join(row["nodes"])),
                *(row["source"], row["destination"], row["sids"][0]),
            ]
            for row in rows
        ],
    )
    say(f"no set of probes over all links in both directions has fewer than {probing.fewest:,}")
    for names in alike:
        say(f"no report distinguishes these: {', '.join(names)}")
