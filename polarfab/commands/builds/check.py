"""`polarfab check`: a spec, the cables or the routes of switches against what they should be."""

from __future__ import annotations

from pathlib import Path

import click

from polarfab.commands.hardware import check_wiring
from polarfab.commands.routers import check_routes
from polarfab.output.inventory_output import earlier_build, warn_of_losses
from polarfab.output.verb_output import json_option, print_facts, print_json
from polarfab.shared_options import Words, shared


@click.command("spec")
@click.argument("fabric_file", metavar="FABRIC", type=click.Path(allow_dash=True))
@click.option(
    "--inventory",
    type=click.Path(path_type=Path),
    help="Take this inventory in place of the one that FABRIC names.",
)
@shared("--cables-of")
@json_option
def spec(fabric_file: str, inventory: Path | None, cables_of: Path | None, as_json: bool) -> None:
    """Check FABRIC (fabric.yaml, - for stdin) and the inventory it names; write nothing.

    All problems that `compile` would find, in both files: keys and values, nodes and ports for
    every vertex, racks, addresses, what the targets and node types can hold. Exit code 2 when
    there are any.

    Cables stay as for `compile`: with --cables-of BUILD, or where the inventory says `installed:
    true` and ./build holds a build of the fabric.
    """
    from polarfab.fabric import Fabric

    fabric = Fabric.from_spec(fabric_file, inventory)
    fabric = fabric.compile(cables_of=earlier_build(fabric, cables_of, Path("build")))
    lost = warn_of_losses(fabric)
    build = fabric.builds[0]
    hardware = build.hardware
    placed = {name for each in fabric.builds for name in each.wiring.names}
    nodes = fabric.loaded.inventory.nodes if fabric.loaded and fabric.loaded.inventory else ()
    spares = [node.name for node in nodes if node.name not in placed]
    facts = {
        "fabric": fabric.name,
        "topology": build.topology.title(),
        "nodes": build.topology.graph.order,
        "links": build.topology.graph.size,
        **lost,
        "hosts": int((build.wiring.host_port > 0).sum()),
        "racks": len(set(hardware.rack.tolist())) if hardware else None,
        "spares": spares,
        "planes": len(fabric.builds),
        "problems": 0,
    }
    if as_json:
        print_json(facts)
    else:
        shown = {"hosts": facts["hosts"], "switches": facts["nodes"], "links": facts["links"]}
        shown |= {word: len(each) for word, each in lost.items() if each}
        shown |= {"racks": facts["racks"], "spare switches": ", ".join(spares) or "none"}
        print_facts(
            f"{fabric_file}: in order",
            shown.items(),
            [(w, facts[w]) for w in ("topology", "planes")],
        )


command = Words(
    "check",
    commands=[spec, check_wiring.command, check_routes.command],
    help="Check a fabric.yaml, the cables or the routing tables of a fabric.",
)
