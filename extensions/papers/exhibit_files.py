"""Write exhibits as files, for `polarfab reproduce`: each in a folder, and all in a Markdown page.

`files` yields the data, the pictures and the verdict of one exhibit, and `page` the text of the
page. `cached_row` reads a verdict that an earlier call has written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from compilers.drawing.plots import plot
from compilers.workers.source_digest import source_digest
from extensions.papers.exhibit import (
    NOT_COMPUTED,
    NOT_EXPLAINED,
    VERDICTS,
    Evidence,
    Exhibit,
    PaperClaim,
    value_text,
)

VERDICT_FILE = "verdict.json"
"""The file with the verdict and the claims of an exhibit."""
ROW_KEYS = ("id", "paper", "what", "verdict", "why", "counts")
"""The keys of `Exhibit.row`, which a verdict file has among others."""
PRINTED_HEAD = "printed value (or ours, of the network compared with)"
"""The head of the column of `PaperClaim.printed`: where the paper orders two networks, it has our
value of the second one."""
Reproduced = Sequence[tuple[Exhibit, Evidence]]
"""Exhibits, each with what was computed for it."""


def picture_names(exhibit: Exhibit, evidence: Evidence) -> list[str]:
    """The file of each picture: that of the plot, if there is one, then those of the drawings."""
    drawings = [f"{exhibit.id}-{number}.svg" for number in range(1, len(evidence.diagrams) + 1)]
    return [f"{exhibit.id}.svg", *drawings] if evidence.panels else drawings


def pictures(exhibit: Exhibit, evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Yield name and SVG of each picture of an exhibit.

    Raises:
        InputError: there is a plot, and Matplotlib is not installed.
    """
    names = iter(picture_names(exhibit, evidence))
    if evidence.panels:
        yield next(names), plot(evidence.panels, "svg", plain=True).decode()
    for diagram in evidence.diagrams:
        yield next(names), diagram.svg()


def files(exhibit: Exhibit, evidence: Evidence, quick: bool) -> Iterator[tuple[str, str]]:
    """Yield name and text of each file of an exhibit.

    The verdict is the last: if it is in a folder, so are all other files.

    Args:
        exhibit: the exhibit.
        evidence: what was computed for it.
        quick: whether small sizes were asked for. An exhibit that has no small sizes is computed at
            its whole size all the same, and `evidence.is_quick` is False.
    """
    curves = [asdict(panel) for panel in evidence.panels]
    graphs = [
        {"title": diagram.title, "places": diagram.places.tolist(), "links": diagram.links.tolist()}
        for diagram in evidence.diagrams
    ]
    table = [dict(zip(evidence.columns, row, strict=True)) for row in evidence.rows]
    data = {"table": table, "curves": curves, "graphs": graphs}
    yield f"{exhibit.id}.json", json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    yield from pictures(exhibit, evidence)
    quick_verdict = (
        {"verdict": NOT_COMPUTED, "why": "of smaller sizes"} if evidence.is_quick else {}
    )
    claims = [{**claim.row(), **quick_verdict} for claim in evidence.claims]
    sizes = {"quick": quick, "setup": evidence.setup}
    verdict = {**exhibit.row(evidence), **sizes, "code": source_digest(), "claims": claims}
    yield VERDICT_FILE, json.dumps(verdict, indent=1, ensure_ascii=False) + "\n"


def cached_row(folder: Path, exhibit: Exhibit, quick: bool) -> dict[str, Any] | None:
    """The row of an exhibit from the verdict file that an earlier call has left in a folder.

    None: there is no such file, or other code has computed it, or it is of other sizes.

    Args:
        folder: the folder of all exhibits.
        exhibit: the exhibit.
        quick: whether a file of small sizes is looked for.
    """
    try:
        verdict = json.loads((folder / exhibit.id / VERDICT_FILE).read_text())
        if (verdict.pop("quick"), verdict.pop("code")) != (quick, source_digest()):
            return None
        return {name: verdict[name] for name in ROW_KEYS}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def page(reproduced: Reproduced, papers: dict[str, str], pictures_folder: str) -> Iterator[str]:
    """Yield a Markdown page: the verdicts, then each exhibit with its pictures and values.

    Args:
        reproduced: exhibits with what was computed.
        papers: titles by short name.
        pictures_folder: the folder of the pictures with its slash, as links in the page have it.
    """
    yield "| | shows | verdict | |\n| --- | --- | --- | --- |\n"
    for exhibit, evidence in reproduced:
        why = " ".join(evidence.reasons)
        link = f"[{exhibit.id}](#{exhibit.id})"
        yield f"| {link} | {exhibit.caption} | *{evidence.verdict}* | {why} |\n"
    yield "\n" + "".join(f"- *{name}*: {meaning}.\n" for name, meaning in VERDICTS.items())
    yield f"\n*{NOT_EXPLAINED}*: none of our tests shows why.\n"
    yield from _count_table(reproduced)
    yield from _correction_table(reproduced, papers)
    paper = ""
    for exhibit, evidence in reproduced:
        if exhibit.paper != paper:
            paper = exhibit.paper
            yield f"\n## {papers[paper]}\n"
        yield f"\n### {exhibit.id}\n\n{exhibit.caption}: *{evidence.verdict}*.\n\n"
        for name in picture_names(exhibit, evidence):
            yield f"![{exhibit.caption}]({pictures_folder}{name})\n"
        yield from (f"\n- {line}" for line in evidence.setup)
        yield "\n" if evidence.setup else ""
        if evidence.rows:
            yield from _table(evidence.columns, evidence.rows)
            yield from _disagreements(evidence)
        else:
            yield from _claim_table(evidence)


def _claim_table(evidence: Evidence) -> Iterator[str]:
    """A table of the claims of an exhibit that is not a table itself."""
    heads = ("the paper says", "", PRINTED_HEAD, "ours", "")
    rows = [
        (
            claim.statement,
            claim.relation,
            claim.printed,
            claim.computed,
            "" if evidence.is_quick else f"*{claim.verdict}*{': ' if claim.why else ''}{claim.why}",
        )
        for claim in evidence.claims
    ]
    yield from _table(heads, rows)


def counts_of(reproduced: Reproduced) -> tuple[Counter[str], Counter[str]]:
    """How many exhibits have each verdict, and how many statements have each."""
    exhibits = Counter(evidence.verdict for _exhibit, evidence in reproduced)
    statements = Counter[str]()
    for _exhibit, evidence in reproduced:
        statements += evidence.counts()
    return exhibits, statements


def _count_table(reproduced: Reproduced) -> Iterator[str]:
    """A table of how many exhibits and statements have each verdict."""
    exhibits, statements = counts_of(reproduced)
    rows = [(name, exhibits[name], statements[name]) for name in VERDICTS]
    rows.append(("all", exhibits.total(), statements.total()))
    yield from _table(("verdict", "tables and figures", "statements"), rows)


def _correction_table(reproduced: Reproduced, papers: dict[str, str]) -> Iterator[str]:
    """A table of what the papers print wrongly: each counter-example, and what it refutes."""
    yield "\n## Where the papers are wrong\n"
    rows = list[tuple[object, ...]]()
    for exhibit, evidence in reproduced:
        refuted: dict[str, list[PaperClaim]] = {}
        for claim in evidence.claims:
            if claim.verdict == "corrected" and not evidence.is_quick:
                refuted.setdefault(claim.correction, []).append(claim)
        for correction, claims in refuted.items():
            first = claims[0]
            how_many_more = f", and {len(claims) - 1} more" if len(claims) > 1 else ""
            paper = papers[exhibit.paper].partition(":")[0]
            link = f"[{paper}, {exhibit.kind} {exhibit.number}](#{exhibit.id})"
            says, relation = f"{first.statement}{how_many_more}", first.relation
            rows.append((link, says, relation, first.printed, first.computed, correction))
    heads = ("where", "statement", "", PRINTED_HEAD, "ours", "counter-example")
    yield from _table(heads, rows)


def _disagreements(evidence: Evidence) -> Iterator[str]:
    """Yield a line for each reason why statements do not hold, or hold only as they are read.

    A line has the first of the statements with its reason.
    """
    by_reason: dict[tuple[str, str], list[PaperClaim]] = {}
    for claim in evidence.claims:
        if claim.verdict not in ("equal", "agrees") and not evidence.is_quick:
            by_reason.setdefault((claim.verdict, claim.why), []).append(claim)
    for (verdict, why), claims in by_reason.items():
        first = claims[0]
        how_many_more = f" (and {len(claims) - 1} more)" if len(claims) > 1 else ""
        yield f"\n- *{verdict}*: {first.statement}{how_many_more}: {first.values}. {why}\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """A Markdown table."""
    yield "\n| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|\n"
    for row in rows:
        yield "| " + " | ".join(_cell(cell) for cell in row) + " |\n"


def _cell(cell: object) -> str:
    """The text of a cell in Markdown; a dash for None."""
    if cell is None:
        return "–"
    text = value_text(cell) if isinstance(cell, float) else str(cell)
    return text.replace("|", "\\|")
