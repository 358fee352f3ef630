"""Names of ports in SONiC."""

from __future__ import annotations

import re

from compilers.targets.routed.interfaces import Interfaces

SONIC = Interfaces(
    "sonic",
    re.compile(r"Ethernet(0|[1-9][0-9]{0,3})"),
    "interface names of SONiC",
    "Ethernet{serdes}",
    "Ethernet{port*4}",
    first=0,
    in_platform_file=True,
    lab_by_number=True,
    inner=("Ethernet", "Eth"),
)
"""Without an inventory every fourth number, as on the virtual switch and on ports of four lanes."""
