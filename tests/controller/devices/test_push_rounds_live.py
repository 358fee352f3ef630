"""`polarfab push --from` to real FRR daemons, with traffic between all hosts."""

import json
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from compilers.targets.target_lookup import target
from tests.compilers.update.makers import quadrics_link
from tests.controller.devices.test_push_live import SPEC
from tests.polarfab.forked import printed_apart

pytestmark = [pytest.mark.live, pytest.mark.long]


def compiled(folder, name, dead=""):
    types = "node_types: {leaf: {ports: [{name: 'eth{}', count: 8}]}}\ngenerate: {type: leaf}\n"
    plain = SPEC.format("family: polarfly, q: 2", "")
    (folder / f"{name}-inventory.yaml").write_text(f"{types}dead_links: [{dead}]\n")
    (folder / f"{name}.yaml").write_text(f"{plain}inventory: {name}-inventory.yaml\n")
    save(compile_fabric(load_fabric(folder / f"{name}.yaml")), folder / name)
    return load(folder / name)


def test_no_packet_is_lost(tmp_path):
    old = compiled(tmp_path, "old")
    ((a, b),) = quadrics_link(old)
    compiled(tmp_path, "new", f"{{a: '{a}', b: '{b}'}}")
    loses_nothing(old, tmp_path)


def test_no_packet_is_lost_between_alternates_and_marks(tmp_path):
    """Neighbours have their devices before a host's packet is marked."""
    for name, balance in (("old", "compact-valiant"), ("new", "spread")):
        spec = SPEC.format("family: polarfly, q: 3", f"balance: {balance}, protect: link")
        (tmp_path / f"{name}.yaml").write_text(spec)
        save(compile_fabric(load_fabric(tmp_path / f"{name}.yaml")), tmp_path / name)
    loses_nothing(load(tmp_path / "old"), tmp_path)


def loses_nothing(old, tmp_path):
    """There and back, every switch is pushed and no ping of any pair of hosts is lost."""
    target("frr").render(old, tmp_path / "out")
    places = [str(tmp_path / one) for one in ("old", "out", "new")]
    script = Path(__file__).with_name("live_rounds.py")
    seen = json.loads(printed_apart(script, *places, timeout=500))
    for word in ("there", "back"):
        assert [one["error"] for one in seen[word] if one["error"]] == []
        assert {one["state"] for one in seen[word]} <= {"pushed", "as built"}
        sent, lost = seen[f"lost {word}"]
        assert sent > 10 * old.tables.switches * (old.tables.switches - 1), sent
        assert lost == 0, sent
