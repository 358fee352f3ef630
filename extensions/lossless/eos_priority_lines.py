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
"""The beginning of a section about priorities, such as `qos profile lossless-host`.

`policy-map type qual` is short for `policy-map type quality-of-service`."""
SERVICE = "   service-profile "
"""The beginning of an interface's line that names its QoS profile."""


def without_priorities(text: str) -> str:
    """A configuration with the comment `!` in the place of each line about priorities.

    Such lines are not removed, so that all other lines keep their numbers, which reports name.
    """
    lines, is_in_section = exact_lines(text), False
    for index, line in enumerate(lines):
        if line[:1] != " ":
            is_in_section = QOS.match(line) is not None
        if is_in_section or line.startswith(SERVICE):
            lines[index] = "!"
    return "\n".join(lines) + "\n"
