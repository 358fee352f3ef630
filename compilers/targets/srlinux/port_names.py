"""Names of ports in SR Linux: `ethernet-1/7/3` is part 3 of cage 7.

https://documentation.nokia.com/srlinux/25-3/books/interfaces/breakout-ports.html
"""

from __future__ import annotations

import re

from compilers.targets.routed.interfaces import Interfaces, LabNames

SRLINUX = Interfaces(
    system="srlinux",
    pattern=re.compile(
        r"ethernet-[1-9][0-9]?(/[1-9][0-9]?)?/([1-9][0-9]?|1[01][0-9]|12[0-8])(/[1-9][0-9]?)?"
    ),
    required="interface names of SR Linux, whose port is at most 128",
    advice="ethernet-1/{cage}/{lane}",
    default_pattern="ethernet-1/{port}",
    management="mgmt0",
    lab_names=LabNames("ethernet-", "e", "-"),
)
