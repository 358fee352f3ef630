"""The architecture page: the way of a spec to files, followed by running it."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from polarfab.fabric import Fabric

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
STEP = re.compile(r"^\d+\. `([\w.]+)` .* \(`([\w/]+\.py)`\)$", re.MULTILINE)
SPEC = {"name": "lab", "topology": {"family": "polarfly", "q": 2}}


def steps() -> list[tuple[str, str]]:
    """The file and the function of each step, as the page names them."""
    section = PAGE.read_text().split("## From a spec to the files of a switch")[1]
    return [(file, name) for name, file in STEP.findall(section.split("\n## ")[0])]


def calls_in(work: Callable[[], object], wanted: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of the functions that are called, in the order of their first calls."""
    first = dict[tuple[str, str], None]()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            function = code.co_filename.removeprefix(f"{ROOT}/"), code.co_qualname
            if function in wanted:
                first.setdefault(function)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return list(first)


def test_a_compile_and_a_render_call_the_functions_of_the_page_in_its_order(tmp_path: Path) -> None:
    listed = steps()
    assert len(listed) == 12

    def compile_and_render() -> None:
        fabric = Fabric.from_spec(SPEC).compile().save(tmp_path / "build")
        fabric.render("linux", tmp_path / "files")

    assert calls_in(compile_and_render, set(listed)) == listed


def test_modules_that_follow_packets_ask_what_the_page_says() -> None:
    rows = re.findall(r"^\| `(\w+)\.py` \| [^|]+ \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 4
    for module, asks in rows:
        text = (ROOT / f"compilers/forwarding/{module}.py").read_text()
        assert ("forwarding.tabulation import" in text) == ("the table" in asks), module
        assert ("next_links(" in text) == ("the rule" in asks), module
