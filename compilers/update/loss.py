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
    def none(self) -> bool:
        """Whether no packet of any pair is lost, whatever cables do."""
        return not self.pairs and (not self.exposed or self.repaired)


def loss(update: Update) -> PairLoss:
    """The pairs of hosts that may lose packets in an update."""
    old, nodes = update.old, update.nodes
    before, after = HostTable.of(old), HostTable.of(update.new)
    row = kept_hosts(before, after)
    kept, count = row >= 0, len(row)
    staying = int(kept.sum())
    width = old.wiring.host_port.shape[1]
    number = before.vertex * width + before.host
    both_builds = old, update.new, nodes.node_before, nodes.node_after
    gone, cables = _links_without_twin(*both_builds), cables_apart(*both_builds)
    weight = np.bincount(before.vertex[kept], minlength=old.tables.switches)
    return PairLoss(
        hosts=tuple(old.wiring.host_names[n] for n in number[~kept].tolist()),
        pairs=count * (count - 1) - staying * (staying - 1),
        cables=cables,
        exposed=_exposed(old, gone, weight) if cables else 0,
        repaired=len(cables) == 1 and old.forwarding.repairs,
        switches=tuple(old.wiring.names[v] for v in nodes.before[nodes.after < 0].tolist()),
    )


def cables_apart(
    build: Build, other: Build, node: NDArray[np.int64], other_node: NDArray[np.int64]
) -> tuple[Cable, ...]:
    """The cables of a build that another build does not have, between ports of the same names.

    Args:
        build: its cables are named.
        other: the other build.
        node: int64[S], the place of each vertex of the build in a `Matching`.
        other_node: int64[S'], the place of each vertex of the other build.
    """
    gone = _links_without_twin(build, other, node, other_node)
    from_smaller_switch = build.wiring.far > np.arange(len(gone))[:, None]
    return tuple(_named(build, *end) for end in np.argwhere(gone & from_smaller_switch).tolist())


def _links_without_twin(
    build: Build, other: Build, node: NDArray[np.int64], other_node: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The links of a build whose cable the other build does not have, bool[S, K].

    The arguments are those of `cables_apart`.
    """
    cabled = build.wiring.far >= 0
    gone = np.zeros(cabled.shape, np.bool_)
    number_of: dict[str, int] = {}
    own, others = _cables(build, node, number_of), _cables(other, other_node, number_of)
    # One number for the four numbers of a cable end.
    size = np.concatenate((own, others)).max(axis=0, initial=0) + 1
    scale = np.append(1, np.cumprod(size[:-1]))
    gone[cabled] = ~np.isin(own @ scale, others @ scale)
    return gone


def _cables(build: Build, node: NDArray[np.int64], number_of: dict[str, int]) -> NDArray[np.int64]:
    """int64[n, 4]: node and port of each link's two ends, in the order of `far`.

    Ports are compared by name: a switch of another model may number them in another way.

    Args:
        build: its cables are listed.
        node: int64[S], the place of each vertex of the build in a `Matching`.
        number_of: the number of each name of a port, to which new names are added.
    """
    w = build.wiring
    switch, link = np.nonzero(w.far >= 0)
    far, number = w.far[switch, link], w.port_name_numbers(number_of)
    port = number[w.node_type[switch], w.port[switch, link]]
    far_port = number[w.node_type[far], w.far_port[switch, link]]
    return np.stack((node[switch], port, node[far], far_port), axis=1)


def _named(build: Build, switch: int, link: int) -> Cable:
    """The names of both ends of a link's cable."""
    w = build.wiring
    far = int(w.far[switch, link])
    ends = ((switch, int(w.port[switch, link])), (far, int(w.far_port[switch, link])))
    near, far_end = (f"{w.names[vertex]} {w.port_name(vertex, port)}" for vertex, port in ends)
    return near, far_end


def _exposed(build: Build, gone: NDArray[np.bool_], hosts: NDArray[np.int64]) -> int:
    """How many ordered pairs of hosts have a path over a link that is gone.

    Args:
        build: the old build.
        gone: bool[S, K], its links that the new build does not have.
        hosts: int64[S], how many hosts are counted at each switch. Pairs of hosts at one switch
            take no link.
    """
    if not hosts.any():
        return 0
    ends = np.flatnonzero(build.topology.endpoints if build.forwarding.intermediates else hosts)
    walks = Walks.of(build, len(ends))
    cables = np.zeros(walks.links, np.bool_)
    cables[walks.program.cable[gone]] = True
    crosses = walks.crossing(ends, cables)
    if not build.forwarding.intermediates:
        return int((crosses @ hosts) @ hosts[ends])
    # Packets go by any intermediate. So a pair is exposed if a leg from its source to any
    # intermediate, or from any to its destination, takes a link that is gone.
    leaving, arriving = crosses.any(axis=0), np.zeros(len(hosts), np.bool_)
    arriving[ends] = crosses.any(axis=1)
    # From all pairs two kinds are taken away: pairs with both hosts at one switch whose legs take
    # such a link; and pairs where no leg from the source and no leg to the destination takes one.
    all_pairs = hosts.sum() ** 2
    at_one_switch = (hosts[leaving | arriving] ** 2).sum()
    not_exposed = int(hosts[~leaving].sum()) * int(hosts[~arriving].sum())
    return int(all_pairs - at_one_switch) - not_exposed
