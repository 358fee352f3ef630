"""The pairs of hosts that may lose packets in a move, whatever the order of its rounds.

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
    """The hosts, cables and pairs that an update may lose packets for."""

    hosts: tuple[str, ...]
    """The names of hosts of the old build that are gone, moved or renumbered."""
    pairs: int
    """How many ordered pairs of hosts have one of these hosts."""
    cables: tuple[Cable, ...]
    """The cables that the new build does not have."""
    exposed: int
    """How many ordered pairs of hosts that stay have packets that may take one of these cables."""
    repaired: bool
    """Whether the old build repairs these paths while the cable is out: one cable is pulled, and
    links are protected."""
    switches: tuple[str, ...]
    """The names of the switches that the new build does not have."""

    @property
    def loses_nothing(self) -> bool:
        """Whether no packet of any pair is lost, whatever cables do."""
        return not self.pairs and (not self.exposed or self.repaired)


def loss(update: Update) -> PairLoss:
    """The pairs of hosts that may lose packets in an update."""
    old, nodes = update.old, update.nodes
    before, after = HostTable.of(old), HostTable.of(update.new)
    is_kept = kept_hosts(before, after) >= 0
    count, kept_count = len(is_kept), int(is_kept.sum())
    width = old.wiring.host_port.shape[1]
    host_number = before.vertex * width + before.host
    cables = missing_cables(old, update.new, nodes.node_of_old, nodes.node_of_new)
    links = _missing_links(old, update.new, nodes.node_of_old, nodes.node_of_new)
    kept_at_switch = np.bincount(before.vertex[is_kept], minlength=old.tables.switches)
    return PairLoss(
        hosts=tuple(old.wiring.host_names[n] for n in host_number[~is_kept].tolist()),
        pairs=count * (count - 1) - kept_count * (kept_count - 1),
        cables=cables,
        exposed=_exposed_pairs(old, links, kept_at_switch) if cables else 0,
        repaired=len(cables) == 1 and old.forwarding.repairs,
        switches=tuple(
            old.wiring.names[v] for v in nodes.old_vertex[nodes.new_vertex < 0].tolist()
        ),
    )


def missing_cables(
    build: Build, other: Build, node: NDArray[np.int64], other_node: NDArray[np.int64]
) -> tuple[Cable, ...]:
    """The cables of a build that another build does not have, between ports of the same names.

    Args:
        build: its cables are named.
        other: the other build.
        node: int64[S], the place of each vertex of the build in a `Matching`.
        other_node: int64[S'], the place of each vertex of the other build.
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
        build: its links are looked at.
        other: the other build.
        node: int64[S], the place of each vertex of the build in a `Matching`.
        other_node: int64[S'], the place of each vertex of the other build.
    """
    cabled = build.wiring.far >= 0
    missing = np.zeros(cabled.shape, np.bool_)
    number_of: dict[str, int] = {}
    ends = _link_ends(build, node, number_of)
    other_ends = _link_ends(other, other_node, number_of)
    # The four numbers of a link as one number, so that `isin` compares them.
    size = np.concatenate((ends, other_ends)).max(axis=0, initial=0) + 1
    scale = np.append(1, np.cumprod(size[:-1]))
    missing[cabled] = ~np.isin(ends @ scale, other_ends @ scale)
    return missing


def _link_ends(
    build: Build, node: NDArray[np.int64], number_of: dict[str, int]
) -> NDArray[np.int64]:
    """int64[n, 4]: node and port of each link's two ends, in the order of `far`.

    Ports are compared by name: a switch of another model may number them in another way.

    Args:
        build: its cables are listed.
        node: int64[S], the place of each vertex of the build in a `Matching`.
        number_of: the number of each name of a port, to which new names are added.
    """
    wiring = build.wiring
    switch, link = np.nonzero(wiring.far >= 0)
    far, number = wiring.far[switch, link], wiring.port_name_numbers(number_of)
    port = number[wiring.node_type[switch], wiring.port[switch, link]]
    far_port = number[wiring.node_type[far], wiring.far_port[switch, link]]
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
    ends = np.flatnonzero(build.topology.endpoints if build.forwarding.intermediates else hosts)
    walks = Walks.of(build, len(ends))
    cables = np.zeros(walks.cable_count, np.bool_)
    cables[walks.program.cable[missing]] = True
    # bool[D, S]: packets from switch s to the d-th end may take a missing link.
    crosses = walks.sources_over_cables(ends, cables)
    if not build.forwarding.intermediates:
        return int((crosses @ hosts) @ hosts[ends])
    # A path is two legs: to an intermediate switch, which may be any, and from it. A pair is
    # exposed if any leg from its source, or any leg to its destination, takes a missing link.
    leg_from, leg_to = crosses.any(axis=0), np.zeros(len(hosts), np.bool_)
    leg_to[ends] = crosses.any(axis=1)
    # Exposed are all pairs, without those that no leg exposes, and without those at one switch,
    # whose packets take no link.
    all_pairs = hosts.sum() ** 2
    not_exposed = int(hosts[~leg_from].sum()) * int(hosts[~leg_to].sum())
    at_one_switch = (hosts[leg_from | leg_to] ** 2).sum()
    return int(all_pairs - at_one_switch) - not_exposed
