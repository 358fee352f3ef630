"""Builds whose weights are fitted to a demand: what they carry, that they are proved, refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compilers.demand.fitted_tables import fit_to_demand
from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import fit
from compilers.evaluation.traffic import PATTERNS
from compilers.expansion.grow import grow
from compilers.proof.soundness.table_soundness import check_weights
from inventory.problems import InputError
from inventory.yamlfile import TextFile
from polarfab.fabric import Fabric
from tests.compilers.routed import routed


@pytest.fixture(scope="module")
def demand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demand") / "traffic.csv"
    found = PATTERNS["perm2hop"](routed(q=5).topology, 3, 0)
    flows = zip(found.source.tolist(), found.destination.tolist(), strict=True)
    path.write_text("".join(f"{s},{d},40\n" for s, d in flows))
    return path


def fabric(routing: dict[str, str]) -> Fabric:
    topology = {"family": "polarfly", "q": 5}
    spec = {"name": "lab", "topology": topology, "hosts_per_node": 3, "routing": routing}
    return Fabric.from_spec(spec).compile()


def test_weights_carry_the_demand(demand: Path) -> None:
    equal = fabric({"balance": "compact-valiant", "disjoint": "none"}).build
    found = fabric(
        {"balance": "compact-valiant", "disjoint": "none", "protect": "link", "demand": str(demand)}
    )
    assert found.verify().passed
    build = found.build
    assert set(build.inputs) == {"fabric", "demand"}
    assert build.policy["demand"] == str(demand)
    traffic = PATTERNS["perm2hop"](build.topology, 3, 0)
    even, fluid = Fluid.of(equal), Fluid.of(build)
    best = fit(even.paths(traffic))
    assert fluid.loads_by_weights(traffic).max() <= 1.03 * best.load_bound
    assert even.loads_by_weights(traffic).max() > 1.2 * best.load_bound
    # A class that the demand does not use keeps equal shares.
    used = np.zeros(build.tables.classes.port.shape, np.bool_)
    used[np.divmod(even.paths(traffic).class_number, used.shape[1] + 2)] = True
    assert used.any()
    assert not used.all()
    np.testing.assert_array_equal(
        build.tables.classes.weight[~used], equal.tables.classes.weight[~used]
    )


def test_the_proof_wants_a_weight_in_every_class(demand: Path) -> None:
    build = fabric({"balance": "compact-valiant", "demand": str(demand)}).build
    assert not [*check_weights(build)]
    classes = build.tables.classes
    for cell, value in (((3, 2), 0), ((3, 2, -1), 7)):
        weight, alternate = np.array(classes.weight), np.array(classes.alternate)
        weight[cell] = value
        alternate[3, 2, -1] = 0
        wrong = replace(classes, weight=weight, alternate=alternate)
        assert [*check_weights(replace(build, tables=replace(build.tables, classes=wrong)))]


@pytest.mark.parametrize(
    ("routing", "told"),
    [
        ({"demand": "d.csv"}, "routing.demand: required a balance with alternates"),
        ({"balance": "compact-valiant", "demand": "worstcase"}, "did you mean worst-case?"),
        (
            {"balance": "compact-valiant", "demand": "no.csv", "minimal_share": "1/2"},
            "routing.minimal_share: required equal-cost with `demand`",
        ),
        (
            {"balance": "compact-valiant", "largest_share": "1/2"},
            "routing.largest_share: required a demand",
        ),
    ],
)
def test_refusals(routing: dict[str, str], told: str) -> None:
    with pytest.raises(InputError) as error:
        fabric(routing)
    assert told in str(error.value)


def test_flows_of_switches_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    """Else a share of no path was divided by none; rates are in any unit."""
    (tmp_path / "d.csv").write_text("n4,n5,1e-300\nn5,n4,1e-300\nn1,n2,3e-300\n")
    nodes = [{"name": f"n{v}", "type": "sw"} for v in range(13)]
    nodes[4]["state"] = "planned"
    inventory = {"node_types": {"sw": {"ports": [{"count": 8}]}}, "nodes": nodes}
    (tmp_path / "inventory.yaml").write_text(json.dumps(inventory))
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 3},
        "inventory": "inventory.yaml",
        "routing": {"balance": "compact-valiant", "demand": "d.csv"},
    }
    (tmp_path / "fabric.yaml").write_text(json.dumps(spec))
    with np.errstate(all="raise"):
        found = Fabric.from_spec(tmp_path / "fabric.yaml").compile()
    assert found.verify().passed
    fluid = Fluid.of(found.build)
    one = Traffic.of(np.array([1]), np.array([2]))
    (column,) = fluid.paths(one).class_number
    assert fluid.table_shares[:, column].max() < 1
    (tmp_path / "d.csv").write_text("n4,n5,1\n")
    with pytest.raises(InputError, match=r"d\.csv:1: .*that are not there: n4"):
        Fabric.from_spec(tmp_path / "fabric.yaml").compile()


def test_a_spine_has_no_traffic() -> None:
    build = routed("oft", q=2, spread=True)
    (spine, *_), (leaf, *_) = (np.flatnonzero(build.topology.endpoints == end) for end in (0, 1))
    with pytest.raises(InputError, match=f"given {build.wiring.names[spine]}, which has none"):
        fit_to_demand(build, TextFile("d.csv", f"{leaf},{spine},5\n", ""), 1.0)


def test_shares_are_equal_again_in_a_larger_fabric(demand: Path) -> None:
    """Nothing says then that they are fitted, so the proof wants equal ones."""
    build = fabric({"balance": "compact-valiant", "demand": str(demand)}).build
    larger = grow(build, "fan", 1).build
    assert larger.policy["minimal_share"] == "equal-cost"
    assert not larger.policy.keys() & {"demand", "largest_share"}
    assert set(larger.inputs) == {"fabric"}
    assert not [*check_weights(larger)]
