"""The systems that a push can configure."""

from __future__ import annotations

from importlib.util import find_spec

from controller.devices.configured_device import (
    EosDevice,
    JunosDevice,
    NxosDevice,
    SrlinuxDevice,
)
from controller.devices.frr_device import FrrDevice
from controller.devices.network_linux import NvueDevice, SonicDevice
from controller.devices.router_device import LinuxDevice, RouterDevice
from inventory.problems import InputError, install_extra

ROUTER_DEVICES: dict[str, type[RouterDevice]] = {
    "frr": FrrDevice,
    "linux": LinuxDevice,
    "eos": EosDevice,
    "nxos": NxosDevice,
    "junos": JunosDevice,
    "sonic": SonicDevice,
    "srlinux": SrlinuxDevice,
    "nvue": NvueDevice,
}
"""By target."""


def device_kind(target: str) -> type[RouterDevice]:
    """The devices of a target.

    Raises:
        InputError: they are none that a push configures, or there is no Nornir.
    """
    if target not in ROUTER_DEVICES:
        required = f"one of {', '.join(ROUTER_DEVICES)}"
        todo = "a controller programs Open vSwitch, and opensm InfiniBand"
        raise InputError.of(required, target, todo, key="--target")
    if not find_spec("nornir"):
        raise InputError.of("Nornir", "none", install_extra("push"))
    return ROUTER_DEVICES[target]
