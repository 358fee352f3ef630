"""EOS, as NAPALM reaches it."""

from __future__ import annotations

from compilers.targets.devices.napalm_device import NapalmDevice
from compilers.targets.eos import routing_tables


class EosDevice(NapalmDevice):
    """Target eos, over eAPI: a configuration session with a commit timer."""

    driver = "eos"
    saves = ("write memory",)
    file = "eos.cfg"
    held = routing_tables.COMMANDS.replace(" | json", "")
    encoding = "json"
