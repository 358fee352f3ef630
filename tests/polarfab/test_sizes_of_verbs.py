"""Each verb refuses what memory cannot hold: at once, in one message, without a file."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from tests.memory_limits import memory_left
from tests.polarfab.conftest import Run

GRAPHS = {
    "oft q=509": ["analyse", "oft", "--q", "509"],
    "picture of pn": ["draw", "pn", "--q", "509", "-o", "x.svg"],
    "graph q=1021": ["export", "polarfly", "--q", "1021", "--format", "graphml"],
    "dragonfly": ["export", "dragonfly", "h=1000000000000000"],
    "init": ["init", "lab", "pn", "--q", "1021"],
}
VERBS = {
    "check spec": ["check", "spec", "fabric.yaml"],
    "compile": ["compile", "fabric.yaml", "-o", "out"],
    "draw": ["draw", "fabric.yaml", "-o", "out.svg"],
}


@pytest.fixture
def at_once(polarfab: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a verb with 2 GB of memory, within 2 s; what it says is one message."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str, str]:
        start = process_time()
        with memory_left(2 * 10**9):
            code, out, err = polarfab(*words)
        assert process_time() - start < 2
        assert (code, out) == (2, ""), err
        assert err.startswith("error: ")
        assert len(err.splitlines()) == 1
        return code, out, err

    return run


@pytest.mark.parametrize("what", GRAPHS)
def test_graphs_that_are_too_large(at_once: Run, what: str) -> None:
    _, _, err = at_once(*GRAPHS[what])
    assert "required" in err
    assert not list(Path().iterdir())


@pytest.mark.parametrize("verb", VERBS)
def test_fabrics_that_are_too_large(at_once: Run, verb: str) -> None:
    Path("fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 1021}\n")
    _, _, err = at_once(*VERBS[verb])
    assert "a fabric that fits into memory" in err
    assert "take a smaller fabric: q fits up to" in err
    assert {path.name for path in Path().iterdir()} == {"fabric.yaml"}
