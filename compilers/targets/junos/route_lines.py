"""Static routes in a configuration of Junos."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilers.readers.devices.held_routes import MAIN, prefix_text
from compilers.targets.devices.route_lines import DEFAULTS, RouteLine

JUNOS_ROUTE = re.compile(
    r"set (?P<at>(?:routing-instances (?P<table>\S+) )?routing-options (?:rib \S+ )?static route "
    r"(?P<prefix>\S+)) (?P<leaf>\S+)(?P<value>.*)"
)


def junos_lines(text: str) -> Iterator[RouteLine]:
    """Those of `show configuration | display set`."""
    for line in text.splitlines():
        if found := JUNOS_ROUTE.fullmatch(line.strip()):
            at, leaf, value = found["at"], found["leaf"], found["value"]
            many, table = leaf == "next-hop", found["table"] or ""
            yield RouteLine(
                MAIN if table in DEFAULTS else table,
                prefix_text(found["prefix"]),
                (leaf, value.strip()),
                leaf="" if many else leaf,
                add=line.strip(),
                drop=f"delete {at} {leaf}{value if many else ''}",
                clear=f"delete {at}",
            )
