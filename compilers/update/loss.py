"""The pairs of hosts that may lose packets in a move, however its rounds are ordered.

What comes in is an `Update`, a move from an old build to a new one; what goes out is a `PairLoss`,
for the report on the move (`move_report`).

Hosts that are gone, moved or renumbered lose their traffic. So do pairs whose packets may take a
cable that the new build does not have, from the moment in which the cable is pulled until their
rows have changed. If the cable stays in until the end, they lose nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import Walks
from compilers.tables.build import Build
from compilers.update.matching import HostTable, kept_hosts
from compilers.update.move_plan import Update

Cable = tuple[str, str]
"""The two ends of a cable, each `node port`."""


@dataclass(frozen=True, slots=True)
class PairLoss:
    """The hosts, cables and switches because of which packets may be lost, and the pairs."""

    hosts: tuple[str, ...]
    """The names of hosts of the old build that are gone, moved or renumbered."""
    lost_pairs: int
    """How many ordered pairs of hosts of the old build have one of these hosts."""
    cables: tuple[Cable, ...]
    """The cables that the new build does not have."""
    exposed_pairs: int
    """How many ordered pairs of other hosts have packets that may take one of these cables."""
    is_repaired: bool
    """Whether the old build repairs the paths of these pairs when the cable is pulled: it is only
    one, and links are protected."""
    switches: tuple[str, ...]
    """The names of the switches that the new build does not have."""

    @property
    def loses_nothing(self) -> bool:
        """Whether no packet of any pair is lost, whenever cables are pulled."""
        return not self.lost_pairs and (not self.exposed_pairs or self.is_repaired)


def pair_loss(update: Update) -> PairLoss:
    """The pairs of hosts that may lose packets in an update."""
    old, nodes = update.old, update.nodes
    before, after = HostTable.of(old), HostTable.of(update.new)
    is_kept = kept_hosts(before, after) >= 0
    hosts, kept = len(is_kept), int(is_kept.sum())
    host_index = before.vertex * old.wiring.host_port.shape[1] + before.host
    cables = missing_cables(old, update.new, nodes.node_of_old, nodes.node_of_new)
    links = _missing_links(old, update.new, nodes.node_of_old, nodes.node_of_new)
    kept_at_switch = np.bincount(before.vertex[is_kept], minlength=old.tables.switches)
    return PairLoss(
        hosts=tuple(old.wiring.host_names[index] for index in host_index[~is_kept].tolist()),
        lost_pairs=hosts * (hosts - 1) - kept * (kept - 1),
        cables=cables,
        exposed_pairs=_exposed_pairs(old, links, kept_at_switch) if cables else 0,
        is_repaired=len(cables) == 1 and old.forwarding.repairs,
        switches=tuple(
            old.wiring.names[vertex] for vertex in nodes.old_vertex[nodes.new_vertex < 0].tolist()
        ),
    )


def missing_cables(
    build: Build, other: Build, node: NDArray[np.int64], other_node: NDArray[np.int64]
) -> tuple[Cable, ...]:
    """The cables of a build that another build does not have between ports of the same names.

    Args:
        build: the build whose cables are listed.
        other: the build that may not have them.
        node: int64[S], the node of each vertex of the build in a `SwitchMatching`.
        other_node: int64[S'], the node of each vertex of the other build.
    """
    missing = _missing_links(build, other, node, other_node)
    # Each cable once: from its end at the smaller vertex.
    at_smaller_end = build.wiring.far > np.arange(len(missing))[:, None]
    ends = np.argwhere(missing & at_smaller_end).tolist()
    return tuple(_cable_ends(build, switch, link) for switch, link in ends)


def _missing_links(
    build: Build, other: Build, node: NDArray[np.int64], other_node: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The links of a build whose cable the other build does not have, bool[S, K], at both ends.

    Args:
        build: the build whose links are listed.
        other: the build that may not have their cables.
        node: int64[S], the node of each vertex of the build in a `SwitchMatching`.
        other_node: int64[S'], the node of each vertex of the other build.
    """
    is_cabled = build.wiring.far >= 0
    is_missing = np.zeros(is_cabled.shape, np.bool_)
    number_of_name: dict[str, int] = {}
    ends = _link_ends(build, node, number_of_name)
    other_ends = _link_ends(other, other_node, number_of_name)
    # The four numbers of a link become the digits of one number, so that `isin` compares them.
    bases = np.concatenate((ends, other_ends)).max(axis=0, initial=0) + 1
    place_values = np.append(1, np.cumprod(bases[:-1]))
    is_missing[is_cabled] = ~np.isin(ends @ place_values, other_ends @ place_values)
    return is_missing


def _link_ends(
    build: Build, node: NDArray[np.int64], number_of_name: dict[str, int]
) -> NDArray[np.int64]:
    """int64[n, 4]: node and port of each link's two ends, in the order of `far`.

    Ports are compared by name: a switch of another model may number them in another way.

    Args:
        build: the build.
        node: int64[S], the node of each vertex of the build in a `SwitchMatching`.
        number_of_name: the number of each name of a port, to which new names are added.
    """
    wiring = build.wiring
    switch, link = np.nonzero(wiring.far >= 0)
    far, name_number = wiring.far[switch, link], wiring.port_name_numbers(number_of_name)
    port = name_number[wiring.node_type[switch], wiring.port[switch, link]]
    far_port = name_number[wiring.node_type[far], wiring.far_port[switch, link]]
    return np.stack((node[switch], port, node[far], far_port), axis=1)


def _cable_ends(build: Build, switch: int, link: int) -> Cable:
    """The names of both ends of a link's cable."""
    wiring = build.wiring
    far, port = int(wiring.far[switch, link]), int(wiring.port[switch, link])
    far_port = int(wiring.far_port[switch, link])
    near_end = f"{wiring.names[switch]} {wiring.port_name(switch, port)}"
    return near_end, f"{wiring.names[far]} {wiring.port_name(far, far_port)}"


def _exposed_pairs(build: Build, missing: NDArray[np.bool_], hosts: NDArray[np.int64]) -> int:
    """How many ordered pairs of hosts have a path over a link that the new build does not have.

    Args:
        build: the old build.
        missing: bool[S, K], these links.
        hosts: int64[S], how many hosts are counted at each switch. Pairs of hosts at one switch
            take no link.
    """
    if not hosts.any():
        return 0
    # The switches that packets, or their legs, lead to.
    destinations = np.flatnonzero(
        build.topology.endpoints if build.forwarding.intermediates else hosts
    )
    walks = Walks.of(build, len(destinations))
    cables = np.zeros(walks.cable_count, np.bool_)
    cables[walks.program.cable[missing]] = True
    # bool[D, S]: packets from switch s to the d-th destination may take a missing link.
    may_cross = walks.sources_over_cables(destinations, cables)
    if not build.forwarding.intermediates:
        return int((may_cross @ hosts) @ hosts[destinations])
    # A path is two legs: to an intermediate switch, which may be any, and from it. A pair is
    # exposed if any leg from its source, or any leg to its destination, takes a missing link.
    is_exposed_source = may_cross.any(axis=0)
    is_exposed_destination = np.zeros(len(hosts), np.bool_)
    is_exposed_destination[destinations] = may_cross.any(axis=1)
    # All pairs are exposed but those of which neither host is exposed. Pairs at one switch are left
    # out, too, as their packets take no link.
    all_pairs = hosts.sum() ** 2
    sources_not_exposed = int(hosts[~is_exposed_source].sum())
    destinations_not_exposed = int(hosts[~is_exposed_destination].sum())
    at_one_switch = (hosts[is_exposed_source | is_exposed_destination] ** 2).sum()
    return int(all_pairs - at_one_switch) - sources_not_exposed * destinations_not_exposed
