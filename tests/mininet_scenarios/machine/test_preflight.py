"""What is missing for Mininet is told at once, with what to install."""

import os

import pytest

from inventory.problems import InputError
from mininet_scenarios.engines.inner_child import HostAddresses
from mininet_scenarios.machine import preflight
from mininet_scenarios.scenario.engine import HostSample
from polarfab import Fabric, emulate, rehearse


def test_engines_and_frameworks_that_there_are_not():
    fabric = Fabric.from_spec({"name": "a", "topology": {"family": "polarfly", "q": 2}}).compile()
    with pytest.raises(InputError, match=r"engine: .*given mininett; did you mean mininet"):
        emulate(fabric, "mininett")
    with pytest.raises(InputError, match=r"framework: .*given ryuu; did you mean ryu"):
        emulate(fabric, "model", framework="ryuu")
    with pytest.raises(InputError, match=r"engine: .*given modle; did you mean model"):
        rehearse(fabric, fabric, engine="modle")


@pytest.mark.parametrize(("engine", "tool"), [("mininet", "mnexec"), ("frr", "vtysh")])
def test_tools_that_are_missing_are_told_with_their_packages(engine, tool, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError) as error:
        preflight.require(engine, "os-ken")
    (problem,) = (problem for problem in error.value.problems if tool in problem.required)
    assert problem.key == f"engine {engine}"
    assert problem.todo.startswith("apt install ")


def test_the_framework_that_was_asked_for_is_taken():
    assert preflight.choose_framework("os-ken") == "os-ken"
    assert preflight.choose_framework(None) == "ryu"


def neighbours(monkeypatch, limit, now):
    """A machine whose neighbour tables have this limit and hold so many entries."""

    def number(file):
        return limit if file.name == "gc_thresh3" else 1 << 40

    monkeypatch.setattr(preflight, "_number", number)
    monkeypatch.setattr(preflight, "_neighbours_now", {4: now, 6: now}.__getitem__)


def test_an_entry_for_each_host_is_counted_with_those_that_are_there(monkeypatch, compiled):
    build = compiled(2, 10)
    hosts = HostSample.of(build)
    neighbours(monkeypatch, limit=1024, now=900)
    preflight.require_resources(build, hosts)
    neighbours(monkeypatch, limit=1024, now=960)
    with pytest.raises(InputError) as error:
        preflight.require_resources(build, hosts)
    (problem,) = error.value.problems
    assert problem.required == "1,030 entries in the neighbour table of IPv4 (gc_thresh3)"
    assert problem.todo.endswith("net.ipv4.neigh.default.gc_thresh3=2060")
    neighbours(monkeypatch, limit=1024, now=900)
    with pytest.raises(InputError, match=r"engine frr: required 1,040 entries"):
        preflight.require_neighbours("frr", build, hosts)


def test_hosts_of_a_switch_have_permanent_entries_for_each_other(compiled):
    build = compiled(2, 3)
    lines = HostAddresses(build, HostSample.of(build)).ip_commands(4)
    entries = [line.split() for line in lines if line.startswith("neigh ")]
    plan = build.addressing
    assert [words[2:5:2] for words in entries] == [
        [str(plan.host(1, number)), plan.mac(1, number)] for number in (0, 2)
    ]
    assert all(words[-1] == "permanent" for words in entries)


def test_frr_needs_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InputError, match="required root, because FRR's daemons run as the user"):
        preflight.require("frr")
