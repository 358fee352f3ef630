"""The junos target: a device config for Junos (docs/targets/routers.md).

Packets from hosts are looked up in a table of their own by filter-based forwarding: a filter at the
port of the hosts sends packets for the fabric to a forwarding instance. The port itself stays where
it is, so there is no return path to see to. So it is with marked packets: each link has a unit of
VLAN 3, a filter there, and an instance. Interface routes are in all instances, so these find next
hops and hosts. Packets without a mark are those of the native VLAN, 1.
"""

from __future__ import annotations

from compilers.targets.routed.interfaces import JUNOS
from compilers.targets.routed.p2p_links import P2pTarget, P2pVariables


class Junos(P2pTarget):
    """Static routes of Junos; those of packets from hosts by filter-based forwarding."""

    name = "junos"
    summary = "a device config for Junos"
    files = dict.fromkeys(("junos.set",), P2pVariables)
    interfaces = JUNOS
    vrf = "polarfab"
    between = False
