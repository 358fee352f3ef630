"""`polarfab design`: which fabrics fit a radix."""

from __future__ import annotations

import click

from polarfab.output import json_option, print_json, print_table

COLUMNS = (
    "family",
    "radix",
    "nodes",
    "q",
    "supernode",
    "supernode_degree",
    "supernode_order",
    "links",
    "diameter",
    "moore_efficiency",
)


@click.command("design")
@click.option("--radix", type=click.IntRange(2, 4096), required=True, help="Fabric ports a node.")
@click.option("--min-nodes", type=click.IntRange(1), default=1, help="Leave out smaller fabrics.")
@json_option
def command(radix: int, min_nodes: int, as_json: bool) -> None:
    """List the fabrics that a node with RADIX fabric ports can build, largest first.

    For a family with none of exactly that radix, the largest below it stands in, with ports to
    spare. Sizes come from formulas; no graph is built.
    """
    from compilers.topologies.designs import fitting

    found = [
        {column: getattr(design, column) for column in COLUMNS}
        for design in fitting(radix, min_nodes)
    ]
    if as_json:
        print_json(found)
        return
    print_table(f"fabrics of radix {radix}", COLUMNS, [list(row.values()) for row in found])
    if not found:
        click.echo(f"no family has {min_nodes} nodes at radix {radix}", err=True)
