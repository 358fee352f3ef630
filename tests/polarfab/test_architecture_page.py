"""The architecture page, followed by running a compile and a render."""

import re
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from polarfab.fabric import Fabric

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
STEP = re.compile(r"^\d+\. `([\w.]+)` .* \(`([\w/]+\.py)`\)$", re.MULTILINE)
SPEC = {"name": "lab", "topology": {"family": "polarfly", "q": 2}}
PLUG_INS = ("compilers/families/", "compilers/balances/", "extensions/")
HANDED = {
    "compilers/workers/": "work that is shared among processes",
    "compilers/readers/emitted_check.py": "the reader of a system, which the target hands over",
    "inventory/document_errors.py": "validators that fields of a spec register",
    "templates/": "values that a template prints",
}
"""Who may call upwards, and what."""


@dataclass
class Calls:
    """Calls of functions of this repository."""

    first: dict[tuple[str, str], None] = field(default_factory=dict)
    """The file and the name of each function, in the order of their first calls."""
    pairs: set[tuple[str, str]] = field(default_factory=set)
    """The files of callers and of what they called."""

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Keep a call; a function of `sys.setprofile`."""
        file = ours(frame)
        if event != "call" or not file or frame.f_code.co_name == "<module>":
            return
        self.first.setdefault((file, frame.f_code.co_qualname))
        caller = frame.f_back
        while caller and not ours(caller):
            caller = caller.f_back
        if caller and caller.f_code.co_name != "<module>":
            self.pairs.add((ours(caller), file))


def ours(frame: FrameType) -> str:
    """The file of a frame below the root; "" for those of tests and of others."""
    name = frame.f_code.co_filename
    inside = name.startswith(f"{ROOT}/") and "/.venv/" not in name and "/tests/" not in name
    return name.removeprefix(f"{ROOT}/") if inside else ""


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    """The calls of a compile and a render."""
    folder, calls = tmp_path_factory.mktemp("way"), Calls()
    sys.setprofile(calls.note)
    try:
        fabric = Fabric.from_spec(SPEC).compile().save(folder / "build")
        fabric.render("linux", folder / "files")
    finally:
        sys.setprofile(None)
    return calls


def test_functions_are_called_in_the_order_of_the_page(calls: Calls) -> None:
    section = PAGE.read_text().split("## From a spec to the files of a switch")[1]
    listed = [(file, name) for name, file in STEP.findall(section.split("\n## ")[0])]
    assert len(listed) == 12
    assert [function for function in calls.first if function in listed] == listed


def layers(contracts: list[dict[str, Any]]) -> dict[tuple[str, ...], int]:
    """The height of each folder by its path, among those beside it."""
    return {
        (*container.split("."), name.strip()) if container else (name.strip(),): -height
        for contract in contracts
        if contract["type"] == "layers"
        for container in contract.get("containers", [""])
        for height, layer in enumerate(contract["layers"])
        for name in layer.split("|")
    }


def test_calls_go_down_but_for_plug_ins_and_what_is_handed_over(calls: Calls) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    height = layers(project["tool"]["importlinter"]["contracts"])

    def upwards(caller: str, callee: str) -> bool:
        one, other = (Path(file).with_suffix("").parts for file in (caller, callee))
        apart = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
        here, there = one[: apart + 1], other[: apart + 1]
        return here in height and there in height and height[here] < height[there]

    assert upwards("compilers/spec/fabric_file.py", "compilers/wiring/addressing.py")
    wrong = {
        (caller, callee)
        for caller, callee in calls.pairs
        if upwards(caller, callee)
        and not callee.startswith(PLUG_INS)
        and not caller.startswith(tuple(HANDED))
    }
    assert not wrong


def test_modules_that_follow_packets_ask_what_the_page_says() -> None:
    rows = re.findall(r"^\| `(\w+)\.py` \| [^|]+ \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 6
    for module, asks in rows:
        text = (ROOT / f"compilers/forwarding/{module}.py").read_text()
        tables = re.findall(
            r"^from compilers.forwarding.(tabulation|state_hops) ", text, re.MULTILINE
        )
        assert tables == re.findall(r"the table of `(\w+)\.py`", asks), module
        functions_of_the_rule = re.search(r"\b(next_links|transit)\(", text)
        assert bool(functions_of_the_rule) == ("the rule" in asks), module
