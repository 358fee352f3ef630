"""Exit codes and messages of what goes wrong around a command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from polarfab.fabric import Fabric
from tests.compilers.signed import sign

POLARFAB = [sys.executable, "-m", "polarfab"]
ROOT = Path(__file__).parents[2]
VERBS = {
    "cables": [],
    "check wiring": ["FACTS"],
    "check routes": ["FACTS"],
    "explain": ["0", "1"],
    "hosts paths": ["0", "1"],
    "hosts localise": [],
    "draw": ["-o", "OUT.svg"],
    "expand": ["--clusters", "quadric:1"],
    "throughput": [],
    "simulate": ["--load", "0.1"],
    "plan": ["--from", "BUILD"],
    "render": ["--target", "ovs", "-o", "OUT", "--unverified"],
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 3}\n")
    Fabric.from_spec(folder / "fabric.yaml").save(folder / "b")
    return folder


@pytest.fixture
def build(compiled: Path, tmp_path: Path) -> Path:
    """A copy of the build, beside its spec."""
    return Path(shutil.copytree(compiled, tmp_path / "copy")) / "b"


def test_a_damaged_array_is_refused_by_every_verb(polarfab, build: Path) -> None:
    file = build / "arrays" / "far_port.npy"
    (build.parent / "facts").mkdir()
    there = np.load(file)
    for wrong in (np.zeros_like(there), None):
        file.unlink()
        if wrong is None:
            file.write_bytes(b"")
        else:
            np.save(file, wrong)
        for verb, more in VERBS.items():
            places = {"BUILD": build, "FACTS": build.parent / "facts", "OUT": build.parent / "out"}
            words = [places.get(word, word) for word in more]
            code, out, err = polarfab(*verb.split(), build, *words)
            assert (code, out) == (2, ""), verb
            assert f"{file}: required the file as it was compiled" in err, verb
            assert "compile the build again" in err, verb
        code, out, err = polarfab("folder", build, "--json")
        assert (code, json.loads(out)["verified"]) == (1, False)


def test_a_name_cannot_leave_the_output_folder(polarfab, build: Path) -> None:
    fabric = json.loads((build / "fabric.json").read_text())
    fabric["nodes"]["names"][3] = "../../x"
    (build / "fabric.json").write_text(json.dumps(fabric))
    sign(build)
    out = build.parent / "deep" / "out"
    code, _, err = polarfab("render", build, "--target", "ovs", "-o", out, "--unverified")
    assert code == 2
    assert "names has ../../x, which is no name" in err
    assert not (build.parent / "x").exists()


@pytest.mark.parametrize("words", ["cables {} --format csv", "verify {}"])
def test_a_closed_pipe_is_no_finding(build: Path, words: str) -> None:
    words = " ".join([*POLARFAB, words.format(build)])
    run = subprocess.run(
        ["bash", "-c", f"{words} | true; exit ${{PIPESTATUS[0]}}"], cwd=ROOT, capture_output=True
    )
    assert (run.returncode, run.stderr) in {(141, b""), (0, b"")}


def test_a_deleted_working_directory_is_no_bug(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = " ".join([*POLARFAB, "compile", "fabric.yaml"])
    run = subprocess.run(
        ["bash", "-c", f"rmdir {gone}; {words}"],
        cwd=gone,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2
    assert len(run.stderr.splitlines()) <= 3
    assert "bug" not in run.stderr


def test_a_name_of_300_letters_is_no_bug(polarfab, build: Path) -> None:
    long = build.parent / ("x" * 300)
    for words in (["verify", long], ["cables", build, "--format", "csv", "-o", long]):
        code, _, err = polarfab(*words)
        assert (code, "bug" in err) == (2, False)
    for output in (long, build.parent / ("x" * 250)):
        code, _, err = polarfab("compile", build.parent / "fabric.yaml", "-o", output)
        assert (code, "too long" in err) == (2, True)


def test_protection_of_modules_that_fails_says_what_to_write(polarfab, tmp_path: Path) -> None:
    """Eleven lines on wrong values came first, of tables that nobody had damaged."""
    fabric_ports = {"name": "oio{module}/{}", "modules": 4, "count": 3, "role": "fabric"}
    host_ports = {"name": "host{}", "count": 1, "role": "host"}
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 4},
        "routing": {"protect": "module"},
        "inventory": "inventory.yaml",
    }
    inventory = {
        "node_types": {"leaf": {"ports": [fabric_ports, host_ports]}},
        "generate": {"type": "leaf"},
        "placement": {"modules": "filled"},
    }
    for name, content in (("fabric", spec), ("inventory", inventory)):
        (tmp_path / f"{name}.yaml").write_text(json.dumps(content))
    code, _, err = polarfab("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "b")
    assert code == 1, err
    assert "protection fails: 31 pairs are lost, kind of failure: 2" in err
    assert "routing: write `protect: node`, which holds" in err
    assert "wrong value" not in err
    code, _, err = polarfab("verify", tmp_path / "b")
    assert code == 1
    assert "wrong value: n0.protection" in err, "here tables may be damaged"
