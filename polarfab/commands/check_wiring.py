"""`polarfab check-wiring`: neighbour tables against the plan, and the smallest repair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarfab.output import json_option, print_facts, print_json, print_table, say

if TYPE_CHECKING:
    from compilers.audit.resolve import Pairs, PortFinder
    from compilers.audit.wiring_audit import WiringAudit

CHECKED_FORMATS = ("lldpctl", "sonic", "eos", "srlinux", "ibnetdiscover", "openflow", "csv")
MOST_LINES = 40


@click.command("check-wiring")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.argument("facts", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(CHECKED_FORMATS), help="Else the content tells."
)
@click.option(
    "--as-wired",
    "adopt",
    type=click.Path(path_type=Path),
    help="Write the cables as they are, and the links that are not there, for the inventory.",
)
@json_option
def command(
    folder: Path, facts: tuple[Path, ...], form: str | None, adopt: Path | None, as_json: bool
) -> None:
    """Compare the neighbour tables FACTS (files, folders of them) with the plan of BUILD.

    Says what is missing, extra or swapped, and the fewest moves that repair it. Tables of one
    node (lldpctl, SONiC, EOS, SR Linux) are files named by it: n12.json. A folder of several
    planes is checked as a whole: a plug may be in the wrong plane.
    """
    from compilers.audit.merged_planes import together
    from compilers.audit.resolve import PortFinder, resolve
    from compilers.audit.wiring_audit import check
    from compilers.tables.build_folder import load
    from compilers.tables.plane_folders import builds_in
    from inventory.neighbours.neighbour_file import read_facts

    builds = [load(path) for path in builds_in(folder)]
    if adopt is not None and len(builds) > 1:
        raise click.UsageError(f"--as-wired is for one plane: name {builds_in(folder)[0]}")
    wiring, hardware = together(builds)
    wired = resolve(read_facts(facts, form), wiring, hardware)
    if not wired.reporters:
        names = ", ".join(wiring.names[:3])
        raise click.UsageError(f"no table is of a node of this build, whose nodes are {names}, …")
    types = hardware.types if hardware else ()
    found, ports = check(wiring, wired, types), PortFinder(wiring, types)
    report = as_dict(found, ports)
    if adopt is not None:
        _adopt(found, ports, adopt)
    if as_json:
        print_json(report)
    else:
        _print(report, found, " and ".join(build.name for build in builds))
    if not found.good:
        raise click.exceptions.Exit(1)


def _adopt(found: WiringAudit, ports: PortFinder, output: Path) -> None:
    """Write what an inventory needs to have the fabric compiled as it is wired."""
    import yaml

    from compilers.audit.adopt import adopted
    from inventory.problems import InputError, Problem

    taken = adopted(found, ports)
    nodes = "".join(f"#   {name}: vertex {vertex}\n" for name, vertex in taken.vertex.items())
    text = f"# Set in nodes, as these stand elsewhere:\n{nodes}" if nodes else ""
    data = {"cables": list(taken.cables)}
    if taken.dead_links:
        data["dead_links"] = list(taken.dead_links)
    text += yaml.safe_dump(data, sort_keys=False, default_flow_style=None)
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        given = error.strerror or str(error)
        raise InputError(Problem("a file to write", given, "", str(output))) from error
    say(f"written: {output}: put it into the inventory in place of its cables, and compile")
    if taken.dead_links:
        say(f"{len(taken.dead_links):,} links of the fabric are not there: they are in dead_links")
    if taken.useless:
        first = " to ".join(f"{ports.node(p)} {ports.name(p)}" for p in taken.useless[0])
        say(f"{len(taken.useless):,} cables join what the fabric does not, the first {first}")


def as_dict(found: WiringAudit, ports: PortFinder) -> dict[str, Any]:
    """The comparison in names."""
    from compilers.audit.move_text import sentence

    names = ports.wiring.names
    return {
        "planned": found.planned,
        "right": len(found.right),
        "missing": _cables(found.missing, ports),
        "extra": _cables(found.extra, ports),
        "misplaced": _cables(found.misplaced, ports),
        "not_seen": len(found.unseen),
        "absent_nodes": [names[v] for v in found.absent],
        "wrong_places": [[names[v] for v in cycle] for cycle in found.rounds],
        "moves": [
            {
                "kind": move.kind,
                "a": _end(move.a, ports),
                "b": _end(move.b, ports),
                "text": sentence(move, ports),
            }
            for move in found.moves
        ],
        "contested": _cables(found.wired.contested, ports),
        "strangers": [{**_end(p, ports), "neighbour": name} for p, name in found.wired.strangers],
        "unknown_ports": [{"node": n, "port": p} for n, p in found.wired.unknown_ports],
    }


def _end(port: int, ports: PortFinder) -> dict[str, str]:
    return {"node": ports.node(port), "port": ports.name(port)}


def _cables(pairs: Pairs, ports: PortFinder) -> list[dict[str, dict[str, str]]]:
    return [{"a": _end(a, ports), "b": _end(b, ports)} for a, b in sorted(pairs)]


def _print(report: dict[str, Any], found: WiringAudit, name: str) -> None:
    counts = [(word, report[word]) for word in ("planned", "right")]
    counts += [(word, len(report[word])) for word in ("missing", "extra", "misplaced")]
    counts += [("not seen", report["not_seen"]), ("nodes absent", len(found.absent))]
    counts += [("moves to repair", len(found.moves))]
    print_facts(f"{name}: cables as wired", counts)
    for cycle in report["wrong_places"]:
        turn = "are in each other's place" if len(cycle) == 2 else "stand each in the next one's"
        say(f"{', '.join(cycle)} {turn}: move them in the rack, or exchange their names")
    if moves := [(i, move["text"]) for i, move in enumerate(report["moves"], 1)]:
        print_table("repair, in this order", ("", "move"), moves[:MOST_LINES])
    if len(moves) > MOST_LINES:
        say(f"{len(moves) - MOST_LINES:,} moves more: --json has them all")
    for stranger in report["strangers"][:MOST_LINES]:
        say(f"not of this fabric: {stranger['neighbour']} at {stranger['node']} {stranger['port']}")
    for entry in report["unknown_ports"][:MOST_LINES]:
        say(f"no such port in the plan: {entry['node']} {entry['port']}")
    if report["contested"]:
        say(f"{len(report['contested'])} sightings set aside: another neighbour is likelier there")
