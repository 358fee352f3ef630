"""`polarfab check routes` as an engineer meets it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from polarfab.fabric import Fabric
from tests.compilers.audit.device_tables import eos, rendered, write


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a build and the tables of its switches as EOS prints them."""
    folder = tmp_path_factory.mktemp("built")
    fabric = Fabric.from_spec({"name": "lab", "topology": {"family": "polarfly", "q": 3}})
    fabric.save(folder / "build").render("eos", folder / "out")
    for vertex in range(13):
        text = rendered("eos", folder / "out" / str(vertex))
        write(folder / "tables" / f"{vertex}.json", eos(text))
    return folder


@pytest.fixture
def plan(tmp_path: Path, built: Path) -> tuple[Path, Path]:
    """The build, and a copy of the tables."""
    return built / "build", Path(shutil.copytree(built / "tables", tmp_path / "tables"))


def test_as_built(polarfab, plan) -> None:
    build, tables = plan
    code, out, err = polarfab("check", "routes", build, tables)
    assert (code, err) == (0, "")
    assert "routes as held, target eos" in out
    assert polarfab("check", "routes", build, tables, "--json")[0] == 0


def test_a_wrong_next_hop(polarfab, plan) -> None:
    build, tables = plan
    file = tables / "7.json"
    routes = json.loads(file.read_text())
    found = routes["vrfs"]["default"]["routes"]["10.0.0.0/30"]
    found["vias"][0]["interface"] = "Ethernet77"
    (tables / "8.json").unlink()
    file.write_text(json.dumps(routes))
    code, out, err = polarfab("check", "routes", build, tables)
    assert code == 1
    assert "Ethernet77" in out
    assert "1 switch without a file: 8" in err
    code, out, _ = polarfab("check", "routes", build, tables, "--json")
    report = json.loads(out)
    (one,) = report["differences"]
    assert (code, report["next_hop"], report["missing"], report["unread"]) == (1, 1, 0, ["8"])
    assert (one["switch"], one["kind"], one["prefix"]) == ("7", "next hop", "10.0.0.0/30")
    ((wanted,),), ((there,),) = one["wanted"], one["found"]
    assert wanted == {**there, "interface": wanted["interface"]}
    assert there["interface"] == "Ethernet77"


def test_files_of_two_systems(polarfab, plan) -> None:
    build, tables = plan
    (tables / "3.json").write_text('[{"dst": "10.0.0.0/30", "dev": "eth1", "flags": []}]')
    code, out, err = polarfab("check", "routes", build, tables)
    assert (code, out) == (2, "")
    wanted = "required the tables of one system, given eos (0.json) and linux (3.json); compare"
    assert f"{tables}: {wanted}" in err
    assert polarfab("check", "routes", build, tables, "--target", "eos")[0] == 1


def test_a_switch_without_routes_tells_no_system(polarfab, plan) -> None:
    build, tables = plan
    (tables / "0.json").write_text("{}")
    code, out, _ = polarfab("check", "routes", build, tables)
    assert (code, "target eos" in out) == (1, True)
    (tables / "0.json").write_text("\n")
    code, out, err = polarfab("check", "routes", build, tables)
    assert (code, out) == (2, "")
    assert "0.json: required routing tables, given an empty file; collect them again" in err


def test_files_that_are_damaged(polarfab, plan) -> None:
    build, tables = plan
    (tables / "3.json").write_text("{")
    code, out, err = polarfab("check", "routes", build, tables)
    assert (code, out) == (2, "")
    assert f"{tables / '3.json'}:1: required JSON, given" in err
    assert polarfab("check", "routes", build)[0] == 2
    for missing in (tables / "4.txt", tables / "nowhere"):
        wanted = f"{missing}: required a file or folder of routing tables, given no such file"
        assert wanted in polarfab("check", "routes", build, missing)[2]


def test_explain_calls_nodes_and_ports_as_a_system_does(polarfab, tmp_path):
    (tmp_path / "fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 2}\n")
    assert polarfab("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "b", "--quick")[0] == 0
    code, out, err = polarfab("explain", tmp_path / "b", "0", "1", "--target", "eos", "--json")
    assert code == 0, err
    hop = json.loads(out)["hops"][0]
    assert (hop["node"], hop["port"], hop["next_node"]) == ("sw-0", "Ethernet1", "sw-1")
