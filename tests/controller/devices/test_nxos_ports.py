"""Cages of NX-OS that a push splits."""

import pytest

from controller.devices import configured_device
from controller.devices.configured_device import NxosDevice
from controller.devices.device_shell import DeviceError, DeviceShell


def test_a_port_of_nxos_that_is_split_is_left_alone(tmp_path, monkeypatch):
    split = [f"interface breakout module 1 port {port} map 25g-4x\n" for port in (1, 2)]
    (tmp_path / "nxos.cfg").write_text("".join(split))
    device = NxosDevice(DeviceShell(("false",)), tmp_path, "/etc", ())
    monkeypatch.setattr(device, "running", lambda: f"hostname x\n{split[0]}")
    assert device.beside() == [split[1].strip()]


def test_ports_of_nxos_are_configured_once_they_are_there(tmp_path, monkeypatch):
    split, port = "interface breakout module 1 port 1 map 25g-4x", "interface Ethernet1/1/2"
    shown = iter(["hostname x", "hostname x", f"hostname x\n{port}"])
    device, typed = NxosDevice(DeviceShell(("false",)), tmp_path, "/etc", ()), []
    monkeypatch.setattr(configured_device, "PORTS_POLL", 0)
    monkeypatch.setattr(device, "running", lambda: next(shown))
    monkeypatch.setattr(device, "_type", lambda name, lines: typed.append((name, list(lines))))
    device.change([split, port, "  mtu 9216"])
    again = ["end", "configure terminal"]
    assert [lines for _, lines in typed] == [
        ["checkpoint {change}"],
        ["configure terminal", split, "end"],
        ["configure terminal", *again, port, "  mtu 9216", "end"],
    ]
    assert {name for name, _ in typed} == {device.pending}
    monkeypatch.setattr(configured_device, "PORTS_PATIENCE", -1)
    monkeypatch.setattr(device, "running", lambda: "hostname x")
    with pytest.raises(DeviceError, match=f"no {port}, "):
        device.change([split, port])
