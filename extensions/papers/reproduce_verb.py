"""`polarfab reproduce`: the tables and figures of the papers, and the printed values.

The verb computes exhibits (`catalogue`), writes them into a folder (`exhibit_files`), and prints a
row for each. With `--check` it simulates some cached points again (`result_cache`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inventory.problems import InputError
from polarfab.output.verb_output import (
    json_option,
    print_json,
    print_table,
    progress,
    say,
    write_file,
)
from polarfab.shared_options import output_option, shared

if TYPE_CHECKING:
    from extensions.papers.exhibit import Exhibit

COLUMNS = ("name", "shows", "verdict", "why")
"""The columns of the table of exhibits."""
HIDDEN_FIELDS = ("fabric", "settings")
"""The fields of a `PointKey` or `TimeKey` that are not printed: the settings are long, and the
fabric is printed in words."""
AGREEMENTS = {True: "yes", False: "no", None: "undecided"}
"""The words for `CheckedResult.agrees`."""


@click.command("reproduce")
@click.argument("names", metavar="list|all|FIGURE…", nargs=-1)
@click.option("--paper", default="", show_default=False, help="Only exhibits of this paper.")
@shared(
    "--quick",
    meaning="small fabrics are simulated, in minutes and not in hours, and a simulated figure has "
    "no verdict. list always does so",
)
@output_option("a folder of data, pictures and verdicts; results of the same code in it are read")
@click.option(
    "--check",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Simulate some points of a points.csv again: do they agree? Exit code 1 if one does not.",
)
@click.option("--points", type=click.IntRange(1), default=5, help="Points that --check takes.")
@shared("--seed")
@shared("--scheduler")
@json_option
def command(
    names: tuple[str, ...],
    paper: str,
    quick: bool,
    output: Path | None,
    check: Path | None,
    points: int,
    seed: int,
    scheduler: str,
    as_json: bool,
) -> None:
    """Compute and draw tables and figures of the papers, and judge the printed values.

    Verdicts of what is computed: equal, agrees (within the error of reading, or near a limit),
    reading (holds as the words are read here), corrected (the paper is wrong), differs (another
    value), contradicts (another order). Else: taken (put in from the paper), not computed (of this
    size).

    \b
        polarfab reproduce list
        polarfab reproduce projective-fig7 -o figures
        polarfab reproduce all --quick -o figures
        polarfab reproduce --check figures/points.csv --points 10
    """
    if check:
        if names or output:
            raise InputError.of("a file alone", "figures, too", key="--check")
        _check_points(check, points, seed, as_json)
        return
    from extensions.papers.catalogue import exhibit, exhibits

    if not names:
        raise click.UsageError(
            "name figures, or say all or list; polarfab reproduce list has the names"
        )
    lists_only, takes_all = names == ("list",), names == ("all",)
    chosen = exhibits(paper) if lists_only or takes_all else [exhibit(name) for name in names]
    if not (lists_only or output):
        raise InputError.of("a folder to write to", "none", "such as -o figures", key="--output")
    quick = quick or lists_only  # list computes what is missing, at small sizes
    rows = _rows_of(chosen, quick, output, scheduler)
    if as_json:
        print_json(rows)
    else:
        cells = [(row["id"], row["what"], row["verdict"], " ".join(row["why"])) for row in rows]
        print_table("tables and figures of the papers", COLUMNS, cells, whole=True)
    if lists_only and not output:
        say("computed anew each time; with -o DIR what is there is read")


def _rows_of(
    chosen: Sequence[Exhibit], quick: bool, output: Path | None, scheduler: str
) -> list[dict[str, Any]]:
    """The rows of exhibits (`Exhibit.row`): from the folder, or computed and written there.

    Args:
        chosen: the exhibits.
        quick: whether small sizes are simulated.
        output: the folder; None: all are computed, and none is written.
        scheduler: where they are computed.

    Raises:
        InputError: plots have to be written, and Matplotlib is not installed. Nothing is computed.
    """
    from compilers.drawing.plots import require_matplotlib
    from compilers.workers.local_processes import workers_at
    from extensions.papers.catalogue import reproduce
    from extensions.papers.exhibit_files import cached_row, files

    row_of = {
        exhibit.id: cached_row(output, exhibit, quick) if output else None for exhibit in chosen
    }
    missing = [exhibit for exhibit in chosen if not row_of[exhibit.id]]
    if output and any(exhibit.has_plot for exhibit in missing):
        require_matplotlib()
    if len(missing) < len(chosen):
        say(f"there already: {len(chosen) - len(missing)} of {len(chosen)}")
    with progress("reproducing") as bar, workers_at(scheduler) as workers:
        for exhibit, evidence in reproduce(missing, quick, bar, workers, output):
            row_of[exhibit.id] = exhibit.row(evidence)
            if output:
                for name, text in files(exhibit, evidence, quick):
                    write_file(output / exhibit.id / name, [text], folders=True)
    return [row for row in row_of.values() if row]


def _four_digits(number: float | None) -> float | None:
    """A number rounded to four digits after the point; None for None."""
    return None if number is None else round(number, 4)


def _check_points(file: Path, points: int, seed: int, as_json: bool) -> None:
    """Simulate some points of a file again, and print a row for each; exit code 1 if one differs.

    Args:
        file: points or times that an earlier call has written (`result_cache.caching_in`).
        points: how many are simulated again.
        seed: the seed by which these points are chosen.
        as_json: whether to print JSON.
    """
    from extensions.papers.latency_curves import simulated_point
    from extensions.papers.motif_times import simulated_time
    from extensions.papers.paper_fabric import PaperFabric
    from extensions.papers.result_cache import PointKey, TimeKey, recompute_sample
    from extensions.simulation.collective_completion import CompletionTime
    from extensions.simulation.load_point import LoadPoint

    def simulate(key: PointKey | TimeKey) -> LoadPoint | CompletionTime:
        """Compute the result of a key again."""
        return simulated_point(key) if isinstance(key, PointKey) else simulated_time(key)

    rows = list[dict[str, Any]]()
    with progress("simulating again") as bar:
        for point in recompute_sample(file, points, seed, simulate):
            fabric, key_fields = PaperFabric.of_text(point.key.fabric), point.key._asdict()
            rows.append({
                "agrees": point.agrees,
                "fabric": f"{fabric.title()}, {fabric.routes}",
                **{name: value for name, value in key_fields.items() if name not in HIDDEN_FIELDS},
                "kept": _four_digits(point.cached_value),
                "now": _four_digits(point.recomputed_value),
                "within": _four_digits(point.tolerance),
                "code": "the same" if point.same_code else "other",
            })  # fmt: skip
            if bar:
                bar(len(rows), points)
    if as_json:
        print_json(rows)
    else:
        cells = [list({**row, "agrees": AGREEMENTS[row["agrees"]]}.values()) for row in rows]
        are_points = "load" in rows[0]  # else times of collectives
        quantity = "accepted load" if are_points else "cycles"
        print_table(f"{quantity} of points simulated again", tuple(rows[0]), cells, whole=True)
    agreements = [row["agrees"] for row in rows]
    if undecided := agreements.count(None):
        say(f"undecided: {undecided}, by other code, of loads with one run: keep more seeds")
    if False in agreements:
        raise SystemExit(1)
