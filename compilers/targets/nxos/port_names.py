"""Names of ports in NX-OS.

https://www.cisco.com/c/en/us/td/docs/dcn/nx-os/nexus9000/102x/configuration/interfaces/
"""

from __future__ import annotations

import re

from compilers.targets.routed.interfaces import Interfaces

NXOS = Interfaces(
    "nxos",
    re.compile(r"Ethernet[1-9][0-9]{0,2}(/[1-9][0-9]{0,2}){1,2}"),
    "interface names of NX-OS",
    "Ethernet1/{cage}/{lane}",
    "Ethernet1/{port}",
    management="mgmt0",
    vrf="management",
    short=("Ethernet", "Eth"),
)
