"""`polarfab bench`: our speed beside that of peers, in one run."""

from __future__ import annotations

from dataclasses import asdict

import click

from polarfab.output import json_option, print_json, print_table


@click.group("bench")
def command() -> None:
    """Measure polarfab and its peers on this machine, in one run.

    Ratios against the peers travel between machines; seconds do not.
    """


@command.command("tables")
@click.option("--q", type=int, default=31, show_default=True, help="Order of the field.")
@click.option("--no-peers", is_flag=True, help="Leave out the slow peers.")
@json_option
def tables(q: int, no_peers: bool, as_json: bool) -> None:
    """Minimal routes for all pairs of PolarFly, and the walk through them."""
    from compilers import bench
    from compilers.topologies.select import check_topology
    from inventory.problems import InputError

    if problems := check_topology("polarfly", {"q": q}):
        raise InputError(problems)
    timings = list(bench.tables(q, peers=not no_peers))
    if as_json:
        print_json([asdict(timing) for timing in timings])
        return
    print_table(
        f"PolarFly q={q}",
        ["what", "ms", "times ours"],
        [(t.what, round(t.seconds * 1e3, 2), round(t.ratio, 2)) for t in timings],
    )
