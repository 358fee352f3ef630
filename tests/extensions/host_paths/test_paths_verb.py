"""`polarfab hosts`: what its verbs print, and what they say of wrong words."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from extensions.host_paths.path_sets import PolarityGraph, path_set
from tests.polarfab.conftest import Run

SPEC = """name: lab
topology: {family: polarfly, q: 3}
planes: 2
addressing: {ipv6: "fd00::/48"}
"""


@pytest.fixture
def build(polarfab: Run, tmp_path: Path) -> Path:
    (tmp_path / "fabric.yaml").write_text(SPEC)
    assert polarfab("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "b")[0] == 0
    return tmp_path / "b"


def test_paths(polarfab: Run, build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = polarfab("hosts", "paths", build, "h0", "p2-7", "--count", 6, "--json")
    found = json.loads(out)
    assert (code, found["source"], found["destination"]) == (0, "h0", "h7")
    assert [path["entropy"] for path in found["paths"]] == list(range(6))
    assert {*found["paths"][0]} >= {"plane", "nodes", "ports", "weight", "sids"}
    code, out, _ = polarfab("hosts", "paths", build, "h0", "h7", "--planes", "2", "--json")
    assert (code, {path["plane"] for path in json.loads(out)["paths"]}) == (0, {2})
    code, out, _ = polarfab(
        "hosts", "paths", build, "h0", "h7", "--count", 6, "--fail", "p1-0-p1-1"
    )
    assert code == 0
    assert "with p1-0-p1-1 down" in out
    assert out.count("new") == 1
    assert "dropped" in out
    code, _, err = polarfab("hosts", "paths", build, 0, 7, "--count", 1000)
    assert (code, "there are no more than" in err) == (0, True)


def test_files_of_paths(polarfab: Run, build: Path, tmp_path: Path) -> None:
    code, out, _ = polarfab(
        "hosts", "paths", build, 0, 7, "--format", "linux", "--set", "decap=switch"
    )
    assert (code, out.count("\n")) == (0, 1 + 2 + 8 + 2)
    code, out, _ = polarfab("hosts", "paths", build, 0, 7, "--format", "frr")
    assert (code, out.count("segments")) == (0, 8)
    code, out, _ = polarfab("hosts", "paths", build, "--format", "fabric", "--planes", 2)
    assert (code, len(json.loads(out)["nodes"])) == (0, 13)
    file = tmp_path / "path_sets.py"
    assert polarfab("hosts", "paths", build, "--format", "library", "-o", file)[0] == 0
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from path_sets import PolarityGraph, path_set\n"
        "print([path.nodes for path in path_set([PolarityGraph(9)] * 2, 5, 70, 4)])\n"
        "assert not {'numpy', 'compilers', 'polarfab'} & set(sys.modules)"
    )  # in a Python without site packages
    command = [sys.executable, "-I", "-S", "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    here = path_set([PolarityGraph(9)] * 2, 5, 70, 4)
    assert done.stdout.strip() == str([path.nodes for path in here])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["0"], "name both ends: polarfab hosts paths BUILD SRC DST"),
        (["0", "1", "--format", "library"], "--format library is for all hosts: name none"),
        (["0", "7", "--planes", "x"], "--planes: required all, or planes such as 1,3, given x"),
        (["--format", "fabric"], "--planes: required one plane from 1 to 2, given 1, 2"),
        (["0", "7", "--set", "decap=x"], "--set decap: required"),
        (["0", "7", "-o", "OUT"], "say which with --format"),
    ],
)
def test_wrong_words(polarfab: Run, build: Path, words: list[str], told: str) -> None:
    code, _, err = polarfab("hosts", "paths", build, *words)
    assert (code, told in err) == (2, True), err


def test_the_library_is_for_whole_polarfly(polarfab: Run, tmp_path: Path) -> None:
    star = "{family: polarstar, q: 3, supernode: inductive-quad, degree: 3}"
    (tmp_path / "fabric.yaml").write_text(f"name: lab\ntopology: {star}\n")
    assert polarfab("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "b")[0] == 0
    code, _, err = polarfab("hosts", "paths", tmp_path / "b", "--format", "library")
    assert (code, "a whole PolarFly in every plane" in err) == (2, True)
    assert "use --json or --format linux, with two hosts" in err  # words that the verb takes


def test_localise(polarfab: Run, build: Path, tmp_path: Path) -> None:
    code, out, err = polarfab("hosts", "localise", build)
    assert (code, "24 probes over 48 links and 26 switches" in out) == (0, True)
    assert "fewer than 24" in err
    assert len(json.loads(polarfab("hosts", "localise", build, "--json")[1])["probes"]) == 24
    rows = list(
        csv.DictReader(io.StringIO(polarfab("hosts", "localise", build, "--format", "csv")[1]))
    )
    report = tmp_path / "report.csv"
    for dead, code in (("p2-4", 1), ("p9-9", 0)):
        lines = [f"{r['probe']},{'lost' if dead in r['nodes'].split() else 'ok'}" for r in rows]
        report.write_text("\n".join(["probe,result", *lines]))
        ended, out, _ = polarfab("hosts", "localise", build, report)
        assert ended == code
        assert out.startswith("p2-4 is down" if code else "no probe was lost")
    report.write_text("probe,result\n0,lost\n")
    code, out, err = polarfab("hosts", "localise", build, report, "--json")
    assert (code, json.loads(out)["found"]) == (1, None)
    assert "the report does not tell of 23 of 24 probes" in err


@pytest.mark.parametrize("target", ["srv6", "sonic"])
def test_every_plane_has_a_block_of_its_own(
    polarfab: Run, build: Path, tmp_path: Path, target: str
) -> None:
    """By which a host's kernel tells where a carrier goes; read back with the same options."""
    out, words = tmp_path / "out", ["--target", target]
    words += ["--set", "srv6=host"] if target == "sonic" else []
    assert polarfab("render", build, *words, "-o", out)[0] == 0
    file = "srv6.batch" if target == "srv6" else "config_db.json"
    for plane in (1, 2):
        text = (out / f"plane-{plane}" / f"p{plane}-0" / file).read_text()
        assert f"fc00:{plane - 1}:1001::" in text
        assert f"fc00:{2 - plane}:" not in text
    options = words[2:]
    assert polarfab("verify", build, "--emitted", out, "--target", target, *options)[0] == 0
    found = json.loads(polarfab("hosts", "paths", build, 0, 7, "--json")[1])["paths"]
    for path in found:
        assert path["sids"][0].startswith(f"fc00:{path['plane'] - 1}:")
