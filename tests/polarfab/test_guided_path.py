"""From nothing to a build: init, design --write, validate, and what each says comes next."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from polarfab.output.next_steps import NEXT_STEPS, next_lines
from polarfab.verb_list import verb
from tests.polarfab.conftest import Run

FAMILIES = [
    ("polarfly", "--q", 4, "--hosts-per-node", 3),
    ("polarstar", "--q", 3, "--supernode", "complete", "--degree", 2),
    ("jellyfish", "nodes=12", "degree=3"),
]


@pytest.mark.parametrize("words", FAMILIES)
def test_init_writes_two_files_that_fit(polarfab: Run, tmp_path: Path, words: tuple) -> None:
    code, out, err = polarfab("init", tmp_path / "lab", *words)
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        f"written: {tmp_path}/lab/{name}" for name in ("fabric.yaml", "inventory.yaml")
    ]
    code, out, err = polarfab("check", "spec", tmp_path / "lab" / "fabric.yaml", "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert facts["problems"] == 0
    racks = yaml.safe_load((tmp_path / "lab" / "inventory.yaml").read_text())["racks"]
    assert len(racks) > facts["racks"], "a free rack to grow into"
    assert facts["fabric"] == "lab"


def test_what_init_wrote_grows_renders_and_rehearses(polarfab: Run, tmp_path: Path) -> None:
    assert polarfab("init", tmp_path, "polarfly", "--q", 3, "--name", "lab")[0] == 0
    build, larger = tmp_path / "build", tmp_path / "larger"
    assert polarfab("compile", tmp_path / "fabric.yaml", "-o", build)[0] == 0
    code, out, _ = polarfab("expand", build, "--clusters", "quadric:1", "-o", larger, "--json")
    assert (code, json.loads(out)["racks_filled"]) == (0, ["A1"])
    for target in ("eos", "sonic", "frr"):
        assert polarfab("render", larger, "--target", target, "-o", tmp_path / target)[0] == 0
    assert polarfab("rehearse", larger, "--from", build, "--engine", "model")[0] == 0


def test_init_keeps_what_is_there(polarfab: Run, tmp_path: Path) -> None:
    (tmp_path / "inventory.yaml").write_text("mine")
    code, _, err = polarfab("init", tmp_path, "polarfly", "--q", 3)
    assert (code, err.count("\n")) == (2, 1)
    assert "inventory.yaml: required a new file, given one that is there" in err
    assert (tmp_path / "inventory.yaml").read_text() == "mine"
    assert not (tmp_path / "fabric.yaml").exists()


def test_init_asks_at_a_terminal_and_says_what_comes_next(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    env = os.environ | {"NO_COLOR": "1"}
    words = [sys.executable, "-m", "polarfab", "init", "lab"]
    with subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, env=env
    ) as run:
        os.close(theirs)
        os.write(ours, b"\n3\n2\n")
        seen = b""
        while part := _read(ours):
            seen += part
    os.close(ours)
    assert run.returncode == 0
    spec = yaml.safe_load((tmp_path / "lab" / "fabric.yaml").read_text())
    assert (spec["topology"], spec["hosts_per_node"]) == ({"family": "polarfly", "q": 3}, 2)
    assert b"next: polarfab compile lab/fabric.yaml" in seen


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""


@pytest.mark.parametrize(
    ("words", "traffic", "routing"),
    [
        (("polarfly", "--q", 3), "uniform", "balance: minimal"),
        (("polarfly", "--q", 3), "any", "balance: valiant"),
        (("pn", "--q", 2), "any", "balance: valiant"),
        (("oft", "--q", 2), "uniform", "balance: ecmp"),
        (("oft", "--q", 2), "any", "balance: spread"),
        (("fat-tree", "k=4"), "any", "balance: ecmp, transit: ecmp"),
        (("oft", "--q", 2), "measured", "demand: traffic.csv"),
    ],
)
def test_init_takes_the_balance_that_fits_the_traffic(
    polarfab: Run, tmp_path: Path, words: tuple, traffic: str, routing: str
) -> None:
    code, _, err = polarfab("init", tmp_path / "lab", *words, "--traffic", traffic)
    assert code == 0
    text = (tmp_path / "lab" / "fabric.yaml").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("routing: ")]
    assert routing in line
    assert "Its price: " in text
    if traffic == "measured":
        assert "to do: " in err
        (tmp_path / "lab" / "traffic.csv").write_text("0,1,10\n1,2,5\n")
    assert polarfab("compile", tmp_path / "lab" / "fabric.yaml", "-o", tmp_path / "build")[0] == 0


def test_design_writes_a_fabric(
    polarfab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folder = tmp_path / "lab"
    words = ("design", "--radix", 8, "--family", "polarfly", "--write", folder)
    code, _, err = polarfab(*words)
    written = [f"written: {folder}/{name}" for name in ("fabric.yaml", "inventory.yaml")]
    assert (code, err.splitlines()) == (0, [*written, "polarfly q=7 with 4 hosts per node"])
    assert polarfab("check", "spec", folder / "fabric.yaml")[0] == 0
    assert polarfab(*words)[0] == 2, "never over a file"
    code, _, err = polarfab(
        "design", "--radix", 9, "--baselines", "--family", "slimfly", "--write", tmp_path / "x"
    )
    assert (code, "--write: required one of polarfly, demi-pn, polarstar, pn, oft" in err) == (
        2,
        True,
    )


def test_validate_tells_of_switches_that_nothing_needs_and_folds_those_short_alike(
    polarfab: Run, tmp_path: Path
) -> None:
    spec = tmp_path / "fabric.yaml"
    spec.write_text("name: two\ntopology: {family: polarfly, q: 2}\ninventory: inventory.yaml\n")
    nodes = ", ".join(f"{{name: s{i}, type: leaf}}" for i in range(8))
    hardware = "node_types: {{leaf: {{ports: [{{count: {0}}}]}}}}\nnodes: [{1}]\n"
    (tmp_path / "inventory.yaml").write_text(hardware.format(8, nodes))
    assert json.loads(polarfab("check", "spec", spec, "--json")[1])["spares"] == ["s7"]
    (tmp_path / "inventory.yaml").write_text(hardware.format(2, nodes))
    code, _, err = polarfab("check", "spec", spec)
    assert (code, err.count("\n")) == (2, 2), "one a shortage, not one a switch"
    assert "and 3 more" in err


def test_next_lines_name_verbs_that_there_are() -> None:
    given = {"folder": "a b", "output": "o", "fabric_file": "f.yaml", "old": "1", "place": "p"}
    lines = [line for name in NEXT_STEPS for line in next_lines(name, given)]
    assert len(lines) > 8
    for words in [*map(str.split, NEXT_STEPS), *(line.split()[1:] for line in lines)]:
        command = verb(words[0])
        assert not isinstance(command, click.Group) or words[1] in command.commands
    assert "polarfab cables o" in lines
    assert "polarfab verify 'a b'" in lines
    assert next_lines("expand", {"folder": "s"}) == [], "nothing was written"


def test_racks_of_the_inventory(polarfab: Run, tmp_path: Path) -> None:
    assert polarfab("init", tmp_path, "polarfly", "--q", 7, "--name", "lab")[0] == 0
    assert (
        polarfab("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "build", "--quick")[0] == 0
    )
    for words, seen in (
        (("--mark", "A2"), ("3 racks · 84 links leaving A2", "inside a rack", ">B1<")),
        (("--layout", "racks"), ("3 racks<", "between racks")),
        (("--mark", "A1,A2"), ("84 links between A1 and A2",)),
        (("--mark", "fan3"), ("8 clusters (fans) · ", "links leaving fan3", "inside a cluster")),
    ):
        assert polarfab("draw", tmp_path / "build", *words, "-o", tmp_path / "x.svg")[0] == 0
        text = (tmp_path / "x.svg").read_text()
        assert [part for part in seen if part not in text] == []
    code, _, err = polarfab("draw", tmp_path / "build", "--mark", "A9", "-o", tmp_path / "x.svg")
    assert code == 2
    assert "required a cluster: quadrics … fan7, or 0..7; or a rack: A1, A2, B1, given A9" in err
    code, _, err = polarfab(
        "draw", tmp_path / "build", "--mark", "fan3,A2", "-o", tmp_path / "x.svg"
    )
    assert code == 2
    assert "given A2; racks are marked in the layout racks, without a cluster" in err
    code, _, err = polarfab(
        "draw", "polarfly", "--q", 3, "--layout", "racks", "-o", tmp_path / "x.svg"
    )
    assert (code, "layout: required a fabric in racks" in err) == (2, True)
