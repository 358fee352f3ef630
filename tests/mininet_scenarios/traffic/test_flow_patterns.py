"""Flows of a file of rates, between the hosts of a rehearsal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compilers.tables.build import Build
from inventory.problems import InputError
from mininet_scenarios.run.rehearsal_plan import plan
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.scenario_file import FlowSpec, load_scenario
from mininet_scenarios.traffic.flow_patterns import host_flows
from polarfab import Fabric


@pytest.fixture(scope="module")
def build() -> Build:
    """A small fabric with two hosts at every switch."""
    topology = {"family": "polarfly", "q": 2}
    return Fabric.from_spec({"name": "lab", "topology": topology, "hosts_per_node": 2}).build


def test_hosts_of_a_switch_share_its_rate(build: Build, tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("0,1,30\n2,1,10\n3,4,20\n")
    flows = host_flows(build, HostSample.of(build, None), FlowSpec(pattern=str(file)), 100.0)
    offered = zip(flows.source.tolist(), flows.destination.tolist(), flows.rate, strict=True)
    # The hosts of switch 1 receive most, and 100 each.
    assert {(one, other): round(rate, 6) for one, other, rate in offered} == {
        (0, 2): 75,
        (1, 3): 75,
        (4, 2): 25,
        (5, 3): 25,
        (6, 8): 50,
        (7, 9): 50,
    }


def test_fewer_hosts_that_take_part_offer_the_same_in_all(build: Build, tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("0,1,30\n3,4,20\n")
    flows = host_flows(build, HostSample.of(build, 1), FlowSpec(pattern=str(file)), 90.0)
    assert np.round(flows.rate, 6).tolist() == [90, 60]


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ("0,1,30\n0,9,1\n", r"rates.csv:2: .*a switch, by name or vertex, or a host, given 9"),
        (None, r"scenario.yaml:3: .*rates.csv"),
    ],
)
def test_a_mistake_is_told_before_the_start(
    tmp_path: Path, rates: str | None, message: str
) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "name: x\nfabric: {name: x, topology: {family: polarfly, q: 2}}\n"
        "traffic: {flows: {pattern: rates.csv}}\n"
    )
    if rates is not None:
        (tmp_path / "rates.csv").write_text(rates)
    with pytest.raises(InputError, match=message):
        plan(load_scenario(str(file)))


def test_a_pattern_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "name: x\nfabric: {name: x, topology: {family: polarfly, q: 2}}\n"
        "traffic: {flows: {pattern: tornad}}\n"
    )
    with pytest.raises(InputError, match=r"or a CSV file of rates, given tornad; did you mean"):
        load_scenario(str(file))
