"""Static routes of SONiC's CONFIG_DB as `RouteLine`s, which a push compares.

`SonicDevice` calls `sonic_lines` for the running tables and for the rendered ones. The lines that
are typed are commands of `sonic-db-cli`.
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


def sonic_lines(config_db: Mapping[str, Any]) -> Iterator[RouteLine]:
    """The static routes of CONFIG_DB, each in one command, so that no daemon reads half a route.

    Args:
        config_db: the tables, as JSON.
    """
    for key, entry in as_mapping(config_db.get(STATIC_ROUTE)).items():
        vrf, _, prefix = key.rpartition("|")  # `Vrf-hosts|10.0.0.4/30`
        database_key = shlex.quote(f"{STATIC_ROUTE}|{key}")
        pairs = sorted((name, str(value)) for name, value in as_mapping(entry).items())
        values = " ".join(f"{name} {shlex.quote(value)}" for name, value in pairs)
        yield RouteLine(
            table=MAIN_TABLE if vrf in MAIN_NAMES else vrf,
            prefix=prefix_text(prefix),
            words=tuple(f"{name}={value}" for name, value in pairs),
            unique_property="entry",  # a prefix has one entry, which a new one replaces
            add=f"sonic-db-cli CONFIG_DB HSET {database_key} {values}",
            remove=f"sonic-db-cli CONFIG_DB DEL {database_key}",
        )
