"""Fibres shuffled inside a box: plugs, labels, ribbons and NetBox follow a port to its lane."""

import csv
import io
from dataclasses import astuple

import numpy as np
import pytest
import yaml

from compilers.cabling.cable_schedule import CableSchedule
from compilers.cabling.cords import cords
from inventory.problems import InputError
from polarfab.cabling import cable_paths
from polarfab.fabric import Fabric
from tests.compilers.cabling.test_panel_plan import led, spec, wanted
from tests.inventory.makers import export, imported

SHUFFLE = ["eth4 - eth2", "eth1 eth3", "eth5"]
AT = {"eth4": "X1.1", "eth2": "X1.3", "eth1": "X2.1", "eth3": "X2.2", "eth5": "X3.1"}


def shuffled(panels=False, words=SHUFFLE):
    given = spec(q=3, ports=6)
    given["inventory"]["node_types"]["t"]["shuffle"] = words
    if not panels:
        del given["inventory"]["panels"]
    return given


def schedule(fabric, form="csv"):
    return "".join(CableSchedule.of(fabric.builds).text(form))


def test_cables_and_labels_name_the_connector_and_lane(tmp_path):
    Fabric.from_spec(shuffled()).compile().save(tmp_path / "build")
    fabric = Fabric.load(tmp_path / "build")
    rows = list(csv.DictReader(io.StringIO(schedule(fabric))))
    ends = [(row[f"{e}_port"], row[f"{e}_port_label"]) for row in rows for e in "ab"]
    assert {port for port, _ in ends} == {"eth1", "eth2", "eth3", "eth4"}
    assert all(label == AT[port] for port, label in ends)
    sheet = schedule(fabric, "labels")
    assert all(sheet.count(AT[port]) for port, _ in ends)
    names = [rows[0][f"{e}_node"] for e in "ab"]
    ports = [rows[0][f"{e}_port"] for e in "ab"]
    u, v = map(fabric.build.wiring.names.index, names)
    plugs = (f"{n} {p} ({AT[p]})" for n, p in zip(names, ports, strict=True))
    assert cable_paths(fabric, [(u, v)]) == [" > ".join(plugs)]


@pytest.mark.parametrize(
    ("words", "order"),
    [(SHUFFLE, [4, 2, 1, 3]), (["eth4 - eth2"], [1, 3, 4, 2])],  # ports not shuffled come first
)
def test_lanes_of_a_ribbon_go_by_connector_and_lane(words, order):
    fabric = Fabric.from_spec(shuffled(panels=True, words=words)).compile()
    (plan,) = CableSchedule.of(fabric.builds).plans
    assert led(plan) == wanted(plan)
    plug = {p: f"eth{p} ({AT[f'eth{p}']})" if f"eth{p}" in str(words) else f"eth{p}" for p in order}
    ends, ports = plan.cables.ends, plan.cables.ports
    for e, s in np.ndindex(ends.shape):
        taken = sorted(order.index(p) for p in ports[ends == ends[e, s]].tolist())
        assert plan.shuffle.lane[e, s] == taken.index(order.index(ports[e, s]))
    assert any(f"{plug[order[0]]} to {plug[order[3]]}" in row for row in map(astuple, cords(plan)))
    names = plan.wiring.names
    for pair, both in zip(ends.tolist(), ports.tolist(), strict=True):
        near, *_, far = cable_paths(fabric, [pair])[0].split(" > ")
        assert [near, far] == [f"{names[v]} {plug[p]}" for v, p in zip(pair, both, strict=True)]


def test_netbox_has_the_labels_and_the_shuffle_comes_back(tmp_path):
    given = shuffled(panels=True)
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text(yaml.safe_dump(given | {"inventory": "inventory.yaml"}))
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(given["inventory"]))
    export(fabric, tmp_path / "one")
    rows = list(csv.DictReader((tmp_path / "one" / "interfaces.csv").open()))
    assert {row["name"]: row["label"] for row in rows} == AT | {"eth6": ""}
    imported(tmp_path / "one", tmp_path / "new.yaml")
    back = yaml.safe_load((tmp_path / "new.yaml").read_text())
    assert back["node_types"]["t"]["shuffle"] == SHUFFLE


@pytest.mark.parametrize(
    ("words", "said"),
    [(["eth1 eth9"], "given eth9"), (["eth1 eth2", "eth1"], "given eth1 twice")],
)
def test_lanes_of_no_port_are_refused(words, said):
    with pytest.raises(InputError, match=said) as refused:
        Fabric.from_spec(shuffled(words=words)).compile()
    assert "node_types.t.shuffle" in str(refused.value)
