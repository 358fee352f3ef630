"""`polarfab check routes`: routing tables of switches against the build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from polarfab.output.verb_output import (
    json_option,
    print_facts,
    print_json,
    print_table,
    progress,
    say_unread,
)
from polarfab.shared_options import target_options

if TYPE_CHECKING:
    from compilers.audit.route_report import RouteReport


@click.command("routes")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@target_options(more="else the form of the files tells", rendered=True)
@json_option
def command(
    folder: Path,
    files: tuple[Path, ...],
    target: str | None,
    words: tuple[str, ...],
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
        found = check_routes(fabric, files, target or "", read(words), bar)
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found)
    if not found.good:
        raise click.exceptions.Exit(1)


def _print(found: RouteReport) -> None:
    counts: list[tuple[str, object]] = [("switches", found.switches), ("routes", found.routes)]
    counts += [(kind, count) for kind, count in found.counts().items() if count]
    print_facts(f"{found.name}: routes as held, target {found.target}", counts)
    if found.differences:
        columns = ("switch", "what", "prefix", "wanted", "found")
        print_table("differences", columns, [one.row() for one in found.differences])
    say_unread(found.unread)
