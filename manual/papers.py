"""The page of the papers' tables and figures, with their pictures, made while the site is built."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from extensions.papers.catalogue import PAPERS, exhibits, reproduce
from extensions.papers.exhibit import VERDICTS, Evidence, Exhibit
from extensions.papers.exhibit_files import page, pictures
from extensions.papers.result_cache import cached_results, only_from

HEAD = """# The papers, reproduced

Numbered tables and figures of the papers, as `polarfab reproduce all --quick` computes and
draws them. Each value is held against the printed one, and the verdict follows from the values;
what is simulated is of small sizes and has no verdict, but where an exhibit says that it is of kept
points: these are of the sizes that it names. Captions are shortened. See
[how to reproduce them](../concepts/what-we-found.md#reproduce-the-papers), larger sizes too.

*Made from the code when the site is built.*

"""
"""The text above the exhibits."""
FOLDER = "reference/papers/"
"""The place of the pictures in the site."""
CHOICE = "MANUAL_EXHIBITS"
"""The environment variable with the first letters of the exhibits that are computed: `make checks`
looks at links, and `make test` reproduces the exhibits. Without it there are all."""
POINTS = Path(__file__).parent / "points"
"""The folder of kept points."""
WHOLE = {
    name: POINTS / f"{name}-{day}.csv"
    for name, day in {
        "polarfly-fig8": "2026-11-29",
        "polarfly-fig9": "2026-11-27",
        "polarfly-fig10": "2026-11-26",
        "polarstar-fig9": "2026-11-29",
        "polarstar-fig10": "2026-11-29",
        "polarstar-fig11": "2026-11-29",
    }.items()
}
"""Of exhibits whose points are kept, the file; its name ends with the day."""
IN_PART = ("polarfly-fig11", "polarstar-fig9")
"""Exhibits of which few points are kept, or none: of the paper's size they are judged by these and
by the hottest link, and for the rest not computed. Their pictures are of small networks."""
SINCE = {
    "polarfly-fig10": " Since then UGAL_PF sees flits pass as they come: at q = 13 with seed 0 its"
    " mean latency is 38.5 cycles at 0.8, 91.1 at 0.9 (kept: 38.4, 83.2). No other is simulated"
    " again. With the authors' paths between adjacent switches it has a deadlock at 0.9 there."
}
"""What has changed since an exhibit's points were simulated."""


def reproduced(first_letters: str) -> list[tuple[Exhibit, Evidence]]:
    """The exhibits whose names begin so, with what is computed of each."""
    chosen = [item for item in exhibits() if item.id.startswith(first_letters)]
    of_small = [item for item in chosen if item.id in IN_PART or item.id not in WHOLE]
    quick = reproduce(of_small, quick=True)
    evidence_of = {item.id: evidence for item, evidence in quick}
    return [(item, _shown(item, evidence_of.get(item.id))) for item in chosen]


def _shown(exhibit: Exhibit, small: Evidence | None) -> Evidence:
    """What the page shows of an exhibit, of which small sizes were computed, or kept points are."""
    if small is None:
        return of_kept_points(exhibit)
    return beside_small(of_kept_points(exhibit), small) if exhibit.id in IN_PART else small


def beside_small(whole: Evidence, small: Evidence) -> Evidence:
    """What is judged of the paper's size, with the pictures of small networks."""
    setup = (*whole.setup, "The pictures are of small networks, which are not judged.")
    return replace(whole, panels=small.panels, setup=(*setup, *small.setup))


def papers() -> Iterator[tuple[str, str]]:
    """Place and text of the page and of its pictures."""
    shown = reproduced(os.environ.get(CHOICE, ""))
    yield "reference/papers.md", HEAD + "".join(page(shown, PAPERS, "papers/"))
    for exhibit, evidence in shown:
        for name, picture in pictures(exhibit, evidence):
            yield FOLDER + name, picture


def of_kept_points(exhibit: Exhibit) -> Evidence:
    """The exhibit at its whole size, by points of `WHOLE`, if there are some.

    Raises:
        InputError: the file lacks one.
    """
    file = WHOLE.get(exhibit.id)
    with only_from(file):
        evidence = exhibit.compute(False)
    if file is None:
        return evidence
    codes = Counter(point.code for point in cached_results(file))
    numbers = ", ".join(f"{count} by {code}" for code, count in codes.most_common())
    day = file.stem[-len("2026-11-29") :]
    line = f"Kept points, simulated by {day}: {numbers} (digests of the code)."
    return replace(evidence, setup=(*evidence.setup, line + SINCE.get(exhibit.id, "")))


COUNTED = {
    "equal": "are computed and equal",
    "agrees": "agree as closely as the paper can be read, or approach a limit that it states",
    "reading": "are true if the paper is read in a way that we name",
    "corrected": "are wrong, with a counter-example",
    "differs": "differ",
    "contradicts": "state an order of two values, of which we computed the reverse",
    "taken": "are taken from the paper",
    "not computed": "are not computed",
}
"""What the README says of statements of each verdict, after their number."""


def count_rows(exhibits: Counter[str], statements: Counter[str]) -> str:
    """The rows of evidence.md: how many exhibits and statements have each verdict."""
    rows = [f"| {name} | {exhibits[name]} | {statements[name]:,} |\n" for name in VERDICTS]
    rows.append(f"| all | {exhibits.total()} | {statements.total():,} |\n")
    return "".join(rows)


def counts_in_words(statements: Counter[str]) -> str:
    """The README's sentences on the statements of each verdict that any statement has."""
    present = {name: words for name, words in COUNTED.items() if statements[name]}
    counts = [f"{statements[name]:,} {words}." for name, words in present.items()]
    return " ".join([f"The papers make {statements.total():,} statements.", *counts])
