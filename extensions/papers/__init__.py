"""The tables and figures of three papers: computed, drawn, and compared with the printed values.

These are the papers on PolarFly, on PolarStar, and on projective networks (PN).

An *exhibit* is a numbered table or figure (`exhibit`). `catalogue` lists all exhibits; the folders
`polarfly`, `polarstar` and `projective` compute those of one paper each.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from extensions.papers.exhibit import Evidence

ENTRY_POINTS = {
    "polarfab.verbs": {"reproduce": "extensions.papers.reproduce_verb:command"},
    "polarfab.functions": {
        "paper_table": "extensions.papers.paper_tables:paper_table",
        "reproduce": "extensions.papers:reproduce",
    },
}


def reproduce(figure: str, *, quick: bool = False, folder: str | Path | None = None) -> Evidence:
    """Compute a table or figure of a paper, such as `reproduce("polarstar-fig7")`.

    The result has a `verdict`, and `claims` with the printed and the computed values; a table also
    has `columns` and `rows`, a figure `panels` and `diagrams`.

    Args:
        figure: the name of the table or figure in `polarfab reproduce list`.
        quick: whether networks of small sizes are simulated, which gives no verdict.
        folder: where simulated points of networks of the papers' sizes are kept.

    Raises:
        InputError: there is no such table or figure.
    """
    from extensions.papers.catalogue import exhibit
    from extensions.papers.catalogue import reproduce as reproduce_all

    cache_folder = Path(folder) if folder else None
    # One exhibit gives one pair of the exhibit and its evidence.
    ((_exhibit, evidence),) = reproduce_all([exhibit(figure)], quick, folder=cache_folder)
    return evidence
