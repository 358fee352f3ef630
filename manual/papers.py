"""The page of the papers' tables and figures, with their pictures, made while the site is built."""

from __future__ import annotations

from collections.abc import Iterator

from extensions.papers.catalogue import PAPERS, exhibits, reproduce
from extensions.papers.exhibit_files import page, pictures

HEAD = """# The papers, reproduced

Numbered tables and figures of the papers, as `polarfab reproduce --all --quick` computes and
draws them. Each value is held against the printed one, and the verdict follows from the values;
what is simulated is of small sizes here, and no verdict. Captions are shortened. See
[how to reproduce them](../how-to/reproduce.md), larger sizes too.

*Made from the code when the site is built.*

"""
FOLDER = "reference/papers/"


def papers() -> Iterator[tuple[str, str]]:
    """Place and text of the page and of its pictures."""
    found = list(reproduce(exhibits(), quick=True))
    yield "reference/papers.md", HEAD + "".join(page(found, PAPERS, "papers/"))
    for each, evidence in found:
        for name, picture in pictures(each, evidence):
            yield FOLDER + name, picture
