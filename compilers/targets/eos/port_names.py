"""Names of ports in EOS: `Ethernet7/3` is the part of cage 7 whose first serdes lane is 3.

https://www.arista.com/en/um-eos/eos-layer-1-profiles
"""

from __future__ import annotations

import re

from compilers.targets.routed.interfaces import Abbreviation, Interfaces, LabNames

EOS = Interfaces(
    system="eos",
    pattern=re.compile(r"Ethernet[1-9][0-9]{0,2}(/[1-9][0-9]{0,2}){0,2}"),
    required="interface names of EOS",
    advice="Ethernet{cage}/{lane}",
    default_pattern="Ethernet{port}",
    by_serdes=True,
    management="Management1",
    vrf="MGMT",
    abbreviation=Abbreviation("Ethernet", "Et"),
    lab_names=LabNames("Ethernet", "eth", "_"),
)
