"""Recognise the lines of an EOS configuration that are about lossless priorities.

Who writes these lines (`eos_lossless`), reads them (`eos_priority_text`) and checks them
(`eos_priorities`) uses this module.
"""

from __future__ import annotations

import re

from compilers.readers.exact_text import exact_lines

QOS = re.compile(
    r"qos (map|profile) |(ip|ipv6) access-list lossless-|class-map type qos |policy-map type qual"
)
"""The beginning of a section about priorities, such as `qos profile lossless-host`."""
SERVICE = "   service-profile "
"""The beginning of an interface's line that names its QoS profile."""


def without_priorities(text: str) -> str:
    """A configuration with comments in the place of lines about priorities."""
    lines, inside = exact_lines(text), False
    for number, line in enumerate(lines):
        if line[:1] != " ":
            inside = QOS.match(line) is not None
        if inside or line.startswith(SERVICE):
            lines[number] = "!"
    return "\n".join(lines) + "\n"
