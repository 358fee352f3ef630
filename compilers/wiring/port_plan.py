"""Plan the ports of a fabric: which port of its switch each link and each host takes.

Ports that the inventory fixes come first, then ports that links and hosts have in an earlier build,
then all others, by the order of `compilers.wiring.port_assignment`. At last, links and hosts leave
disabled ports for spare ones. `compilers.wiring.wire` makes a wiring of the plan.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.spec.installed import InstalledPlane
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.topology.polarity import is_whole
from compilers.wiring.fixed_cables import lines_of_hosts, pins_of, pins_of_hosts, with_installed
from compilers.wiring.generated_inventory import GENERATED
from compilers.wiring.port_assignment import (
    FixedPorts,
    Pins,
    PortDemand,
    move_to_spare_ports,
    ports_of_links,
)
from compilers.wiring.port_groups import PortGroups, alike_rows
from compilers.wiring.type_ports import SwitchPorts
from compilers.wiring.wiring_checks import PlacedNodes, Shortage
from inventory.problems import Finding

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory


@dataclass(frozen=True, slots=True, eq=False)
class PortPlan:
    """The ports of all links and hosts of S switches."""

    links: NDArray[np.int32]
    """int32[S, K]: the port of each link, 0 beyond the last and where ports have run out."""
    hosts: NDArray[np.int32]
    """int32[S, P]: the port of each host, 0 where there is no host or ports have run out."""
    short: dict[int, Shortage]
    """What is missing at each switch that has too few ports, by its vertex."""
    findings: list[Finding]
    """What is wrong with the ports that the inventory fixes."""


@dataclass(frozen=True, slots=True, eq=False)
class _Assignment:
    """The ports of links and hosts before any moves away from a disabled port."""

    links: NDArray[np.int32]
    """int32[S, K]: the port of each link."""
    hosts: NDArray[np.int32]
    """int32[S, P]: the port of each host."""
    fixed: FixedPorts
    """The ports that stayed fixed."""
    short: dict[int, Shortage]
    """What is missing at each switch that has too few ports, by its vertex."""


@dataclass(frozen=True, slots=True, eq=False)
class PortPlanner:
    """The links and hosts of a fabric that need ports."""

    topology: Topology
    """The fabric graph."""
    inventory: Inventory
    """The nodes, their types, racks, and cables by hand."""
    placed_nodes: PlacedNodes
    """The node of each vertex."""
    switches: SwitchPorts
    """The ports of each switch."""
    host_places: Sequence[Sequence[int]]
    """The places of the hosts of each switch: indexes of its host ports, from 0."""
    hosts_per_node: int
    """P, the most places of a switch."""

    def plan(
        self, position: NDArray[np.int32] | None = None, installed: InstalledPlane | None = None
    ) -> PortPlan:
        """Choose the ports of all links and hosts.

        Args:
            position: int32[S], the order of links to one rack; None for the order of vertices.
            installed: links and hosts that keep their ports, if these work; None for none.
        """
        by_hand, findings = self._ports_by_hand()
        fixed = by_hand
        if installed and not findings:
            fixed = with_installed(
                by_hand, installed, self.host_places, self.topology, self.switches
            )
        assignment = self._assign(fixed, by_hand, self._link_groups(position))
        self._place_hosts(assignment)
        links, hosts = move_to_spare_ports(
            assignment.links, assignment.hosts, self.switches, assignment.fixed.links
        )
        return PortPlan(links, hosts, assignment.short, findings)

    def _ports_by_hand(self) -> tuple[FixedPorts, list[Finding]]:
        """Return the ports that the inventory fixes, and what is wrong with them."""
        links, findings = pins_of(
            self.inventory.cables, self.topology, self.placed_nodes, self.switches
        )
        hosts, host_findings = pins_of_hosts(
            self.placed_nodes, self.switches, links, line_of_host=lines_of_hosts(self.inventory)
        )
        return FixedPorts(links, hosts), findings + host_findings

    def _link_groups(self, position: NDArray[np.int32] | None) -> PortGroups:
        """Return links grouped by the rack at their other end; one group without racks.

        With cassettes, links are in the order of their headings. A *heading* is a sort key by where
        a link leads, which is the same in racks that are alike (`Family.headings`). So racks of one
        kind use the lanes of ribbons in the same way.

        Args:
            position: int32[S], the order of links to one rack; None for the order of vertices.
        """
        topology, inventory, nodes = self.topology, self.inventory, self.placed_nodes.nodes
        far = topology.graph.padded()
        # Port blocks of the generated type are no modules.
        is_generated = GENERATED in inventory.node_types
        spread = inventory.placement.modules == "spread" and not is_generated
        needs_headings = inventory.panels or (spread and is_whole(topology))
        headings = family_of(topology.family).headings(topology) if needs_headings else None
        spread_number = None
        if spread:
            link_numbers = np.broadcast_to(np.arange(far.shape[1], dtype=np.int32), far.shape)
            spread_number = headings if is_whole(topology) else link_numbers
        if inventory.panels and headings is not None:
            single = PortGroups.single(far)
            return replace(single, order=np.argsort(headings, axis=1), spread_number=spread_number)
        if not inventory.racks:
            return replace(PortGroups.single(far), spread_number=spread_number)
        rack_number = {rack.name: r for r, rack in enumerate(inventory.racks)}
        rack = np.array([rack_number.get(node.rack or "", 0) for node in nodes], np.int32)
        place_in_rack = np.arange(len(nodes)) if position is None else position
        groups = PortGroups.of(far, rack, place_in_rack.astype(np.int64))
        return replace(groups, spread_number=spread_number)

    def _assign(self, fixed: FixedPorts, by_hand: FixedPorts, groups: PortGroups) -> _Assignment:
        """Choose the ports of all links and hosts.

        If installed ports leave a switch too few, its hosts move, and if that is not enough, its
        links.

        Args:
            fixed: the ports of links and of hosts that are fixed by hand or installed.
            by_hand: those that are fixed by hand.
            groups: the order in which links take ports.
        """
        assignment = self._try_assignment(fixed, groups)
        if assignment.short and fixed != by_hand:
            hosts = _without_installed(fixed.hosts, by_hand.hosts, assignment.short)
            fixed = fixed._replace(hosts=hosts)
            assignment = self._try_assignment(fixed, groups)
        if assignment.short and fixed != by_hand:
            links = _without_installed(fixed.links, by_hand.links, assignment.short)
            assignment = self._try_assignment(fixed._replace(links=links), groups)
        return assignment

    def _try_assignment(self, fixed: FixedPorts, groups: PortGroups) -> _Assignment:
        """Choose the ports of all links and hosts around all ports that are fixed."""
        hosts = np.array([len(places) for places in self.host_places], np.int64)
        demand = PortDemand(
            far=self.topology.graph.padded(),
            switches=self.switches,
            groups=groups,
            pins=fixed.links,
            hosts=hosts,
            left_to_hosts={v: list(ports.values()) for v, ports in fixed.hosts.items()},
        )
        link_port = ports_of_links(demand)
        host_port, short = self._host_ports(link_port, demand)
        return _Assignment(link_port, host_port, fixed, short)

    def _host_ports(
        self, link_port: NDArray[np.int32], demand: PortDemand
    ) -> tuple[NDArray[np.int32], dict[int, Shortage]]:
        """Return the ports of hosts, int32[S, P], and the switches with too few ports.

        Switches of one type whose links and hosts take the same ports are looked at together.

        Args:
            link_port: int32[S, K], the ports of links.
            demand: the links and hosts of each switch.
        """
        host_port = np.zeros((len(link_port), self.hosts_per_node), np.int32)
        degrees = np.count_nonzero(demand.far >= 0, axis=1)
        # int64[S, 3 + K]: node type, links and hosts of each switch, then the ports of its links.
        features: NDArray[np.int64] = np.column_stack(
            (self.switches.node_type, degrees, demand.hosts, np.sort(link_port, axis=1))
        )
        short: dict[int, Shortage] = {}
        for (t, degree, count, *port_numbers), alike in alike_rows(features):
            ports = self.switches.types[t]
            link_ports = [number for number in port_numbers if number]
            host_ports = ports.free_host_ports(link_ports, count)
            host_port[alike, : len(host_ports)] = host_ports
            if len(link_ports) < degree or len(host_ports) < count:
                host_only = sorted({*ports.host} - {*ports.fabric})
                shortage = Shortage(
                    ports=len(ports.names),
                    host_only=tuple(ports.names[n - 1] for n in host_only),
                    links=len(link_ports),
                    links_needed=degree,
                    hosts=len(host_ports),
                    hosts_needed=count,
                )
                short |= dict.fromkeys(alike.tolist(), shortage)
        return host_port, short

    def _place_hosts(self, assignment: _Assignment) -> None:
        """Change the ports of hosts at nodes with fixed ports, or with places without a host."""
        for v, places in enumerate(self.host_places):
            fixed = assignment.fixed.hosts.get(v, {})
            if not fixed and places == [*range(len(places))]:
                continue
            used = [*assignment.links[v].tolist(), *fixed.values()]
            free_ports = iter(self.switches.of_switch(v).free_host_ports(used, len(places)))
            assignment.hosts[v] = 0
            assignment.hosts[v, places] = [
                fixed[h] if h in fixed else next(free_ports, 0) for h in places
            ]


def _without_installed(fixed: Pins, by_hand: Pins, switches: Collection[int]) -> Pins:
    """Return the fixed ports; some switches keep only the ports that are fixed by hand."""
    others = {v: ports for v, ports in fixed.items() if v not in switches}
    return others | {v: by_hand[v] for v in switches if v in by_hand}
