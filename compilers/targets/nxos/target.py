"""The nxos target: a device config for NX-OS (docs/targets/routers.md).

Packets from hosts share ports in VRF `hosts` (`p2p_links`). A member of a route is a line in `vrf
context hosts`: `ip route PREFIX INTERFACE NEXTHOP vrf default`, the last word the VRF of the next
hop (Batfish's grammar cisco_nxos/CiscoNxos_static.g4; attribute nhVrf of NX-API's ipv4Nexthop).
Marked packets come in on a subinterface in a VRF (Interfaces Configuration Guide, "Configuring a
Subinterface"); the hash has a seed of its own (Unicast Routing Configuration Guide, "Configuring
Load Sharing in the Unicast FIB": `universal-id`).
"""

from __future__ import annotations

from compilers.targets.devices.reached import AnsibleConnection, RouteMapWords
from compilers.targets.nxos import neighbours, routing_tables
from compilers.targets.nxos.device import NxosDevice
from compilers.targets.nxos.port_names import NXOS
from compilers.targets.routed.p2p_links import P2pTarget, P2pVariables


class Nxos(P2pTarget):
    """Static routes of NX-OS."""

    name = "nxos"
    summary = "a device config for NX-OS"
    files = dict.fromkeys(("nxos.cfg",), P2pVariables)
    hier_config = dict.fromkeys(("nxos.cfg",), "CISCO_NXOS")
    interfaces = NXOS
    neighbours = neighbours.FORM
    routing_tables = routing_tables.FORM
    device = NxosDevice
    ansible = AnsibleConnection("ansible.netcommon.network_cli", "cisco.nxos.nxos")
    route_maps = RouteMapWords()
