"""Lossless priorities of EOS: a priority for each pair of switches, which the hosts mark.

EOS has one map from DSCP to traffic class, and the class is both the PFC priority and the queue
(EOS manual, Quality of Service). So a packet cannot wait in another priority than the one that it
came in: it keeps one for its whole path (`layers`), which depends on where it goes. Hosts mark
packets. A switch that marked them would pause the host in a priority that the host does not send
in. At the ports of hosts an access list takes priority from packets marked for another layer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from types import MappingProxyType

import numpy as np

from compilers.readers.emitted_report import DifferenceList
from compilers.targets.eos.target import EosStatements
from compilers.targets.options import OFF, Chosen, Option
from compilers.targets.routed.p2p_fabric import P2pFabric
from extensions.lossless.eos_priorities import check_layers
from extensions.lossless.eos_priority_lines import without_priorities
from extensions.lossless.lossless_addition import LOSSLESS, LosslessAddition
from extensions.lossless.priorities import PAIRS, LayerPlan, buffer_of, dscp_of

CNP_DSCP, CNP_CLASS = 48, 6
"""The DSCP and the traffic class of RoCE's congestion notification packets (CNP). They have a queue
that is served before all others."""
LOSSY_CLASS = 1
"""The traffic class of all other packets, that of DSCP 0 by default."""
NUMBER_STEP = 10
"""The step from the sequence number of one entry of an access list to the next, as in EOS."""
FABRIC_PROFILE, HOST_PROFILE = "lossless-fabric", "lossless-host"
"""The QoS profiles of links, and of ports of hosts."""


@dataclass(frozen=True, slots=True)
class AddressFamily:
    """An address family that has access lists of its own."""

    keyword: str
    """The family in commands: `ip` or `ipv6`."""
    suffix: str
    """What the names of its lists and classes end in."""
    network: Callable[[int], IPv4Network | IPv6Network]
    """The network of a switch's hosts."""


@dataclass(frozen=True, slots=True)
class EosQos:
    """The commands of the lossless priorities of a fabric's switches."""

    plan: LayerPlan
    """The layers of the build as priorities."""

    def commands(self, vertex: int) -> list[str]:
        """The lines of a switch, but for those of its interfaces."""
        return [
            *self._classes(),
            *self._host_policy(vertex),
            *self._profile(vertex, FABRIC_PROFILE),
            *self._profile(vertex, HOST_PROFILE),
        ]

    def _classes(self) -> Iterator[str]:
        """The maps from DSCP to traffic class, and from traffic class to queue."""
        class_of_dscp = {dscp_of(p): p for p in self.plan.priorities} | {CNP_DSCP: CNP_CLASS}
        lossy_dscps = " ".join(str(dscp) for dscp in range(64) if dscp not in class_of_dscp)
        yield f"qos map dscp {lossy_dscps} to traffic-class {LOSSY_CLASS}"
        for dscp, traffic_class in class_of_dscp.items():
            yield f"qos map dscp {dscp} to traffic-class {traffic_class}"
        for traffic_class in (LOSSY_CLASS, *sorted(class_of_dscp.values())):
            yield f"qos map traffic-class {traffic_class} to tx-queue {traffic_class}"
        yield "!"

    def _host_policy(self, vertex: int) -> Iterator[str]:
        """The policy for packets of hosts that are marked for another layer than their pair's.

        Its access lists, `lossless-wrong`, match these packets. They become lossy.
        """
        addressing = self.plan.build.addressing
        families = [AddressFamily("ip", "", addressing.network)]
        if addressing.ipv6:
            families.append(AddressFamily("ipv6", "-ipv6", addressing.network6))
        dscps = [dscp_of(priority) for priority in self.plan.priorities]
        for family in families:
            yield f"{family.keyword} access-list lossless-wrong{family.suffix}"
            number = 0
            for destination in np.flatnonzero(self.plan.build.topology.endpoints).tolist():
                for layer, dscp in enumerate(dscps):
                    is_wrong = layer != self.plan.layer[vertex, destination]
                    if destination != vertex and is_wrong:
                        number += NUMBER_STEP
                        prefix = family.network(destination)
                        yield f"   {number} permit {family.keyword} any {prefix} dscp {dscp}"
            yield "!"
        for family in families:
            yield f"class-map type qos match-any lossless-wrong{family.suffix}"
            yield f"   match {family.keyword} access-group lossless-wrong{family.suffix}"
            yield "!"
        yield "policy-map type quality-of-service lossless"
        for family in families:
            yield f"   class lossless-wrong{family.suffix}"
            yield "      set dscp 0"
            yield f"      set traffic-class {LOSSY_CLASS}"
            yield "   !"
        yield "!"

    def _profile(self, vertex: int, name: str) -> Iterator[str]:
        """A QoS profile, FABRIC_PROFILE or HOST_PROFILE."""
        buffer = buffer_of(self.plan.build, vertex)
        yield f"qos profile {name}"
        yield "   qos trust dscp"
        yield "   priority-flow-control on"
        for priority in sorted(self.plan.priorities):
            yield f"   priority-flow-control priority {priority} no-drop"
        if name == HOST_PROFILE:
            yield "   service-policy type qos input lossless"
        for priority in sorted(self.plan.priorities):
            yield "   !"
            yield f"   uc-tx-queue {priority}"
            yield (
                f"      random-detect ecn minimum-threshold {buffer.ecn_min} bytes "
                f"maximum-threshold {buffer.ecn_max} bytes "
                f"max-mark-probability {buffer.ecn_percent} weight 0"
            )
        yield "   !"
        yield f"   uc-tx-queue {CNP_CLASS}"
        yield "      priority strict"
        yield "!"


class EosLossless(LosslessAddition[EosStatements]):
    """Lossless priorities of EOS."""

    unmarked_balance = "minimal"  # a pair has one path
    options = MappingProxyType(
        {
            LOSSLESS: Option.choice(
                "Lossless priorities without deadlock; a pair of switches uses one of them.",
                OFF,
                PAIRS,
            ),
        }
    )

    def commented_out(self, text: str) -> str:
        """See `Addition.commented_out`."""
        return without_priorities(text)

    def differences(
        self,
        fabric: P2pFabric,
        chosen: Chosen,  # noqa: ARG002
        folder: Path,
        only: Collection[int] | None,
    ) -> DifferenceList:
        """See `Addition.differences`."""
        plan = LayerPlan.of(fabric.routers.build)
        return check_layers(plan, EosQos(plan).commands, folder, only)

    def printed(self, fabric: P2pFabric, chosen: Chosen) -> Callable[[int], EosStatements]:  # noqa: ARG002
        """See `Addition.printed`."""
        qos = EosQos(LayerPlan.of(fabric.routers.build))

        def of_router(vertex: int) -> EosStatements:
            """The statements of a router: global ones, and the QoS profile of each interface."""
            router = fabric.router(vertex)
            profiles = {link.interface: FABRIC_PROFILE for link in router.links}
            profiles |= {host.interface: HOST_PROFILE for host in router.hosts}
            return EosStatements(tuple(qos.commands(vertex)), profiles)

        return of_router
