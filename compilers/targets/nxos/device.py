"""NX-OS, as NAPALM reaches it."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from compilers.targets.devices.device_shell import DeviceError
from compilers.targets.devices.napalm_device import NapalmDevice
from compilers.targets.nxos import routing_tables

SPLIT = "interface breakout "
"""How NX-OS splits a cage."""
CAGED = re.compile(r"interface Ethernet[0-9/]+")
"""A port of the hardware; what has a dot behind it is a subinterface, which its lines make."""
PORTS_PATIENCE, PORTS_POLL = 60.0, 1.0
"""Seconds for the ports of cages that were split to come, and between looks."""


class NxosDevice(NapalmDevice):
    """Target nxos: a checkpoint to roll back to, without a timer, and saved with the commit."""

    driver = "nxos_ssh"
    saves = ("copy running-config startup-config",)
    file = "nxos.cfg"
    held = routing_tables.COMMANDS
    timed = False
    compares = False
    shut_at_first = True

    def type(self, lines: Sequence[str]) -> None:
        """See `RouterDevice.type`: cages are split first, and their ports take a while.

        Raises:
            DeviceError: it refuses some, or ports do not come: lines below an interface that is
                refused would be about the one before it.
        """
        split = [line for line in lines if line.startswith(SPLIT)]
        super().type(split)
        rest = [line for line in lines if line not in split]
        wanted = {line for line in rest if CAGED.fullmatch(line)}
        limit = time.monotonic() + (PORTS_PATIENCE if split else 0)
        while missing := wanted and wanted - set(self.running().splitlines()):
            if time.monotonic() >= limit:
                raise DeviceError(f"the switch has no {min(missing)}")
            time.sleep(PORTS_POLL)
        super().type(rest)
