"""`polarfab plan`: what a move from one build to another would do, and whether it loses packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarfab.output.plane_output import merged_reports, say_plane, side_by_side
from polarfab.output.verb_output import (
    json_option,
    print_facts,
    print_json,
    print_table,
    progress,
    warn,
)
from polarfab.shared_options import (
    HTTP,
    authority,
    controller_url,
    token_file,
    unverified_option,
)

if TYPE_CHECKING:
    from polarfab.fabric import Fabric

PARTS = {
    "routes": "routes",
    "classes": "egress classes",
    "groups": "groups of ports",
    "local": "rows for its hosts",
}
"""What a switch has, by the words of `compilers.update.move_report.MOVE_PARTS`."""
IN_PLACE = "changed one by one"
BESIDE = "both there until the last round"


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
    random mixtures within. Planes move one by one, each with its controller: of folders of several
    every plane's move is shown. Exit code 0 when no pair of hosts loses a packet, else 1.
    """
    from polarfab.fabric import Fabric

    if before and url:
        raise click.UsageError("say either --from OLDBUILD or --to URL")
    with Fabric.load(folder).usable(unverified) as new:
        old = Fabric.load(before) if before else _running(url, token_file, authority)
        pairs = side_by_side(old, new)
        with progress("planning") as bar:
            found = [one.plan(other, mixtures, seed, bar).as_dict() for one, other in pairs]
    names = [other.name for _, other in pairs]
    lossless = all(report["lossless"] for report in found)
    if as_json:
        print_json(merged_reports(names, found, {"lossless": lossless}))
    else:
        for name, report in zip(names, found, strict=True):
            say_plane(name, len(names))
            _print(report, f"{name}: " * (len(names) > 1))
    if not lossless:
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
        held = Problem("", "", "or name the build that the switches hold", key="--from")
        raise error if url else InputError([*error.problems, held]) from error


def _print(report: dict[str, Any], plane: str) -> None:
    """Switches that change alike share a line; warnings begin with the plane, if there are more."""
    from compilers.update.move_report import MOVE_COUNTS, MOVE_PARTS

    alike = Counter(
        (switch["state"], *(switch[part][word] for part in MOVE_PARTS for word in MOVE_COUNTS))
        for switch in report["switches"]
    )
    wide = len(MOVE_COUNTS)
    lines = [
        (count, state, PARTS[part], *numbers[i * wide : i * wide + wide])
        for (state, *numbers), count in sorted(alike.items())
        for i, part in enumerate(MOVE_PARTS)
        if any(numbers[i * wide : i * wide + wide])
    ]
    title = f"what each switch changes, from build {report['from']} to {report['to']}"
    print_table(title, ["switches", "state", "what", *MOVE_COUNTS], lines)
    proof, loss = report["proof"], report["loss"]
    facts: list[tuple[str, object]] = [
        ("rounds", report["rounds"]),
        ("old and new rows", IN_PLACE if report["in_place"] else BESIDE),
        ("states on the way that were walked", proof["states"]),
        ("pairs of switches walked in each", proof["pairs"]),
        ("longest path on the way, in links", f"{proof['max_hops']} (allowed {proof['bound']})"),
        ("hosts cut off", len(loss["hosts"])),
        ("pairs of hosts cut off with them", loss["pairs"]),
        ("cables taken away", len(loss["cables"])),
        ("pairs of hosts whose packets may use these", loss["exposed_pairs"]),
    ]
    if loss["switches"]:
        facts.append(("switches that go", ", ".join(loss["switches"][:8])))
    if loss["exposed_pairs"]:
        facts.append(("switches send around that cable by themselves", loss["repaired"]))
    facts.append(("no pair loses a packet", report["lossless"]))
    print_facts("the move", facts)
    if proof["faults"]:
        rows = [[f["round"], f["from"], f["to"], f["what"]] for f in proof["faults"]]
        print_table("packets that go wrong", ["in round", "from", "to", "how"], rows)
    for line in _worst(report):
        warn(plane + line)


def _worst(report: dict[str, Any]) -> Iterator[str]:
    """Why packets may be lost, and what to do about it."""
    faults, loss = report["proof"]["faults"], report["loss"]
    if faults:
        yield f"packets go wrong in round {faults[0]['round']}: do not make this move"
    if loss["pairs"]:
        yield (
            f"{len(loss['hosts'])} hosts, such as {loss['hosts'][0]}, are cut off, moved or "
            "renumbered: their traffic is lost whatever the order"
        )
    if loss["exposed_pairs"] and not loss["repaired"]:
        yield (
            f"{loss['exposed_pairs']:,} pairs lose packets while a cable is out that goes, such as "
            f"{' to '.join(loss['cables'][0])}: leave all in until the move is over"
        )
    if not (report["lossless"] or faults):
        yield "apply refuses such a move; apply --accept-loss makes it all the same"
