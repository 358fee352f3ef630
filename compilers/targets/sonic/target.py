"""The sonic target: config_db.json, and frr.conf for the split-unified mode.

docs/targets/routers.md describes both. Static routes are in both files: in table STATIC_ROUTE,
which bgpcfgd hands to FRR, and in frr.conf, with the tag that bgpcfgd gives routes that it does not
advertise. So both make the same routes. With BFD it is frrcfgd in the place of bgpcfgd, without the
tag (docs/targets/bgp.md).

Packets from hosts share ports in VRF `Vrf-hosts` (`p2p_links`): `nexthop`, `ifname` and
`nexthop-vrf` of a route are lists of one length (sonic-static-route.yang, bgpcfgd's
managers_static_rt.py). A name of a VRF begins with `Vrf`, one `advertise` covers all members,
and no entry of a list is empty. Marked packets come in on a subinterface in a VRF, whose name is
the short one of the kernel, so that its VLAN is said (sonic-vlan-sub-interface.yang; SONiC
doc/subport/sonic-sub-port-intf-hld.md, 2.1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from compilers.readers.routers.router_files import RouterFolder
from compilers.spec.features import AGGREGATES, CHANNELS, INGRESS, MARKS, WEIGHTS
from compilers.tables.build import Build
from compilers.targets.base_config import BaseConfig
from compilers.targets.capabilities import Capabilities
from compilers.targets.devices.reached import AnsibleConnection, ContainerKind, RouteMapWords
from compilers.targets.node_facts import shown
from compilers.targets.options import Chosen, Option
from compilers.targets.routed.bgp.bgp_options import BFD, BY_FRR, INTERFACE_SESSIONS, ROUTING
from compilers.targets.routed.p2p_fabric import P2P_UNREACHABLE, VLAN
from compilers.targets.routed.p2p_links import P2P_AGREEMENTS, P2pTarget
from compilers.targets.routed.p2p_variables import HostPort, P2pLink, P2pRouter, P2pVariables, Route
from compilers.targets.sonic import neighbours, routing_tables
from compilers.targets.sonic.device import SonicDevice
from compilers.targets.sonic.port_names import SONIC

HWSKU = "hwsku"
Entry = dict[str, str]
Table = dict[str, Entry]
MEGABITS = 1000
FEC = {"rs": "rs", "fc": "fc", "off": "none"}
UNADVERTISED = 2
"""The tag that bgpcfgd gives routes with `advertise: false`."""


@dataclass(frozen=True, slots=True)
class SonicVariables(P2pVariables):
    """The variables of the templates."""

    config_db: dict[str, Table]
    """The tables of CONFIG_DB."""
    tag: int
    """The tag of routes that bgpcfgd does not advertise."""


@dataclass(frozen=True, slots=True)
class SonicTables:
    """What an addition has printed at a switch."""

    tables: Mapping[str, Table]
    """Tables of CONFIG_DB, behind those that every router has."""
    ipv6_routes: tuple[Route, ...] = ()
    """Static routes, behind those to prefixes of switches."""


class Sonic(P2pTarget):
    """Static routes of SONiC."""

    name = "sonic"
    summary = "config_db.json for SONiC, and frr.conf for the split-unified mode"
    files = dict.fromkeys(("config_db.json", "frr.conf"), SonicVariables)
    capabilities = Capabilities(frozenset({AGGREGATES, CHANNELS, INGRESS, MARKS, WEIGHTS}))
    interfaces = SONIC
    neighbours = neighbours.FORM
    routing_tables = routing_tables.FORM
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
    agreements = MappingProxyType({**P2P_AGREEMENTS, **BY_FRR})
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
        """See `P2pTarget.folder`."""
        return RouterFolder(
            self.name,
            tuple(self.files),
            without_interfaces=frozenset({"frr.conf"}),
            read_elsewhere=frozenset({"config_db.json"}),
        )

    def grammar_facts(self, chosen: Chosen) -> tuple[str, ...]:
        """See `P2pTarget.grammar_facts`."""
        hwsku = chosen[HWSKU]
        facts = [*super().grammar_facts(chosen)]
        if hwsku:
            facts += [HWSKU, f"{HWSKU} {hwsku}"]
        if chosen[ROUTING] == "bgp" and chosen[BFD] == "on":
            facts.append("bfdd")
        return tuple(facts)

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], SonicVariables]:
        """See `Target.variables`."""
        fabric = self.fabric(build, chosen)
        added: list[Callable[[int], SonicTables]] = self.printed(fabric, chosen)

        def of_router(vertex: int) -> SonicVariables:
            tables = [of(vertex) for of in added]
            return sonic_variables(fabric.variables(vertex), chosen, tables)

        return of_router


def sonic_variables(
    values: P2pVariables, chosen: Chosen, added: Sequence[SonicTables]
) -> SonicVariables:
    """The variables of a router's templates.

    Args:
        values: those of every system.
        chosen: the value of every option.
        added: what additions have printed at the router.
    """
    routes = [route for addition in added for route in addition.ipv6_routes]
    values = replace(values, ipv6_routes=[*values.ipv6_routes, *routes])
    config = config_db(values, chosen[HWSKU])
    for addition in added:
        config |= addition.tables
    return SonicVariables(**shown(values), config_db=config, tag=UNADVERTISED)


def config_db(values: P2pVariables, hwsku: str) -> dict[str, Table]:
    """A router as the tables of CONFIG_DB; tables without entries are left out.

    Args:
        values: the variables of its templates.
        hwsku: the hardware's name, "" for none.
    """
    router = values.router
    metadata = {
        "hostname": router.hostname,
        "type": "LeafRouter",
        "docker_routing_config_mode": "split-unified",
    }
    if values.bgp and values.bgp.bfd:  # without it no bfdd is started (supervisord.conf.j2)
        metadata["frr_mgmt_framework_config"] = "true"
    tables: dict[str, Table] = {
        "DEVICE_METADATA": {"localhost": metadata | ({"hwsku": hwsku} if hwsku else {})},
        **_base(values.base),
        "PORT": dict(_ports(router)),
        "BREAKOUT_CFG": {p.cage: {"brkout_mode": p.mode} for p in router.cages if p.mode},
        "VRF": {vrf: {} for vrf in (values.vrf, *(s.vrf for s in values.stages)) if vrf},
        "INTERFACE": dict(_interfaces(values)),
        "VLAN_SUB_INTERFACE": dict(_subinterfaces(values)),
        "STATIC_ROUTE": dict(_routes(values)),
        **_hosts(values),
    }
    return {name: table for name, table in tables.items() if table}


def _base(base: BaseConfig) -> dict[str, Table]:
    """Management, time and logs; SONiC keeps the routes of eth0 in a table of their own."""
    address = {f"{base.interface}|{base.address}": {"gwaddr": base.gateway} if base.gateway else {}}
    return {
        "MGMT_INTERFACE": address if base.address else {},
        "NTP_SERVER": {server: {} for server in base.ntp},
        "SYSLOG_SERVER": {server: {} for server in base.syslog},
    }


def _ports(router: P2pRouter) -> Iterator[tuple[str, Entry]]:
    """Table PORT; what the inventory does not say of a port stays as the switch has it."""
    ends: tuple[P2pLink | HostPort, ...] = (*router.links, *router.hosts)
    for end in ends:
        port = end.port
        entry = {"admin_status": "up", "description": end.description}
        if port.lane_numbers:
            entry["lanes"] = port.lane_numbers
        if port.speed:
            entry["speed"] = str(port.speed * MEGABITS)
        if port.fec in FEC:
            entry["fec"] = FEC[port.fec]
        if port.mtu:
            entry["mtu"] = str(port.mtu)
        yield end.interface, entry


def _interfaces(values: P2pVariables) -> Iterator[tuple[str, Entry]]:
    """Table INTERFACE: links, and the port of the only host."""
    router = values.router
    for link in router.links:
        if link.ipv4:
            yield from _addressed(link.interface, "", link.ipv4, link.ipv6)
        else:
            yield link.interface, {"ipv6_use_link_local_only": "enable"}
    if len(router.hosts) == 1:
        yield from _gateway(values)


def _subinterfaces(values: P2pVariables) -> Iterator[tuple[str, Entry]]:
    """Table VLAN_SUB_INTERFACE: what brings marked packets from each link."""
    for stage in values.stages:
        entries = dict(_addressed(stage.interface, stage.vrf, stage.ipv4, stage.ipv6))
        entries[stage.interface] |= {"vlan": str(stage.vlan), "admin_status": "up"}
        yield from entries.items()


def _hosts(values: P2pVariables) -> dict[str, Table]:
    """The tables of a switch without hosts, or with several of them in one network."""
    router = values.router
    if not router.hosts:
        own = f"{router.ipv4}/32", router.ipv6 and f"{router.ipv6}/128"
        return {"LOOPBACK_INTERFACE": dict(_addressed("Loopback0", "", *own))}
    if len(router.hosts) == 1:
        return {}
    name = router.host_interface
    return {
        "VLAN": {name: {"vlanid": str(VLAN)}},
        "VLAN_MEMBER": {
            f"{name}|{host.interface}": {"tagging_mode": "untagged"} for host in router.hosts
        },
        "VLAN_INTERFACE": dict(_gateway(values)),
    }


def _gateway(values: P2pVariables) -> Iterator[tuple[str, Entry]]:
    """The interface of hosts, with the gateway's addresses."""
    router = values.router
    own = f"{router.ipv4}/{router.ipv4_length}", router.ipv6 and f"{router.ipv6}/64"
    return _addressed(router.host_interface, values.vrf, *own)


def _addressed(name: str, vrf: str, *addresses: str) -> Iterator[tuple[str, Entry]]:
    """The entries of an interface and of its addresses; "" is none."""
    yield name, {"vrf_name": vrf} if vrf else {}
    for address in filter(None, addresses):
        yield f"{name}|{address}", {}


def _routes(values: P2pVariables) -> Iterator[tuple[str, Entry]]:
    """Table STATIC_ROUTE."""
    vrf = values.vrf
    for family in values.families():
        if family.pool:
            discard = {"blackhole": "true", "distance": str(P2P_UNREACHABLE), "advertise": "false"}
            yield from ((f"{name}|{family.pool}", discard) for name in ("default", vrf) if name)
        for prefix, gateway, interface in family.routes:
            entry = {"nexthop": gateway, "ifname": interface, "advertise": "false"}
            yield f"default|{prefix}", entry
    for _, name, shared in values.between_vrfs():
        entries = {next_hops: _between_vrfs(next_hops) for _, next_hops in shared}
        yield from ((f"{name}|{prefix}", entries[next_hops]) for prefix, next_hops in shared)
    for prefix, gateway, interface in values.router.back() if vrf else ():
        yield f"default|{prefix}", _between_vrfs([(gateway, interface, vrf)])


def _between_vrfs(next_hops: Sequence[Route]) -> Entry:
    """The entry of a route whose next hops are in other VRFs: gateway, interface, VRF of each."""
    gateways, interfaces, vrfs = zip(*next_hops, strict=True)
    ifname = {"ifname": ",".join(interfaces)} if all(interfaces) else {}
    return {
        "nexthop": ",".join(gateways),
        **ifname,
        "nexthop-vrf": ",".join(vrfs),
        "advertise": "false",
    }
