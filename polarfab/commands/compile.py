"""`polarfab compile`: spec and inventory to verified tables in a build folder."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import click

from polarfab.output import json_option, print_facts, print_json, progress


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
    from compilers.build import save
    from compilers.load import load_fabric
    from compilers.phases import PHASES, Stage
    from compilers.pipeline import compile_fabric
    from compilers.targets.openflow_pipeline import entries
    from polarfab.commands.verify import check, failed

    if phases and not phase:
        raise click.UsageError("--phases says of how many phases --phase is one")
    start = perf_counter()
    stage = Stage(phase, phases or PHASES) if phase else None
    folder = output.resolve()  # `.` is another folder once it is replaced
    build = save(compile_fabric(load_fabric(fabric), stage), folder)
    openflow = entries(build)
    report = None
    if not no_verify:
        with progress("walking every pair") as report_progress:
            report = check(build, folder, report_progress)
    facts = {
        "build": build.identity,
        "folder": str(output),
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
        "seconds": round(perf_counter() - start, 3),
    }
    if as_json:
        print_json(facts)
    else:
        print_facts(f"{build.name}: {build.topology.title()}", facts.items())
    if report and not report.passed:
        failed(build, report)
