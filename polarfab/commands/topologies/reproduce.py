"""`polarfab reproduce`: the tables and figures of the papers, beside what is printed there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from polarfab.output import json_option, print_json, print_table, progress, say, write_file
from polarfab.shared_options import scheduler_option

if TYPE_CHECKING:
    from compilers.reproduction.exhibit import Evidence, Exhibit

COLUMNS = ("name", "shows", "verdict", "why")


@click.command("reproduce")
@click.argument("names", metavar="list|FIGURE…", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every table and figure.")
@click.option("--paper", default="", help="Only those of this paper.")
@click.option("--quick", is_flag=True, help="Of small sizes, a minute for all; so does list.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write data, pictures and verdicts there; what is there is not computed again.",
)
@scheduler_option
@json_option
def command(
    names: tuple[str, ...],
    everything: bool,
    paper: str,
    quick: bool,
    output: Path | None,
    scheduler: str,
    as_json: bool,
) -> None:
    """Compute and draw tables and figures of the papers, and judge the printed values.

    Verdicts are exact, agrees (within a tolerance), corrected (the printed value is wrong) and
    differs, with the reason.

    \b
        polarfab reproduce list
        polarfab reproduce projective-fig7 -o figures
        polarfab reproduce --all --quick -o figures
    """
    from compilers.reproduction.catalogue import exhibit, exhibits, reproduce
    from compilers.reproduction.exhibit_files import files, is_done
    from compilers.workers.choice import workers_at

    listed = names == ("list",)
    if bool(names) == everything:
        raise click.UsageError("say list, some figures, or --all")
    if not (listed or output):
        raise click.UsageError("say where to write with -o")
    chosen = exhibits(paper) if listed or everything else [exhibit(name) for name in names]
    quick = quick or listed
    left = [each for each in chosen if not (output and is_done(output, each, quick))]
    if len(left) < len(chosen):
        say(f"there already: {len(chosen) - len(left)} of {len(chosen)}")
    found: list[tuple[Exhibit, Evidence]] = []
    with progress("reproducing") as bar, workers_at(scheduler) as workers:
        for each, evidence in reproduce(left, quick, bar, workers, output):
            found.append((each, evidence))
            if output:
                for name, text in files(each, evidence, quick):
                    write_file(output / each.id / name, [text], folders=True)
    rows = [each.row(evidence) for each, evidence in found]
    if as_json:
        print_json(rows)
    else:
        body = [(row["id"], row["what"], row["verdict"], " ".join(row["why"])) for row in rows]
        print_table("tables and figures of the papers", COLUMNS, body, whole=True)
