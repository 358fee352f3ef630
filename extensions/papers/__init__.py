"""The tables and figures of the three papers, computed, drawn, and held against what is printed."""

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
    """A table or figure of a paper, computed: `reproduce("polarstar-fig7")`.

    Its `verdict`, and `claims` with the printed and our values; `columns` and `rows` of a table,
    `panels` and `diagrams` of a figure.

    Args:
        figure: as `polarfab reproduce list` names it.
        quick: what is simulated of small sizes, without a verdict.
        folder: where simulated points of whole sizes are kept.

    Raises:
        InputError: there is no such figure.
    """
    from extensions.papers.catalogue import exhibit
    from extensions.papers.catalogue import reproduce as reproduced

    kept = Path(folder) if folder else None
    ((_, evidence),) = reproduced([exhibit(figure)], quick, folder=kept)
    return evidence
