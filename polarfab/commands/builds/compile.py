"""`polarfab compile`: compiles a spec and an inventory to verified tables in a build folder."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from polarfab.output.change_output import say_changes, say_changes_of_file, write_allocations
from polarfab.output.earlier_build import earlier_build
from polarfab.output.inventory_warnings import warn_of_losses, warn_of_planned
from polarfab.output.verb_output import (
    json_option,
    print_facts,
    print_json,
    print_table,
    progress,
    say,
    volume,
)
from polarfab.output.verification_output import main_facts, stop_if_wrong, walks_in_words
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
@shared("--quick", meaning="no failures are tried: those of `protect` are left to `verify`")
@shared(
    "--from", meaning="its cables, hosts and numbers stay, not those in OUTPUT", parameter="old"
)
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

    Before the build is good for use, the packets of every ordered pair are followed through the
    tables, also in every failure that `protect` covers. Failures may take most of the time: --quick
    leaves them out, and the build says so.

    If OUTPUT holds a build of the fabric, cables, hosts and numbers stay as they are there, and
    all that changes is named. A build of another fabric is refused.
    """
    from compilers.targets.openflow.profiles import profile_notes
    from polarfab.fabric import Fabric

    start = perf_counter()
    verification: Verification | None = None
    allocations_note = ""
    is_trial = old is not None and old.resolve() != output.resolve()

    def prove(written: Fabric) -> None:
        """Prove the build and write its numbers, before it takes the place of an earlier one."""
        nonlocal verification, allocations_note
        if not no_verify:
            with progress(walks_in_words(written.builds, quick)) as bar:
                verification = written.verify(
                    failures=() if quick else None,  # None: those that `protect` covers
                    progress=bar,
                )
            verification.require_marked()
        allocations_note = write_allocations(written, is_trial)

    fabric = Fabric.from_spec(fabric_file)
    before = earlier_build(fabric, old, output)
    fabric = fabric.compile(before, ports_stay=not replace_cables)
    fabric = fabric.save(output, prove)
    _say_numbers(before, fabric)
    if allocations_note:
        say(allocations_note)
    warn_of_planned(fabric)
    warn_of_losses(fabric)
    for build in fabric.builds:
        _say_replaced_policy(build)
        for note in profile_notes(build):
            say(note)
    reports = verification.reports if verification else [None] * len(fabric.builds)
    facts = [_facts(plane, report) for plane, report in zip(fabric.planes, reports, strict=True)]
    seconds = round(perf_counter() - start, 3)
    run_facts = {"folder": str(output), "seconds": seconds}
    if len(facts) > 1:
        _print_planes(fabric, facts, run_facts, as_json)
    else:
        _print_plane(fabric, facts[0], reports[0], run_facts, as_json)
    for build, report in zip(fabric.builds, reports, strict=True):
        if report:
            stop_if_wrong(build, report, is_new=True)


def _print_plane(
    fabric: Fabric,
    facts: dict[str, Any],
    report: Report | None,
    run_facts: dict[str, Any],
    as_json: bool,
) -> None:
    """Print a fabric of one plane, as JSON or as text.

    Args:
        fabric: the fabric.
        facts: of its plane.
        report: of its verification; None: it was not verified.
        run_facts: the facts of this call.
        as_json: whether to print JSON.
    """
    all_facts = facts | run_facts
    if as_json:
        print_json(all_facts)
    elif volume() >= 0:
        title = f"{fabric.name}: {fabric.topology.title()}"
        print_facts(title, _printed_facts(facts, report, run_facts), all_facts.items())


def _say_numbers(before: Fabric | None, fabric: Fabric) -> None:
    """Say which ports, addresses and other numbers stay and which change.

    Args:
        before: the earlier build of the fabric; None without one.
        fabric: the compiled fabric.
    """
    if before:
        say_changes(before, fabric)
    elif fabric.loaded and fabric.loaded.allocations:
        say_changes_of_file(fabric)
    elif fabric.loaded and fabric.loaded.inventory:
        has_file = fabric.loaded.allocations_file
        todo = "" if has_file else "; name `allocations:` to keep those of a running fabric"
        say(f"numbers are new{todo}")


def _printed_facts(
    facts: dict[str, Any], report: Report | None, run_facts: dict[str, Any]
) -> list[tuple[str, object]]:
    """The facts that are printed without --verbose."""
    size = [("hosts", facts["hosts"]), ("switches", facts["nodes"]), ("links", facts["links"])]
    proved = main_facts(report) if report else [("verified", facts["verified"])]
    return [*size, *proved, ("folder", f"{run_facts['folder']}, in {run_facts['seconds']} s")]


def _print_planes(
    fabric: Fabric, planes: list[dict[str, Any]], run_facts: dict[str, Any], as_json: bool
) -> None:
    """Print the facts of each plane, as JSON or as a table."""
    if as_json:
        print_json({"fabric": fabric.name, **run_facts, "planes": planes})
    if as_json or volume() < 0:
        return
    words = ("fabric", "build", "nodes", "links", "hosts", "pairs", "delivered", "verified")
    title = (
        f"{fabric.name}: {len(planes)} planes in {run_facts['folder']}, {run_facts['seconds']} s"
    )
    print_table(title, words, [[plane[word] for word in words] for plane in planes])


def _say_replaced_policy(build: Build) -> None:
    """Name the policies that `routing.on_missing: minimal` has replaced."""
    from compilers.policy_support import LEAST_POLICY

    for word, least in LEAST_POLICY.items():
        requested = build.policy.get(f"asked_{word}")
        if requested:
            say(
                f"routing.{word}: {least or 'equal shares'} in place of {requested}, which not "
                "every target and node type can do (routing.on_missing)"
            )


def _facts(plane: Fabric, report: Report | None) -> dict[str, Any]:
    """The facts of a plane: its build in numbers, whether it is verified, and what was proved.

    `openflow_entries` counts the rows and groups of the largest switch as they are pushed,
    `openflow_entries_naive` as they would be with a group for each destination.
    """
    from compilers.targets.openflow.entry_counts import entries

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
