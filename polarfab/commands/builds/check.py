"""`polarfab check`: checks a spec, and compares cables or routes of switches with a build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inventory.problems import first_names
from polarfab.output.earlier_build import earlier_build
from polarfab.output.inventory_warnings import warn_of_losses, warn_of_planned
from polarfab.output.verb_output import (
    counted,
    json_option,
    print_facts,
    print_json,
    print_table,
    progress,
    say,
    say_unread,
    say_written,
    write_file,
)
from polarfab.shared_options import Words, shared, target_options

if TYPE_CHECKING:
    from compilers.audit.route_report import RouteReport
    from compilers.audit.wiring_report import WiringReport

MOST_LINES = 40
"""The most neighbours or ports outside the plan that are printed."""
MOST_NAMED = 10
"""The most names in a line."""
PORT_NUMBERS_HINT = (
    "a port that is a number is an SNMP index: on Junos `set protocols lldp port-id-subtype "
    "interface-name`, and collect again"
)
"""The note if a port that is not in the plan is a number."""


@click.command("spec")
@click.argument("fabric_file", metavar="FABRIC", type=click.Path(allow_dash=True))
@click.option(
    "--inventory",
    type=click.Path(path_type=Path),
    help="Take this inventory in place of the one that FABRIC names.",
)
@shared("--from", meaning="its cables, hosts and numbers stay", parameter="old")
@json_option
def spec(fabric_file: str, inventory: Path | None, old: Path | None, as_json: bool) -> None:
    """Check FABRIC (fabric.yaml, - for stdin) and the inventory it names; write nothing.

    All problems that `compile` would find, in both files: keys and values, nodes and ports for
    every vertex, racks, addresses, what the targets and node types can hold. Exit code 2 when
    there are any.

    Cables stay as for `compile`: where OLDBUILD has them, or ./build if that is a build of the
    fabric.
    """
    from polarfab.fabric import Fabric

    fabric = Fabric.from_spec(fabric_file, inventory)
    fabric = fabric.compile(earlier_build(fabric, old, Path("build"), require_match=False))
    planned, losses = warn_of_planned(fabric), warn_of_losses(fabric)
    build = fabric.builds[0]
    hardware = build.hardware
    names_in_use = {name for plane in fabric.builds for name in plane.wiring.names}
    nodes = fabric.loaded.inventory.nodes if fabric.loaded and fabric.loaded.inventory else ()
    spares = [node.name for node in nodes if node.name not in names_in_use]
    vertices = build.topology.graph.order
    facts = {
        "fabric": fabric.name,
        "topology": build.topology.title(),
        "nodes": vertices,
        "links": build.topology.graph.size,
        **losses,
        "planned": planned,
        "hosts": int((build.wiring.host_port > 0).sum()),
        "racks": len(set(hardware.rack.tolist())) if hardware else None,
        "spares": spares,
        "planes": len(fabric.builds),
        "problems": 0,
    }
    if as_json:
        print_json(facts)
        return
    printed_facts = {"hosts": facts["hosts"], "switches": facts["nodes"], "links": facts["links"]}
    if planned:
        printed_facts["switches"] = f"{vertices - len(planned)} of {vertices}"
        printed_facts["planned switches"] = len(planned)
    printed_facts |= {word: len(names) for word, names in losses.items() if names}
    printed_facts |= {"racks": facts["racks"], "spare switches": ", ".join(spares) or "none"}
    verbose = [(word, facts[word]) for word in ("topology", "planes")]
    print_facts(f"{fabric_file}: in order", printed_facts.items(), verbose)


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
def wiring(folder: Path, facts: tuple[Path, ...], adopt: Path | None, as_json: bool) -> None:
    """Compare the neighbour tables FACTS (files, folders of them) with the plan of BUILD.

    Says what is missing, extra or swapped, and the fewest moves that repair it. Tables of one
    node (lldpctl, SONiC, EOS, NX-OS, Junos, SR Linux) are files named by it: n12.json. A folder of
    several planes is checked as a whole: a plug may be in the wrong plane.
    """
    from polarfab.cabling import check_wiring
    from polarfab.fabric import Fabric

    report = check_wiring(Fabric.load(folder), facts)
    if adopt is not None:
        _adopt(report, adopt)
    if as_json:
        print_json(report.as_dict())
    else:
        _print_wiring(report)
    if not report.good:
        raise click.exceptions.Exit(1)


def _nodes_of_missing_cables(facts: dict[str, Any]) -> set[str]:
    """The nodes of the missing cables, by `WiringReport.as_dict`."""
    return {cable[end]["node"] for cable in facts["missing"] for end in ("a", "b")}


def _adopt(report: WiringReport, output: Path) -> None:
    """Write the part of an inventory from which the fabric is compiled as it is wired."""
    write_file(output, report.inventory(), "name another one with --as-wired")
    adopted, ports = report.adopted(), report.sockets
    say_written(output, ": put it into the inventory in place of its cables, and compile")
    if adopted.dead_links:
        missing = len(adopted.dead_links)
        are = "is not there: it is" if missing == 1 else "are not there: they are"
        say(f"{counted(missing, 'link')} of the fabric {are} in dead_links")
    if adopted.useless:
        first = " to ".join(f"{ports.node(p)} {ports.name(p)}" for p in adopted.useless[0])
        say(f"{len(adopted.useless):,} cables join what the fabric does not, the first {first}")


def _print_wiring(report: WiringReport) -> None:
    """Print the counts of cables, the moves that repair them, and what is outside the plan."""
    facts, audit = report.as_dict(), report.audit
    counts = [(word, facts[word]) for word in ("planned", "right")]
    counts += [(word, len(facts[word])) for word in ("missing", "extra", "misplaced")]
    counts += [("not seen", facts["not_seen"]), ("nodes absent", len(audit.absent))]
    counts += [("other ports", len(facts["other_ports"])), ("moves to repair", len(audit.moves))]
    print_facts(f"{report.name}: cables as wired", counts)
    empty = facts["empty_tables"]
    if empty:
        click.echo(
            f"tables without a neighbour: {first_names(empty, MOST_NAMED)}; is LLDP on, and are "
            "ports up?"
        )
    lacking_cables = _nodes_of_missing_cables(facts)
    unpowered = [name for name in facts["absent_nodes"] if name in lacking_cables]
    if unpowered:
        click.echo(
            f"neither read nor seen by a neighbour: {first_names(unpowered, MOST_NAMED)}; is the "
            "power on?"
        )
    for cycle in facts["wrong_places"]:
        turn = "in each other's place" if len(cycle) == 2 else "each in the next one's place"
        click.echo(f"{', '.join(cycle)} are {turn}: move them in the rack, or exchange their names")
    for line in facts["trunks"]:
        click.echo(line)
    moves = [(i, move["text"]) for i, move in enumerate(facts["moves"], 1)]
    if moves:
        if facts["trunks"]:
            click.echo("do that and check again before any move below: they repair it link by link")
        print_table("repair, in this order", ("", "move"), moves)
    _print_outside_plan(facts)


def _print_outside_plan(facts: dict[str, Any]) -> None:
    """Print the neighbours and ports that the plan does not have, by `WiringReport.as_dict`."""
    for stranger in facts["strangers"][:MOST_LINES]:
        text = (
            f"not of this fabric: {stranger['neighbour']} at {stranger['node']} {stranger['port']}"
        )
        planned = stranger.get("planned")
        if planned:
            text += f", whose cable should lead to {planned['node']} {planned['port']}"
        click.echo(text)
    for entry in facts["unknown_ports"][:MOST_LINES]:
        click.echo(f"no such port in the plan: {entry['node']} {entry['port']}")
    if any(entry["port"].isdecimal() for entry in facts["unknown_ports"]):
        click.echo(PORT_NUMBERS_HINT)
    if facts["contested"]:
        click.echo(
            f"{counted(len(facts['contested']), 'sighting')} set aside: another neighbour is "
            "likelier there"
        )


@click.command("routes")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@target_options(more="else the form of the files tells", rendered=True)
@json_option
def routes(
    folder: Path,
    files: tuple[Path, ...],
    target: str | None,
    option_words: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compare the routing tables FILES (files, folders of them) with BUILD.

    Says which routes are missing, which are stale and which lead elsewhere, with the switch, the
    prefix, the next hop that it should have and the one that it has. Files are named by their
    switches: n12.json. Forms: FRR and SONiC (show ip route table all json), Linux (ip -json route
    show table all), EOS, NX-OS, Junos, SR Linux.
    """
    from compilers.targets.options import read
    from polarfab.fabric import Fabric
    from polarfab.switches import check_routes

    fabric = Fabric.load(folder)
    with progress("comparing") as bar:
        report = check_routes(fabric, files, target or "", read(option_words), bar)
    if as_json:
        print_json(report.as_dict())
    else:
        _print_routes(report)
    if not report.good:
        raise click.exceptions.Exit(1)


def _print_routes(report: RouteReport) -> None:
    """Print the counts of routes and differences, and a table of the differences."""
    counts: list[tuple[str, object]] = [("switches", report.switches), ("routes", report.routes)]
    counts += [(kind, count) for kind, count in report.counts().items() if count]
    print_facts(f"{report.name}: routes as held, target {report.target}", counts)
    if report.differences:
        columns = ("switch", "what", "prefix", "wanted", "found")
        print_table("differences", columns, [difference.row() for difference in report.differences])
    say_unread(report.unread)


command = Words(
    "check",
    commands=[spec, wiring, routes],
    help="Check a fabric.yaml, the cables or the routing tables of a fabric.",
)
