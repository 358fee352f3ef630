"""check routes on the tables of real FRR daemons and of kernels, right and changed by hand."""

import json
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from compilers.targets.target_lookup import target
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live
ORDERS = {"linux": 2, "frr": 3}
"""The q of the PolarFly of each target. With q = 2, the next hop that a route of FRR is turned to
by hand is already one of its alternates."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """By target, what live_routes.py found after each change."""

    def of(name):
        folder = tmp_path_factory.mktemp(name)
        spec = f"name: lab\ntopology: {{family: polarfly, q: {ORDERS[name]}}}\n"
        spec += "addressing: {ipv6: 'fd00::/48'}\n"
        spec += "routing: {balance: compact-valiant, protect: link}\n"
        (folder / "fabric.yaml").write_text(spec)
        save(compile_fabric(load_fabric(folder / "fabric.yaml")), folder / "b")
        target(name).render(load(folder / "b"), folder / "out")
        script = Path(__file__).with_name("live_routes.py")
        places = [str(folder / "b"), str(folder / "out"), name]
        printed = printed_apart(script, *places, timeout=300)
        return json.loads(printed)

    return of


def kinds(found):
    return [(one["switch"], one["kind"]) for one in found]


def test_frr(seen):
    found = seen("frr")
    assert found["right"] == found["right in the kernel"] == []
    for where in ("", " in the kernel"):
        assert kinds(found[f"changed{where}"]) == [("3", "next hop")], found
        assert kinds(found[f"added{where}"]) == [("3", "stale")]
        assert found[f"added{where}"][0]["prefix"] == "10.0.0.10/32"
    assert kinds(found["removed"]) == [("3", "missing")]
    # zebra puts the next distance into the kernel
    assert kinds(found["removed in the kernel"]) == [("3", "next hop")]
    changed = found["changed"][0]
    assert changed["wanted"] != changed["found"]
    assert changed["wanted"][0][0]["gateway"].startswith("10.0.0.")
    assert [(one["kind"], one["table"]) for one in found["rule"]] == [("missing", "rules of IPv6")]


def test_linux(seen):
    found = seen("linux")
    assert found["right"] == found["undone"] == []
    assert kinds(found["removed"]) == [("3", "missing")]
    assert kinds(found["changed"]) == [("3", "next hop")]
    assert kinds(found["added"]) == [("3", "stale")]
    assert found["weight"]
    assert {one["kind"] for one in found["weight"]} == {"weight"}
    assert {one["table"] for one in found["weight"]} == {"5000"}
    weights = {hop["weight"] for hop in found["weight"][0]["found"][0]}
    assert weights == {1, 7}
