"""NetBox and cable lists have the ports of the build that runs, and an import has its hosts."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from compilers.cabling.installed_numbers import numbers_in
from compilers.spec.allocations_file import text_of
from compilers.tables.build import Build
from polarfab.cabling import lost_links
from polarfab.fabric import Fabric
from tests.polarfab.conftest import Run

SPEC = {
    "name": "hall",
    "topology": {"family": "polarfly", "q": 3},
    "hosts_per_node": 3,
    "inventory": "inventory.yaml",
    "allocations": "numbers.csv",
}
HOSTS = [f"gpu{i},n{i % 5}" for i in range(9)]
SYSTEMS = "frr", "eos"


def files(folder: Path, hosts: list[str], racks: int) -> Path:
    """The fabric.yaml of a hall with a file of hosts; racks change which ports a new plan takes."""
    inventory = {
        "node_types": {
            "leaf": {
                "ports": [{"name": "eth{}", "count": 9}],
                "names": {"eos": "Ethernet{port}"},
            }
        },
        "nodes": [
            {"name": f"n{i}", "type": "leaf", "asn": 65100 + i, "system": SYSTEMS[i % 2]}
            for i in range(13)
        ],
        "racks": [{"name": f"R{r}", "units": 20 // racks + 2} for r in range(racks)],
        "hosts": "hosts.csv",
    }
    (folder / "hosts.csv").write_text("\n".join(["name,switch", *hosts]) + "\n")
    (folder / "inventory.yaml").write_text(yaml.safe_dump(inventory))
    (folder / "fabric.yaml").write_text(yaml.safe_dump(SPEC))
    return folder / "fabric.yaml"


def places(build: Build) -> dict[str, tuple[str, str, str, str]]:
    """Switch, port and addresses of each host."""
    w, a, width = build.wiring, build.addressing, build.wiring.host_port.shape[1]
    return {
        w.host_names[v * width + h]: (
            w.names[v],
            w.port_name(v, int(w.host_port[v, h])),
            a.mac(v, h),
            str(a.host(v, h)),
        )
        for v, h in np.argwhere(w.host_port > 0).tolist()
    }


def rows(text: str) -> list[tuple[str, ...]]:
    """The lines of a CSV of cables, sorted."""
    return sorted(tuple(row) for row in csv.reader(text.splitlines()))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a spec, and a build that a new plan of the spec would not give."""
    folder = tmp_path_factory.mktemp("site")
    first = Fabric.from_spec(files(folder, HOSTS, 1)).compile()
    spec = files(folder, [line for line in HOSTS[::-1] if not line.startswith("gpu1,")], 3)
    first.save(folder / "first", prove=False)
    later = Fabric.from_spec(spec).compile(Fabric.load(folder / "first"))
    later.save(folder / "runs", prove=False)
    return folder


def test_export_and_cables_have_the_ports_of_the_build(
    polarfab: Run, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    right = rows(polarfab("cables", site / "runs", "--format", "netbox")[1])
    code, _, err = polarfab("inventory", "export", site / "fabric.yaml", "-o", "anew")
    assert (code, "planned without a build" in err) == (0, True)
    assert rows(Path("anew/cables.csv").read_text()) != right
    code, out, err = polarfab("cables", site / "fabric.yaml", "--format", "netbox")
    assert (code, "planned without a build" in err) == (0, True)
    assert rows(out) != right

    words = ("inventory", "export", site / "fabric.yaml", "--from", site / "runs", "-o", "kept")
    code, _, err = polarfab(*words)
    assert (code, f"are those of {site / 'runs'}" in err) == (0, True)
    assert rows(Path("kept/cables.csv").read_text()) == right

    Path("build").symlink_to(site / "runs")
    code, out, err = polarfab("cables", site / "fabric.yaml", "--format", "netbox")
    assert (code, "are those of build" in err, rows(out)) == (0, True, right)
    code, _, err = polarfab("inventory", "export", site / "runs")
    assert (code, f"--from {site / 'runs'}" in err) == (2, True)


def test_a_fabric_that_keeps_a_build_is_compiled_with_it(site: Path) -> None:
    """Its ports were planned anew."""
    runs = Fabric.load(site / "runs")
    kept = Fabric.from_spec(site / "fabric.yaml").keeping(runs)
    assert places(kept.build) == places(runs.build)
    assert np.array_equal(kept.build.wiring.port, runs.build.wiring.port)
    anew = kept.compile(ports_stay=False).build
    assert anew.allocations == runs.build.allocations
    assert not np.array_equal(anew.wiring.port, runs.build.wiring.port)


def test_numbers_of_a_file_without_its_build_are_kept_and_the_ports_named_new(
    polarfab: Run, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both verbs and `compile` say that ports may differ from those that run."""
    monkeypatch.chdir(tmp_path)
    for name in ("fabric.yaml", "inventory.yaml", "hosts.csv"):
        Path(name).write_text((site / name).read_text())
    build = Fabric.load(site / "runs").build
    Path("numbers.csv").write_text((site / "runs" / "allocations.csv").read_text())
    for words in (
        ("inventory", "export", "fabric.yaml"),
        ("cables", "fabric.yaml"),
        ("compile", "fabric.yaml", "--no-verify", "-o", "other"),
    ):
        code, _, err = polarfab(*words)
        assert (code, "may differ from those that run" in err) == (0, True), words
        assert "BUILD" in err, words
    assert Fabric.load("other").build.wiring.names == build.wiring.names


def test_names_and_lost_links_follow_the_vertices_of_a_file(polarfab: Run, tmp_path: Path) -> None:
    """They were those of a plan without the file."""
    spec = files(tmp_path, HOSTS, 1)
    inventory = yaml.safe_load((tmp_path / "inventory.yaml").read_text())
    inventory["dead_links"] = [{"a": "n0", "b": "n1"}]
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(inventory))
    before = Fabric.from_spec(spec).compile().build
    numbers = "".join(text_of([(0, numbers_in(before))]))
    for name, vertex in (("n0", 1), ("n1", 0)):
        numbers = numbers.replace(f",vertex,{name},{1 - vertex},", f",vertex,{name},{vertex},")
    (tmp_path / "numbers.csv").write_text(numbers)
    fabric = Fabric.from_spec(spec)
    build = fabric.compile().build
    assert build.wiring.names[:2] == ("n1", "n0")
    code, out, _ = polarfab("export", spec, "--json")
    names = [vertex["name"] for vertex in json.loads(out)["vertices"]]
    assert (code, names) == (0, list(build.wiring.names))
    planned, compiled = lost_links(fabric), lost_links(fabric.compile())
    assert planned[0].links == compiled[0].links


def test_dead_links_that_are_none_are_refused(polarfab: Run, tmp_path: Path) -> None:
    """They were left out of the export without a word, which `compile` and `cables` refused."""
    spec = files(tmp_path, HOSTS, 1)
    inventory = yaml.safe_load((tmp_path / "inventory.yaml").read_text())
    inventory["dead_links"] = [{"a": "n0", "b": "n2"}]
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(inventory))
    for words in (), ("--target", "eos"):
        code, _, err = polarfab("inventory", "export", spec, "-o", tmp_path / "netbox", *words)
        assert (code, "n0 and n2, which are not joined" in err) == (2, True), words
    assert not (tmp_path / "netbox").exists()


def test_an_import_has_the_hosts_systems_and_numbers_of_the_build(
    polarfab: Run, site: Path, tmp_path: Path
) -> None:
    netbox, runs = tmp_path / "netbox", site / "runs"
    words = ("inventory", "export", site / "fabric.yaml", "--from", runs, "-o", netbox)
    assert polarfab(*words)[0] == 0
    code, _, err = polarfab("inventory", "import", netbox, "-o", tmp_path / "inventory.yaml")
    assert code == 0
    assert "inventory.yaml: 1 node type, " in err
    spec = {key: value for key, value in SPEC.items() if key != "allocations"}
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(spec))
    fabric, build = Fabric.from_spec(tmp_path / "fabric.yaml"), Fabric.load(runs).build
    again = fabric.compile(Fabric.load(runs)).build
    assert places(again) == places(build)
    assert (again.systems, again.base) == (build.systems, build.base)
    alone = places(fabric.compile().build)  # what of the addresses is left without the build
    plugs = {name: place[:2] for name, place in places(build).items()}
    assert {name: place[:2] for name, place in alone.items()} == plugs
