"""Names of ports in SONiC: the first serdes lane of `Ethernet28` is lane 28, counted from 0."""

from __future__ import annotations

import re

from compilers.targets.routed.interfaces import Abbreviation, Interfaces

SONIC = Interfaces(
    system="sonic",
    pattern=re.compile(r"Ethernet(0|[1-9][0-9]{0,3})"),
    required="interface names of SONiC",
    advice="Ethernet{serdes}",
    default_pattern="Ethernet{port*4}",
    first=0,
    in_platform_file=True,
    lab_by_number=True,
    subinterface_abbreviation=Abbreviation("Ethernet", "Eth"),
)
"""Without an inventory every fourth number, as on the virtual switch and on ports of four lanes."""
