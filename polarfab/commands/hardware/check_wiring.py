"""`polarfab check wiring`: neighbour tables against the plan, and the smallest repair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from polarfab.output.verb_output import (
    json_option,
    print_facts,
    print_json,
    print_table,
    say,
    say_written,
    write_file,
)

if TYPE_CHECKING:
    from compilers.audit.wiring_report import WiringReport

MOST_LINES = 40


@click.command("wiring")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.argument("facts", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--as-wired",
    "adopt",
    type=click.Path(path_type=Path),
    help="Write the cables as they are, and the links that are not there, for the inventory.",
)
@json_option
def command(folder: Path, facts: tuple[Path, ...], adopt: Path | None, as_json: bool) -> None:
    """Compare the neighbour tables FACTS (files, folders of them) with the plan of BUILD.

    Says what is missing, extra or swapped, and the fewest moves that repair it. Tables of one
    node (lldpctl, SONiC, EOS, NX-OS, Junos, SR Linux) are files named by it: n12.json. A folder of
    several planes is checked as a whole: a plug may be in the wrong plane.
    """
    from polarfab.cabling import check_wiring
    from polarfab.fabric import Fabric

    found = check_wiring(Fabric.load(folder), facts)
    if adopt is not None:
        _adopt(found, adopt)
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found)
    if not found.good:
        raise click.exceptions.Exit(1)


def _adopt(found: WiringReport, output: Path) -> None:
    """Write what an inventory needs to have the fabric compiled as it is wired."""
    write_file(output, found.inventory(), "name another one with --as-wired")
    taken, ports = found.adopted(), found.ports
    say_written(output, ": put it into the inventory in place of its cables, and compile")
    if taken.dead_links:
        say(f"{len(taken.dead_links):,} links of the fabric are not there: they are in dead_links")
    if taken.useless:
        first = " to ".join(f"{ports.node(p)} {ports.name(p)}" for p in taken.useless[0])
        say(f"{len(taken.useless):,} cables join what the fabric does not, the first {first}")


def _print(found: WiringReport) -> None:
    report, audit = found.as_dict(), found.audit
    counts = [(word, report[word]) for word in ("planned", "right")]
    counts += [(word, len(report[word])) for word in ("missing", "extra", "misplaced")]
    counts += [("not seen", report["not_seen"]), ("nodes absent", len(audit.absent))]
    counts += [("moves to repair", len(audit.moves))]
    print_facts(f"{found.name}: cables as wired", counts)
    for cycle in report["wrong_places"]:
        turn = "in each other's place" if len(cycle) == 2 else "each in the next one's place"
        click.echo(f"{', '.join(cycle)} are {turn}: move them in the rack, or exchange their names")
    for line in report["trunks"]:
        click.echo(line)
    if moves := [(i, move["text"]) for i, move in enumerate(report["moves"], 1)]:
        if report["trunks"]:
            click.echo("do that and check again before any move below: they repair it link by link")
        print_table("repair, in this order", ("", "move"), moves)
    for stranger in report["strangers"][:MOST_LINES]:
        text = (
            f"not of this fabric: {stranger['neighbour']} at {stranger['node']} {stranger['port']}"
        )
        if there := stranger.get("planned"):
            text += f", whose cable should lead to {there['node']} {there['port']}"
        click.echo(text)
    for entry in report["unknown_ports"][:MOST_LINES]:
        click.echo(f"no such port in the plan: {entry['node']} {entry['port']}")
    if report["contested"]:
        click.echo(
            f"{len(report['contested'])} sightings set aside: another neighbour is likelier there"
        )
