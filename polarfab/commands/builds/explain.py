"""`polarfab explain`: the paths between two nodes, hop by hop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarfab.output.verb_output import counted, json_option, print_json, print_table, warn
from polarfab.shared_options import shared

if TYPE_CHECKING:
    from compilers.proof.explanation import Explanation
    from compilers.tables.build import Build


@click.command("explain")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST")
@shared("--fail", parameter="failures")
@shared("--target", meaning="its names of nodes and ports are printed")
@click.option(
    "--layer1", is_flag=True, help="Show the plugs, cassettes and trunks of each link, too."
)
@json_option
def command(
    folder: Path,
    source: str,
    destination: str,
    failures: tuple[str, ...],
    target: str | None,
    layer1: bool,
    as_json: bool,
) -> None:
    """Show the paths from SRC to DST through the tables of BUILD.

    SRC and DST are node names, vertex numbers, host names or addresses. --fail
    shows every path that a packet may take while something is down and no controller acts.
    """
    from polarfab.cabling import cable_paths
    from polarfab.fabric import Fabric

    fabric = Fabric.load(folder)
    explanation = fabric.explain(source, destination, failures)
    methods = fabric.proved[0].methods
    build = _named_by_target(fabric.build, target) if target else fabric.build
    links = [(hop.switch, hop.next_switch) for hop in explanation.hops] if layer1 else ()
    through = cable_paths(fabric, links)
    if as_json:
        extra = {"through": through} if layer1 else {}
        print_json({**explanation.as_dict(build), **extra, "proved": methods})
    else:
        hops = [list(hop.as_dict(build).values()) for hop in explanation.hops]
        columns = ["from", "port", "to", "port", "channel"]
        print_table(f"{source} to {destination}: {counted(len(hops), 'link')}", columns, hops)
        for line in through:
            click.echo(line)
        _print_paths(build, explanation, " and ".join(failures))
        _print_methods(methods, bool(explanation.failing))
        if explanation.failing and not fabric.proved[0].promised:
            click.echo("`protect: none`: while something is down, packets may be lost")
    if explanation.fault:
        warn(f"wrong: {explanation.fault}")
    if not explanation.passed:
        raise click.exceptions.Exit(1)


def _named_by_target(build: Build, target: str) -> Build:
    """The build with a target's names of nodes and ports."""
    from compilers.targets.target_lookup import target as system

    names = system(target).names(build)
    return replace(build, wiring=replace(names.wiring, names=names.nodes))


def _print_methods(methods: Mapping[str, str], failed: bool) -> None:
    """Print what is proved of every pair, and by which method.

    Args:
        methods: the method of each proof, by what is proved: delivery, alternates or a kind of
            failure.
        failed: whether paths under failures were printed before.
    """
    from compilers.proof.failures.risk_cases import kind_words

    without_failures = ("delivery", "alternates")
    when = ", with nothing down" if failed else ""
    for method in ("local proof", "walk"):
        proved = [word for word in without_failures if methods.get(word) == method]
        if proved:
            click.echo(f"proved of every pair{when}, by {method}: {', '.join(proved)}")
    for method in ("local proof", "walk"):
        kinds = [
            kind_words(word)
            for word, word_method in methods.items()
            if word_method == method and word not in without_failures
        ]
        if kinds:
            click.echo(f"proved of every pair, by {method}: {', '.join(kinds)}")


def _print_paths(build: Build, explanation: Explanation, failed: str) -> None:
    """Print the alternates with their weights, and the paths under failures."""
    names = build.wiring.names

    def line(path: tuple[int, ...]) -> str:
        """The names of the switches of a path."""
        return " ".join(names[v] for v in path)

    if explanation.alternates:
        paths = [*explanation.alternates]
        if explanation.weights[0] > 0:
            paths.insert(0, explanation.minimal)
        weights = [weight for weight in explanation.weights if weight]
        columns = ["path", "weight"]
        rows: list[list[Any]] = [
            [line(path), weight] for path, weight in zip(paths, weights, strict=True)
        ]
        if explanation.intermediates:  # a path stands once for each intermediate on it
            columns.append("intermediate")
            over = [names[v] for v in explanation.intermediates]
            of_minimal = ["–"] * (len(rows) - len(over))
            for row, intermediate in zip(rows, [*of_minimal, *over], strict=True):
                row.append(intermediate)
        print_table("shared by", columns, rows)
    if explanation.failing:
        failing = [
            [line(walk.path), len(walk.path) - 1, walk.fault or "–"] for walk in explanation.failing
        ]
        print_table(f"with {failed} down", ["path", "links", "wrong"], failing)
