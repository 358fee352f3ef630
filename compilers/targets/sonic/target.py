"""The sonic target: config_db.json, and frr.conf for the split-unified mode.

docs/targets/routers.md describes both files. Static routes are in both: in table STATIC_ROUTE of
CONFIG_DB, which the daemon bgpcfgd hands to FRR, and in frr.conf, which FRR starts from. bgpcfgd
gives a tag to routes that it does not advertise. So the template of frr.conf always writes this
tag, and both files make the same routes. With BFD, the daemon frrcfgd hands the routes of CONFIG_DB
to FRR instead of bgpcfgd, and gives them no tag (docs/targets/bgp.md).

Packets from hosts are looked up in VRF `Vrf-hosts`, whose routes share them over several next hops
(`p2p_fabric`). SONiC demands that the name of a VRF begins with `Vrf`. Marked packets come in on a
subinterface in another VRF. The subinterface has the short form of its name, such as `Eth4.3`, for
which CONFIG_DB states the VLAN explicitly
(sonic-vlan-sub-interface.yang; SONiC doc/subport/sonic-sub-port-intf-hld.md, 2.1). An *addition* is
configuration that another package adds, such as SRv6 (`targets.addition`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from compilers.readers.routers.router_files import RouterFolder
from compilers.spec.features import AGGREGATES, CHANNELS, INGRESS, MARKS, MULTIPATH
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.devices.tool_settings import AnsibleConnection, ContainerKind, RouteMapWords
from compilers.targets.node_facts import fields_of
from compilers.targets.options import Chosen, Option
from compilers.targets.routed.bgp.bgp_options import (
    BFD,
    FRR_AGREEMENTS,
    INTERFACE_SESSIONS,
    ROUTING,
)
from compilers.targets.routed.p2p_target import P2P_AGREEMENTS, P2pTarget
from compilers.targets.routed.p2p_variables import P2pVariables, Route
from compilers.targets.sonic import neighbours, routing_tables
from compilers.targets.sonic.config_db import Table, config_db
from compilers.targets.sonic.device import SonicDevice
from compilers.targets.sonic.port_names import SONIC

HWSKU = "hwsku"
"""The option with the hardware's name."""
UNADVERTISED_TAG = 2
"""The tag that bgpcfgd gives routes with `advertise: false`."""


@dataclass(frozen=True, slots=True)
class SonicVariables(P2pVariables):
    """The variables of the templates."""

    config_db: dict[str, Table]
    """The tables of CONFIG_DB."""
    tag: int
    """The tag of all routes in frr.conf. bgpcfgd gives it to routes that it does not advertise."""


@dataclass(frozen=True, slots=True)
class SonicTables:
    """What an addition puts into the configuration of a switch."""

    tables: Mapping[str, Table]
    """Further tables of CONFIG_DB, by name."""
    ipv6_routes: tuple[Route, ...] = ()
    """Further static routes, behind those to prefixes of switches."""


class Sonic(P2pTarget):
    """SONiC, with static routes or eBGP. `Target` and `P2pTarget` explain the attributes."""

    name = "sonic"
    summary = "config_db.json for SONiC, and frr.conf for the split-unified mode"
    files = dict.fromkeys(("config_db.json", "frr.conf"), SonicVariables)
    capabilities = Capabilities(frozenset({AGGREGATES, CHANNELS, INGRESS, MARKS, MULTIPATH}))
    interfaces = SONIC
    neighbours = neighbours.FORM  # reads what `show lldp table` prints
    routing_tables = routing_tables.FORM  # reads the routes that devices print
    device = SonicDevice
    ansible = AnsibleConnection("ssh", root=True)
    container = ContainerKind(
        "sonic-vs",
        "docker-sonic-vs",
        binds=(
            ("config_db.json", "/etc/sonic/polarfab.json"),
            ("frr.conf", "/etc/sonic/frr/frr.conf"),
        ),
    )
    route_maps = RouteMapWords()
    vrf = "Vrf-hosts"
    unnumbered = MappingProxyType({"bgp": INTERFACE_SESSIONS})
    # options on which all switches of a fabric agree, so that fabric.yaml gives their values
    agreements = MappingProxyType({**P2P_AGREEMENTS, **FRR_AGREEMENTS})
    options = MappingProxyType(
        {
            HWSKU: Option(
                "The hardware's name in DEVICE_METADATA; empty leaves it out.",
                "",
                "letters, digits and . _ -, at most 128",
                lambda text: re.fullmatch(r"[A-Za-z0-9._-]{0,128}", text) is not None,
            ),
        }
    )

    @property
    def folder(self) -> RouterFolder:
        """See `P2pTarget.folder`: frr.conf has no interfaces; other readers read config_db.json."""
        return RouterFolder(
            self.name,
            tuple(self.files),
            without_interfaces=frozenset({"frr.conf"}),
            read_by_others=frozenset({"config_db.json"}),
        )

    def grammar_facts(self, chosen: Chosen) -> tuple[str, ...]:
        """See `P2pTarget.grammar_facts`: further names of facts that lines of the grammars need.

        These are the hardware's name, if the user gave one, and `bfdd` if that daemon runs.
        """
        hwsku = chosen[HWSKU]
        facts = list(super().grammar_facts(chosen))
        if hwsku:
            facts += [HWSKU, f"{HWSKU} {hwsku}"]
        if chosen[ROUTING] == "bgp" and chosen[BFD] == "on":
            facts.append("bfdd")
        return tuple(facts)

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], SonicVariables]:
        """See `Target.variables`."""
        fabric = self.fabric(build, chosen)
        additions: list[Callable[[int], SonicTables]] = self.addition_variables(fabric, chosen)

        def of_router(vertex: int) -> SonicVariables:
            tables = [tables_at(vertex) for tables_at in additions]
            return sonic_variables(fabric.variables(vertex), chosen, tables)

        return of_router


def sonic_variables(
    values: P2pVariables, chosen: Chosen, additions: Sequence[SonicTables]
) -> SonicVariables:
    """The variables of a router's templates.

    Args:
        values: the variables that every system has.
        chosen: the value of every option.
        additions: the tables and routes of each addition.
    """
    added_routes = [route for addition in additions for route in addition.ipv6_routes]
    values = replace(values, ipv6_routes=[*values.ipv6_routes, *added_routes])
    tables = config_db(values, chosen[HWSKU])
    for addition in additions:
        tables |= addition.tables
    return SonicVariables(**fields_of(values), config_db=tables, tag=UNADVERTISED_TAG)
