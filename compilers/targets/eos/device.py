"""Pushes to EOS by NAPALM, over eAPI; `controller.devices` runs the push."""

from __future__ import annotations

from compilers.targets.devices.napalm_device import NapalmDevice
from compilers.targets.eos import routing_tables


class EosDevice(NapalmDevice):
    """Target eos, over eAPI: a configuration session with a commit timer."""

    driver = "eos"
    save_commands = ("write memory",)
    file = "eos.cfg"
    table_commands = routing_tables.COMMANDS.replace(" | json", "")
    encoding = "json"
