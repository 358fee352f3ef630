"""Names of ports on Cumulus Linux."""

from __future__ import annotations

import re

from compilers.targets.routed.interfaces import Interfaces

CUMULUS = Interfaces(
    "linux",
    re.compile(r"swp[1-9][0-9]{0,2}(s[0-7])?"),
    "interface names of Cumulus Linux",
    "swp{cage}s{lane}",
    "swp{port}",
    first_lane=0,
    vlan="vlan",
)
