"""`installed: true` and `compile --cables-of`: cables that are plugged stay where they are."""

from __future__ import annotations

from pathlib import Path

import yaml

from compilers.tables.build import Build
from polarfab.fabric import Fabric
from tests.polarfab.conftest import Run

SPEC = {"name": "hall", "topology": {"family": "polarfly", "q": 3}, "hosts_per_node": 3}
LEAF = {"ports": [{"name": "eth{}", "count": 9}]}
RACKS = [{"name": "A", "units": 8}, {"name": "B", "units": 8}]


def cables(build: Build) -> set[tuple[tuple[str, str], ...]]:
    """Every cable as its two ends, switch and port."""
    w = build.wiring
    return {
        tuple(sorted(((w.names[u], w.port_name(u, p)), (w.names[v], w.port_name(v, q)))))
        for u, p, v, q in w.each_cable()
    }


def test_installed_cables_stay_when_compile_replaces_a_build(polarfab: Run, tmp_path: Path) -> None:
    spec, file, build = (tmp_path / name for name in ("fabric.yaml", "inventory.yaml", "build"))
    spec.write_text(yaml.safe_dump(SPEC | {"inventory": "inventory.yaml"}))
    inventory = {"node_types": {"leaf": LEAF}, "generate": {"type": "leaf"}, "installed": True}
    file.write_text(yaml.safe_dump(inventory))
    code, _, err = polarfab("compile", spec, "-o", build)
    assert (code, "has no earlier build of it, so cables are planned anew" in err) == (0, True)
    before = cables(Fabric.load(build).build)
    file.write_text(yaml.safe_dump(inventory | {"racks": RACKS}))
    assert polarfab("compile", spec, "-o", build)[0] == 0
    assert cables(Fabric.load(build).build) == before
    file.write_text(yaml.safe_dump(inventory | {"racks": RACKS, "installed": False}))
    assert polarfab("compile", spec, "-o", tmp_path / "anew")[0] == 0
    assert cables(Fabric.load(tmp_path / "anew").build) != before
    assert polarfab("compile", spec, "-o", tmp_path / "kept", "--cables-of", build)[0] == 0
    assert cables(Fabric.load(tmp_path / "kept").build) == before
