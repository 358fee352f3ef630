"""The junos target: a device config for Junos (docs/targets/routers.md).

Packets from hosts are looked up in a table of their own by filter-based forwarding: a filter at the
port of the hosts sends packets for the fabric to a routing instance. The port itself stays in the
main instance, so packets to hosts need no other route. Marked packets, which a balance has the next
switch spread over its other links (`p2p_fabric`), are looked up in the same way: each link has a
unit of VLAN 3 with a filter that sends them to an instance. Interface routes are imported into all
instances, so that next hops and hosts are reachable from each. Packets without a mark have the
native VLAN, 1.
"""

from __future__ import annotations

import re

import numpy as np

from compilers.readers.bgp.bgp_speaker import JUNOS_PATHS
from compilers.readers.routers.router_files import RouterFolder
from compilers.tables.build import Build
from compilers.targets.devices.tool_settings import AnsibleConnection
from compilers.targets.junos import neighbours, routing_tables
from compilers.targets.junos.device import JunosDevice
from compilers.targets.junos.port_names import JUNOS
from compilers.targets.options import Chosen
from compilers.targets.routed.p2p_target import P2pTarget
from compilers.targets.routed.p2p_variables import P2pVariables
from inventory.problems import InputError

POLICY_PART = re.compile(r"policy-options policy-statement (\S+) term (\S+) ")
"""How a statement of a policy begins. The groups are the names of the policy and of the term."""


class Junos(P2pTarget):
    """Junos, with static routes or eBGP; packets from hosts by filter-based forwarding."""

    name = "junos"
    summary = "a device config for Junos"
    files = dict.fromkeys(("junos.set",), P2pVariables)
    interfaces = JUNOS
    neighbours = neighbours.FORM
    routing_tables = routing_tables.FORM
    device = JunosDevice
    ansible = AnsibleConnection("ansible.netcommon.netconf", "junipernetworks.junos.junos")
    vrf = "polarfab"
    leaks_host_routes = False

    @property
    def folder(self) -> RouterFolder:
        """See `P2pTarget.folder`: BGP announces routes that discard, and terms have names."""
        return RouterFolder(
            self.name,
            tuple(self.files),
            announces_discarded=True,
            policy_part=POLICY_PART,
        )

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`: also that routes of BGP have no more next hops than Junos takes.

        Raises:
            InputError: a route has more, or the system cannot do what the build asks for.
        """
        super().require(build, chosen)
        # int[S, C]: the alternates that share packets with the minimal next hop of a class.
        alternates = np.count_nonzero(build.tables.classes.alternate > 0, axis=2)
        next_hops = 1 + int(alternates.max(initial=0))
        if build.forwarding.every_hop and next_hops > JUNOS_PATHS:
            raise InputError.of(
                key="routing.transit",
                required=f"at most {JUNOS_PATHS} next hops of a route for target {self.name}, "
                "which writes no `chassis maximum-ecmp`",
                given=str(next_hops),
                todo="choose another target",
            )
