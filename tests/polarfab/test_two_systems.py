"""One inventory with switches of two systems: each target renders its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.polarfab.conftest import Run

INVENTORY = {
    "node_types": {
        "arista": {
            "ports": [{"name": "Ethernet{}", "count": 4, "names": {"eos": "Ethernet{port}"}}]
        },
        "sonic-box": {"ports": [{"name": "hundred gig {}", "count": 4}]},
    },
    "generate": {
        "name": "n{}",
        "types": [{"type": "arista", "count": 3}, {"type": "sonic-box"}],
    },
}


@pytest.fixture
def build(tmp_path: Path, polarfab: Run) -> Path:
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(INVENTORY))
    spec = {"name": "mixed", "topology": {"family": "polarfly", "q": 2}}
    (tmp_path / "f.yaml").write_text(yaml.safe_dump(spec | {"inventory": "inventory.yaml"}))
    assert polarfab("compile", tmp_path / "f.yaml", "-o", tmp_path / "build")[0] == 0
    return tmp_path / "build"


def test_only_nodes_that_are_rendered_need_names(build: Path, polarfab: Run) -> None:
    out = build.parent / "eos"
    words = "render", build, "--target", "eos", "-o", out
    code, _, err = polarfab(*words, "--node", "n0")
    assert (code, err.split(" of build ")[0]) == (0, "1 node")
    assert "hundred gig" in (out / "n0" / "eos.cfg").read_text(), "the neighbour's own label"
    code, _, _ = polarfab(*words, "--node", "arista")
    assert (code, sorted(p.name for p in out.iterdir() if p.is_dir())) == (0, ["n0", "n1", "n2"])
    for more in ((), ("--node", "n5")):
        code, _, err = polarfab(*words, *more)
        assert code == 2
        assert "node_types.sonic-box.names: required interface names of EOS" in err
        assert "at n" in err
