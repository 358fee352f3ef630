"""The srlinux target: a device config in the system's YANG models, as JSON (RFC 7951).

Routes refer to next-hop groups, one for each link and address family. `device_config` makes the
config; docs/targets/routers.md describes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType

from compilers.readers.routers.router_files import RouterFolder
from compilers.spec.features import AGGREGATES, INGRESS
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.devices.tool_settings import AnsibleConnection, ContainerKind
from compilers.targets.node_facts import fields_of
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.bgp_checks import require_bgp
from compilers.targets.routed.bgp.bgp_options import GTSM, NEXT_HOP_POOLS, ROUTING
from compilers.targets.routed.p2p_target import P2P_AGREEMENTS, P2pTarget
from compilers.targets.routed.p2p_variables import P2pVariables
from compilers.targets.srlinux import neighbours, routing_tables
from compilers.targets.srlinux.bgp_config import Tree
from compilers.targets.srlinux.device_config import config
from compilers.targets.srlinux.port_names import SRLINUX

MOST_ROUTES = 16_384
"""The most static routes of a network instance, of both families together (`max-elements`)."""
NO_INGRESS_REASON = "a next hop of it names no network instance"
"""Why packets from hosts cannot have routes of their own, for messages in which "it" is the system.

A static route cannot name the network instance of its next hop, so a network instance of hosts
could not lead to the links."""
UNSUPPORTED_OPTIONS = (*NEXT_HOP_POOLS, GTSM)
"""The options of `P2pTarget` that this target does not offer."""
POLICY_PART = re.compile(
    r"srl_nokia-routing-policy:routing-policy / policy (\S+) / statement (\S+) "
)
"""How the path of a part of a BGP policy begins. The groups are the names of the policy and of the
statement."""


@dataclass(frozen=True, slots=True)
class SrlinuxVariables(P2pVariables):
    """The variables of the template."""

    config: Tree
    """The configuration of the router, as a tree of the YANG models."""


class Srlinux(P2pTarget):
    """SR Linux, with static routes or BGP."""

    name = "srlinux"
    summary = "a device config for SR Linux, as JSON of its models"
    files = dict.fromkeys(("srlinux.json",), SrlinuxVariables)
    vrf = ""  # hosts are in the default network instance (NO_INGRESS_REASON)
    no_resolution_reason = NO_INGRESS_REASON
    agreements = MappingProxyType(
        {name: option for name, option in P2P_AGREEMENTS.items() if name not in UNSUPPORTED_OPTIONS}
    )
    capabilities = Capabilities(
        frozenset({AGGREGATES}), rows=MOST_ROUTES, why={INGRESS: NO_INGRESS_REASON}
    )
    interfaces = SRLINUX
    neighbours = neighbours.FORM
    routing_tables = routing_tables.FORM
    ansible = AnsibleConnection("ssh")
    container = ContainerKind(
        "nokia_srlinux", "srlinux", binds=(("srlinux.json", "/etc/opt/polarfab.json"),)
    )

    @property
    def folder(self) -> RouterFolder:
        """See `P2pTarget.folder`: BGP announces routes that discard, and statements have names."""
        return RouterFolder(
            self.name,
            tuple(self.files),
            announces_discarded=True,
            policy_part=POLICY_PART,
        )

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`: static routes of both families count together."""
        if chosen[ROUTING] == "bgp":
            require_bgp(build, self.name, chosen, NO_INGRESS_REASON)
            return
        families = 2 if build.addressing.ipv6 else 1
        capabilities = replace(self.capabilities, rows=MOST_ROUTES // families)
        capabilities.require(build, self.name)

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], SrlinuxVariables]:
        """See `Target.variables`."""
        fabric = self.fabric(build, chosen)

        def of_router(vertex: int) -> SrlinuxVariables:
            values = fabric.variables(vertex)
            return SrlinuxVariables(**fields_of(values), config=config(values))

        return of_router
