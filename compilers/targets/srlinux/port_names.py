"""Names of ports in SR Linux.

https://documentation.nokia.com/srlinux/25-3/books/interfaces/breakout-ports.html
"""

from __future__ import annotations

import re

from compilers.targets.routed.interfaces import Interfaces

SRLINUX = Interfaces(
    "srlinux",
    re.compile(
        r"ethernet-[1-9][0-9]?(/[1-9][0-9]?)?/([1-9][0-9]?|1[01][0-9]|12[0-8])(/[1-9][0-9]?)?"
    ),
    "interface names of SR Linux, whose port is at most 128",
    "ethernet-1/{cage}/{lane}",
    "ethernet-1/{port}",
    management="mgmt0",
    lab=("ethernet-", "e", "-"),
)
