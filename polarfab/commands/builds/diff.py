"""`polarfab diff`: prints the differences between two builds, or between their rendered files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarfab.output.plane_output import counted_rows, merged_reports, say_plane, side_by_side
from polarfab.output.verb_output import (
    in_words,
    json_option,
    print_json,
    print_table,
    progress,
    say,
)
from polarfab.shared_options import shared, target_options

if TYPE_CHECKING:
    from compilers.tables.build import Build
    from compilers.targets.options import Chosen


@click.command("diff")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@shared("--from", parameter="old", required=True)
@target_options(more="compare what `render` writes for it")
@json_option
def command(
    folder: Path, old: Path, target: str | None, option_words: tuple[str, ...], as_json: bool
) -> None:
    """Show what BUILD has that OLDBUILD has not, and the other way round.

    Inputs, policy, nodes, hosts, cables from port to port; for each switch rows by network and
    next hop, and classes by what they do. With --target the files that `render` writes, as unified
    differences. Folders of several planes are compared plane by plane. Exit code 1 when anything
    differs.
    """
    from compilers.targets.options import read
    from polarfab.fabric import Fabric

    if option_words and not target:
        raise click.UsageError("--set is for a target: name it with --target")
    options = read(option_words)
    pairs = side_by_side(Fabric.load(old), Fabric.load(folder))
    names = [new.name for _, new in pairs]
    reports = [
        _file_report(earlier.build, later.build, target, options)
        if target
        else earlier.diff(later).as_dict()
        for earlier, later in pairs
    ]
    differ = any(report["differ"] for report in reports)
    if as_json:
        print_json(merged_reports(names, reports, {"differ": differ}))
    else:
        for name, report in zip(names, reports, strict=True):
            say_plane(name, len(names))
            if target:
                _print_files(report)
            else:
                _print_report(report)
    if differ:
        raise click.exceptions.Exit(1)


def _print_files(report: dict[str, Any]) -> None:
    """Print the differences of rendered files, and the commands that undo them."""
    for file in report["files"]:
        click.echo(file["difference"] or f"{file['file']} differs\n", nl=False)
        if file["remediation"]:
            click.echo(f"# to type at {Path(file['file']).parent}\n{file['remediation']}")


def _file_report(old: Build, new: Build, target: str, options: Chosen) -> dict[str, Any]:
    """Render two builds, and compare the files; files that are equal are left out."""
    from tempfile import TemporaryDirectory

    from compilers.targets.config_differences import differences
    from compilers.targets.node_systems import builds_for
    from compilers.targets.target_lookup import target as target_of

    renderer = target_of(target)
    with TemporaryDirectory() as name:
        folders = Path(name) / "a", Path(name) / "b"
        for build, folder in zip(builds_for((old, new), target), folders, strict=True):
            with progress(f"rendering {target}") as bar:
                renderer.render(build, folder, progress=bar, options=options)
        files = [asdict(change) for change in differences(*folders, renderer.hier_config)]
    return {
        "a": old.identity,
        "b": new.identity,
        "target": target,
        "differ": bool(files),
        "files": files,
    }


def _print_report(report: dict[str, Any]) -> None:
    """Print a table for each kind of difference."""
    if not report["differ"]:
        say(f"{report['a']} and {report['b']} are alike")
        return
    facts = [(word, *pair) for word, pair in report["facts"].items()]
    if facts:
        print_table("what they say", ["", report["a"], report["b"]], facts)
    for word in ("nodes_added", "nodes_removed"):
        _print_rows(word, [[node] for node in report[word]], ["node"])
    _print_rows("renamed", report["renamed"], ["was", "is"])
    for word in ("cables_added", "cables_removed"):
        _print_rows(word, report[word], ["one end", "other end"])
    for word in ("hosts_added", "hosts_removed"):
        _print_rows(word, [[host] for host in report[word]], ["host"])
    _print_rows("hosts_moved", report["hosts_moved"], ["host", "was", "is"])
    _print_rows("settings", report["settings"], ["kind", "name", "what", "was", "is"])
    _print_rows("renumbered", report["renumbered"], ["number", "of", "was", "is"])
    if report["switches"]:
        print_table("switches that stay", *counted_rows(report["switches"]))


def _print_rows(word: str, rows: list[list[str]], columns: list[str]) -> None:
    """Print a table with its number of rows, unless it is empty."""
    if rows:
        print_table(f"{in_words(word)}: {len(rows):,}", columns, rows)
