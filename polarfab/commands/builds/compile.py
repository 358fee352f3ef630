"""`polarfab compile`: spec and inventory to verified tables in a build folder."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from polarfab.output.change_output import say_changes, say_changes_of_file, write_allocations
from polarfab.output.inventory_output import earlier_build, warn_of_losses, warn_of_planned
from polarfab.output.verb_output import (
    json_option,
    print_facts,
    print_json,
    print_table,
    progress,
    say,
    volume,
)
from polarfab.output.verification_output import counts, stop_if_wrong, walks
from polarfab.shared_options import output_option, shared

if TYPE_CHECKING:
    from compilers.proof.verification import Verification
    from compilers.proof.walks.delivery_report import Report
    from compilers.tables.build import Build
    from polarfab.fabric import Fabric


@click.command("compile")
@click.argument("fabric_file", metavar="FABRIC", type=click.Path(allow_dash=True))
@output_option("a build is replaced when all went well", usual=Path("build"))
@click.option("--no-verify", is_flag=True, help="Leave the walk over all pairs to `verify`.")
@shared("--quick", "no failures are tried: those of `protect` are left to `verify`")
@shared("--from", "its cables, hosts and numbers stay, not those in OUTPUT", "old")
@shared("--replace-cables")
@json_option
def command(
    fabric_file: str,
    output: Path,
    no_verify: bool,
    quick: bool,
    old: Path | None,
    replace_cables: bool,
    as_json: bool,
) -> None:
    """Compile FABRIC (fabric.yaml, - for stdin) and the inventory it names.

    Every ordered pair is walked through the tables before the build is good for use, and every
    failure that `protect` promises to survive. These take most of the time where they are
    walked one by one: --quick leaves them out, and the build says so.

    If OUTPUT holds a build of the fabric, cables, hosts and numbers stay as they are there, and
    all that changes is named. A build of another fabric is refused.
    """
    from compilers.targets.openflow.profiles import profile_notes
    from polarfab.fabric import Fabric

    start = perf_counter()
    verification: Verification | None = None

    file_in_words = ""
    is_trial = old is not None and old.resolve() != output.resolve()

    def settle(written: Fabric) -> None:
        """Prove the build and write its numbers, before it takes the place of an earlier one."""
        nonlocal verification, file_in_words
        if not no_verify:
            with progress(walks(written.builds, quick)) as bar:
                verification = written.verify(
                    failures=() if quick else None,
                    progress=bar,
                )
            verification.require_marked()
        file_in_words = write_allocations(written, is_trial)

    fabric = Fabric.from_spec(fabric_file)
    before = earlier_build(fabric, old, output)
    fabric = fabric.compile(before, ports_stay=not replace_cables)
    fabric = fabric.save(output, settle)
    if before:
        say_changes(before, fabric)
    elif fabric.loaded and fabric.loaded.allocations:
        say_changes_of_file(fabric)
    elif fabric.loaded and fabric.loaded.inventory:
        named = fabric.loaded.allocations_file
        todo = "" if named else "; name `allocations:` to keep those of a running fabric"
        say(f"numbers are new{todo}")
    if file_in_words:
        say(file_in_words)
    warn_of_planned(fabric)
    warn_of_losses(fabric)
    for build in fabric.builds:
        _say_less(build)
        for note in profile_notes(build):
            say(note)
    reports = verification.reports if verification else [None] * len(fabric.builds)
    facts = [_facts(*pair) for pair in zip(fabric.planes, reports, strict=True)]
    seconds = round(perf_counter() - start, 3)
    where = {"folder": str(output), "seconds": seconds}
    if len(facts) > 1:
        _print_planes(fabric, facts, where, as_json)
    elif as_json:
        print_json(facts[0] | where)
    elif volume() >= 0:
        title = f"{fabric.name}: {fabric.topology.title()}"
        print_facts(title, _first(facts[0], reports[0], where), (facts[0] | where).items())
    for build, report in zip(
        fabric.builds, verification.reports if verification else (), strict=False
    ):
        stop_if_wrong(build, report)


def _first(
    facts: dict[str, Any], report: Report | None, where: dict[str, Any]
) -> list[tuple[str, object]]:
    """What a newcomer asks; the rest is for --verbose."""
    size = [("hosts", facts["hosts"]), ("switches", facts["nodes"]), ("links", facts["links"])]
    proved = counts(report) if report else [("verified", facts["verified"])]
    return [*size, *proved, ("folder", f"{where['folder']}, in {where['seconds']} s")]


def _print_planes(
    fabric: Fabric, planes: list[dict[str, Any]], where: dict[str, Any], as_json: bool
) -> None:
    if as_json:
        print_json({"fabric": fabric.name, **where, "planes": planes})
    if as_json or volume() < 0:
        return
    words = ("fabric", "build", "nodes", "links", "hosts", "pairs", "delivered", "verified")
    title = f"{fabric.name}: {len(planes)} planes in {where['folder']}, {where['seconds']} s"
    print_table(title, words, [[plane[word] for word in words] for plane in planes])


def _say_less(build: Build) -> None:
    """Say what `routing.on_missing: minimal` took back."""
    from compilers.policy_support import LEAST_POLICY

    for word, least in LEAST_POLICY.items():
        if requested := build.policy.get(f"asked_{word}"):
            say(
                f"routing.{word}: {least or 'equal shares'} in place of {requested}, which not "
                "every target and node type can do (routing.on_missing)"
            )


def _facts(plane: Fabric, report: Report | None) -> dict[str, Any]:
    """A build in numbers, whether it is verified, and what that proved.

    openflow_entries: rows and groups of the largest switch as they are pushed; of the naive ones
    there is a group for each destination.
    """
    from compilers.targets.openflow.flow_tables import entries

    build, openflow = plane.build, entries(plane.build)
    words = ("pairs", "delivered", "max_hops", "mean_hops")
    walked = {word: getattr(report, word, None) for word in words}
    verified = {"verified": bool(report and report.passed), "proved": str(plane.proved[0])}
    return {
        "build": build.identity,
        "fabric": build.name,
        "topology": build.topology.title(),
        "nodes": int(build.topology.present.sum()),
        "links": build.topology.graph.size,
        "hosts": int((build.wiring.host_port > 0).sum()),
        "routes": int(build.tables.routes.rows().sum()),
        "classes": int((build.tables.classes.port > 0).sum()),
        "openflow_entries": openflow.emitted,
        "openflow_entries_naive": openflow.naive,
        **walked,
        **verified,
    }
