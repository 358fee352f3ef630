"""Each verb refuses what memory cannot hold from formulas: at once, in one message."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from compilers import estimates
from compilers.memory import GB
from tests.polarfab.conftest import Run

FABRICS = {
    "dragonfly": "family: dragonfly, h: 1000000000000000",
    "slimfly": "family: slimfly, q: 1000000000000000003",
    "jellyfish": "family: jellyfish, nodes: 1000000000, degree: 4",
    "hyperx": "family: hyperx, sides: 99999999999999999999",
    "pn": "family: pn, q: 509",
    "oft": "family: oft, q: 509",
    "polarfly": "family: polarfly, q: 1021",
    "demi-pn": "family: demi-pn, q: 1000000007",
    "polarstar": "family: polarstar, q: 1000000007, supernode: paley, degree: 6",
    "fat-tree": "family: fat-tree, k: 1000000000000000",
    "megafly": "family: megafly, h: 1000000000000000, a: 4",
    "mlfm": "family: mlfm, n: 1000000000000000",
    "bundlefly": "family: bundlefly, q: 1000000007, degree: 6",
    "spectralfly": "family: spectralfly, p: 13, q: 1000000009",
    "dring": "family: dring, groups: 1000000000000000, a: 4",
    "rng": "family: rng, nodes: 1024000000, degree: 4",
}
LARGE = {
    "oft q=509": ["analyse", "oft", "--q", "509"],
    "pn q=509": ["analyse", "pn", "--q", "509"],
    "bisection": ["analyse", "oft", "--q", "509", "--what", "bisection"],
    "bisection of pn": ["analyse", "pn", "--q", "509", "--what", "bisection"],
    "picture of pn": ["draw", "pn", "--q", "509", "-o", "x.svg"],
    "graph q=1021": ["export", "polarfly", "--q", "1021", "--format", "graphml"],
    "graph of oft": ["export", "oft", "--q", "1021"],
    "dragonfly": ["export", "dragonfly", "h=1000000000000000"],
    "slimfly": ["analyse", "slimfly", "q=1000000000000000003"],
    "jellyfish": ["analyse", "jellyfish", "nodes=1000000000", "degree=4"],
    "hyperx": ["export", "hyperx", "sides=99999999999999999999"],
}


@pytest.fixture
def at_once(polarfab: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a verb with 16 GB of memory, within 2 s; what it says is one message."""
    monkeypatch.setattr(estimates, "available", lambda: 16 * GB)
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str, str]:
        start = process_time()
        code, out, err = polarfab(*words)
        assert process_time() - start < 2
        assert (code, out) == (2, ""), err
        assert err.startswith("error: ")
        assert len(err.splitlines()) == 1
        return code, out, err

    return run


@pytest.mark.parametrize("what", LARGE)
def test_graphs_that_are_too_large(
    at_once: Run, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what.startswith("graph"):
        monkeypatch.setattr(estimates, "available", lambda: 2 * GB)
    _, _, err = at_once(*LARGE[what])
    assert "required" in err


VERBS = {
    **{verb: [verb, "fabric.yaml"] for verb in ("analyse", "export")},
    "check spec": ["check", "spec", "fabric.yaml"],
    "compile": ["compile", "fabric.yaml", "-o", "out"],
    "draw": ["draw", "fabric.yaml", "-o", "out.svg"],
    "inventory export": ["inventory", "export", "fabric.yaml"],
    "expand": ["expand", "fabric.yaml", "--from", "small"],
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("family", FABRICS)
def test_fabrics_that_are_too_large(
    at_once: Run, verb: str, family: str, polarfab: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    if verb in ("export", "inventory export"):  # the graph of a pn q=509 takes 3 GB
        monkeypatch.setattr(estimates, "available", lambda: 2 * GB)
    if verb == "expand":
        Path("small.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 2}\n")
        assert polarfab("compile", "small.yaml", "-o", "small")[0] == 0
    Path("fabric.yaml").write_text(f"name: lab\ntopology: {{{FABRICS[family]}}}\n")
    at_once(*VERBS[verb])
    assert not [path.name for path in Path().iterdir() if path.name not in {"fabric.yaml", *MADE}]


MADE = ("small.yaml", "small")


@pytest.mark.parametrize("family", ["polarfly", "pn", "oft"])
def test_what_init_would_begin_is_not_too_large(
    at_once: Run, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "available", lambda: 2 * GB)
    _, _, err = at_once("init", "lab", family, "--q", "1021")
    assert "given 2.0 GB available; write edges" in err
    assert "here q fits up to" in err
