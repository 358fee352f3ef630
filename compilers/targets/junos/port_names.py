"""Names of ports in Junos: `et-0/0/7:1` is part 1 of cage 7, both counted from 0.

https://www.juniper.net/documentation/us/en/software/junos/interfaces-ethernet-switches/topics/concept/configure-port-speed.html
"""

from __future__ import annotations

import re

from compilers.targets.routed.interfaces import Interfaces

JUNOS = Interfaces(
    system="junos",
    pattern=re.compile(r"(ge|mge|xe|et)-[0-9]{1,2}/[0-9]/[0-9]{1,3}(:[0-9])?"),
    required="interface names of Junos",
    advice="et-0/0/{cage}:{lane}",
    default_pattern="et-0/0/{port}",
    first=0,
    first_lane=0,
    management="re0:mgmt-0",
    vrf="mgmt_junos",
)
