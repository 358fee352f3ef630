"""A router as the tables of CONFIG_DB, SONiC's configuration database, for target sonic.

Target sonic calls `config_db` with the variables that templates of all systems have, and prints the
result as config_db.json.

A static route states its next hops in the fields `nexthop`, `ifname` and `nexthop-vrf`: lists of
one length, without empty members (sonic-static-route.yang, bgpcfgd's managers_static_rt.py). One
`advertise` covers the whole route.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compilers.targets.base_config import BaseConfig
from compilers.targets.routed.p2p_fabric import DISCARD_DISTANCE, HOST_VLAN
from compilers.targets.routed.p2p_variables import (
    HostPort,
    P2pLink,
    P2pRouter,
    P2pVariables,
    VrfNextHop,
)

Entry = dict[str, str]
"""The fields of an entry, by their names."""
Table = dict[str, Entry]
"""The entries of a table, by their keys."""
MEGABITS_PER_GIGABIT = 1000
"""CONFIG_DB states speeds in Mb/s, the inventory in Gb/s."""
FEC = {"rs": "rs", "fc": "fc", "off": "none"}
"""The values of `fec` in CONFIG_DB, by the inventory's words for forward error correction."""


def config_db(values: P2pVariables, hwsku: str) -> dict[str, Table]:
    """A router as the tables of CONFIG_DB; tables without entries are left out.

    Args:
        values: the variables of its templates.
        hwsku: the name of the hardware in SONiC; "" for none.
    """
    router = values.router
    metadata = {
        "hostname": router.hostname,
        "type": "LeafRouter",
        "docker_routing_config_mode": "split-unified",
    }
    if values.bgp and values.bgp.bfd:  # without it no bfdd is started (supervisord.conf.j2)
        metadata["frr_mgmt_framework_config"] = "true"
    if hwsku:
        metadata["hwsku"] = hwsku
    vrfs = (values.vrf, *(stage.vrf for stage in values.stages))
    tables: dict[str, Table] = {
        "DEVICE_METADATA": {"localhost": metadata},
        **_management_tables(values.base),
        "PORT": dict(_port_entries(router)),
        "BREAKOUT_CFG": {
            port.cage: {"brkout_mode": port.mode} for port in router.cages if port.mode
        },
        "VRF": {vrf: {} for vrf in vrfs if vrf},
        "INTERFACE": dict(_link_entries(values)),
        "VLAN_SUB_INTERFACE": dict(_subinterface_entries(values)),
        "STATIC_ROUTE": dict(_route_entries(values)),
        **_host_tables(values),
    }
    return {name: table for name, table in tables.items() if table}


def _management_tables(base: BaseConfig) -> dict[str, Table]:
    """The tables of management, time and logs.

    They need no VRF of management: SONiC itself keeps the routes of eth0 in a table of their own.
    """
    fields: Entry = {"gwaddr": base.gateway} if base.gateway else {}
    return {
        "MGMT_INTERFACE": {f"{base.interface}|{base.address}": fields} if base.address else {},
        "NTP_SERVER": {server: {} for server in base.ntp},
        "SYSLOG_SERVER": {server: {} for server in base.syslog},
    }


def _port_entries(router: P2pRouter) -> Iterator[tuple[str, Entry]]:
    """The entries of table PORT.

    An entry states what the inventory knows of a port. Other fields stay as the switch has them.
    """
    ports_in_use: tuple[P2pLink | HostPort, ...] = (*router.links, *router.hosts)
    for end in ports_in_use:
        port = end.port
        entry = {"admin_status": "up", "description": end.description}
        if port.lane_numbers:
            entry["lanes"] = port.lane_numbers
        if port.speed:
            entry["speed"] = str(port.speed * MEGABITS_PER_GIGABIT)
        if port.fec in FEC:
            entry["fec"] = FEC[port.fec]
        if port.mtu:
            entry["mtu"] = str(port.mtu)
        yield end.interface, entry


def _link_entries(values: P2pVariables) -> Iterator[tuple[str, Entry]]:
    """The entries of table INTERFACE: links, and the port of the only host."""
    router = values.router
    for link in router.links:
        is_numbered = bool(link.ipv4)
        if is_numbered:
            yield from _interface_entries(link.interface, "", link.ipv4, link.ipv6)
        else:
            yield link.interface, {"ipv6_use_link_local_only": "enable"}
    if len(router.hosts) == 1:
        yield from _gateway_entries(values)


def _subinterface_entries(values: P2pVariables) -> Iterator[tuple[str, Entry]]:
    """The entries of table VLAN_SUB_INTERFACE: the subinterfaces where marked packets come in."""
    for stage in values.stages:
        entries = dict(_interface_entries(stage.interface, stage.vrf, stage.ipv4, stage.ipv6))
        entries[stage.interface] |= {"vlan": str(stage.vlan), "admin_status": "up"}
        yield from entries.items()


def _host_tables(values: P2pVariables) -> dict[str, Table]:
    """The tables for the hosts of a switch: a loopback if it has none, a VLAN if it has several.

    If it has one host, the port of the host is in table INTERFACE (`_link_entries`).
    """
    router = values.router
    if not router.hosts:
        addresses = f"{router.ipv4}/32", router.ipv6 and f"{router.ipv6}/128"
        return {"LOOPBACK_INTERFACE": dict(_interface_entries("Loopback0", "", *addresses))}
    if len(router.hosts) == 1:
        return {}
    name = router.host_interface
    return {
        "VLAN": {name: {"vlanid": str(HOST_VLAN)}},
        "VLAN_MEMBER": {
            f"{name}|{host.interface}": {"tagging_mode": "untagged"} for host in router.hosts
        },
        "VLAN_INTERFACE": dict(_gateway_entries(values)),
    }


def _gateway_entries(values: P2pVariables) -> Iterator[tuple[str, Entry]]:
    """The entries of the interface of hosts and of its addresses, those of the gateway."""
    router = values.router
    addresses = f"{router.ipv4}/{router.ipv4_length}", router.ipv6 and f"{router.ipv6}/64"
    return _interface_entries(router.host_interface, values.vrf, *addresses)


def _interface_entries(name: str, vrf: str, *addresses: str) -> Iterator[tuple[str, Entry]]:
    """The entries of an interface and of its addresses.

    Args:
        name: the name of the interface.
        vrf: its VRF; "" for the default VRF.
        addresses: with lengths; "" for no address.
    """
    yield name, {"vrf_name": vrf} if vrf else {}
    for address in filter(None, addresses):
        yield f"{name}|{address}", {}


def _route_entries(values: P2pVariables) -> Iterator[tuple[str, Entry]]:
    """The entries of table STATIC_ROUTE."""
    for family in values.families():
        if family.pool:
            discard = {"blackhole": "true", "distance": str(DISCARD_DISTANCE), "advertise": "false"}
            vrfs = filter(None, ("default", values.vrf))
            yield from ((f"{vrf}|{family.pool}", discard) for vrf in vrfs)
        for prefix, gateway, interface in family.routes:
            entry = {"nexthop": gateway, "ifname": interface, "advertise": "false"}
            yield f"default|{prefix}", entry
    for _command, vrf, routes in values.between_vrfs():
        # Many prefixes have the same next hops: one entry serves them all.
        entries = {next_hops: _inter_vrf_route(next_hops) for _, next_hops in routes}
        yield from ((f"{vrf}|{prefix}", entries[next_hops]) for prefix, next_hops in routes)
    # Packets to hosts are looked up in the default VRF, which hosts are not in.
    routes_to_hosts = values.router.back() if values.vrf else ()
    for prefix, gateway, interface in routes_to_hosts:
        yield f"default|{prefix}", _inter_vrf_route([(gateway, interface, values.vrf)])


def _inter_vrf_route(next_hops: Sequence[VrfNextHop]) -> Entry:
    """The entry of a route whose next hops are in other VRFs.

    `ifname` is left out where BGP resolves the next hops, which then have no interface.

    >>> _inter_vrf_route([("10.0.0.1", "Ethernet0", "default")])["nexthop-vrf"]
    'default'
    """
    gateways, interfaces, vrfs = zip(*next_hops, strict=True)
    entry = {"nexthop": ",".join(gateways)}
    if all(interfaces):
        entry["ifname"] = ",".join(interfaces)
    return entry | {"nexthop-vrf": ",".join(vrfs), "advertise": "false"}
