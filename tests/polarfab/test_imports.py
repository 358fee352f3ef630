"""What a command imports: every module that it has no use for costs each run its time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SMALL = "name: lab\ntopology: {family: polarfly, q: 3}\n"
CODE = """
import sys
from polarfab.__main__ import main
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
print("modules:", *sys.modules)
from inventory.model import Inventory
print(Inventory.__pydantic_complete__)
"""
HEAVY = {
    *("click", "galois", "jinja2", "matplotlib", "multiprocessing", "networkx", "numpy"),
    *("numpy.ma", "numpy.random", "pydantic", "rich", "scipy", "yaml"),
    *("compilers.targets.rendering.renderer", "compilers.readers", "compilers.drawing"),
    *("controller.settings", "controller.switches", "controller.management"),
    "importlib.metadata",
}
"""What may be imported where it is wanted only; none of it by chance."""


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("--help", {"click", "importlib.metadata"}),
        ("folder fabric.yaml --clean", {"click"}),
        ("compile fabric.yaml", {"click", "importlib.metadata", "numpy", "pydantic", "yaml"}),
        ("export polarfly --q 3", {"click", "importlib.metadata", "numpy"}),
    ],
)
def test_a_command_imports_what_it_uses(words: str, wanted: set[str], tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").write_text(SMALL)
    ran = subprocess.run(
        [sys.executable, "-c", CODE, *words.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""},
    )
    *_, modules, complete = ran.stdout.splitlines()
    assert set(modules.split()) & HEAVY == wanted
    assert complete == "False", "no inventory is read, so its model needs no validator"
