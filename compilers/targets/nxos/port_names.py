"""Names of ports in NX-OS: `Ethernet1/7/3` is part 3 of cage 7.

https://www.cisco.com/c/en/us/td/docs/dcn/nx-os/nexus9000/102x/configuration/interfaces/
"""

from __future__ import annotations

import re

from compilers.targets.routed.interfaces import Abbreviation, Interfaces

NXOS = Interfaces(
    system="nxos",
    pattern=re.compile(r"Ethernet[1-9][0-9]{0,2}(/[1-9][0-9]{0,2}){1,2}"),
    required="interface names of NX-OS",
    advice="Ethernet1/{cage}/{lane}",
    default_pattern="Ethernet1/{port}",
    management="mgmt0",
    vrf="management",
    abbreviation=Abbreviation("Ethernet", "Eth"),
)
