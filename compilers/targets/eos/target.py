"""The eos target: a device config, and the same for Arista's AVD (docs/targets/routers.md).

Packets from hosts share ports in VRF `hosts` (`p2p_fabric`). Each next hop of a route there is a
line: `ip route vrf hosts PREFIX egress-vrf default INTERFACE NEXTHOP`, ECMP in the same or in
several egress VRFs (EOS user manual, Static Inter-VRF Route, with the multi-agent model only). AVD
6.4 has no key for `egress-vrf`, so these lines are in its `eos_cli`. Marked packets come in on a
subinterface in a VRF (EOS user manual, Subinterfaces: `encapsulation dot1q vlan`). An *addition* is
configuration that another package adds, such as lossless Ethernet (`targets.addition`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilers.readers.routers.router_files import RouterFolder
from compilers.spec.features import AGGREGATES, CHANNELS, INGRESS, MARKS, MULTIPATH
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.devices.tool_settings import AnsibleConnection, ContainerKind, RouteMapWords
from compilers.targets.eos import neighbours, routing_tables
from compilers.targets.eos.avd import CLI, differences, structured_config
from compilers.targets.eos.device import EosDevice
from compilers.targets.eos.port_names import EOS
from compilers.targets.node_facts import fields_of
from compilers.targets.options import Chosen
from compilers.targets.routed.interfaces import PhysicalPort
from compilers.targets.routed.p2p_target import P2pTarget
from compilers.targets.routed.p2p_variables import P2pVariables
from templates import environment

WITH_LANES = 50
"""The speed in Gb/s from which on the name of a speed includes the number of lanes."""


@dataclass(frozen=True, slots=True)
class EosVariables(P2pVariables):
    """The variables of the templates."""

    speeds: dict[str, str]
    """The speed of each port that is a part of a cage, by its name."""
    profiles: dict[str, str]
    """The QoS profile of each port, by its name, where priorities are lossless."""
    commands: tuple[str, ...]
    """The lines for which AVD has no key."""
    avd: dict[str, Any]
    """The router as AVD's structured config."""


@dataclass(frozen=True, slots=True)
class EosStatements:
    """The statements that an addition puts into the configuration of a switch."""

    commands: tuple[str, ...]
    """Lines before those of interfaces."""
    profiles: Mapping[str, str]
    """The QoS profile of each interface, by its name."""


class Eos(P2pTarget):
    """EOS, with static routes or eBGP: the configuration, and the same for AVD."""

    name = "eos"
    summary = "a device config for EOS, and the same for Arista's AVD"
    files = dict.fromkeys(("eos.cfg", "avd.json"), EosVariables)
    capabilities = Capabilities(frozenset({AGGREGATES, CHANNELS, INGRESS, MARKS, MULTIPATH}))
    hier_config = dict.fromkeys(("eos.cfg",), "ARISTA_EOS")
    interfaces = EOS
    neighbours = neighbours.FORM
    routing_tables = routing_tables.FORM
    device = EosDevice
    ansible = AnsibleConnection("ansible.netcommon.network_cli", "arista.eos.eos")
    container = ContainerKind("arista_ceos", "ceos", startup="eos.cfg")
    # User manual, "ipv6 prefix-list".
    route_maps = RouteMapWords(family_suffix="", list_sections=True)

    @property
    def folder(self) -> RouterFolder:
        """See `P2pTarget.folder`: avd.json is compared with what eos.cfg says."""
        return RouterFolder(self.name, ("eos.cfg",), other_formats={"avd.json": differences})

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], EosVariables]:
        """See `Target.variables`."""
        fabric = self.fabric(build, chosen)
        additions: list[Callable[[int], EosStatements]] = self.addition_variables(fabric, chosen)

        def of_router(vertex: int) -> EosVariables:
            statements = [statements_at(vertex) for statements_at in additions]
            return eos_variables(fabric.variables(vertex), statements)

        return of_router


def eos_variables(values: P2pVariables, additions: Sequence[EosStatements]) -> EosVariables:
    """The variables of a router's templates.

    Args:
        values: the variables that every system has.
        additions: the statements of each addition.
    """
    profiles = {port: name for addition in additions for port, name in addition.profiles.items()}
    commands = [line for addition in additions for line in addition.commands]
    speeds = {port.name: speed(port) for port in values.router.ports if port.cage and port.speed}
    inter_vrf_routes = _inter_vrf_routes(values) if values.vrf or values.stages else ()
    without_key = (*inter_vrf_routes, *commands)  # lines for which AVD has no key
    variables = {
        **fields_of(values),
        "speeds": speeds,
        "profiles": profiles,
        "commands": without_key,
    }
    eos_config = environment().get_template("eos/eos.cfg.j2").render(variables)
    avd = structured_config(eos_config)
    if without_key:
        avd = avd | {CLI: "\n".join(without_key)}
    return EosVariables(**variables, avd=avd)


def speed(port: PhysicalPort) -> str:
    """The speed of a part of a cage in EOS: 25g, or from 50 Gb/s on with its lanes, 100g-2."""
    if port.speed >= WITH_LANES:
        return f"{port.speed}g-{port.lanes}"
    return f"{port.speed}g"


def _inter_vrf_routes(values: P2pVariables) -> Iterator[str]:
    """The routes whose next hops are in another VRF, as lines of the configuration."""
    for command, vrf, routes in values.between_vrfs():  # `ip` or `ipv6`
        for prefix, next_hops in routes:
            for gateway, interface, egress_vrf in next_hops:
                next_hop = f"{interface} {gateway}".strip()  # one of both may be ""
                yield f"{command} route vrf {vrf} {prefix} egress-vrf {egress_vrf} {next_hop}"
    # Packets to hosts are looked up in the default VRF, which hosts are not in.
    routes_to_hosts = values.router.back() if values.vrf else ()
    for prefix, gateway, interface in routes_to_hosts:
        command = "ipv6" if ":" in prefix else "ip"
        yield f"{command} route {prefix} egress-vrf {values.vrf} {interface} {gateway}"
