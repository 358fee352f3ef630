"""Follow packets through a state of a move: some switches have new rows, the others old rows.

What comes in are the levels of cells (`order.CellLevels`) and a state: the last round that each
switch has carried out. What goes out is a `WalkedState`, with the longest path and the faults.
`update_proof` chooses the states, and rehearsals ask for lengths of paths (`MoveCells.hops`).

A *cell* is a switch and a destination, and its row is the old or the new one. A *node* is a switch
of either build, by its number in `SwitchMatching`. A *path* is one of W ways that packets in
transit may take, where paths are shared at every hop; else W is 1.

Arrays of cells are [M + 1, D]: by node and by destination. Row M stands for no switch, so that a
dropped packet, too, has a next switch.

A marked packet may be spread to a switch whose next hop is the switch that spread it. It bounces
there, as `compilers.forwarding.rule.transit` says, and is followed over every bounce until it goes
on by next hops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.program import program_of
from compilers.forwarding.rule import DROP, spreads
from compilers.forwarding.walks import minimal_hops
from compilers.tables.build import Build
from compilers.tables.fib import LOST, MOST_HOPS, Fib
from compilers.update.matching import NO_NUMBER
from compilers.update.move_plan import Update
from compilers.update.order import CellLevels

UPDATE_EXAMPLES = 10
"""The most faults that a proof names."""
NOT_ARRIVED = 2 * MOST_HOPS
"""In place of the number of links, for packets that have not arrived when the walk ends. It is more
than the links of any old and any new path together.
"""
NEVER = 255
"""The level of cells that stay with their old row: those of switches that the new build does not
have.
"""

NO_PATH = -1
"""In place of the number of a path: there is none."""

NOT_DELIVERED = "is not delivered"
"""A fault: the packet is dropped, or does not arrive within `MoveCells.hop_bound` links."""
SENT_BACK = "is sent back to where it came from"
"""A fault: a next hop of the packet's next hop is the switch that it is at."""
OLD_ROW_AHEAD = "meets an old row behind a new one"
"""A fault: the cell has changed, and a cell that its packets meet next has its old row. The packet
may arrive in this state, but in another mixture it may loop.
"""
LOST_WHEN_SPREAD = "is lost on a way that it is spread over"
"""A fault: hosts' packets are marked at the cell, and are lost at a switch to which they are
spread.
"""


@dataclass(frozen=True, slots=True)
class UpdateFault:
    """A packet that does not arrive in some state of the move."""

    round: int
    """The round at the end of which, or within which, it is lost."""
    source: str
    """The name of the switch where it begins."""
    destination: str
    """The name of the switch that it is for."""
    fault: str
    """What becomes of the packet, such as `NOT_DELIVERED`."""


class WalkedState(NamedTuple):
    """The result of walking all packets in a state."""

    max_hops: int
    """The links of the longest path."""
    cells_of_fault: dict[str, NDArray[np.bool_]]
    """By fault, such as `NOT_DELIVERED`, bool[M, D]: the cells whose packets have it."""


class TransitOutcome(NamedTuple):
    """What becomes of packets in transit from each cell."""

    hops: NDArray[np.uint8]
    """uint8[M, D], the number of links of the longest path; NOT_ARRIVED if one does not arrive."""
    is_lost: NDArray[np.bool_]
    """bool[M, D], whether a path does not arrive."""


@dataclass(frozen=True, slots=True, eq=False)
class BuildNodes:
    """The vertices of a build as nodes of a move."""

    vertex_of_node: NDArray[np.int64]
    """int64[M], the vertex of each node; negative: the build does not have this switch."""
    node_of_vertex: NDArray[np.int64]
    """int64[S], the node of each vertex; NO_NUMBER: it is not installed."""
    count: int
    """M, the number of switches that either build has."""


@dataclass(frozen=True, slots=True, eq=False)
class MoveCells:
    """The cells of M nodes and some D destinations that both builds have."""

    update: Update
    """The rounds of the move."""
    next_before: NDArray[np.int32]
    """int32[W, M + 1, D], the next node on W paths by the old tables; the node itself where it
    delivers, M where it drops packets."""
    next_after: NDArray[np.int32]
    """int32[W', M + 1, D], the next node on W' paths by the new tables."""
    level: NDArray[np.uint8]
    """uint8[M + 1, D], the level of each cell, as in `CellLevels`."""
    is_changed: NDArray[np.bool_]
    """bool[M, D], cells whose next hops change."""
    destination_node: NDArray[np.int64]
    """int64[D], the node of each destination."""
    bounces_before: NDArray[np.int32]
    """int32[B, M + 1, D], the nodes to which old rows send a packet that came in by the link of its
    next hop, in the order in which they are tried; M where there is no such port. Empty if neither
    build marks packets."""
    bounces_after: NDArray[np.int32]
    """int32[B', M + 1, D], the nodes to which new rows send such a packet."""
    spreads_before: NDArray[np.bool_]
    """bool[M + 1, D], whether the old row of each switch spreads marked packets; empty if the old
    build marks none."""
    spreads_after: NDArray[np.bool_]
    """bool[M + 1, D], whether the new row of each switch spreads marked packets; empty if the new
    build marks none."""
    has_path: NDArray[np.bool_]
    """bool[M, D], pairs that have a path both before and after."""
    hop_bound: int
    """The links of the longest old and the longest new path together."""

    @classmethod
    def of(cls, update: Update, block: CellLevels, in_both: NDArray[np.bool_]) -> MoveCells:
        """The cells of some destinations.

        Args:
            update: the move.
            block: the levels of a block of destinations.
            in_both: bool, which of these destinations both builds have.
        """
        difference, nodes = update.difference, update.nodes
        new_destinations, count = block.destinations[in_both], len(nodes.datapath_id)
        old_destinations = nodes.old_prefix[new_destinations]  # as vertices of the old build
        old_nodes = BuildNodes(nodes.old_vertex, nodes.node_of_old, count)
        new_nodes = BuildNodes(nodes.new_vertex, nodes.node_of_new, count)
        is_in_new = nodes.new_vertex >= 0
        level = np.full((count + 1, len(new_destinations)), NEVER, np.uint8)
        level[:count][is_in_new] = block.cell_levels[:, in_both][nodes.new_vertex[is_in_new]]
        # int[M, D], the links of minimal paths; of nodes that a build does not have, any number.
        hops_before = minimal_hops(difference.fib_before, old_destinations)[
            np.maximum(nodes.old_vertex, 0)
        ]
        hops_after = minimal_hops(difference.fib, new_destinations)[np.maximum(nodes.new_vertex, 0)]
        longest_before = int(hops_before[nodes.is_in_both].max(initial=0))
        longest_after = int(hops_after[nodes.is_in_both].max(initial=0))
        return cls(
            update=update,
            next_before=_next_nodes(difference.fibs_before, old_destinations, old_nodes),
            next_after=_next_nodes(difference.fibs, new_destinations, new_nodes),
            level=level,
            is_changed=block.is_changed[:, in_both][nodes.new_vertex] & is_in_new[:, None],
            destination_node=nodes.node_of_new[new_destinations],
            bounces_before=_next_nodes(difference.bounces_before, old_destinations, old_nodes),
            bounces_after=_next_nodes(difference.bounces, new_destinations, new_nodes),
            spreads_before=_spreads(
                difference.old, difference.fib_before, old_destinations, nodes.old_vertex
            ),
            spreads_after=_spreads(
                difference.new, difference.fib, new_destinations, nodes.new_vertex
            ),
            has_path=nodes.is_in_both[:, None] & (hops_before > 0) & (hops_after > 0),
            hop_bound=longest_before + longest_after,
        )

    def walk(self, carried_out: NDArray[np.uint8]) -> WalkedState:
        """Walk all packets in a state.

        Args:
            carried_out: uint8[M], the last round that each switch has carried out.
        """
        count = len(carried_out)
        state = self._state(carried_out)
        node, next_cell = np.arange(count)[:, None], state.next_cell[:, :count]
        hops, lost = self._follow(state.next_cell)
        # A cell meets an old row if one of its paths leads to a switch whose row is old.
        meets_old_row = (state.leaves & ~state.has_new_row.take(next_cell)).any(axis=0)
        # A packet is sent back if one path leads to a switch of which one path leads back.
        sent_back = np.zeros(self.is_changed.shape, np.bool_)
        for next_node in state.next_node:
            sent_back |= (state.leaves & (next_node.take(next_cell) == node)).any(axis=0)
        fault_cells = {
            NOT_DELIVERED: lost,
            SENT_BACK: sent_back,
            OLD_ROW_AHEAD: self.is_changed & state.has_new_row[:count] & meets_old_row,
            LOST_WHEN_SPREAD: self._spread_and_lost(carried_out, state, lost),
        }
        return WalkedState(
            max_hops=int(hops[self.has_path & ~lost].max(initial=0)),
            cells_of_fault={fault: self.has_path & cells for fault, cells in fault_cells.items()},
        )

    def hops(self, carried_out: NDArray[np.uint8]) -> NDArray[np.int8]:
        """The number of links of each pair's path in a state, int8[M, D]; LOST without a path.

        Args:
            carried_out: uint8[M], the last round that each switch has carried out.
        """
        hops, lost = self._follow(self._state(carried_out).next_cell)
        return np.where(self.has_path & ~lost, hops, LOST).astype(np.int8)

    def _state(self, carried_out: NDArray[np.uint8]) -> _State:
        """The rows that all cells have in a state: the new row from the round of their level on.

        Args:
            carried_out: uint8[M], the last round that each switch has carried out.
        """
        count, width = len(carried_out), len(self.destination_node)
        has_new_row = np.zeros(self.level.shape, np.bool_)
        has_new_row[:count] = self.level[:count] <= carried_out[:, None]
        # Both builds get as many paths; the paths of the build with fewer are repeated.
        path = np.arange(max(len(self.next_before), len(self.next_after)))
        before = self.next_before[path % len(self.next_before)]
        after = self.next_after[path % len(self.next_after)]
        next_node = np.where(has_new_row, after, before)
        next_cell = next_node.astype(np.int64) * width + np.arange(width)
        next_of_nodes = next_node[:, :count]  # without row M
        leaves = (next_of_nodes != np.arange(count)[:, None]) & (next_of_nodes < count)
        return _State(
            has_new_row=has_new_row, next_node=next_node, next_cell=next_cell, leaves=leaves
        )

    def _spread_and_lost(
        self, carried_out: NDArray[np.uint8], state: _State, lost: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """The cells whose hosts' packets are marked, and may be lost after they are spread.

        Old rows mark packets, and old rows spread these. New rows do so once all switches have
        learnt to spread them. A row of the other build forwards a marked packet like any packet in
        transit.

        Args:
            carried_out: uint8[M], the last round that each switch has carried out.
            state: the state.
            lost: bool[M, D], the cells from which packets in transit are lost.

        Returns:
            bool[M, D].
        """
        update, nodes = self.update, self.update.nodes
        rows_that_mark: list[_RowsOfBuild] = []
        if len(self.spreads_before):
            neighbours = _neighbours(update.old, nodes.old_vertex, nodes.node_of_old)
            rows_that_mark.append(_RowsOfBuild(~state.has_new_row, self.spreads_before, neighbours))
        has_learnt = update.is_in_place or bool((carried_out >= update.learn_marks_round).all())
        if has_learnt and len(self.spreads_after):
            neighbours = _neighbours(update.new, nodes.new_vertex, nodes.node_of_new)
            rows_that_mark.append(_RowsOfBuild(state.has_new_row, self.spreads_after, neighbours))
        fails = np.zeros(lost.shape, np.bool_)
        if rows_that_mark:
            bounced_lost = self._bounced_and_lost(state, lost)
            for rows in rows_that_mark:
                fails |= rows.spread_and_lost(state, lost, bounced_lost)
        return fails

    def _bounced_and_lost(self, state: _State, lost: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether a packet is lost if it comes to a switch from the next hop of this switch.

        The switch bounces the packet. For example, node 4 has the next hop 7, gets a packet from
        there, and bounces it to node 9. If no next hop of node 9 is node 4, node 9 forwards the
        packet like any packet in transit. Else node 9, too, got the packet from its next hop, and
        bounces it on, say to node 12, and so on. A packet is lost if this chain comes to a node
        that loses packets in transit, or never ends.

        Args:
            state: the state.
            lost: bool[M, D], the cells from which packets in transit are lost.

        Returns:
            bool[W, M, D], for packets from the next node on each of W paths.
        """
        count, width = lost.shape
        node, paths = np.arange(count)[:, None], len(state.next_node)
        # int64[W, M, D], the flat index of the cell that a bounced packet comes to.
        bounced_cell = self._bounce_nodes(state).astype(np.int64) * width + np.arange(width)
        # int64[W, M, D], the first path of that cell that leads back to the node that bounced the
        # packet: node 4 for node 9 in the example.
        path_back = np.full(bounced_cell.shape, NO_PATH)
        for path in reversed(range(paths)):
            leads_back = state.next_node[path].take(bounced_cell) == node
            path_back[leads_back] = path
        # In both arrays the last node stands for no switch: whatever is sent there is lost.
        lost_in_transit = np.append(lost, np.ones((1, width), np.bool_), axis=0)
        lost_after_bounce = np.ones((paths, count + 1, width), np.bool_)
        # A chain of bounces is lost until it is found to end: one bounce more in each step.
        for _ in range(MOST_HOPS):
            updated = lost_in_transit.take(bounced_cell)
            for path in range(paths):
                lost_on_path = lost_after_bounce[path].take(bounced_cell)
                updated = np.where(path_back == path, lost_on_path, updated)
            if np.array_equal(updated, lost_after_bounce[:, :count]):
                break
            lost_after_bounce[:, :count] = updated
        return lost_after_bounce[:, :count]

    def _bounce_nodes(self, state: _State) -> NDArray[np.int32]:
        """The node to which a switch bounces a packet that comes from its next hop.

        It sends the packet by its first bounce port that leads to another switch than the packet
        came from. If it has no such port, it sends the packet to its minimal next hop.

        Args:
            state: the state.

        Returns:
            int32[W, M, D], for packets from the next node on each of W paths.
        """
        count = len(self.is_changed)
        has_new_row, came_from = state.has_new_row[:count], state.next_node[:, :count]
        bounced_to = np.broadcast_to(came_from[0], came_from.shape)
        no_port = np.int32(count)
        # From the last bounce port to the first, so that the first one that leads on remains.
        for port in reversed(range(max(len(self.bounces_before), len(self.bounces_after)))):
            old, new = (
                bounces[port, :count] if port < len(bounces) else no_port
                for bounces in (self.bounces_before, self.bounces_after)
            )
            bounce = np.where(has_new_row, new, old)
            bounced_to = np.where((bounce < count) & (bounce != came_from), bounce, bounced_to)
        return bounced_to

    def _follow(self, next_cell: NDArray[np.int64]) -> TransitOutcome:
        """Follow packets in transit by next hops.

        At first only the destinations have arrived, with 0 links. In each step every cell asks the
        cells that its packets meet next, so the n-th step finds the paths of n links.

        Args:
            next_cell: int64[W, M + 1, D], `_State.next_cell`.
        """
        count, width = next_cell.shape[1] - 1, next_cell.shape[2]
        hops = np.full(next_cell.shape[1:], NOT_ARRIVED, np.uint8)
        column = np.arange(width)
        # bool[D]: a destination delivers if, by every path, its own cell leads to itself.
        delivers = (
            next_cell[:, self.destination_node, column] == self.destination_node * width + column
        ).all(axis=0)
        hops[self.destination_node[delivers], column[delivers]] = 0
        for _ in range(self.hop_bound):
            most = hops.take(next_cell[0])
            for next_on_path in next_cell[1:]:
                np.maximum(most, hops.take(next_on_path), out=most)
            most += most < NOT_ARRIVED  # one link more
            most[self.destination_node[delivers], column[delivers]] = 0
            hops = most
        return TransitOutcome(hops[:count], hops[:count] == NOT_ARRIVED)

    def faults(self, round: int, cells_of_fault: dict[str, NDArray[np.bool_]]) -> list[UpdateFault]:
        """The first faults in a state.

        Args:
            round: the round that the state is within, or at the end of.
            cells_of_fault: the cells with each fault (`WalkedState.cells_of_fault`).
        """
        new_vertex, examples = self.update.nodes.new_vertex, []
        names = self.update.new.wiring.names
        for fault, cells in cells_of_fault.items():
            for node, column in np.argwhere(cells)[:UPDATE_EXAMPLES].tolist():
                source = names[new_vertex[node]]
                destination = names[new_vertex[self.destination_node[column]]]
                examples.append(UpdateFault(round, source, destination, fault))
        return examples


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """The rows that the cells of `MoveCells` have in a state."""

    has_new_row: NDArray[np.bool_]
    """bool[M + 1, D], whether a cell has its new row."""
    next_node: NDArray[np.int32]
    """int32[W, M + 1, D], the next node on W paths."""
    next_cell: NDArray[np.int64]
    """int64[W, M + 1, D], the flat index of the cell that a packet comes to next."""
    leaves: NDArray[np.bool_]
    """bool[W, M, D], whether packets go to another switch: they are not delivered or dropped."""


@dataclass(frozen=True, slots=True, eq=False)
class _RowsOfBuild:
    """The rows of one build that marks packets, in a state where some cells have the other's."""

    has_row: NDArray[np.bool_]
    """bool[M + 1, D], the cells whose row is of this build."""
    spreads: NDArray[np.bool_]
    """bool[M + 1, D], whether the row of each switch spreads marked packets."""
    neighbours: NDArray[np.int64]
    """int64[M, K], the nodes that are neighbours of each node; negative where there is none."""

    def spread_and_lost(
        self, state: _State, lost: NDArray[np.bool_], bounced_lost: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """The cells of this build whose hosts' packets may be lost after they are spread.

        Args:
            state: the rows of all cells.
            lost: bool[M, D], the cells from which packets in transit are lost.
            bounced_lost: bool[W, M, D], whether a packet from the next hop of a switch is lost.

        Returns:
            bool[M, D].
        """
        count = len(lost)
        has_row = self.has_row[:count]
        if not has_row.any():
            return np.zeros(lost.shape, np.bool_)
        # A next hop with a row of this build may spread a packet to a switch whose next hop it is.
        # That switch then bounces the packet.
        may_bounce = state.leaves & self.has_row.take(state.next_cell[:, :count])
        arrives_lost = lost | (bounced_lost & may_bounce).any(axis=0)
        # A switch that spreads a marked packet may send it to any neighbour.
        spread_lost = (
            self.spreads[:count] & has_row & _any_neighbour_in(arrives_lost, self.neighbours)
        )
        # The ingress switch may send it to any neighbour, too, which forwards or spreads it.
        return has_row & _any_neighbour_in(arrives_lost | spread_lost, self.neighbours)


def _spreads(
    build: Build, fib: Fib, destinations: NDArray[np.int64], vertex: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which switches get marked packets and spread them, bool[M + 1, D].

    Args:
        build: one of the two builds.
        fib: its next hops.
        destinations: int64[D], its vertices.
        vertex: int64[M], its vertex of each switch; negative: none.
    """
    if not build.forwarding.marks:
        return np.zeros((0, len(destinations)), np.bool_)
    far, has_hosts, program = build.wiring.far, build.topology.endpoints, program_of(build, 0)
    classes = range(build.tables.classes.port.shape[1])
    class_spreads = np.array([spreads(program, egress) for egress in (*classes, DROP)])
    spreading = class_spreads[np.minimum(fib.egress(destinations), len(classes))]
    # Switches without a neighbour that has hosts get no marked packets, such as an OFT's leaves.
    spreading &= np.any(has_hosts[far] & (far >= 0), axis=1, keepdims=True)
    by_node = (vertex >= 0)[:, None] & spreading[vertex]
    return np.append(by_node, np.zeros((1, spreading.shape[1]), np.bool_), 0)


def _neighbours(
    build: Build, vertex_of_node: NDArray[np.int64], node_of_vertex: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The nodes that are neighbours of each node, int64[M, K]; NO_NUMBER where there is none.

    Args:
        build: one of the two builds.
        vertex_of_node: int64[M], its vertex of each node; negative: none.
        node_of_vertex: int64[S], the node of each of its vertices.
    """
    far = build.wiring.far[vertex_of_node]
    cabled = (far >= 0) & (vertex_of_node >= 0)[:, None]
    neighbours: NDArray[np.int64] = np.where(cabled, node_of_vertex[far], NO_NUMBER)
    return neighbours


def _any_neighbour_in(cells: NDArray[np.bool_], neighbours: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether any neighbour of a switch is among some cells.

    Args:
        cells: bool[M, D].
        neighbours: int64[M, K], nodes; NO_NUMBER: none.

    Returns:
        bool[M, D].
    """
    any_neighbour = np.zeros(cells.shape, np.bool_)
    if cells.any():
        for neighbour in neighbours.T:
            any_neighbour |= cells[neighbour] & (neighbour >= 0)[:, None]
    return any_neighbour


def _next_nodes(
    fibs: tuple[Fib, ...], destinations: NDArray[np.int64], nodes: BuildNodes
) -> NDArray[np.int32]:
    """The next node of each cell on W paths, int32[W, M + 1, D].

    Args:
        fibs: the next hops of a build on W paths.
        destinations: int64[D], vertices of this build.
        nodes: the build's vertices as nodes.
    """
    if not fibs:
        return np.zeros((0, nodes.count + 1, len(destinations)), np.int32)
    return np.stack([_as_nodes(fib.next_switch(destinations), nodes) for fib in fibs])


def _as_nodes(next_switch: NDArray[np.int32], nodes: BuildNodes) -> NDArray[np.int32]:
    """Turn next switches of a build into nodes of the move, int32[M + 1, D].

    Args:
        next_switch: int32[S, D], by vertex of the build the next vertex; negative: none.
        nodes: the build's vertices as nodes.
    """
    count = nodes.count
    # Node M stands for no switch. The entry for it is the last one, which index -1 finds.
    node_of = np.append(nodes.node_of_vertex, np.int64(count))
    node_of[node_of == NO_NUMBER] = count
    next_node = node_of[np.where(next_switch >= 0, next_switch, -1)]  # int64[S, D]
    by_node = np.full((count + 1, next_switch.shape[1]), count, np.int32)
    present = nodes.vertex_of_node >= 0
    by_node[:count][present] = next_node[nodes.vertex_of_node[present]]
    return by_node
