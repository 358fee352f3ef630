"""`polarfab explain`: the paths between two nodes, hop by hop."""

from __future__ import annotations

from pathlib import Path

import click

from polarfab.output import json_option, print_json, print_table, say


@click.command("explain")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST")
@json_option
def command(folder: Path, source: str, destination: str, as_json: bool) -> None:
    """Show the path from SRC to DST through the tables of BUILD.

    SRC and DST are node names, vertex numbers, host names or addresses.
    """
    from compilers.build import load
    from compilers.explain import explain, find_switch

    build = load(folder)
    found = explain(build, find_switch(build, source), find_switch(build, destination))
    wiring = build.wiring
    rows = [
        {
            "node": wiring.names[hop.switch],
            "port": wiring.port_name(hop.switch, hop.port),
            "next_node": wiring.names[hop.next_switch],
            "next_port": wiring.port_name(hop.next_switch, hop.next_port),
        }
        for hop in found.hops
    ]
    if as_json:
        print_json(
            {
                "source": found.source,
                "destination": found.destination,
                "minimal": found.minimal,
                "alternates": found.alternates,
                "hops": rows,
                "fault": found.fault or None,
            }
        )
    else:
        print_table(
            f"{source} to {destination}: {len(rows)} links",
            ["from", "port", "to", "port"],
            [list(row.values()) for row in rows],
        )
    if found.fault:
        say(f"wrong: {found.fault}")
        raise click.exceptions.Exit(1)
