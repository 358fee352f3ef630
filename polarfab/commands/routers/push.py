"""`polarfab push`: puts the routes of a build on its routers."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compilers.targets.devices.device_shell import SSH
from polarfab.output.verb_output import (
    json_option,
    print_json,
    print_table,
    progress,
    volume,
    warn,
)
from polarfab.shared_options import shared, target_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compilers.tables.build import Build
    from controller.devices.push_report import PushReport

UNRESOLVED = re.compile("resolve host|Name or service|nodename nor|UnknownHost|Cannot connect to")
"""The messages of ssh and of NAPALM's drivers about a host name without an address."""


@click.command("push")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@target_options(more="by default the system of each switch in fabric.yaml or the inventory")
@shared(
    "--from", meaning="change the routes of all switches in the rounds of `plan`", parameter="old"
)
@shared("--node", parameter="names")
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    help="How many switches to change at a time; by default all.",
)
@click.option(
    "--stop-on",
    type=click.IntRange(min=0),
    default=1,
    help="Begin no further change after so many switches have failed; 0: never stop.",
)
@click.option(
    "--overrule",
    type=click.Choice(["ports", "lines", "names"]),
    multiple=True,
    help="ports: open ports that somebody shut by hand. lines: remove lines that others added to "
    "the sections that the push writes. names: before the first push, accept a switch with a host "
    "name that no node has.",
)
@click.option(
    "--napalm",
    "options",
    metavar="NAME=VALUE",
    multiple=True,
    help="An argument of NAPALM's driver, such as port=8443. Without username=NAME it is your user "
    "name on this machine.",
)
@click.option(
    "--dry-run", is_flag=True, help="Print what would be changed on each switch; change nothing."
)
@click.option(
    "--run",
    default=SSH,
    help="The command that runs its last argument, which the push adds, in a shell on a switch.",
)
@click.option("--etc", default="/etc", help="A switch's folder for configuration.")
@shared("--unverified")
@json_option
def command(
    folder: Path,
    target: str | None,
    option_words: tuple[str, ...],
    old: Path | None,
    names: tuple[str, ...],
    batch: int | None,
    stop_on: int,
    overrule: tuple[str, ...],
    options: tuple[str, ...],
    dry_run: bool,
    run: str,
    etc: str,
    unverified: bool,
    as_json: bool,
) -> None:
    """Put the routes of BUILD on its routers.

    The push reads the configuration of all switches. Then it adds the missing routes to every
    switch of a batch, and removes the stale routes. It compares the tables of the switches with the
    build, and saves the configuration. Static routes in the fabric's address pools are stale if the
    build does not have them. On linux, routes, next hops and rules of protocol 80 are stale, too.

    If a switch has routes of others in the pools, the push fails before it changes anything there.
    Ports that somebody shut by hand and lines of others stay, unless --overrule names them. EOS,
    Junos and SONiC undo a change by themselves if the push does not confirm it.

    Linux, FRR and SONiC are reached by a shell. In --run and --etc, {node} stands for the name of
    the switch, and {address} for its management address. The other systems are reached by NAPALM,
    with the password in POLARFAB_PASSWORD.
    """
    from compilers.targets.options import read
    from controller.devices.device_push import PushSettings
    from polarfab.fabric import Fabric
    from polarfab.switches import push

    fabric = Fabric.load(folder)
    settings = PushSettings(
        run,
        etc=etc,
        batch=batch or 0,
        stop_on=stop_on,
        dry=dry_run,
        overrule=frozenset(overrule),
        options=read(options, "--napalm"),
    )
    with progress("reading" if dry_run else "pushing") as bar:
        before = Fabric.load(old) if old else None
        report = push(
            fabric,
            target=target or "",
            settings=settings,
            options=read(option_words),
            nodes=names,
            unverified=unverified,
            progress=bar,
            old=before,
        )
    if as_json:
        print_json(report.as_dict())
    else:
        _print_report(report, dry_run)
        _say_unnamed(fabric.build, report)
    if report.interrupted:
        raise KeyboardInterrupt
    if not report.good:
        raise click.exceptions.Exit(1)


def _print_report(report: PushReport, dry_run: bool) -> None:
    """Print the lines of a dry run, or a table of what was pushed; then the errors."""
    if dry_run:
        _print_lines(report)
    else:
        _print_table(report)
        _print_kept(report)
    _say_errors(report)


def _print_lines(report: PushReport) -> None:
    """Print the lines that a push would give each switch."""
    for switch in report.switches:
        kept_lines = [f"# kept: {line}" for line in switch.kept]
        lines = [*kept_lines, *switch.add, *switch.plan.remove, *switch.plan.save]
        if lines:
            click.echo("\n".join((f"# {switch.node}", *lines)))


def _print_table(report: PushReport) -> None:
    """Print the state of each switch, and how many lines were added and removed."""
    has_kept = any(switch.kept for switch in report.switches)
    rows = []
    for switch in report.switches:
        row: list[object] = [switch.node, switch.state]
        if switch.state in ("as built", "pushed"):
            row += [len(switch.add), len(switch.plan.remove)]
        else:
            row += ["", ""]
        if has_kept:
            row.append(len(switch.kept))
        rows.append(row)
    states = Counter(switch.state for switch in report.switches)
    title = ", ".join(f"{count} {state}" for state, count in states.items())
    head = ["switch", "state", "added", "removed"]
    if has_kept:
        head.append("kept")
    print_table(f"push, target {report.target}: {title}", head, rows)


def _print_kept(report: PushReport) -> None:
    """Print the lines and states of others that stay, each with the first switches that have it."""
    switches_by_line: dict[str, list[str]] = {}
    for switch in report.switches:
        for line in switch.kept:
            switches_by_line.setdefault(line, []).append(switch.node)
    for line, nodes in switches_by_line.items():
        click.echo(f"kept on {_named_switches(nodes)}: {line}")


def _named_switches(nodes: Sequence[str]) -> str:
    """The first switches, and how many there are."""
    from compilers.targets.devices.router_device import MOST_NAMED

    if len(nodes) == 1:
        return nodes[0]
    ellipsis = ", …" if len(nodes) > MOST_NAMED else ""
    return f"{len(nodes)} switches ({', '.join(nodes[:MOST_NAMED])}{ellipsis})"


def _say_unnamed(build: Build, report: PushReport) -> None:
    """Say what to do if a switch's name has no address, neither by DNS nor in the inventory."""
    addresses = dict(zip(build.wiring.names, build.wiring.management, strict=True))
    unresolved = [
        switch.node
        for switch in report.switches
        if UNRESOLVED.search(switch.error) and not addresses[switch.node]
    ]
    if unresolved:
        example = f"{unresolved[0]} and others" if len(unresolved) > 1 else unresolved[0]
        warn(
            f"required a `management` address in the inventory, given none for {example}, so "
            "host names were tried; add it, or compare saved tables: polarfab check routes"
        )


def _say_errors(report: PushReport) -> None:
    """Print each error once, with the first switches that had it; with --verbose by switch."""
    errors = {switch.node: switch.error for switch in report.switches if switch.error}
    for cause, nodes in report.causes.items():
        if len(nodes) == 1 or volume() > 0:
            for node in nodes:
                warn(f"{node}: {errors[node]}")
            continue
        warn(f"{_named_switches(nodes)}: {cause}")
