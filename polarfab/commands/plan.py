"""`polarfab plan`: what a move from one build to another would do, and whether anybody loses."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from polarfab.output import json_option, print_facts, print_json, print_table, progress

if TYPE_CHECKING:
    from compilers.tables.build import Build

COUNTS = ("added", "changed", "removed")
SHOWN_PARTS = ("routes", "classes", "groups", "local")


@click.command("plan")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "before",
    metavar="OLDBUILD",
    type=click.Path(path_type=Path),
    help="The build that the switches hold.",
)
@click.option("--to", "url", metavar="URL", help="The management API of the controller that moves.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file whose first line is a token that the controller accepts.",
)
@click.option(
    "--ca",
    "authority",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The authority of the controller's certificate (PEM), for https.",
)
@click.option(
    "--mixtures", default=2, show_default=True, help="Random mixtures to walk in each round."
)
@click.option("--seed", default=1, show_default=True, help="Of the mixtures.")
@click.option("--unverified", is_flag=True, help="Take builds that verify has not passed on.")
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

    It starts from OLDBUILD, or from what the controller at URL has.

    The move is made in rounds. Every state on the way is walked: the borders between rounds and
    random mixtures within. Exit code 0 when no pair of hosts loses a packet, else 1.
    """
    from compilers.tables.build_folder import load
    from compilers.tables.verified_mark import require_verified

    if (before is None) == (url is None):
        raise click.UsageError("give either --from OLDBUILD or --to URL")
    new = load(folder)
    if not unverified:
        require_verified(folder, new)
    with TemporaryDirectory() as name:
        if url is not None:
            before = _running(url, token_file, authority, Path(name) / "running")
        report = as_dict(load(before or folder), new, mixtures, seed)
    if as_json:
        print_json(report)
    else:
        show(report)
    if not report["lossless"]:
        raise click.exceptions.Exit(1)


def _running(url: str, tokens: Path | None, authority: Path | None, folder: Path) -> Path:
    """The build that a controller has, in a folder."""
    from controller.management.client import Client
    from controller.rollout.build_archive import unpack

    unpack(Client.to(url, "--to", tokens, authority).read("build"), folder)
    return folder


def as_dict(old: Build, new: Build, mixtures: int = 2, seed: int = 1) -> dict[str, Any]:
    """The plan in numbers: per switch and kind, what walking gave, what may be lost."""
    from compilers.update.loss import loss
    from compilers.update.move_plan import plan
    from compilers.update.programs import SwitchPrograms
    from compilers.update.update_proof import prove

    update = plan(old, new)
    programs, nodes = SwitchPrograms(update), update.nodes
    switches = []
    with progress("planning") as report:
        for node in range(len(nodes.datapath_id)):
            after, earlier = int(nodes.after[node]), int(nodes.before[node])
            name = new.wiring.names[after] if after >= 0 else old.wiring.names[earlier]
            state = "new" if earlier < 0 else "gone" if after < 0 else "stays"
            switch: dict[str, Any] = {"node": name, "state": state}
            for part, found in programs.counts(node).items():
                switch[part] = {word: getattr(found, word) for word in COUNTS}
            switches.append(switch)
            if report:
                report(node + 1, len(nodes.datapath_id))
    with progress("walking") as report:
        proof = prove(update, mixtures, seed, report)
    lost = loss(update)
    empty = not any(switch[p][c] for switch in switches for p in SHOWN_PARTS for c in COUNTS)
    return {
        "from": old.identity,
        "to": new.identity,
        "in_place": update.in_place,
        "rounds": 0 if empty and old.identity == new.identity else update.rounds,
        "switches": switches,
        "proof": {
            "states": proof.states,
            "pairs": proof.pairs,
            "max_hops": proof.max_hops,
            "bound": proof.bound,
            "faults": [
                {"round": f.round + 1, "from": f.source, "to": f.destination, "what": f.what}
                for f in proof.faults
            ],
        },
        "loss": {
            "hosts": list(lost.hosts),
            "pairs": lost.pairs,
            "switches": list(lost.switches),
            "cables": [list(cable) for cable in lost.cables],
            "exposed_pairs": lost.exposed,
            "repaired": lost.repaired,
        },
        "lossless": lost.none and not proof.faults,
    }


def show(report: dict[str, Any]) -> None:
    """The same for people: switches that change alike share a line."""
    alike = Counter(
        (switch["state"], *(switch[part][word] for part in SHOWN_PARTS for word in COUNTS))
        for switch in report["switches"]
    )
    short = {"added": "+", "changed": "~", "removed": "−"}
    columns = [
        "switches",
        "",
        *(f"{part} {short[word]}" for part in SHOWN_PARTS for word in COUNTS),
    ]
    used = [i for i, _ in enumerate(columns) if i < 2 or any(key[i - 1] for key in alike)]
    lines = [(count, *key) for key, count in sorted(alike.items())]
    title = f"{report['from']} to {report['to']}"
    print_table(title, [columns[i] for i in used], [[line[i] for i in used] for line in lines])
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
