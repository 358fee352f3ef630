"""`polarfab plan`: shows what a move changes, and proves whether it loses packets.

It prints the report of `compilers.update.move_report` (`Fabric.plan`), a mapping for JSON. Some
keys of such a report, of a move to another balance:

    {"switches": [{"node": "n0", "state": "stays", "tables": {"classes_added": 4}}], "rounds": 4,
     "facts": {"balance": ["minimal", "compact-valiant"]}, "lossless": true,
     "proof": {"faults": [], "states": 7, "pairs": 156, "max_hops": 2, "bound": 4}}
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inventory.problems import first_names
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
"""The parts of a switch's program in words, by `compilers.update.move_report.MOVE_PARTS`."""
IN_PLACE = "changed one by one"
BOTH_UNTIL_END = "both there until the last round"
"""How old rows become new ones: in place, or with both kept until the last round."""
MOST_NAMED = 6
"""Names or lines of one kind that are printed without --verbose."""
MOST_REMOVED_NAMED = 8
"""The most removed switches that are named."""
EVERYWHERE_PREFIX = "control_plane."
"""Prefix of the settings whose change touches every switch."""


@click.command("plan")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@shared("--from", meaning="else what the controller has", parameter="old")
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

    It starts from OLDBUILD, else from what the controller at URL has, which needs a token.

    The move is made in rounds. Packets are followed in the states between two rounds, and in random
    mixtures of states within a round. Planes move one by one, each with its controller: if the
    folders have several planes, the move of each plane is shown. Exit code 0 when no pair of hosts
    loses a packet, else 1.
    """
    from polarfab.fabric import Fabric

    if old and controller.named:
        raise click.UsageError("say either --from OLDBUILD or --to URL")
    with Fabric.load(folder).usable(unverified) as new:
        current = Fabric.load(old) if old else _running_fabric(controller)
        pairs = side_by_side(current, new)
        with progress("planning") as bar:
            reports = [earlier.plan(later, progress=bar).as_dict() for earlier, later in pairs]
    names = [later.name for _, later in pairs]
    lossless = all(report["lossless"] for report in reports)
    if as_json:
        print_json(merged_reports(names, reports, {"lossless": lossless}))
    else:
        for name, report in zip(names, reports, strict=True):
            say_plane(name, len(names))
            _print_report(report, f"{name}: " if len(names) > 1 else "")
    if not lossless:
        raise click.exceptions.Exit(1)


def _running_fabric(controller: ControllerAddress) -> Fabric:
    """The fabric of the controller at URL.

    Raises:
        InputError: the controller does not answer or refuses; the message also names --from if the
            user has not named the controller.
    """
    from inventory.problems import InputError
    from polarfab.switches import running

    try:
        return running(controller.url, controller.token_file, controller.authority)
    except InputError as error:
        if controller.named:
            raise
        other_way = "or the build that switches hold with --from OLDBUILD"
        problems = (
            replace(problem, todo=f"{problem.todo}, {other_way}") for problem in error.problems
        )
        raise InputError(problems) from error


def _print_report(report: dict[str, Any], plane: str) -> None:
    """Print a headline, then the changes by name; with --verbose every row and state."""
    click.secho(plane + _headline(report), bold=True)
    for line in _switch_lines(report["switches"]):
        click.echo(f"  {line}")
    for line in (*_host_lines(report["hosts_moved"]), *_number_lines(report["renumbered"])):
        click.echo(f"  {line}")
    for line in _setting_lines(report):
        click.echo(f"  {line}")
    proof, loss = report["proof"], report["loss"]
    if volume() > 0:
        _print_rows(report)
    if proof["faults"]:
        rows = [
            [fault["round"], fault["from"], fault["to"], fault["what"]] for fault in proof["faults"]
        ]
        print_table("packets that go wrong", ["in round", "from", "to", "how"], rows)
    elif report["rounds"]:
        states = counted(proof["states"], "state")
        longest = "leg, to an intermediate or from one," if proof["legs"] else "path"
        click.echo(
            f"proved: {proof['pairs']:,} pairs walked in each of {states} on the "
            f"way; the longest {longest} has {proof['max_hops']} links (allowed {proof['bound']})"
        )
    if loss["switches"]:
        click.echo(f"switches that go: {', '.join(loss['switches'][:MOST_REMOVED_NAMED])}")
    for line in _warnings(report):
        warn(plane + line)


def _headline(report: dict[str, Any]) -> str:
    """`1 switch added, 73 change, 0 removed; 12 rounds; no packet lost`.

    All switches change with the control plane, even if no row does.
    """
    moved, numbers = len(report["hosts_moved"]), len(report["renumbered"])
    other_changes = f"{counted(moved, 'host')} moved; " if moved else ""
    if numbers:
        other_changes += f"{counted(numbers, 'number')} changed; "
    if not report["rounds"]:
        return f"{other_changes}no row changes" if other_changes else "nothing changes"
    is_everywhere = any(word.startswith(EVERYWHERE_PREFIX) for word in report["facts"])
    states = Counter(
        switch["state"]
        for switch in report["switches"]
        if switch["state"] != "stays" or is_everywhere or _has_changes(switch)
    )
    if is_everywhere:
        other_changes += "control plane changes; "
    added, rounds = states["new"], report["rounds"]
    lost = "no packet lost" if report["lossless"] else "packets may be lost"
    return (
        f"{counted(added, 'switch')} added, {states['stays']:,} change, "
        f"{states['gone']:,} removed; {other_changes}{counted(rounds, 'round')}; {lost}"
    )


def _has_changes(switch: dict[str, Any]) -> bool:
    """Whether rows or groups of a switch that stays change; its build marker does not count."""
    from compilers.update.move_report import MOVE_PARTS

    return any(any(switch[part].values()) for part in MOVE_PARTS)


def _switch_lines(switches: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Lines about switches. Switches in which the same tables change share a line.

    Such a line states, for each table, the smallest and the largest number of changed rows among
    these switches: `n0, n1, n2: classes added 3–4`.
    """
    for state, verb in (("new", "added"), ("gone", "removed")):
        names = [switch["node"] for switch in switches if switch["state"] == state]
        if names:
            yield f"{verb}: {_first_names(names)}"
    by_tables = defaultdict[tuple[str, ...], list[dict[str, Any]]](list)
    for switch in switches:
        if switch["state"] == "stays" and _has_changes(switch):
            tables = tuple(table for table, count in switch["tables"].items() if count)
            by_tables[tables].append(switch)
    for tables, group in sorted(by_tables.items(), key=lambda item: (len(item[1]), item[0])):
        ranges = []
        for table in tables:
            numbers = [switch["tables"][table] for switch in group]
            ranges.append(f"{table.replace('_', ' ')} {_range_in_words(numbers)}")
        nodes = _first_names([switch["node"] for switch in group])
        yield f"{nodes}: {', '.join(ranges) or 'the same routes in other rows'}"


def _host_lines(moves: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines about hosts whose ports or addresses change; the first few without --verbose."""
    lines = [f"host {name} moved: {old} to {new}" for name, old, new in moves]
    return _first_lines(lines, "host moved", "hosts moved")


def _number_lines(moves: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines about addresses, AS numbers and labels; the first few without --verbose."""
    lines = [f"{kind} changes, {owner}: {old} to {new}" for kind, owner, old, new in moves]
    return _first_lines(lines, "number changes", "numbers change")


def _setting_lines(report: dict[str, Any]) -> Iterator[str]:
    """Lines about other settings of the fabric and its switches; the first few without --verbose.

    Lengths of cables, of which there are many, come last.
    """
    from compilers.update.switch_settings import CABLE

    facts = [f"{word} changes: {old} to {new}" for word, (old, new) in report["facts"].items()]
    changes, lengths = list[str](), list[str]()
    for kind, name, setting, old, new in report["settings"]:
        lines = lengths if kind == CABLE else changes
        lines.append(f"{kind} {name}: {setting} {old} to {new}")
    for lines in (facts, changes, lengths):
        yield from _first_lines(lines, "setting changes", "settings change")


def _first_lines(lines: Sequence[str], for_one: str, for_several: str) -> Iterator[str]:
    """The first lines, and a line that counts the others; with --verbose all lines.

    Args:
        lines: all lines.
        for_one: what "1 more" is followed by.
        for_several: what a larger number of others is followed by.
    """
    printed_lines = lines if volume() > 0 else lines[:MOST_NAMED]
    yield from printed_lines
    unprinted = len(lines) - len(printed_lines)
    if unprinted:
        yield f"and {unprinted:,} more {for_one if unprinted == 1 else for_several}"


def _range_in_words(numbers: Sequence[int]) -> str:
    """The least and the most of some numbers, in words."""
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"


def _first_names(names: Sequence[str]) -> str:
    """The first few names; with --verbose all."""
    return first_names(names, len(names) if volume() > 0 else MOST_NAMED)


def _print_rows(report: dict[str, Any]) -> None:
    """Print the OpenFlow rows and groups that change, and facts about the move.

    Switches with the same counts of changes share the lines of the table.
    """
    from compilers.update.move_report import MOVE_COUNTS, MOVE_PARTS

    switches_by_counts: Counter[tuple[str, tuple[tuple[int, ...], ...]]] = Counter()
    for switch in report["switches"]:
        counts = (tuple(switch[part][word] for word in MOVE_COUNTS) for part in MOVE_PARTS)
        switches_by_counts[switch["state"], tuple(counts)] += 1
    lines = [
        (switches, state, PARTS[part], *counts)
        for (state, counts_by_part), switches in sorted(switches_by_counts.items())
        for part, counts in zip(MOVE_PARTS, counts_by_part, strict=True)
        if any(counts)
    ]
    title = f"OpenFlow rows of each switch, from build {report['from']} to {report['to']}"
    print_table(title, ["switches", "state", "what", *MOVE_COUNTS], lines)
    loss = report["loss"]
    facts: list[tuple[str, object]] = [
        ("old and new rows", IN_PLACE if report["in_place"] else BOTH_UNTIL_END),
        ("hosts cut off", len(loss["hosts"])),
        ("pairs of hosts cut off with them", loss["pairs"]),
        ("cables taken away", len(loss["cables"])),
        ("pairs of hosts whose packets may use these", loss["exposed_pairs"]),
    ]
    if loss["exposed_pairs"]:
        facts.append(("switches send around that cable by themselves", loss["repaired"]))
    print_facts("the move", facts)


def _warnings(report: dict[str, Any]) -> Iterator[str]:
    """Lines that say why packets may be lost, and what to do about it."""
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
