"""`polarfab plan`: what a move from one build to another would do, and whether it loses packets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarfab.output import json_option, print_facts, print_json, print_table, progress
from polarfab.shared_options import (
    HTTP,
    authority,
    controller_url,
    token_file,
    unverified_option,
)

if TYPE_CHECKING:
    from polarfab.fabric import Fabric


@click.command("plan")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "before",
    metavar="OLDBUILD",
    type=click.Path(path_type=Path),
    help="The build that the switches hold.",
)
@controller_url(usual=None, more=f"[default: {HTTP}]")
@token_file
@authority
@click.option(
    "--mixtures", default=2, show_default=True, help="Random mixtures to walk in each round."
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Of chance: of the mixtures.",
)
@unverified_option()
@json_option
def command(
    folder: Path,
    before: Path | None,
    url: str | None,
    token_file: Path | None,
    authority: Path | None,
    mixtures: int,
    seed: int,
    unverified: bool,
    as_json: bool,
) -> None:
    """Show what a move to BUILD changes at each switch, and prove it; nothing is changed.

    It starts from OLDBUILD, else from what the controller at URL has.

    The move is made in rounds. Every state on the way is walked: the borders between rounds and
    random mixtures within. Exit code 0 when no pair of hosts loses a packet, else 1.
    """
    from polarfab.fabric import Fabric

    if before and url:
        raise click.UsageError("say either --from OLDBUILD or --to URL")
    with Fabric.load(folder).usable(unverified) as new:
        old = Fabric.load(before) if before else _running(url, token_file, authority)
        with progress("planning") as report:
            found = old.plan(new, mixtures, seed, report)
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found.as_dict())
    if not found.lossless:
        raise click.exceptions.Exit(1)


def _running(url: str | None, token_file: Path | None, authority: Path | None) -> Fabric:
    """The fabric of the controller at URL.

    Raises:
        InputError: it does not answer, or refuses; without a URL --from would do as well.
    """
    from inventory.problems import InputError, Problem
    from polarfab.fabric import Fabric

    try:
        return Fabric.running(url or HTTP, token_file, authority)
    except InputError as error:
        held = Problem("the build of the switches", "none", "or say its folder", key="--from")
        raise error if url else InputError([*error.problems, held]) from error


def _print(report: dict[str, Any]) -> None:
    """Switches that change alike share a line."""
    from compilers.update.move_report import MOVE_COUNTS, MOVE_PARTS

    alike = Counter(
        (switch["state"], *(switch[part][word] for part in MOVE_PARTS for word in MOVE_COUNTS))
        for switch in report["switches"]
    )
    wide = len(MOVE_COUNTS)
    lines = [
        (count, state, part, *numbers[i * wide : i * wide + wide])
        for (state, *numbers), count in sorted(alike.items())
        for i, part in enumerate(MOVE_PARTS)
        if any(numbers[i * wide : i * wide + wide])
    ]
    title = f"each switch, from build {report['from']} to {report['to']}"
    print_table(title, ["switches", "state", "what", *MOVE_COUNTS], lines)
    proof, loss = report["proof"], report["loss"]
    facts: list[tuple[str, object]] = [
        ("rounds", report["rounds"]),
        ("numbers", "in place" if report["in_place"] else "the other generation"),
        ("states walked", proof["states"]),
        ("pairs of switches in each", proof["pairs"]),
        ("longest path", f"{proof['max_hops']} links, at most {proof['bound']}"),
        ("hosts that lose all", len(loss["hosts"])),
        ("pairs with one of them", loss["pairs"]),
        ("cables that go", len(loss["cables"])),
        ("pairs that may take one", loss["exposed_pairs"]),
    ]
    if loss["switches"]:
        facts.append(("switches that go", ", ".join(loss["switches"][:8])))
    if loss["cables"]:
        facts.append(("repaired in the switch", loss["repaired"]))
    facts.append(("no pair loses a packet", report["lossless"]))
    print_facts("the move", facts)
    if proof["faults"]:
        rows = [[f["round"], f["from"], f["to"], f["what"]] for f in proof["faults"]]
        print_table("faults", ["round", "from", "to", "what"], rows)
