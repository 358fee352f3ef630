"""MkDocs hooks: the page of papers, pages from outside of docs/, and marks of blocks."""

from __future__ import annotations

import re
from os.path import normpath, relpath
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

from manual.papers import papers

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples/index.md",
    **{
        page.relative_to(ROOT).as_posix(): f"examples/{page.parent.name}.md"
        for page in sorted(ROOT.glob("examples/*/README.md"))
    },
}
"""Where pages from outside of docs/ are in the site."""
FILE_OF_PAGE = {place: file for file, place in OUTSIDE.items()}
"""The file of each of these pages."""
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")
"""The target of a link to another page of the repository, such as `../examples/README.md`."""
ONLINE_WORKER = "https://unpkg.com/iframe-worker/shim"
"""What the theme loads for searches from disk; docs/search-worker.js takes its place."""
MARKED = re.compile(r"^( *)```(\w+) (.+)$", re.M)
"""The first line of a block that has a mark, such as "```console exits 2"."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    pages = {place: (ROOT / file).read_text() for file, place in OUTSIDE.items()}
    pages |= dict(papers())
    for place, text in pages.items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Links as the site has them, and what a block is as its title."""
    place = page.file.src_uri
    home = PurePosixPath(FILE_OF_PAGE.get(place, f"docs/{place}")).parent

    def linked(match: re.Match[str]) -> str:
        """The link from one page of the site to another."""
        target = normpath(home / match[1])
        target = OUTSIDE.get(target, target.removeprefix("docs/"))
        return relpath(target, PurePosixPath(place).parent)

    return MARKED.sub(titled, LINK.sub(linked, markdown))


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Nothing from the network: the search of a manual on disk is the manual's own."""
    return with_own_worker(output, get_relative_url("search-worker.js", page.url))


def on_post_template(output: str, *, template_name: str, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Let pages outside the navigation load the manual's own search, too."""
    return with_own_worker(output, "search-worker.js")


def with_own_worker(html: str, place: str) -> str:
    """A page that loads the manual's own script for searches from disk."""
    return html.replace(ONLINE_WORKER, place)


def titled(block: re.Match[str]) -> str:
    """The first line of a block whose mark is shown above it."""
    indent, language, mark = block.groups()
    if mark == "live":
        return f"{indent}```{language}"
    title = re.sub(r"^exits ", "exit code ", re.sub(r"^not run: ", "shown only: ", mark))
    return f'{indent}```{language} title="{title}"'
