"""The network that is simulated: tables, cables and hosts of a build, and the traffic of hosts.

The simulators `packet_kernel` and `flit_kernel` are loops that are compiled to machine code, and
read nothing but arrays. `SimulatedNetwork.of` makes the arrays that describe a build. They number
everything by *arcs*: an arc is a switch with one of its ports. `HostTraffic` has the destinations
of each host's packets. Arrays for what a simulation does not use are empty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.bit_patterns import HOST_PATTERNS, host_pairs
from compilers.evaluation.traffic import PATTERNS
from compilers.forwarding.program import egress_classes, program_of
from compilers.forwarding.rule import DROP, Program
from compilers.forwarding.walks import minimal_hops
from compilers.proof.lossless.channels import rising_links
from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.topology.distance import distances, table_of
from compilers.topology.labelled_graph import Topology

Numbers = NDArray[Any]
DESTINATIONS_AT_ONCE = 256
"""The destinations whose classes are looked up at once."""
NOWHERE = -1
"""In place of an arc: there is none."""
HOME = -2
"""In place of an arc: the packet is delivered at this switch."""
NO_PATH = 255
"""In `SimulatedNetwork.hops`: there is no minimal path."""
ANY_HOST = -1
"""In `HostTraffic.host_number`: each packet goes to any host of the switch, at random."""
SAME_NUMBER = -2
"""In `HostTraffic.host_number`: packets go to the host with the sender's own number at its switch.
"""


class SimulatedNetwork(NamedTuple):
    """S switches with K links and p hosts each, their cables and their tables.

    A switch has L = K + p ports: first those of links, then those of hosts. Arc s·L + k is port k
    of switch s. It names an egress of the switch, and the ingress of packets that came in by it.
    """

    switches: int
    """S, how many switches there are."""
    links_a_switch: int
    """K, how many links each switch has at most."""
    hosts_a_switch: int
    """p, how many hosts each switch has at most."""
    far_arc: NDArray[np.int32]
    """int32[S·L], the arc at the other end of each link; `NOWHERE` for the ports of hosts and those
    without a link."""
    delay: NDArray[np.int32]
    """int32[S·L], the cycles that a flit takes over the link or to the host."""
    class_number: NDArray[np.uint16]
    """uint16[S, S], the egress class of each switch for each destination. Of the classes from 0 on,
    C are those of the tables; class C delivers, and class C + 1 drops."""
    hops: NDArray[np.uint8]
    """uint8[S, S], the links from each switch to each destination over minimal paths; `NO_PATH` for
    none."""
    transit_arcs: NDArray[np.int32]
    """int32[S·(C + 2), 1 + P], by switch and class the egress arcs of packets in transit, the
    minimal one first; `HOME` for the class that delivers."""
    host_arcs: NDArray[np.int32]
    """int32[S·(C + 2), 1 + A], by switch and class the egress arcs that packets from hosts choose
    among."""
    weight: NDArray[np.int32]
    """int32[S·(C + 2), 1 + A], the weights of `host_arcs`."""
    is_rising: NDArray[np.int32]
    """int32[S·L], 1 if an arc leads to a switch of higher rank (scheme `valley`), else 0."""
    endpoints: NDArray[np.bool_]
    """bool[S], the switches with hosts."""
    distance: NDArray[np.uint8]
    """uint8[S, S], the links of a shortest path; empty unless `with_distances` computed them."""
    intermediate_switches: NDArray[np.int32]
    """int32[n], the switches that packets may be sent over, as intermediates; empty if there are
    none."""
    program: Program
    """The tables as the rule reads them (`compilers.forwarding.rule`)."""
    uses_intermediates: bool
    """Whether each packet goes over one of `intermediate_switches`, drawn at random. The packet
    carries that switch's number."""

    @property
    def ports(self) -> int:
        """L, the ports of a switch."""
        return self.links_a_switch + self.hosts_a_switch

    @property
    def has_distances(self) -> bool:
        """Whether `distance` is there: packets may take any shortest path, not only the table's."""
        return len(self.distance) > 0

    @property
    def alternates(self) -> bool:
        """Whether a packet from a host may leave by another port than the minimal one."""
        return bool((self.weight[:, 1:] > 0).any())

    @classmethod
    def of(cls, build: Build, hosts: int) -> SimulatedNetwork:
        """The network of a build with `hosts_a_switch` hosts at each switch."""
        program, fib = program_of(build), Fib.of(build.tables, build.wiring.far_by_port())
        switches, links = program.far.shape
        classes, ports = program.order.shape[1], links + hosts
        # Arrays by class have two more rows a switch: class C delivers, class C + 1 drops.

        def arcs_of(class_links: Numbers) -> NDArray[np.int32]:
            """The links of classes, [S, C, n], as arcs with a row for each switch and class."""
            first = np.arange(0, switches * ports, ports, dtype=np.int32)[:, None, None]
            arcs = np.where(class_links >= 0, first + class_links, NOWHERE)
            arcs = np.pad(arcs, ((0, 0), (0, 2), (0, 0)), constant_values=NOWHERE)
            rows = arcs.reshape(switches * (classes + 2), arcs.shape[2])
            return np.ascontiguousarray(rows, np.int32)

        end = np.full((switches, ports), NOWHERE, np.int32)
        end[:, :links] = np.where(program.far >= 0, program.far * ports + program.far_link, NOWHERE)
        up = np.zeros((switches, ports), np.int32)
        up[:, :links] = rising_links(build)
        weight = np.pad(build.tables.classes.weight, ((0, 0), (0, 2), (0, 0))).astype(np.int32)
        uses_intermediates = build.forwarding.intermediates
        host_arcs, transit_arcs = arcs_of(program.shares), arcs_of(program.order)
        transit_arcs[classes :: classes + 2, 0] = HOME  # class C of each switch delivers
        intermediate_switches = intermediates(build) if uses_intermediates else np.zeros(0)
        class_number, hops = _classes_and_hops(fib, build, classes)
        return cls(
            switches=switches,
            links_a_switch=links,
            hosts_a_switch=hosts,
            far_arc=end.ravel(),
            delay=np.ones(switches * ports, np.int32),
            class_number=class_number,
            hops=hops,
            transit_arcs=transit_arcs,
            host_arcs=host_arcs,
            weight=np.where(host_arcs >= 0, weight.reshape(host_arcs.shape), 0),
            is_rising=up.ravel(),
            endpoints=np.array(build.topology.endpoints),
            distance=np.zeros((0, 0), np.uint8),
            intermediate_switches=intermediate_switches.astype(np.int32),
            program=program,
            uses_intermediates=uses_intermediates,
        )

    @property
    def far(self) -> NDArray[np.int32]:
        """int32[S, K], the switch at the other end of each link; -1: none."""
        end = self.far_arc.reshape(self.switches, self.ports)[:, : self.links_a_switch]
        return np.where(end >= 0, end // self.ports, NOWHERE)

    def with_distances(self) -> SimulatedNetwork:
        """The network with distances, by which packets find shortest paths of their own."""
        links = distances(table_of(self.far), np.arange(self.switches))
        return self._replace(distance=np.ascontiguousarray(links))


def _classes_and_hops(
    fib: Fib, build: Build, classes: int
) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """The arrays `SimulatedNetwork.class_number` and `hops`.

    Args:
        fib: the tables of the build, joined with its cables.
        build: the build.
        classes: C, how many egress classes a switch has.
    """
    switches = build.tables.switches
    numbers = np.empty((switches, switches), np.uint16)
    hops = np.empty((switches, switches), np.uint8)
    for first in range(0, switches, DESTINATIONS_AT_ONCE):
        block = np.arange(first, min(first + DESTINATIONS_AT_ONCE, switches))
        egress = egress_classes(build, block, fib).T
        delivers_or_drops = np.where(egress == DROP, classes + 1, classes)
        numbers[:, block] = np.where(egress >= 0, egress, delivers_or_drops)
        minimal = minimal_hops(fib, block)
        hops[:, block] = np.where(minimal >= 0, minimal.astype(np.uint8), np.uint8(NO_PATH))
    return numbers, hops


class HostTraffic(NamedTuple):
    """The flows of each host. Hosts are numbered switch by switch, p at each of S switches.

    Hosts with the same flows share a *row* of flows. The flows of row r are those from `first[r]`
    to `first[r + 1]` in `destination`, `host_number` and `cumulative_share`.
    """

    row_of_host: NDArray[np.int32]
    """int32[S·p], the row of each host."""
    first_flow: NDArray[np.int64]
    """int64[R + 1], where the flows of each of R rows begin, and then the number of all flows."""
    destination: NDArray[np.int32]
    """int32[n], the switch that a flow goes to."""
    host_number: NDArray[np.int32]
    """int32[n], the number of the host at that switch, or `ANY_HOST`, or `SAME_NUMBER`."""
    cumulative_share: NDArray[np.float64]
    """float64[n], the share of the row's packets in this flow and the earlier ones of the row."""
    volume: NDArray[np.float64]
    """float64[S·p], how much each host sends, as a share of the offered load."""

    @classmethod
    def of(cls, traffic: Traffic, switches: int, hosts: int) -> HostTraffic:
        """The traffic of hosts that together send a traffic between switches.

        If the hosts of a switch send to one switch, each sends to the host with its own number
        there; else each sends to any host.
        """
        rows = _rows(traffic.source, traffic.destination, traffic.amount, switches)
        flows_of_row = np.diff(rows.first_flow)
        has_one_flow = np.repeat(flows_of_row == 1, flows_of_row)
        return cls(
            row_of_host=np.repeat(np.arange(switches, dtype=np.int32), hosts),
            first_flow=rows.first_flow,
            destination=rows.destination,
            host_number=np.where(has_one_flow, SAME_NUMBER, ANY_HOST).astype(np.int32),
            cumulative_share=rows.cumulative_share,
            volume=np.repeat(rows.volume, hosts),
        )

    @classmethod
    def of_pairs(
        cls, source: Numbers, destination: Numbers, switches: int, hosts: int
    ) -> HostTraffic:
        """The traffic of hosts that each send to one other host.

        Pairs of hosts at the same switch are left out.

        Args:
            source: int[n], the hosts that send.
            destination: int[n], the host that each sends to.
            switches: S.
            hosts: p.
        """
        crosses_fabric = source // hosts != destination // hosts
        source, destination = source[crosses_fabric], destination[crosses_fabric]
        count = switches * hosts
        rows = _rows(source, destination, np.ones(len(source)), count)
        return cls(
            row_of_host=np.arange(count, dtype=np.int32),
            first_flow=rows.first_flow,
            destination=rows.destination // hosts,
            host_number=rows.destination % hosts,
            cumulative_share=rows.cumulative_share,
            volume=rows.volume,
        )

    @classmethod
    def of_pattern(cls, pattern: str, topology: Topology, hosts: int, seed: int) -> HostTraffic:
        """The traffic of a pattern of `PATTERNS`.

        A pattern that permutes the numbers of hosts is between hosts, others are between switches.
        """
        switches = topology.graph.order
        if pattern in HOST_PATTERNS:
            return cls.of_pairs(*host_pairs(pattern, topology, hosts), switches, hosts)
        return cls.of(PATTERNS[pattern](topology, hosts, seed), switches, hosts)

    @classmethod
    def none(cls, sends: Numbers) -> HostTraffic:
        """No flows, for hosts that send messages.

        Args:
            sends: bool[S·p], the hosts that send messages.
        """
        no_flow = np.zeros(0, np.int32)
        return cls(
            row_of_host=np.zeros(len(sends), np.int32),
            first_flow=np.zeros(2, np.int64),
            destination=no_flow,
            host_number=no_flow,
            cumulative_share=np.zeros(0),
            volume=sends.astype(np.float64),
        )


class _Rows(NamedTuple):
    """Flows in rows by their sources, as in `HostTraffic`."""

    first_flow: NDArray[np.int64]
    """int64[R + 1], where the flows of each row begin."""
    destination: NDArray[np.int32]
    """int32[n], the switch or host that a flow goes to."""
    cumulative_share: NDArray[np.float64]
    """float64[n], the share of the row's packets in this flow and the earlier ones of the row."""
    volume: NDArray[np.float64]
    """float64[R], how much each row sends."""


def _rows(source: Numbers, destination: Numbers, amount: Numbers, rows: int) -> _Rows:
    """Sort flows into rows by their sources.

    Args:
        source: int[n], the row of each flow.
        destination: int[n], the switch or host that it goes to.
        amount: float[n], how much it sends.
        rows: R, how many rows there are.
    """
    by_source = np.argsort(source, kind="stable")
    source, amount = source[by_source], amount[by_source]
    first = np.searchsorted(source, np.arange(rows + 1))
    volume = np.bincount(source, amount, minlength=rows).astype(np.float64)
    total = np.cumsum(amount)
    total_before_row = np.concatenate(([0.0], total))[first[:-1]]
    cumulative_share = (total - total_before_row[source]) / volume[source]
    return _Rows(first, destination[by_source].astype(np.int32), cumulative_share, volume)


__all__ = ["ANY_HOST", "HOME", "NOWHERE", "SAME_NUMBER", "HostTraffic", "SimulatedNetwork"]
