"""Cages of NX-OS that a push splits."""

import pytest

from controller.devices import napalm_device
from controller.devices.device_shell import DeviceError
from controller.devices.napalm_device import NapalmSession, NxosDevice

SPLIT, PORT = "interface breakout module 1 port 1 map 25g-4x", "interface Ethernet1/1/2"


def device(tmp_path, monkeypatch, *shown):
    """A device that shows these configurations, the last one again and again; what it is told."""
    told, left = [], list(shown)
    found = NxosDevice(NapalmSession("nxos_ssh", "192.0.2.1", "", ""), tmp_path, "/etc", ())
    monkeypatch.setattr(napalm_device, "PORTS_POLL", 0)
    monkeypatch.setattr(found, "running", lambda: left.pop(0) if left[1:] else left[0])

    def call(_, method, *words, **named):
        told.append((method, *words, *named.values()))
        return {"startup": ""} if method == "get_config" else "changes"

    monkeypatch.setattr(NapalmSession, "call", call)
    return found, told


def test_a_port_that_is_split_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "nxos.cfg").write_text(f"{SPLIT}\n{SPLIT.replace('port 1', 'port 2')}\n")
    found, _ = device(tmp_path, monkeypatch, f"hostname x\n{SPLIT}\n")
    assert found.plan().add == (SPLIT.replace("port 1", "port 2"),)


def test_ports_are_configured_once_they_are_there(tmp_path, monkeypatch):
    shown = ["hostname x", "hostname x", f"hostname x\n{PORT}"]
    found, told = device(tmp_path, monkeypatch, *shown)
    found.type([SPLIT, PORT, "  mtu 9216"])
    loaded = [step[1] for step in told if step[0] == "load_merge_candidate"]
    assert loaded == [f"{SPLIT}\n", f"{PORT}\n  mtu 9216\n"]
    assert [step for step in told if step[0] == "commit_config"] == [("commit_config",)] * 2


def test_lines_below_a_port_that_is_not_there_are_not_typed(tmp_path, monkeypatch):
    found, told = device(tmp_path, monkeypatch, "hostname x")
    with pytest.raises(DeviceError, match=f"the switch has no {PORT}"):
        found.type([PORT, "  mtu 9216"])
    assert not told
