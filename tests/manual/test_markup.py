"""Pages are Markdown to the site as they are on GitHub: lists and tables end up as such."""

from __future__ import annotations

import re

import yaml
from markdown import Markdown

from manual.hooks import MARKED, OUTSIDE, titled
from tests.polarfab.pages import ROOT

FILES = sorted({*(ROOT / "docs").rglob("*.md"), *(ROOT / file for file in OUTSIDE)})
LEFT = re.compile(r"^\s*(?:[-*] |\d+\. |\||```).*", re.M)
"""A line of a paragraph that was to be an item, a row or a fence."""


def reader() -> Markdown:
    """Markdown as mkdocs.yml has it."""
    text = (ROOT / "mkdocs.yml").read_text().partition("\nmarkdown_extensions:")[2]
    entries = yaml.safe_load(text.partition("\nvalidation:")[0])
    settings = {k: v for entry in entries if isinstance(entry, dict) for k, v in entry.items()}
    names = [next(iter(e)) if isinstance(e, dict) else e for e in entries]
    return Markdown(extensions=["tables", *names], extension_configs=settings)


def test_no_item_row_or_fence_is_left_in_a_paragraph() -> None:
    markdown = reader()
    left = [
        f"{file.relative_to(ROOT)}: {line}"
        for file in FILES
        for paragraph in re.findall(
            r"<p>(.*?)</p>", markdown.reset().convert(MARKED.sub(titled, file.read_text())), re.S
        )
        for line in LEFT.findall(paragraph)
    ]
    assert left == []
