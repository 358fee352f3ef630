"""Lines of EOS about lossless priorities, which whoever writes them reads back."""

from __future__ import annotations

import re

from compilers.readers.exact_text import exact_lines

QOS = re.compile(
    r"qos (map|profile) |(ip|ipv6) access-list lossless-|class-map type qos |policy-map type qual"
)
"""How the first line of a section begins that is about priorities."""
SERVICE = "   service-profile "


def without_priorities(text: str) -> str:
    """A configuration with comments in the place of lines about priorities."""
    lines, inside = exact_lines(text), False
    for number, line in enumerate(lines):
        if line[:1] != " ":
            inside = QOS.match(line) is not None
        if inside or line.startswith(SERVICE):
            lines[number] = "!"
    return "\n".join(lines) + "\n"
