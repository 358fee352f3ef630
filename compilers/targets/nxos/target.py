"""The nxos target: a device config for NX-OS (docs/targets/routers.md).

Packets from hosts are routed in VRF `hosts` with equal-cost multipath (`p2p_fabric`). Each next hop
of a route is a line in `vrf context hosts`: `ip route PREFIX INTERFACE NEXTHOP vrf default`, the
last word the VRF of the next hop (Batfish's grammar cisco_nxos/CiscoNxos_static.g4; attribute nhVrf
of NX-API's ipv4Nexthop). Marked packets come in on a subinterface in a VRF (Interfaces
Configuration Guide, "Configuring a Subinterface"); the hash has a seed of its own (Unicast Routing
Configuration Guide, "Configuring Load Sharing in the Unicast FIB": `universal-id`). A routed port
gets its MTU behind `no switchport`, as a switchport takes 1500 and the system's jumbo MTU only
("MTU on L2 interfaces can only be set to default or system-jumboMTU").
"""

from __future__ import annotations

from compilers.tables.build import Build
from compilers.targets.devices.tool_settings import AnsibleConnection, RouteMapWords
from compilers.targets.nxos import neighbours, routing_tables
from compilers.targets.nxos.device import NxosDevice
from compilers.targets.nxos.port_names import NXOS
from compilers.targets.options import Chosen
from compilers.targets.routed.p2p_target import P2pTarget
from compilers.targets.routed.p2p_variables import P2pVariables
from inventory.problems import InputError

SMALLEST_MTU, LARGEST_MTU = 1500, 9216
"""The smallest and the largest number that `system jumbomtu` takes."""


class Nxos(P2pTarget):
    """NX-OS, with static routes or eBGP."""

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

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`: also that the switchports of a switch have one MTU that they take.

        A switchport takes 1500 or the number of `system jumbomtu` (Interfaces Configuration Guide,
        "Configuring Basic Interface Parameters", MTU).

        Raises:
            InputError: a switch has several, or one that is too small or too large; or the system
                cannot do what the build asks for.
        """
        super().require(build, chosen)
        wiring, ports_of_types = build.wiring, self.interfaces.ports(build)
        for vertex, numbers in enumerate(wiring.host_port.tolist()):
            host_ports = [number for number in numbers if number]  # 0: no host
            has_switchports = len(host_ports) > 1
            if not has_switchports:
                continue
            ports = ports_of_types[int(wiring.node_type[vertex])]
            # Ports are numbered from 1. An MTU of 0 is not known.
            mtus = sorted({ports[number - 1].mtu for number in host_ports} - {0})
            if required := self._required_mtu(mtus):
                type_name = wiring.type_names[int(wiring.node_type[vertex])]
                given = f"{' and '.join(map(str, mtus))} at {wiring.names[vertex]}"
                raise InputError.of(required, given, key=f"node_types.{type_name}.ports")

    def _required_mtu(self, mtus: list[int]) -> str:
        """What is required of the MTUs of a switch's switchports; "" if they are right.

        Args:
            mtus: the different MTUs; none where the inventory names none.
        """
        if len(mtus) > 1:
            return f"one MTU at the ports of hosts of a switch for target {self.name}"
        if mtus and not SMALLEST_MTU <= mtus[0] <= LARGEST_MTU:
            return (
                f"an MTU from {SMALLEST_MTU} to {LARGEST_MTU} at the ports of several hosts, which "
                f"target {self.name} makes switchports"
            )
        return ""
