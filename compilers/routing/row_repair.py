"""Move the rows of a build from failed links to links that are left.

`compilers.routing.link_repair` calls these functions in order: `without_rows` removes the rows that
use avoided links, and `RemainingLinks.new_rows` says which rows change, and to which class. Avoided
are dead links, and links to drained switches, which pass no packets on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.routing.class_repair import path_arrives
from compilers.routing.exact_rows import ExactRows, nearer_links
from compilers.routing.intact_build import IntactBuild
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Classes, Routes, no_route
from compilers.topology.distance import BEYOND, distances, table_of
from compilers.wiring.damage import without_gaps

CELLS_AT_ONCE = 1 << 17
"""About how many pairs of a switch and a destination are looked at together."""


def without_rows(
    intact: IntactBuild,
    avoided: NDArray[np.bool_],
    dead: NDArray[np.bool_],
    at_failures: NDArray[np.int64],
) -> tuple[Routes, NDArray[np.int64]]:
    """Remove the rows that use avoided links.

    A row whose destination is the drained neighbour itself stays, if the link to it works: a
    drained switch passes nothing on, but takes the packets of its own hosts.

    Args:
        intact: the build.
        avoided: bool[S, K], links that no packet in transit takes.
        dead: bool[S, K], links that carry nothing.
        at_failures: int64[n], the switches with avoided links.

    Returns:
        The routes, and int64[m, 2], the switch and prefix of each row that was removed.
    """
    routes, wiring = intact.tables.routes, intact.wiring
    link_of_row = _links_of_rows(intact, at_failures)
    is_avoided = np.pad(avoided[at_failures], ((0, 0), (0, 1)))  # K: no link, so none to avoid
    n, row = np.nonzero(np.take_along_axis(is_avoided, link_of_row, axis=1))
    switch, link = at_failures[n], link_of_row[n, row]
    prefix = routes.prefix[routes.group_of(switch), row]
    leads_to_neighbour_itself = wiring.far[switch, link] == prefix
    removes = dead[switch, link] | ~leads_to_neighbour_itself
    egress = intact.egress.copy()
    egress[switch[removes], row[removes]] = no_route(egress)
    removed = np.column_stack((switch, prefix))[removes].astype(np.int64)
    return replace(routes, egress=egress), removed


def _links_of_rows(intact: IntactBuild, switches: NDArray[np.int64]) -> NDArray[np.int64]:
    """The link of each row of some switches, int64[n, R]; K for delivery and for no route.

    Args:
        intact: the build.
        switches: int64[n].
    """
    no_link = intact.wiring.far.shape[1]
    # int64[n, C + 1], the link of each value of `Routes.egress`. The last column is for delivery
    # and for no route, whose values are larger than every class.
    link_of_class = intact.link_of_class[switches]
    link_of_value = np.pad(link_of_class, ((0, 0), (0, 1)), constant_values=no_link)
    last = link_of_value.shape[1] - 1
    value = np.minimum(intact.tables.routes.egress[switches], last)
    links: NDArray[np.int64] = np.take_along_axis(link_of_value, value.astype(np.intp), axis=1)
    return links


@dataclass(frozen=True, slots=True, eq=False)
class NewRows:
    """The n rows that change, and the length of the longest path that is left."""

    switch: NDArray[np.int64]
    """int64[n], the switches."""
    destination: NDArray[np.int64]
    """int64[n], the destinations."""
    new_class: NDArray[np.int64]
    """int64[n], the class of each row."""
    depth: int
    """The most links of a shortest path that is left; of all rows together, at least the diameter
    before failures."""


@dataclass(frozen=True, slots=True, eq=False)
class RemainingLinks:
    """The fabric that is left: its links, and the routes that use none of the avoided links."""

    intact: IntactBuild
    """The build."""
    fib: Fib
    """The routes that are left, joined with the cables."""
    switch_at_port: NDArray[np.int32]
    """int32[S, ports + 1], the switch at each port, without avoided links."""
    far: NDArray[np.int32]
    """int32[S, K], the neighbours that are left, -1 beyond the last."""
    link: NDArray[np.int64]
    """int64[S, K], the link to each of these neighbours (its column in `Wiring.port`)."""
    neighbour_table: NDArray[np.int64]
    """The neighbours that are left, as `distances` takes them."""
    is_repairable: NDArray[np.bool_]
    """bool[S], the switches whose rows may change."""
    drained_switches: NDArray[np.int64]
    """int64[n], those of them that are drained: packets start there, and none passes."""

    @classmethod
    def of(
        cls,
        intact: IntactBuild,
        routes: Routes,
        avoided: NDArray[np.bool_],
        live: NDArray[np.bool_],
        repairable: NDArray[np.bool_],
        drained: NDArray[np.bool_],
    ) -> RemainingLinks:
        """Prepare what is the same for all destinations.

        Args:
            intact: the build.
            routes: without the rows that use avoided links.
            avoided: bool[S, K], links that no packet in transit takes.
            live: bool[S, K], the links that are left.
            repairable: bool[S], the switches whose rows may change.
            drained: bool[S], the drained switches.
        """
        far = without_gaps(intact.wiring.far, live, -1)
        link = without_gaps(np.tile(np.arange(live.shape[1]), (len(live), 1)), live, -1)
        return cls(
            intact=intact,
            fib=intact.fib_of(routes),
            switch_at_port=intact.cables_without(avoided),
            far=far,
            link=link,
            neighbour_table=table_of(far),
            is_repairable=repairable,
            drained_switches=np.flatnonzero(drained & repairable),
        )

    def new_rows(self, destinations: NDArray[np.int64]) -> NewRows:
        """Return the rows that change towards destinations, int64[D], ascending.

        They are computed in blocks of destinations, so that memory does not grow with the damage.
        """
        step = max(1, CELLS_AT_ONCE // len(self.far))
        blocks = [
            self._new_rows_of_block(destinations[first : first + step])
            for first in range(0, len(destinations), step)
        ]
        none = np.zeros(0, np.int64)
        return NewRows(
            switch=np.concatenate([none, *(block.switch for block in blocks)]),
            destination=np.concatenate([none, *(block.destination for block in blocks)]),
            new_class=np.concatenate([none, *(block.new_class for block in blocks)]),
            depth=max([self.intact.diameter, *(block.depth for block in blocks)]),
        )

    def _new_rows_of_block(self, destinations: NDArray[np.int64]) -> NewRows:
        """Return the rows that change towards a block of destinations, int64[D]."""
        distance = distances(self.neighbour_table, destinations).T
        next_switch = self.fib.next_switch(destinations)
        self._measure_drained(next_switch, destinations, distance)
        # The rows that have to change, as far as their switches may change, with their new links.
        must_change = nearer_links(next_switch, self.far, destinations, distance)
        may_change = self.is_repairable[must_change.switch]
        switch = must_change.switch[may_change]
        rows = ExactRows(
            switch=switch,
            destination=must_change.destination[may_change],
            link=self.link[switch, must_change.link[may_change]],
        )
        # The classes are chosen by the paths after the change.
        column = np.searchsorted(destinations, rows.destination)
        next_switch[switch, column] = self.intact.wiring.far[switch, rows.link]
        reached = distance != BEYOND
        return NewRows(
            switch=switch,
            destination=rows.destination,
            new_class=_classes_of_rows(
                self.intact, self.switch_at_port, next_switch, destinations, rows
            ),
            depth=int(distance[reached].max(initial=0)),
        )

    def _measure_drained(
        self,
        next_switch: NDArray[np.int32],
        destinations: NDArray[np.int64],
        distance: NDArray[np.uint8],
    ) -> None:
        """Set the distances from drained switches: no link leads to them, but their links lead on.

        Args:
            next_switch: int32[S, D], the next switch towards each destination, negative where none
                is left.
            destinations: int64[D].
            distance: uint8[S, D], the links between switches.
        """
        for switch in self.drained_switches:
            neighbours = self.far[switch][self.far[switch] >= 0]
            nearest = distance[neighbours].min(axis=0)
            distance[switch] = np.where(nearest == BEYOND, nearest, nearest + 1)
            # Between two drained switches the link stays for packets to the other one.
            distance[switch, next_switch[switch] == destinations] = 1
            distance[switch, destinations == switch] = 0

    def without_farther_hops(
        self, classes: Classes, fib: Fib, destinations: NDArray[np.int64]
    ) -> tuple[Classes, NDArray[np.int64]]:
        """Remove next hops that do not lead nearer to every destination of their class.

        Args:
            classes: after the repair of the ends of failed links.
            fib: the repaired routes, joined with the cables.
            destinations: int64[D], those to which some distance has changed.

        Returns:
            The classes, and int64[m, 2], the switch and number of each class that changed.
        """
        switch_count, class_count, alternates = classes.alternate.shape
        switches = np.arange(switch_count)[:, None]
        # int32[S, C, A], the switch that each alternate leads to.
        neighbour = self.switch_at_port[switches[..., None], classes.alternate]
        neighbour[classes.alternate == 0] = -1
        farther = np.zeros((switch_count, class_count, alternates), np.bool_)
        step = max(1, CELLS_AT_ONCE // switch_count)
        for first in range(0, len(destinations), step):
            block = destinations[first : first + step]
            distance, egress = distances(self.neighbour_table, block).T, fib.egress(block)
            forwarded = (egress < class_count) & (distance != BEYOND)
            class_number = np.where(forwarded, egress, 0).astype(np.intp)
            for a in range(alternates):
                far = neighbour[switches, class_number, a]
                nearer = distance[far, np.arange(len(block))] + 1 == distance
                switch, column = np.nonzero(forwarded & (far >= 0) & ~nearer)
                farther[switch, class_number[switch, column], a] = True
        alternate = np.where(farther, np.uint16(0), classes.alternate)
        weight = np.array(classes.weight)
        weight[..., 1:][farther] = 0
        changed = np.argwhere(farther.any(axis=2))
        return replace(classes, alternate=alternate, weight=weight), changed


def _classes_of_rows(
    intact: IntactBuild,
    switch_at_port: NDArray[np.int32],
    next_switch: NDArray[np.int32],
    destinations: NDArray[np.int64],
    rows: ExactRows,
) -> NDArray[np.int64]:
    """Choose a class of its link for each row that changes, int64[n].

    A class is suitable if packets come to the destination from all its alternates, and never to the
    switch again. Of the suitable classes of the link, the one with most alternates is chosen.

    Args:
        intact: the build.
        switch_at_port: int32[S, ports + 1], without avoided links.
        next_switch: int32[S, D], the next switch towards each destination.
        destinations: int64[D].
        rows: the rows, with their links as columns of `Wiring.port`.
    """
    classes = intact.tables.classes
    if not classes.alternate.shape[2]:
        return intact.first_class[rows.switch, rows.link]
    # One entry for each row and each class of its link.
    row, class_number = np.nonzero(intact.link_of_class[rows.switch] == rows.link[:, None])
    switch = rows.switch[row, None]
    column = np.searchsorted(destinations, rows.destination)[row, None]
    # The switch that each alternate of the class leads to, -1 for none.
    first = switch_at_port[switch, classes.alternate[rows.switch[row], class_number]]
    # Paths after failures are longer than the diameter. Those with more links than this are taken
    # for loops.
    most_links = 2 * intact.diameter + 2
    arrive = path_arrives(
        next_switch,
        at=first,
        column=column,
        destinations=rows.destination[row, None],
        avoided=(switch,),
        links=most_links,
    )
    all_arrive = np.all(arrive | (first < 0), axis=1)
    alternates = np.where(all_arrive, np.count_nonzero(first >= 0, axis=1), -1)
    # By row, the class with most alternates first; of several, the one with the lowest number.
    best_first = np.lexsort((class_number, -alternates, row))
    best_of_row = np.unique(row[best_first], return_index=True)[1]
    chosen: NDArray[np.int64] = class_number[best_first[best_of_row]]
    return chosen
