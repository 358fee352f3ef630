"""The systems that a push can configure."""

from __future__ import annotations

from importlib.util import find_spec

from controller.devices.frr_device import FrrDevice
from controller.devices.napalm_device import EosDevice, JunosDevice, NxosDevice
from controller.devices.network_linux import SonicDevice
from controller.devices.router_device import LinuxDevice, RouterDevice
from inventory.problems import InputError, install_extra

ROUTER_DEVICES: dict[str, type[RouterDevice]] = {
    "frr": FrrDevice,
    "linux": LinuxDevice,
    "sonic": SonicDevice,
    "eos": EosDevice,
    "nxos": NxosDevice,
    "junos": JunosDevice,
}
"""By target."""


def device_kind(target: str) -> type[RouterDevice]:
    """The devices of a target.

    Raises:
        InputError: they are none that a push configures, or there is no NAPALM for them.
    """
    if target not in ROUTER_DEVICES:
        required = f"one of {', '.join(ROUTER_DEVICES)}"
        todo = "a controller programs Open vSwitch, opensm InfiniBand, and Ansible srlinux and nvue"
        raise InputError.of(required, target, todo, key="target")
    kind = ROUTER_DEVICES[target]
    if kind.driver and not find_spec("napalm"):
        raise InputError.of(f"NAPALM for target {target}", "none", install_extra("push"))
    return kind
