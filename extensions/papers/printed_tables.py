"""The numeric tables of the papers, as `polarfab.paper_table` computes them, as evidence."""

from __future__ import annotations

from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.paper_tables import (
    QUANTITIES,
    Cell,
    PaperTable,
    paper_table,
)


def table_evidence(name: str, share: float = 0.0) -> Evidence:
    """Each cell of a table as a claim.

    Args:
        name: as in `papers.yaml`.
        share: of the printed value, by which a limit may be away.
    """
    table = paper_table(name)
    claims = tuple(_claim(table, cell, share) for cell in table.cells)
    return Evidence(claims, tuple(table.columns), tuple(map(tuple, table.rows)))


def _claim(table: PaperTable, cell: Cell, share: float) -> PaperClaim:
    text = cell.printed.rpartition("= ")[2].replace(",", "")
    printed, computed = float(text), cell.computed if cell.computed is not None else float("nan")
    digits = len(text.partition(".")[2])
    _, tolerance = QUANTITIES.get(cell.quantity, (None, 0.0))
    return PaperClaim(
        says=f"{cell.network}: {cell.quantity}",
        printed=printed,
        computed=computed,
        rounding=0.5 * 10.0**-digits if digits else 0.0,
        reading=max(tolerance, share * abs(printed)),
        mistake=_correction(table, cell.network),
    )


def _correction(table: PaperTable, network: str) -> str:
    """The notes that name the network, or one part of its name."""
    short = network.partition("(")[2].rstrip(")") or network
    named = (
        note
        for note in table.corrections
        if any(name in note.partition(":")[0] for name in (network, short, network.split("(")[0]))
    )
    return " ".join(named)
