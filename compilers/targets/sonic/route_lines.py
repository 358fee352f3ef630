"""Static routes in SONiC's CONFIG_DB as commands that `push` compares and enters (`RouteLine`).

The device of target sonic calls `sonic_lines` for the running tables and for the rendered ones.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from compilers.readers.devices.held_routes import MAIN_TABLE, prefix_text
from compilers.readers.devices.neighbour_facts import as_mapping
from compilers.targets.devices.route_lines import MAIN_NAMES, RouteLine

STATIC_ROUTE = "STATIC_ROUTE"
"""The table of static routes in CONFIG_DB."""


def sonic_lines(tree: Mapping[str, Any]) -> Iterator[RouteLine]:
    """The static routes of CONFIG_DB, each in one command, so that no daemon reads half a route.

    Args:
        tree: CONFIG_DB as JSON.
    """
    for key, entry in as_mapping(tree.get(STATIC_ROUTE)).items():
        vrf, _, prefix = key.rpartition("|")
        database_key = shlex.quote(f"{STATIC_ROUTE}|{key}")
        pairs = sorted((name, str(value)) for name, value in as_mapping(entry).items())
        values = " ".join(f"{name} {shlex.quote(value)}" for name, value in pairs)
        yield RouteLine(
            table=MAIN_TABLE if vrf in MAIN_NAMES else vrf,
            prefix=prefix_text(prefix),
            words=tuple(f"{name}={value}" for name, value in pairs),
            leaf="entry",
            add=f"sonic-db-cli CONFIG_DB HSET {database_key} {values}",
            drop=f"sonic-db-cli CONFIG_DB DEL {database_key}",
        )
