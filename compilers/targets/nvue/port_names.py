"""Names of ports on Cumulus Linux: `swp7s2` is part 2 of cage 7, with parts counted from 0."""

from __future__ import annotations

import re

from compilers.targets.routed.interfaces import Interfaces

CUMULUS = Interfaces(
    system="linux",
    pattern=re.compile(r"swp[1-9][0-9]{0,2}(s[0-7])?"),
    required="interface names of Cumulus Linux",
    advice="swp{cage}s{lane}",
    default_pattern="swp{port}",
    first_lane=0,
    vlan="vlan",
)
