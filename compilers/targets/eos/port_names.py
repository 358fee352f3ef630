"""Names of ports in EOS: parts of a cage are numbered by their serdes lanes.

https://www.arista.com/en/um-eos/eos-layer-1-profiles
"""

from __future__ import annotations

import re

from compilers.targets.routed.interfaces import Interfaces

EOS = Interfaces(
    "eos",
    re.compile(r"Ethernet[1-9][0-9]{0,2}(/[1-9][0-9]{0,2}){0,2}"),
    "interface names of EOS",
    "Ethernet{cage}/{lane}",
    "Ethernet{port}",
    by_serdes=True,
    management="Management1",
    vrf="MGMT",
    short=("Ethernet", "Et"),
    lab=("Ethernet", "eth", "_"),
)
