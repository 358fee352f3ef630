"""Names of ports on a Linux kernel, for the targets linux, frr and bird."""

from __future__ import annotations

import re

from compilers.targets.routed.interfaces import BRIDGE, Interfaces

LINUX = Interfaces(
    system="linux",
    pattern=re.compile(r"(?!(?:lo|all|default|hosts)$)[A-Za-z0-9][A-Za-z0-9._-]{0,14}"),
    required="interface names of at most 15 letters, digits and . _ -, "
    f"and none of lo, all, default, {BRIDGE}",
    advice="swp{cage}s{lane}",
    first_lane=0,
)
"""Names that Linux takes for an interface (dev_valid_name), less those that need quoting."""
