"""The junos target: a device config for Junos (docs/targets/routers.md).

Packets from hosts are looked up in a table of their own by filter-based forwarding: a filter at the
port of the hosts sends packets for the fabric to a forwarding instance. The port itself stays where
it is, so there is no return path to see to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType

from compilers.spec.features import AGGREGATES, INGRESS, MARKS, WEIGHTS
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.control_plane import SHARING_OPTIONS
from compilers.targets.routed.interfaces import JUNOS
from compilers.targets.routed.p2p_links import P2P_OPTIONS, P2pTarget, P2pVariables
from inventory.route_tables.held_routes import RouteTables


class Junos(P2pTarget):
    """Static routes of Junos; those of packets from hosts by filter-based forwarding."""

    name = "junos"
    summary = "a device config for Junos"
    files = dict.fromkeys(("junos.set",), P2pVariables)
    capabilities = Capabilities(
        frozenset({AGGREGATES, INGRESS, WEIGHTS}),
        why={MARKS: "not written yet: a tagged unit, a filter and an instance for each link"},
    )
    interfaces = JUNOS
    vrf = "polarfab"
    not_found = ""
    options = MappingProxyType({**P2P_OPTIONS, **SHARING_OPTIONS})

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables]:
        """See `Target.routes_held`."""
        return partial(self.fabric(build, chosen).routes_held, between=False)
