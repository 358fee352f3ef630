"""The command `polarfab hosts`: SRv6 paths that hosts choose, and probes that find what is down.

`hosts paths` prints the paths from a host to another for the host's own routes (Linux, FRR) or for
a library; `hosts localise` prints probes of all links, and reads which of them were lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inventory.problems import InputError
from polarfab.output.verb_output import (
    chosen_format,
    json_option,
    print_csv,
    print_json,
    print_table,
    say,
    say_written,
    write_file,
)
from polarfab.shared_options import Words, format_option, output_option, shared

if TYPE_CHECKING:
    from compilers.targets.options import Chosen
    from extensions.host_paths.host_path_set import HostPathSet
    from extensions.host_paths.localisation import Probing
    from polarfab.fabric import Fabric

PATH_FORMATS = ("linux", "frr", "fabric", "library")
"""The values of `--format` of `hosts paths`, besides table and JSON."""
FABRIC_FORMATS = ("fabric", "library")
"""Those that are for all hosts, and name none."""


@click.command("localise")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.argument("report", metavar="[REPORT]", type=click.Path(path_type=Path), required=False)
@shared("--set", meaning="those of target srv6", parameter="option_words")
@format_option("csv")
@json_option
def localise(
    folder: Path,
    report: Path | None,
    option_words: tuple[str, ...],
    form: str | None,
    as_json: bool,
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
    from extensions.host_paths import probing as probing_of_fabric
    from extensions.host_paths.probe_report import ProbeReport
    from polarfab.fabric import Fabric

    output_format = chosen_format(form, as_json)
    probing = probing_of_fabric(Fabric.load(folder), read(option_words))
    if report is None:
        _print_probing(probing, output_format)
        return
    if output_format == "csv":
        raise click.UsageError("--format csv prints the probes; leave REPORT or --format csv out")
    reported = ProbeReport.read(report, [probing.carrier(probe) for probe in probing.probes])
    localisation = probing.localise(reported.lost, reported.arrived)
    if output_format == "json":
        print_json(
            {
                "found": localisation.found or None,
                **asdict(localisation),
                "sentence": localisation.sentence(),
            }
        )
    else:
        click.echo(localisation.sentence())
    if unknown := len(probing.probes) - localisation.lost - localisation.arrived:
        say(f"the report does not tell of {unknown:,} of {len(probing.probes):,} probes")
    if localisation.found:
        say(f"paths without it: polarfab hosts paths {folder} SRC DST --fail {localisation.found}")
    if localisation.lost:
        raise click.exceptions.Exit(1)


def _print_probing(probing: Probing, form: str) -> None:
    """Print the probes as CSV, as JSON or as a table, with what no report can distinguish."""
    rows = [probing.as_dict(probe) for probe in probing.probes]
    links, alike = len(probing.links), probing.alike()
    switches = sum(int(build.topology.present.sum()) for build in probing.builds)
    if form == "csv":
        # A cell has a text: the names of all switches, and the only carrier.
        print_csv([row | {"nodes": _node_names(row), "sids": row["sids"][0]} for row in rows])
        return
    if form == "json":
        counts = {"links": links, "switches": switches, "fewest": probing.fewest}
        print_json({**counts, "alike": alike, "probes": rows})
        return
    print_table(
        f"{len(rows):,} probes over {links:,} links and {switches:,} switches",
        ["probe", "plane", "path", "from", "to", "carrier"],
        [
            [
                row["probe"],
                row["plane"],
                _node_names(row),
                row["source"],
                row["destination"],
                row["sids"][0],
            ]
            for row in rows
        ],
    )
    say(f"no set of probes over all links in both directions has fewer than {probing.fewest:,}")
    for names in alike:
        say(f"no report distinguishes these: {', '.join(names)}")


def _read_planes(_ctx: click.Context, _param: click.Parameter, text: str) -> tuple[int, ...]:
    """Read the option --planes: numbers from 1, separated by commas; () for `all`.

    Raises:
        InputError: the text is neither `all` nor numbers.
    """
    if text == "all":
        return ()
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise InputError.of("all, or planes such as 1,3", text, key="--planes")
    return tuple(map(int, parts))


@click.command("paths")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.argument("source", metavar="[SRC]", required=False)
@click.argument("destination", metavar="[DST]", required=False)
@click.option(
    "--count", type=click.IntRange(1, 1024), default=8, help="Paths, one for each entropy value."
)
@click.option(
    "--planes",
    metavar="all|P,…",
    default="all",
    callback=_read_planes,
    help="The planes that paths may take, from 1.",
)
@shared("--fail", parameter="failures")
@shared("--set", meaning="those of target srv6", parameter="option_words")
@format_option(*PATH_FORMATS)
@output_option("a file; else standard output")
@json_option
def paths(
    folder: Path,
    source: str | None,
    destination: str | None,
    count: int,
    planes: tuple[int, ...],
    failures: tuple[str, ...],
    option_words: tuple[str, ...],
    form: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """The paths from SRC to DST that a host of BUILD chooses from, over all planes.

    SRC and DST are hosts, node names, vertex numbers or addresses. Path i is that of entropy value
    i: edge-disjoint paths first, then those that load links evenly. With --fail, paths that need
    what is down give their places to others, and the rest keep theirs.

    \b
    linux    for ip -batch: a weighted group of nexthops with SRv6 carriers
    frr      static routes for FRR 10.7 and later
    fabric   without SRC and DST: the fabric JSON of segmentrouting/polarfly
    library  without SRC and DST: a Python file that computes the same sets
    """
    from compilers.targets.options import read
    from polarfab.fabric import Fabric

    fabric, options = Fabric.load(folder), read(option_words)
    output_format = chosen_format(form, as_json)
    if output_format in FABRIC_FORMATS:
        if source is not None:
            raise click.UsageError(f"--format {output_format} is for all hosts: name none")
        text = (
            _library_source(fabric)
            if output_format == "library"
            else _fabric_json(fabric, planes, options)
        )
        _write(text, output)
        return
    if source is None or destination is None:
        raise click.UsageError("name both ends: polarfab hosts paths BUILD SRC DST")
    from extensions.host_paths import host_paths

    path_set = host_paths(fabric, source, destination, count, planes, failures, options)
    if output_format == "table" and not output:
        _print_paths(path_set, " and ".join(failures))
    else:
        _write(_file_text(path_set, output_format), output)
    if len(path_set.paths) < count:
        say(f"there are no more than {_path_count(path_set)}")


def _file_text(path_set: HostPathSet, output_format: str) -> Iterable[str]:
    """The paths as JSON, as a file for `ip -batch` or as static routes of FRR.

    Raises:
        click.UsageError: the form is a table, which is only printed.
    """
    from extensions.host_paths.path_texts import frr_lines, linux_batch

    if output_format == "table":
        raise click.UsageError("-o writes a file: say which with --format, as in --format linux")
    if output_format == "json":
        return [json.dumps(path_set.as_dict(), indent=2), "\n"]
    return linux_batch(path_set) if output_format == "linux" else frr_lines(path_set)


def _fabric_json(fabric: Fabric, planes: tuple[int, ...], options: Chosen) -> Iterable[str]:
    """The fabric JSON of segmentrouting/polarfly for one plane.

    Raises:
        InputError: other than one plane of the build was chosen.
    """
    from extensions.host_paths.host_path_set import Carriers
    from extensions.host_paths.path_texts import fabric_document

    carriers = Carriers.of(fabric.builds, options)
    chosen = planes or tuple(range(1, len(fabric.builds) + 1))
    if len(chosen) != 1 or not 1 <= chosen[0] <= len(fabric.builds):
        required = f"one plane from 1 to {len(fabric.builds)}"
        given = ", ".join(map(str, chosen))
        raise InputError.of(required, given, "name one, as in --planes 1", key="--planes")
    plane = chosen[0] - 1
    document = fabric_document(fabric.builds[plane], carriers.blocks[plane])
    return [json.dumps(document, indent=2), "\n"]


def _library_source(fabric: Fabric) -> Iterable[str]:
    """A Python file that hosts copy to compute paths themselves: `path_sets` with its table.

    `path_sets` imports the table of Conway polynomials; the import is replaced by the table, as
    hosts do not have polarfab.

    Raises:
        InputError: a plane is not a whole PolarFly, the only graph that the file knows.
    """
    from compilers.topology import conway
    from compilers.topology.polarity import is_whole
    from extensions.host_paths import path_sets

    for build in fabric.builds:
        if not is_whole(build.topology):
            required = "a whole PolarFly in every plane: the library knows no other graph"
            todo = "use --json or --format linux, with two hosts"
            raise InputError.of(required, build.topology.title(), todo, key="--format")
    before_table = r"\A.*?(?=^CONWAY)"  # all of the module before the table
    table = re.sub(before_table, "", Path(conway.__file__).read_text(), flags=re.S | re.M)
    import_of_table = r"^from \S*conway import CONWAY\n+"
    return [re.sub(import_of_table, table, Path(path_sets.__file__).read_text(), flags=re.M)]


def _write(text: Iterable[str], output: Path | None) -> None:
    """Write a text to a file, or to standard output without one."""
    if output is None:
        click.echo("".join(text), nl=False)
    else:
        write_file(output, text)
        say_written(output)


def _print_paths(path_set: HostPathSet, failed: str) -> None:
    """Print paths as a table; with failures, which are new and which paths were dropped.

    Args:
        path_set: the paths; `HostPathSet.as_dict` names the keys of a path.
        failed: what has failed, in words; "" for nothing.
    """
    document = path_set.as_dict()
    dropped_entropies = {path["entropy"] for path in document["dropped"]}
    title = f"{path_set.source.name} to {path_set.destination.name}: {_path_count(path_set)}"
    columns = ["entropy", "plane", "path", "weight", "carrier"]
    rows = [
        [path["entropy"], path["plane"], _node_names(path), path["weight"], path["sids"][0]]
        for path in document["paths"]
    ]
    if failed:
        columns.append(f"with {failed} down")
        for row in rows:
            row.append("new" if row[0] in dropped_entropies else "–")
    print_table(title, columns, rows)
    if dropped_entropies:
        dropped = [
            [path["entropy"], path["plane"], _node_names(path)] for path in document["dropped"]
        ]
        print_table("dropped", ["entropy", "plane", "path"], dropped)


def _path_count(path_set: HostPathSet) -> str:
    """The number of paths in words."""
    count = len(path_set.paths)
    return f"{count} paths" if count > 1 else f"{count} path"


def _node_names(path: Mapping[str, Any]) -> str:
    """The names of the nodes of a path, in one text."""
    return " ".join(path["nodes"])


command = Words(
    "hosts",
    commands=[paths, localise],
    help="Paths that hosts choose by SRv6; probes of all links, and what failed.",
)
