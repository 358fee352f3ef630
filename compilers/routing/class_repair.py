"""Egress classes at the ends of failed links: failed ports are replaced by ports that work.

`compilers.routing.link_repair` calls `repaired_classes` with the fabric after failures,
whose routes use no failed link any more. A failed port is removed from the alternates of each
class, with its weight, and from its two lists of repair ports, `protection` and `bounce`. The
other ports of a list keep their order. Its empty places get ports to neighbours that *repair* the
class: their paths to every destination of the class avoid the switch and its next hop, as in
`compilers.routing.choose`. A class whose minimal port has failed stays as it is, as no row leads
to it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.routing.port_ranking import filled_from, ranked_ports
from compilers.routing.split_classes import longest_prefix_rows
from compilers.tables.copy_on_write import CopyOnWrite
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Classes, Tables
from compilers.wiring.wiring import Wiring

Numbers = NDArray[Any]
NOWHERE = -2
"""In place of a switch that paths have to avoid: there is none. It differs from -1, which stands
for no switch among the switches of a path."""


@dataclass(frozen=True, slots=True, eq=False)
class DamagedFabric:
    """A fabric after failures."""

    tables: Tables
    """Tables whose routes use no failed link; their classes are those before the failures."""
    fib: Fib
    """These tables joined with all cables."""
    wiring: Wiring
    """All cables."""
    is_live: NDArray[np.bool_]
    """bool[S, K], the links that are left for packets in transit."""
    is_dead: NDArray[np.bool_]
    """bool[S, K], the links that carry nothing. A link that is neither live nor dead leads to a
    drained switch, and carries only packets for this switch."""
    affected_switches: NDArray[np.int64]
    """int64[a], the switches with links that are not live."""
    destinations: NDArray[np.int64]
    """int64[D], the destinations."""
    depth: int
    """The most links of a path."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassParts:
    """The arrays of a fabric's classes that repairs change, to be copied for every repair."""

    alternate: CopyOnWrite
    """`Classes.alternate`."""
    weight: CopyOnWrite
    """`Classes.weight`."""
    protection: CopyOnWrite
    """`Classes.protection`."""
    bounce: CopyOnWrite
    """`Classes.bounce`."""

    @classmethod
    def of(cls, classes: Classes) -> ClassParts:
        """Prepare classes, which takes as long as a copy."""
        return cls(**{part.name: CopyOnWrite(getattr(classes, part.name)) for part in fields(cls)})


def repaired_classes(fabric: DamagedFabric, parts: ClassParts) -> tuple[Classes, NDArray[np.int64]]:
    """Remove failed ports from classes, and fill their places in `protection` and `bounce`.

    Args:
        fabric: the fabric after failures.
        parts: the arrays of its classes before the failures.

    Returns:
        The classes, and int64[m, 2], the switch and number of each class that changed.
    """
    old, affected = fabric.tables.classes, fabric.affected_switches
    failed = _ports_of(fabric, (fabric.wiring.far >= 0) & ~fabric.is_live)
    dead = _ports_of(fabric, fabric.is_dead)
    row = np.arange(len(affected))[:, None]  # of `failed` and `dead`, by affected switch
    # bool[a, C, 1], the classes whose minimal port still works. No row leads to the others.
    works = ~dead[row, old.port[affected]][..., None]

    # Failed alternates are removed, with their weights.
    is_failed_alternate = failed[row[..., None], old.alternate[affected]] & works
    alternate, weight = parts.alternate.copy(), parts.weight.copy()
    alternate[affected] = np.where(is_failed_alternate, 0, alternate[affected])
    weight[affected, :, 1:] = np.where(is_failed_alternate, 0, weight[affected, :, 1:])

    # Failed repair ports are removed; the places that are empty then get other ports.
    protection, bounce = parts.protection.copy(), parts.bounce.copy()
    # bool[a, C], the classes with empty places in `protection` or `bounce`.
    has_empty = np.zeros(is_failed_alternate.shape[:2], np.bool_)
    for ports in (protection, bounce):
        is_failed = failed[row[..., None], ports[affected]] & works
        has_empty |= is_failed.any(axis=2)
        remaining = np.where(is_failed, np.uint16(0), ports[affected])
        # Compact each list: filled from no ports, its remaining ports move to the front.
        ports[affected] = filled_from(remaining, np.zeros_like(remaining))
    for i in np.flatnonzero(has_empty.any(axis=1)).tolist():
        switch, class_numbers = int(affected[i]), np.flatnonzero(has_empty[i])
        repairs = _repairing_links(fabric, switch, class_numbers)
        for ports in (protection, bounce):
            ports[switch, class_numbers] = _filled(
                fabric, switch, class_numbers, ports[switch, class_numbers], repairs
            )

    index, class_number = np.nonzero(has_empty | is_failed_alternate.any(axis=2))
    classes = replace(old, alternate=alternate, weight=weight, protection=protection, bounce=bounce)
    return classes, np.column_stack((affected[index], class_number))


def _ports_of(fabric: DamagedFabric, links: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which ports of `fabric.affected_switches` have these links, bool[a, ports + 1].

    Args:
        fabric: the fabric after failures.
        links: bool[S, K], the links.
    """
    wiring, affected = fabric.wiring, fabric.affected_switches
    ports = np.zeros((len(affected), int(wiring.port.max()) + 1), np.bool_)
    row, link = np.nonzero(links[affected])
    ports[row, wiring.port[affected[row], link]] = True
    return ports


def _repairing_links(
    fabric: DamagedFabric, switch: int, class_numbers: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return the links whose neighbours repair all destinations of a class, bool[n, K].

    Args:
        fabric: the fabric after failures.
        switch: a switch.
        class_numbers: int64[n], classes of the switch.
    """
    routes, far = fabric.tables.routes, fabric.wiring.far[switch]
    row, has_row = longest_prefix_rows(routes, switch, fabric.destinations)
    egress_class = routes.egress[switch, row].astype(np.int64)
    in_classes = has_row & np.isin(egress_class, class_numbers)
    egress_class, destinations = egress_class[in_classes], fabric.destinations[in_classes]
    next_switch = fabric.fib.next_switch(destinations)
    column, next_hop = np.arange(len(destinations)), next_switch[switch]
    # [K, D], by link and destination: the neighbour, from which packets go on.
    neighbour = np.broadcast_to(far[:, None], (len(far), len(destinations)))
    repairs = fabric.is_live[switch][:, None] & (neighbour != next_hop)
    # A next hop that is the destination itself cannot be avoided.
    avoided_hop = np.where(next_hop == destinations, NOWHERE, next_hop)
    repairs &= path_arrives(
        next_switch,
        at=neighbour,
        column=column,
        destinations=destinations,
        avoided=(switch, avoided_hop),
        links=fabric.depth,
    )
    return np.array([repairs[:, egress_class == number].all(axis=1) for number in class_numbers])


def path_arrives(
    next_switch: NDArray[np.int32],
    at: Numbers,
    column: Numbers,
    destinations: Numbers,
    avoided: tuple[Numbers | int, ...],
    links: int,
) -> NDArray[np.bool_]:
    """Return whether packets arrive without coming to any avoided switch, bool[…].

    The arrays int[…] have shapes that broadcast together.

    Args:
        next_switch: int32[S, D], the next switch towards each destination.
        at: int[…], the switches where packets start, -1 for no packet.
        column: int[…], the column of each packet's destination in `next_switch`.
        destinations: int[…], the destination of each packet.
        avoided: the avoided switches of each packet: each item is int[…], or one number for all.
        links: the most links of a path.
    """
    has_avoided = np.ones(at.shape, np.bool_)
    for _ in range(links):
        for switch in avoided:
            has_avoided &= at != switch
        at = np.where(at >= 0, next_switch[at, column], at)
    arrived: NDArray[np.bool_] = has_avoided & (at == destinations)
    return arrived


def _filled(
    fabric: DamagedFabric,
    switch: int,
    class_numbers: NDArray[np.int64],
    ports: Numbers,
    repairs: NDArray[np.bool_],
) -> NDArray[np.uint16]:
    """Fill the empty places in lists of repair ports with ports that repair, uint16[n, P].

    Args:
        fabric: the fabric after failures.
        switch: a switch.
        class_numbers: int64[n], classes of the switch.
        ports: uint16[n, P], the list of each class, with 0 in empty places.
        repairs: bool[n, K], the links whose neighbours repair each class.
    """
    only_switch = slice(switch, switch + 1)
    port = fabric.wiring.port[only_switch]
    # bool[n, K], the links whose port is in the list of a class already.
    is_listed = (port[..., None] == ports[:, None, :]).any(axis=2)
    minimal = fabric.tables.classes.port[only_switch, class_numbers]
    # `ranked_ports` takes tables with a row for each switch: here for one.
    added = ranked_ports((repairs & ~is_listed)[None], minimal, port, ports.shape[1])
    return filled_from(ports[None], added).reshape(ports.shape)
