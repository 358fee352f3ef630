"""`polarfab plan`: what a move from one build to another would do, and whether it loses packets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarfab.output.plane_output import merged_reports, say_plane, side_by_side
from polarfab.output.verb_output import (
    counted,
    json_option,
    print_facts,
    print_json,
    print_table,
    progress,
    volume,
    warn,
)
from polarfab.shared_options import ControllerAddress, controller_options, shared

if TYPE_CHECKING:
    from polarfab.fabric import Fabric

PARTS = {
    "routes": "routes",
    "classes": "egress classes",
    "groups": "groups of ports",
    "local": "rows for its hosts",
}
"""What a switch has, by the words of `compilers.update.move_report.MOVE_PARTS`."""
IN_PLACE = "changed one by one"
BOTH = "both there until the last round"
NAMED = 6
"""Switches that a line names without --verbose."""
CONTROL_PLANE = "control_plane."
"""The beginning of facts by which every switch is configured in another way."""


@click.command("plan")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@shared("--from", "else what the controller has", "old")
@controller_options
@shared("--unverified")
@json_option
def command(
    folder: Path,
    old: Path | None,
    controller: ControllerAddress,
    unverified: bool,
    as_json: bool,
) -> None:
    """Show what a move to BUILD changes at each switch, and prove it; nothing is changed.

    It starts from OLDBUILD, else from what the controller at URL has.

    The move is made in rounds. Every intermediate state is walked: the borders between rounds and
    random mixtures within. Planes move one by one, each with its controller: of folders of several
    every plane's move is shown. Exit code 0 when no pair of hosts loses a packet, else 1.
    """
    from polarfab.fabric import Fabric

    if old and controller.named:
        raise click.UsageError("say either --from OLDBUILD or --to URL")
    with Fabric.load(folder).usable(unverified) as new:
        held = Fabric.load(old) if old else _running(controller)
        pairs = side_by_side(held, new)
        with progress("planning") as bar:
            reports = [one.plan(other, progress=bar).as_dict() for one, other in pairs]
    names = [other.name for _, other in pairs]
    lossless = all(report["lossless"] for report in reports)
    if as_json:
        print_json(merged_reports(names, reports, {"lossless": lossless}))
    else:
        for name, report in zip(names, reports, strict=True):
            say_plane(name, len(names))
            _print(report, f"{name}: " if len(names) > 1 else "")
    if not lossless:
        raise click.exceptions.Exit(1)


def _running(controller: ControllerAddress) -> Fabric:
    """The fabric of the controller at URL.

    Raises:
        InputError: it does not answer, or refuses; without a URL --from would do as well.
    """
    from inventory.problems import InputError
    from polarfab.switches import running

    try:
        return running(controller.url, controller.token_file, controller.authority)
    except InputError as error:
        if controller.named:
            raise
        more = "or the build that switches hold with --from OLDBUILD"
        problems = (replace(one, todo=f"{one.todo}, {more}") for one in error.problems)
        raise InputError(problems) from error


def _print(report: dict[str, Any], plane: str) -> None:
    """Print a headline, then the changes by name; with --verbose every row and state."""
    click.secho(plane + _headline(report), bold=True)
    for line in _by_name(report["switches"]):
        click.echo(f"  {line}")
    for line in (*_moved_hosts(report["hosts_moved"]), *_renumbered(report["renumbered"])):
        click.echo(f"  {line}")
    for line in _settings(report):
        click.echo(f"  {line}")
    proof, loss = report["proof"], report["loss"]
    if volume() > 0:
        _print_rows(report)
    if proof["faults"]:
        rows = [[f["round"], f["from"], f["to"], f["what"]] for f in proof["faults"]]
        print_table("packets that go wrong", ["in round", "from", "to", "how"], rows)
    elif report["rounds"]:
        states = counted(proof["states"], "state")
        longest = "leg, to an intermediate or from one," if proof["legs"] else "path"
        click.echo(
            f"proved: {proof['pairs']:,} pairs walked in each of {states} on the "
            f"way; the longest {longest} has {proof['max_hops']} links (allowed {proof['bound']})"
        )
    if loss["switches"]:
        click.echo(f"switches that go: {', '.join(loss['switches'][:8])}")
    for line in _worst(report):
        warn(plane + line)


def _headline(report: dict[str, Any]) -> str:
    """`1 switch added, 73 change, 0 removed; 12 rounds; no packet lost`.

    All switches change with the control plane, even if no row does.
    """
    moved = len(report["hosts_moved"])
    hosts = f"{counted(moved, 'host')} moved; " if moved else ""
    if numbers := len(report["renumbered"]):
        hosts += f"{counted(numbers, 'number')} changed; "
    if not report["rounds"]:
        return f"{hosts}no row changes" if hosts else "nothing changes"
    is_everywhere = any(word.startswith(CONTROL_PLANE) for word in report["facts"])
    states = Counter(
        switch["state"]
        if switch["state"] != "stays" or is_everywhere or _changes(switch)
        else "same"
        for switch in report["switches"]
    )
    if is_everywhere:
        hosts += "control plane changes; "
    added, rounds = states["new"], report["rounds"]
    lost = "no packet lost" if report["lossless"] else "packets may be lost"
    return (
        f"{counted(added, 'switch')} added, {states['stays']:,} change, "
        f"{states['gone']:,} removed; {hosts}{counted(rounds, 'round')}; {lost}"
    )


def _changes(switch: dict[str, Any]) -> bool:
    """Whether a switch that stays gets other rows or groups; its build marker is no such."""
    from compilers.update.move_report import MOVE_PARTS

    return any(any(switch[part].values()) for part in MOVE_PARTS)


def _by_name(switches: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Switches that change in the same respects share a line, with the least and the most."""
    for state, verb in (("new", "added"), ("gone", "removed")):
        if names := [switch["node"] for switch in switches if switch["state"] == state]:
            yield f"{verb}: {_some(names)}"
    alike = defaultdict[tuple[str, ...], list[dict[str, Any]]](list)
    for switch in switches:
        if switch["state"] == "stays" and _changes(switch):
            alike[tuple(word for word, n in switch["tables"].items() if n)].append(switch)
    for words, those in sorted(alike.items(), key=lambda group: (len(group[1]), group[0])):
        ranges = []
        for word in words:
            numbers = [switch["tables"][word] for switch in those]
            ranges.append(f"{word.replace('_', ' ')} {_range(numbers)}")
        nodes = _some([switch["node"] for switch in those])
        yield f"{nodes}: {', '.join(ranges) or 'the same routes in other rows'}"


def _moved_hosts(moves: Sequence[Sequence[str]]) -> Iterator[str]:
    """The hosts whose ports or addresses change; the first few without --verbose."""
    shown = moves if volume() > 0 else moves[:NAMED]
    for name, was, now in shown:
        yield f"host {name} moved: {was} to {now}"
    if more := len(moves) - len(shown):
        yield f"and {more:,} more hosts moved"


def _renumbered(moves: Sequence[Sequence[str]]) -> Iterator[str]:
    """The addresses, AS numbers and labels that change; the first few without --verbose."""
    shown = moves if volume() > 0 else moves[:NAMED]
    for kind, what, was, now in shown:
        yield f"{kind} changes, {what}: {was} to {now}"
    if more := len(moves) - len(shown):
        yield f"and {more:,} more numbers change"


def _settings(report: dict[str, Any]) -> Iterator[str]:
    """What is said of the fabric and its switches besides; the first few without --verbose."""
    from compilers.update.switch_settings import CABLE

    facts = [f"{word} changes: {was} to {now}" for word, (was, now) in report["facts"].items()]
    changes, lengths = list[str](), list[str]()
    for kind, name, what, was, now in report["settings"]:
        lines = lengths if kind == CABLE else changes
        lines.append(f"{kind} {name}: {what} {was} to {now}")
    for lines in (facts, changes, lengths):
        shown = lines if volume() > 0 else lines[:NAMED]
        yield from shown
        if more := len(lines) - len(shown):
            yield f"and {more:,} more settings change"


def _range(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"


def _some(names: Sequence[str]) -> str:
    """The first few names; with --verbose all."""
    if volume() > 0 or len(names) <= NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED:,} more"


def _print_rows(report: dict[str, Any]) -> None:
    """OpenFlow rows and groups, those of switches that change alike in one line; and the proof."""
    from compilers.update.move_report import MOVE_COUNTS, MOVE_PARTS

    alike = Counter(
        (switch["state"], *(switch[part][word] for part in MOVE_PARTS for word in MOVE_COUNTS))
        for switch in report["switches"]
    )
    wide = len(MOVE_COUNTS)
    lines = [
        (count, state, PARTS[part], *numbers[i * wide : i * wide + wide])
        for (state, *numbers), count in sorted(alike.items())
        for i, part in enumerate(MOVE_PARTS)
        if any(numbers[i * wide : i * wide + wide])
    ]
    title = f"OpenFlow rows of each switch, from build {report['from']} to {report['to']}"
    print_table(title, ["switches", "state", "what", *MOVE_COUNTS], lines)
    loss = report["loss"]
    facts: list[tuple[str, object]] = [
        ("old and new rows", IN_PLACE if report["in_place"] else BOTH),
        ("hosts cut off", len(loss["hosts"])),
        ("pairs of hosts cut off with them", loss["pairs"]),
        ("cables taken away", len(loss["cables"])),
        ("pairs of hosts whose packets may use these", loss["exposed_pairs"]),
    ]
    if loss["exposed_pairs"]:
        facts.append(("switches send around that cable by themselves", loss["repaired"]))
    print_facts("the move", facts)


def _worst(report: dict[str, Any]) -> Iterator[str]:
    """Why packets may be lost, and what to do about it."""
    from compilers.update.renumbering import ON_BOTH_ENDS

    kinds = {kind for kind, *_ in report["renumbered"]}
    if report["routers_lose"] or kinds & ON_BOTH_ENDS:
        yield (
            "links, AS numbers or the control plane change: routers lose packets until both ends "
            "of a link have what is new"
        )
    faults, loss = report["proof"]["faults"], report["loss"]
    if faults:
        yield f"packets go wrong in round {faults[0]['round']}: do not make this move"
    if loss["pairs"]:
        yield (
            f"{len(loss['hosts'])} hosts, such as {loss['hosts'][0]}, are cut off, moved or "
            "renumbered: their traffic is lost whatever the order"
        )
    if loss["exposed_pairs"] and not loss["repaired"]:
        cables = counted(len(loss["cables"]), "cable")
        yield (
            f"the new build lacks {cables}, such as {' to '.join(loss['cables'][0])}. "
            f"{loss['exposed_pairs']:,} pairs of hosts may use one of them, counted over all of "
            "them together: a pair loses packets if its cable is out before the move is over. "
            "Leave these cables in until then. If their switch is replaced, drain it first"
        )
    if not faults and (loss["pairs"] or (loss["exposed_pairs"] and not loss["repaired"])):
        yield "apply refuses such a move; apply --accept-loss makes it all the same"
