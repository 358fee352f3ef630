"""`polarfab push` where no device is: what it refuses, dry runs from tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.compilers.audit.device_tables import eos, rendered, write


@pytest.fixture
def build(polarfab, tmp_path: Path) -> Path:
    (tmp_path / "fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 3}\n")
    assert polarfab("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "b")[0] == 0
    return tmp_path / "b"


def test_a_dry_run_from_tables(polarfab, build, tmp_path: Path) -> None:
    assert polarfab("render", build, "--target", "eos", "-o", tmp_path / "out")[0] == 0
    found = rendered("eos", tmp_path / "out" / "3")
    found["main", "10.0.0.1/32"] = [[("192.0.2.7", "Ethernet9", 1)]]
    write(tmp_path / "tables" / "3.json", eos(found))
    words = ("push", build, "--target", "eos", "--from", tmp_path / "tables")
    code, out, _ = polarfab(*words, "--dry-run")
    assert (code, out) == (0, "# 3\nno ip route 10.0.0.1/32 Ethernet9 192.0.2.7\n")
    assert "goes with --dry-run" in polarfab(*words)[2]


def test_what_is_refused(polarfab, build) -> None:
    code, _, err = polarfab("push", build, "--target", "eos")
    assert code == 2
    assert "--target: required one of frr, linux, or --dry-run with" in err
    for option, value in (("--run", "ssh {host}"), ("--etc", "/etc/{0}"), ("--run", "'")):
        code, _, err = polarfab("push", build, "--target", "frr", option, value)
        assert code == 2
        assert f"{option}: required words with {{node}} and {{address}} only" in err
    assert "--node: required" in polarfab("push", build, "--target", "frr", "--node", "x")[2]


def test_switches_that_do_not_answer(polarfab, build) -> None:
    words = ("push", build, "--target", "frr", "--run", "false", "--json", "--batch", "5")
    code, out, _ = polarfab(*words)
    found = json.loads(out)["switches"]
    assert code == 1
    assert [one["state"] for one in found] == ["failed"] * 5 + ["not tried"] * 8
    assert found[0]["error"] == "ip -json -4 rule: exit 1"
    assert "/no/such" in polarfab(*words[:4], "--run", "/no/such")[2]
