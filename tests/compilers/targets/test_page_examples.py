"""The files that the pages of docs/targets show are what comes out of the fabrics there."""

from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.target_lookup import target
from tests.polarfab.pages import ROOT, blocks

PAGES = {page.stem: page for page in (ROOT / "docs" / "targets").glob("*.md")}


def shown(page: Path) -> list[tuple[str, str, str]]:
    """Spec, mark and text of each block `text TARGET [OPTION=VALUE …] FILE`; the spec is above."""
    found, spec = [], ""
    for block in blocks(page):
        if block.language == "yaml" and block.text.startswith("name: "):
            spec = block.text
        elif block.language == "text" and block.mark:
            found.append((spec, block.mark, block.text))
    return found


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if shown(page)])
def test_the_files_of_a_page_are_what_comes_out(name: str, tmp_path: Path) -> None:
    builds, folders = {}, {}
    for spec, mark, text in shown(PAGES[name]):
        system, *options, path = mark.split()
        if spec not in builds:
            (tmp_path / "fabric.yaml").write_text(spec)
            builds[spec] = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
        made = (spec, system, *options)
        if made not in folders:
            folders[made] = tmp_path / str(len(folders))
            chosen = dict(option.split("=", 1) for option in options)
            target(system).render(builds[spec], folders[made], options=chosen)
        assert text in (folders[made] / path).read_text(), mark
