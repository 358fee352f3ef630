"""What is missing for Mininet is told at once, with what to install."""

import pytest

from inventory.problems import InputError
from mininet_scenarios.machine import preflight
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
