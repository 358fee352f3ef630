"""What is missing for Mininet is told at once, with what to install."""

import shutil

import pytest

from inventory.problems import InputError
from mininet_scenarios.machine import preflight
from mininet_scenarios.scenario.engine import HostSample
from polarfab import Fabric, emulate, rehearse


def test_everything_that_is_missing_at_once(monkeypatch):
    absent = {"ovs-vswitchd", "mnexec", "ping"}
    which = shutil.which
    monkeypatch.setattr(
        preflight.shutil,
        "which",
        lambda tool, path: None if tool in absent else which(tool, path=path),
    )
    monkeypatch.setattr(preflight, "find_spec", lambda _: None)
    monkeypatch.setattr(preflight, "TUN", "/nowhere/tun")
    for engine in ("mininet", "ovs-fabric"):
        with pytest.raises(InputError) as error:
            preflight.require(engine, "os-ken")
        assert {problem.key for problem in error.value.problems} == {f"engine {engine}"}
    told = {problem.required: problem.todo for problem in error.value.problems}
    assert told == {
        "ovs-vswitchd, mnexec": "apt install mininet openvswitch-switch",
        "the Python package mininet": "pip install 'polarfab[mininet]'",
        "os-ken": "pip install 'polarfab[os-ken]'",
        "access to /nowhere/tun": "as root: modprobe tun",
    }


def test_engines_and_frameworks_that_there_are_not():
    fabric = Fabric.from_spec({"name": "a", "topology": {"family": "polarfly", "q": 2}}).compile()
    with pytest.raises(InputError, match=r"engine: .*given mininett; did you mean mininet"):
        emulate(fabric, "mininett")
    with pytest.raises(InputError, match=r"framework: .*given ryuu; did you mean ryu"):
        emulate(fabric, "model", framework="ryuu")
    with pytest.raises(InputError, match=r"engine: .*given modle; did you mean model"):
        rehearse(fabric, fabric, engine="modle")


def test_what_routers_need(monkeypatch):
    absent = {"nsenter", "vtysh"}
    monkeypatch.setattr(
        preflight.shutil, "which", lambda tool, **_: None if tool in absent else tool
    )
    monkeypatch.setattr(preflight, "_refused", lambda *_: "no")
    for engine, packages in [("linux", "util-linux"), ("frr", "frr util-linux")]:
        with pytest.raises(InputError) as error:
            preflight.require(engine)
        tools, space = error.value.problems
        assert (tools.key, tools.todo) == (f"engine {engine}", f"apt install {packages}")
        assert space.required == "namespaces of one's own (no)"


def test_ryu_comes_first(monkeypatch):
    assert preflight.choose_framework("os-ken") == "os-ken"
    assert preflight.choose_framework(None) == "ryu"
    monkeypatch.setattr(preflight, "find_spec", lambda package: package == "os_ken")
    assert preflight.choose_framework(None) == "os-ken"
    assert preflight.choose_framework("ryu") is None


def test_a_user_namespace_where_we_are_not_root(monkeypatch):
    monkeypatch.setattr(preflight.os, "geteuid", lambda: 1000)
    assert preflight.namespaces()[:2] == ["unshare", "--map-root-user"]
    monkeypatch.setattr(preflight.os, "geteuid", lambda: 0)
    assert "--map-root-user" not in preflight.namespaces()


def test_what_is_short_is_reported_at_once(compiled, monkeypatch):
    build = compiled(5)
    hosts = HostSample.of(build)
    preflight.require_resources(build, hosts)
    # Measured on q=5, everything that runs added up: 185 MB, 372 files.
    monkeypatch.setattr(preflight.memory, "available", lambda: 185 << 20)
    monkeypatch.setattr(preflight, "_limit", lambda _: 61)
    monkeypatch.setattr(preflight, "_number", lambda _: 61)
    with pytest.raises(InputError) as error:
        preflight.require_resources(build, hosts)
    short = {problem.required: problem.todo for problem in error.value.problems}
    memory, files, processes, table = short
    assert (int(memory.split()[0]) > 185, int(files.split()[0]) > 372) == (True, True)
    assert processes == "188 processes"
    assert table == "62 entries in the neighbour tables of all namespaces (gc_thresh3)"
    assert short[table] == "as root: sysctl -w net.ipv4.neigh.default.gc_thresh3=62"
    assert short[memory].startswith("a smaller fabric")
