"""`polarfab compile`: spec and inventory to verified tables in a build folder."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from polarfab.output import json_option, print_facts, print_json, print_table, progress, say

if TYPE_CHECKING:
    from compilers.cabling.phases import Stage
    from compilers.proof.delivery import Report
    from compilers.spec.fabric_file import LoadedFabric
    from compilers.tables.build import Build


@click.command("compile")
@click.argument("fabric", type=click.Path(allow_dash=True))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("build"),
    show_default=True,
    help="The build folder; an earlier build there is replaced when all went well.",
)
@click.option("--no-verify", is_flag=True, help="Leave the walk over all pairs to `verify`.")
@click.option("--phase", type=click.IntRange(1), help="Tables for what is there after a phase.")
@click.option("--phases", type=click.IntRange(1), help="How many there are, as in `cables`.")
@json_option
def command(
    fabric: str,
    output: Path,
    no_verify: bool,
    phase: int | None,
    phases: int | None,
    as_json: bool,
) -> None:
    """Compile FABRIC (fabric.yaml, - for stdin) and the inventory it names.

    Every ordered pair is walked through the tables before the build is good for use.

    With --phase the racks of later phases of the installation (`polarfab cables`) are left out;
    vertices, ports, addresses and labels are those of the whole fabric.
    """
    from compilers.cabling.phases import PHASES, Stage
    from compilers.pipeline import compile_fabric
    from compilers.spec.fabric_file import load_fabric
    from compilers.tables.build_folder import save
    from polarfab.commands.verify import failed

    if phases and not phase:
        raise click.UsageError("--phases says of how many phases --phase is one")
    start = perf_counter()
    stage = Stage(phase, phases or PHASES) if phase else None
    folder = output.resolve()  # `.` is another folder once it is replaced
    loaded = load_fabric(fabric)
    if loaded.spec.planes > 1:
        _planes(loaded, stage, folder, no_verify, as_json, start)
        return
    build = save(compile_fabric(loaded, stage), folder)
    _say_less(build)
    report = None if no_verify else _verified(build, folder)
    facts = as_dict(build, report)
    facts |= {"folder": str(output), "seconds": round(perf_counter() - start, 3)}
    if as_json:
        print_json(facts)
    else:
        print_facts(f"{build.name}: {build.topology.title()}", facts.items())
    if report and not report.passed:
        failed(build, report)


def _planes(
    loaded: LoadedFabric,
    stage: Stage | None,
    folder: Path,
    no_verify: bool,
    as_json: bool,
    start: float,
) -> None:
    """Compile every plane; planes that forward alike are walked once."""
    from compilers.planes import compile_planes
    from compilers.tables.plane_folders import save_planes
    from polarfab.commands.verify import check_planes, failed

    builds = save_planes(compile_planes(loaded, stage), folder)
    reports: list[Report | None] = [None] * len(builds)
    if not no_verify:
        with progress("walking every pair") as report_progress:
            reports = [*check_planes(builds, folder, report_progress)]
    planes = [as_dict(build, report) for build, report in zip(builds, reports, strict=True)]
    seconds = round(perf_counter() - start, 3)
    if as_json:
        name = loaded.spec.name
        print_json({"fabric": name, "folder": str(folder), "seconds": seconds, "planes": planes})
    else:
        words = ("fabric", "build", "nodes", "links", "hosts", "pairs", "delivered", "verified")
        title = f"{loaded.spec.name}: {len(builds)} planes in {folder}, {seconds} s"
        rows = [[plane[word] for word in words] for plane in planes]
        print_table(title, words, rows)
    for build, report in zip(builds, reports, strict=True):
        if report and not report.passed:
            failed(build, report)


def _say_less(build: Build) -> None:
    """Say what `routing.on_missing: minimal` took back."""
    from compilers.spec.fabric_spec import EQUAL_COST

    for word in ("balance", "protect", "minimal_share"):
        if asked := build.policy.get(f"asked_{word}"):
            done = getattr(build, word, EQUAL_COST)
            say(
                f"routing.{word}: {done} in place of {asked}, which not every "
                "target and node type can do (routing.on_missing)"
            )


def _verified(build: Build, folder: Path) -> Report:
    from polarfab.commands.verify import check

    with progress("walking every pair") as report_progress:
        return check(build, folder, report_progress)


def as_dict(build: Build, report: Report | None) -> dict[str, Any]:
    """A build in numbers."""
    from compilers.targets.openflow.flow_tables import entries

    openflow = entries(build)
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
        "pairs": report.pairs if report else None,
        "delivered": report.delivered if report else None,
        "max_hops": report.max_hops if report else None,
        "mean_hops": report.mean_hops if report else None,
        "verified": bool(report and report.passed),
    }
