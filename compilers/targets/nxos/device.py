"""Pushes to NX-OS by NAPALM: cages are split before the lines that configure their ports.

A *cage* is a socket for a transceiver. It may be split into several ports, which NX-OS calls a
`breakout`. The ports of a split cage exist only a while after the line that splits it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from compilers.targets.devices.device_shell import DeviceError
from compilers.targets.devices.napalm_device import NapalmDevice
from compilers.targets.nxos import routing_tables

SPLIT_CAGE = "interface breakout "
"""How the line of NX-OS begins that splits a cage into several ports."""
HARDWARE_PORT = re.compile(r"interface Ethernet[0-9/]+")
"""`interface Ethernet1/7`: the line of a hardware port. A subinterface, which has a dot, exists
once its lines are typed."""
PORTS_PATIENCE = 60.0
"""Seconds that the ports of split cages may take to appear."""
PORTS_POLL = 1.0
"""Seconds between two checks whether they have appeared."""


class NxosDevice(NapalmDevice):
    """A switch with NX-OS.

    A commit of NAPALM makes a checkpoint first, to roll back to, and then saves the configuration.
    NX-OS has no timer that takes a commit back which is not confirmed (`has_commit_timer`). It
    shows lines in its own words (`shows_typed_lines`), and a port is shut until `no shutdown` opens
    it (`ports_start_shut`).
    """

    driver = "nxos_ssh"
    save_commands = ("copy running-config startup-config",)
    file = "nxos.cfg"
    table_commands = routing_tables.COMMANDS
    has_commit_timer = False
    shows_typed_lines = False
    ports_start_shut = True

    def type(self, lines: Sequence[str]) -> None:
        """See `RouterDevice.type`: cages are split first, and their ports take a while to appear.

        Raises:
            DeviceError: the device refuses a line, or ports do not appear. Then the lines of the
                ports are not typed: lines below a refused `interface` would be about the interface
                before it.
        """
        split_lines = [line for line in lines if line.startswith(SPLIT_CAGE)]
        super().type(split_lines)
        other_lines = [line for line in lines if line not in split_lines]
        port_lines = {line for line in other_lines if HARDWARE_PORT.fullmatch(line)}
        if port_lines:
            # Without a split the ports exist already.
            patience = PORTS_PATIENCE if split_lines else 0
            self._wait_for(port_lines, patience)
        super().type(other_lines)

    def _wait_for(self, port_lines: set[str], patience: float) -> None:
        """Wait until the running configuration has the lines of some hardware ports.

        Args:
            port_lines: the lines, such as `interface Ethernet1/7`.
            patience: the most seconds to wait.

        Raises:
            DeviceError: a line does not appear.
        """
        deadline = time.monotonic() + patience
        while missing := port_lines - set(self.running().splitlines()):
            if time.monotonic() >= deadline:
                raise DeviceError(f"the switch has no {min(missing)}")
            time.sleep(PORTS_POLL)
