"""Pairs of hosts that an update cannot keep: the plan promises nothing for these.

Hosts that are gone, moved or renumbered lose their traffic whatever the order. Pairs whose packets
may take a cable that the new build has not lose packets from the moment in which it is pulled until
their rows have changed; where it stays in until the end they lose none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.walks.forwarding import Forwarding, Towards
from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS
from compilers.update.matching import HostTable, kept_hosts
from compilers.update.move_plan import Update

Cable = tuple[str, str]
"""The two ends of a cable, each `node port`."""


@dataclass(frozen=True, slots=True)
class PairLoss:
    """What an update may lose.

    hosts: the names of hosts of the old build that are not kept; pairs: the ordered pairs of hosts
    with one of them. cables: those that the new build has not. exposed: ordered pairs of kept hosts
    whose packets may take one of these. repaired: whether the old build's protection serves them
    while the cable is out: there is one, and links are protected. switches: names of those that the
    new build has not.
    """

    hosts: tuple[str, ...]
    pairs: int
    cables: tuple[Cable, ...]
    exposed: int
    repaired: bool
    switches: tuple[str, ...]

    @property
    def none(self) -> bool:
        """Whether no packet of any pair is lost, whatever cables do."""
        return not self.pairs and (not self.exposed or self.repaired)


def loss(update: Update) -> PairLoss:
    """What the update may lose."""
    old, nodes = update.old, update.nodes
    before, after = HostTable.of(old), HostTable.of(update.new)
    row = kept_hosts(before, after)
    kept, count = row >= 0, len(row)
    staying = int(kept.sum())
    width = old.wiring.host_port.shape[1]
    number = before.vertex * width + before.host
    sides = old, update.new, nodes.node_before, nodes.node_after
    gone, cables = _links_apart(*sides), cables_apart(*sides)
    weight = np.bincount(before.vertex[kept], minlength=old.tables.switches)
    return PairLoss(
        hosts=tuple(old.wiring.host_names[n] for n in number[~kept].tolist()),
        pairs=count * (count - 1) - staying * (staying - 1),
        cables=cables,
        exposed=_exposed(old, gone, weight) if cables else 0,
        repaired=len(cables) == 1 and old.protect != "none",
        switches=tuple(old.wiring.names[v] for v in nodes.before[nodes.after < 0].tolist()),
    )


def cables_apart(
    build: Build, other: Build, node: NDArray[np.int64], elsewhere: NDArray[np.int64]
) -> tuple[Cable, ...]:
    """The cables of a build, port to port, that another has not; node numbers are a matching's."""
    gone = _links_apart(build, other, node, elsewhere)
    gone &= build.wiring.far > np.arange(len(gone))[:, None]
    return tuple(_named(build, *end) for end in np.argwhere(gone).tolist())


def _links_apart(
    build: Build, other: Build, node: NDArray[np.int64], elsewhere: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """bool[S, K]: links of a build whose cable, port to port, the other has not."""
    there = build.wiring.far >= 0
    gone = np.zeros(there.shape, np.bool_)
    gone[there] = ~np.isin(_cables(build, node), _cables(other, elsewhere))
    return gone


def _cables(build: Build, node: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: a number for each link that tells both of its ports, in the order of `far`."""
    w = build.wiring
    switch, link = np.nonzero(w.far >= 0)
    parts = (
        node[switch],
        w.port[switch, link],
        node[w.far[switch, link]],
        w.far_port[switch, link],
    )
    number = np.zeros(len(switch), np.int64)
    for part in parts:
        number = number << 16 | part.astype(np.int64)
    return number


def _named(build: Build, switch: int, link: int) -> Cable:
    w = build.wiring
    far = int(w.far[switch, link])
    ends = ((switch, int(w.port[switch, link])), (far, int(w.far_port[switch, link])))
    one, other = (f"{w.names[v]} {w.port_name(v, port)}" for v, port in ends)
    return one, other


def _exposed(build: Build, gone: NDArray[np.bool_], hosts: NDArray[np.int64]) -> int:
    """Ordered pairs of hosts some way of whose packets takes a link that is gone.

    hosts: int64[S], how many each switch has; pairs at one switch take no link.
    """
    f = Forwarding.of(build)
    order, slots = gone.shape[0], f.slots
    bad = np.zeros(order * slots + 2, np.bool_)  # the last two: nowhere, home
    bad[: order * slots].reshape(order, slots)[:, :-1] = gone
    far = np.append(f.end // slots, [0, 0])
    total, (starts, ends) = 0, np.zeros((2, order), np.bool_)
    for destination in np.flatnonzero(hosts).tolist():
        cell = Towards.of(f, np.array([destination])).rows
        ways = f.weighted[:, cell]
        first = f.order[:1, cell]
        step = np.where(ways >= 0, ways, first) if f.every_hop else first
        hurt: NDArray[np.bool_] = np.asarray(bad[step].any(axis=0))
        for _ in range(MOST_HOPS):
            again = hurt | ((step >= 0) & hurt[far[step]]).any(axis=0)
            if (again == hurt).all():
                break
            hurt = again
        onward = hurt[far[ways]]
        if f.marks:
            onward[1:] = _marked_hurt(f, bad, hurt, cell)[f.end[ways[1:]]]
        enters = (bad[ways] | ((ways >= 0) & onward)).any(axis=0)
        none = (ways < 0).all(axis=0)
        exposed = np.where(none, hurt, enters)
        exposed[destination] = False
        total += int((hosts * exposed).sum()) * int(hosts[destination])
        starts |= exposed
        ends[destination] = (exposed & (hosts > 0)).any()
    if build.carries:  # by any intermediate: a leg from the source, one to the end
        spared = int(hosts[~starts].sum()) * int(hosts[~ends].sum())
        return int(hosts.sum() ** 2 - (hosts[starts | ends] ** 2).sum()) - spared
    return total


def _marked_hurt(
    f: Forwarding, bad: NDArray[np.bool_], hurt: NDArray[np.bool_], cell: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """bool[S·L]: by the arc that it came in by, whether a marked packet may meet a dead link.

    bad: bool[S·L + 2], such links. hurt: bool[S], where transit may. cell: int32[S], the class of
    each switch for the destination.
    """
    harm = bad[: len(f.end)] | ((f.end >= 0) & hurt[f.end // f.slots])
    links = harm.reshape(f.switches, f.slots)[:, :-1]
    sets = np.repeat(np.packbits(links, axis=1, bitorder="little"), f.slots, axis=0)
    over = (f.onward & sets).any(axis=1)
    spreads = f.spread_number(cell - np.arange(f.switches) * (f.classes + 2))
    return np.where(np.repeat(spreads, f.slots), over, np.repeat(hurt, f.slots))
