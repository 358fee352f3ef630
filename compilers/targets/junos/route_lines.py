"""Static routes in a configuration of Junos, from `show configuration | display set`.

A line is `set [routing-instances VRF] routing-options [rib RIB] static route PREFIX LEAF [VALUE]`.
A prefix may have several leaves `next-hop`. A new value of any other leaf (`discard`, `metric`, …)
replaces the old one. A push compares the lines of the device with the rendered ones, and types
those that differ (`devices.route_lines`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilers.readers.devices.held_routes import MAIN_TABLE, prefix_text
from compilers.targets.devices.route_lines import MAIN_NAMES, RouteLine

JUNOS_ROUTE = re.compile(
    r"set (?P<path>(?:routing-instances (?P<instance>\S+) )?routing-options (?:rib \S+ )?"
    r"static route (?P<prefix>\S+)) (?P<leaf>\S+)(?P<value>.*)"
)
"""`set routing-options static route 10.0.0.4/30 next-hop 100.64.0.1`."""


def junos_lines(text: str) -> Iterator[RouteLine]:
    """The static routes in the output of `show configuration | display set`."""
    for line in text.splitlines():
        statement = line.strip()
        route = JUNOS_ROUTE.fullmatch(statement)
        if route is None:
            continue
        path, leaf, value = route["path"], route["leaf"], route["value"]
        instance = route["instance"] or ""
        is_next_hop = leaf == "next-hop"
        yield RouteLine(
            table=MAIN_TABLE if instance in MAIN_NAMES else instance,
            prefix=prefix_text(route["prefix"]),
            words=(leaf, value.strip()),
            unique_property="" if is_next_hop else leaf,
            add=statement,
            remove=f"delete {path} {leaf}{value}" if is_next_hop else f"delete {path} {leaf}",
            remove_all=f"delete {path}",
        )
