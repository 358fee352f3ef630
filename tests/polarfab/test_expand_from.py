"""`polarfab expand`: what is left to install of planned nodes, and what switches cannot hold."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from tests.polarfab.conftest import Run

EXAMPLE = Path(__file__).parents[2] / "examples" / "q7-copackaged"


def test_the_verbs(polarfab: Run, tmp_path: Path) -> None:
    some, rest = tmp_path / "some", tmp_path / "rest"
    hardware = (EXAMPLE / "inventory.yaml").read_text()
    later = re.sub(r"type: (.*), rack: (C[2-7]),", r"type: \1, state: planned, rack: \2,", hardware)
    (tmp_path / "inventory.yaml").write_text(later)
    (tmp_path / "hardware.yaml").write_text(hardware)
    # Without protection it is proved in a tenth of the time.
    spec = (EXAMPLE / "fabric.yaml").read_text().replace("routing: {protect: module}\n", "")
    (tmp_path / "fabric.yaml").write_text(spec)
    fabric = tmp_path / "whole.yaml"
    fabric.write_text(spec.replace("inventory.yaml", "hardware.yaml"))
    code, out, err = polarfab("compile", tmp_path / "fabric.yaml", "-o", some, "--json")
    assert (code, json.loads(out)["nodes"]) == (0, 15), err
    code, out, _ = polarfab("expand", fabric, "--from", some, "-o", rest, "--json")
    report = json.loads(out)
    assert code == 0
    assert (report["cables_moved"], report["cables_relabelled"]) == (0, 0)
    assert len(report["added"]) == report["cables_added"] == 224 - 17
    assert len(report["nodes_added"]) == 42
    assert len((tmp_path / "rest-added-cables.csv").read_text().splitlines()) == 1 + 207
    assert (rest / "verified.json").is_file()
    code, out, _ = polarfab("expand", rest, "--from", some)
    assert code == 0
    assert "cables moved       0" in out


def test_a_replaced_switch_keeps_its_cables(polarfab: Run, tmp_path: Path) -> None:
    """A larger model in place of s1 would take other ports if nothing were installed."""
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(
        "node_types:\n"
        '  leaf: {ports: [{name: "p{}", count: 4, role: fabric}, {name: "h{}", count: 2}]}\n'
        '  large: {ports: [{name: "q{}", count: 9, role: fabric}, {name: "p{}", count: 9}]}\n'
        "nodes:\n" + "".join(f"  - {{name: s{v}, type: leaf, serial: S{v}}}\n" for v in range(7))
    )
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text(
        "name: hall\ntopology: {family: polarfly, q: 2}\nhosts_per_node: 1\n"
        "inventory: inventory.yaml\n"
    )
    assert polarfab("compile", fabric, "-o", tmp_path / "build", "--quick")[0] == 0
    text = inventory.read_text()
    inventory.write_text(text.replace("s1, type: leaf, serial: S1", "s1, type: large, serial: S91"))
    code, out, _ = polarfab("expand", fabric, "--from", tmp_path / "build", "--json")
    report = json.loads(out)
    assert code == 0
    assert (report["cables_moved"], report["cables_added"], report["nodes_renamed"]) == (0, 0, 0)


def test_new_switches_without_a_management_address_are_named(polarfab: Run, tmp_path: Path) -> None:
    """They got none in silence. A spare of the inventory keeps its own."""
    names = [*(f"n{n}" for n in range(7)), "spare"]
    inventory = {
        "node_types": {"leaf": {"ports": [{"name": "p{}", "count": 8}]}},
        "nodes": [
            {"name": name, "type": "leaf", "management": f"192.0.2.{n}"}
            for n, name in enumerate(names, 1)
        ],
    }
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(inventory))
    spec = {"name": "hall", "topology": {"family": "polarfly", "q": 2}}
    file = tmp_path / "fabric.yaml"
    file.write_text(yaml.safe_dump(spec | {"inventory": "inventory.yaml"}))
    code, out, err = polarfab("expand", file, "--clusters", "fan:1", "--json")
    report = json.loads(out)
    without = report["without_management_address"]
    assert (code, report["spares_taken"]) == (0, ["spare"])
    assert without == [name for name in report["nodes_added"] if name != "spare"]
    said = f"2 new switches without a management address: {', '.join(without)}; give each"
    assert said in " ".join(err.split())
    file.write_text(yaml.safe_dump(spec))
    code, out, err = polarfab("expand", file, "--clusters", "fan:1", "--json")
    assert (code, "management" in out + err) == (0, False)


def test_switches_that_cannot_hold_the_larger_tables_are_told(
    polarfab: Run, tmp_path: Path
) -> None:
    polarfab("init", str(tmp_path / "lab"), "polarfly", "--q", "3")
    spec, inventory = tmp_path / "lab/fabric.yaml", tmp_path / "lab/inventory.yaml"
    text = inventory.read_text()
    small, larger = tmp_path / "small", tmp_path / "larger"
    for rows in (16, 17):  # 13 for the small fabric, 17 for the larger one
        limited = f"  switch:\n    tables: {{lpm_rows: {rows}}}\n"
        inventory.write_text(text.replace("  switch:\n", limited))
        assert polarfab("compile", str(spec), "-o", str(small))[0] == 0
        growth = ("--clusters", "quadric:1", "-o", str(larger))
        for words in ((str(spec), *growth), (str(small), "--spec", str(spec), *growth)):
            code, _, err = polarfab("expand", *words)
            assert code == (2 if rows == 16 else 0), err
            assert larger.exists() == (rows == 17)
            assert ("required at most 16 LPM rows, the lpm_rows of switch" in err) == (rows == 16)
