"""What the egress classes of a switch do, as groups and the rows of table 2 that lead to them.

The rule is that of `Classes`. Open vSwitch never sends a packet back to where it
came in unless the output says so, and a fast-failover group would choose just that port; so a class
has one group more for each port that a packet can have come in on, and a row by in_port that leads
there. In it that port comes last, as the output IN_PORT.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import Classes
from compilers.targets.openflow.protocol import IN_PORT, GroupType

Numbers = NDArray[np.integer]
HASH_VALUES = 64
"""As many as Open vSwitch has for a select group that says nothing of them (ofproto-dpif.c)."""


class GroupRole(IntEnum):
    """What a group of a class is for; ASIDE and up: one for each protection port.

    TRANSIT: the minimal port, then protection. ENTER: by weight, for packets from hosts. BOUNCE:
    packets that came in on the minimal port. FALLBACK: ENTER, then the order of TRANSIT, where that
    has ports which ENTER has not. ASIDE: packets that came in on the first protection port.
    """

    TRANSIT = 0
    ENTER = 1
    BOUNCE = 2
    FALLBACK = 3
    ASIDE = 4


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """n groups of one role and as many buckets each.

    classes: int64[n]. port: int[n, B], the ports that the buckets watch. weight: int[n, B], 0 but
    for ENTER. in_port: int[n], where a packet has to come in to be led here; 0: anywhere. led:
    bool[n], whether a row leads here, and not just another group.
    """

    role: int
    classes: NDArray[np.int64]
    port: Numbers
    weight: Numbers
    in_port: Numbers
    led: NDArray[np.bool_]

    @property
    def output(self) -> Numbers:
        """int[n, B]: where the buckets send; IN_PORT where that is the port it came in on."""
        return np.where(self.port == self.in_port[:, None], IN_PORT, self.port.astype(np.int64))

    @property
    def entering(self) -> bool:
        """Whether only packets from hosts are led here."""
        return self.role in (GroupRole.ENTER, GroupRole.FALLBACK)

    @property
    def type(self) -> GroupType:
        """The type that OpenFlow has for them."""
        if self.role == GroupRole.ENTER:
            return GroupType.SELECT
        alone = self.port.shape[1] == 1 and self.role != GroupRole.FALLBACK
        return GroupType.INDIRECT if alone else GroupType.FAST_FAILOVER


def roles(classes: Classes) -> int:
    """How many roles the classes of a fabric can need, those between included."""
    ports: int = classes.protection.shape[2]
    if ports:
        return GroupRole.ASIDE + ports
    if classes.alternate.shape[2]:
        return GroupRole.BOUNCE + 1
    return GroupRole.BOUNCE + 1 if classes.bounce.shape[2] else GroupRole.TRANSIT + 1


def group_numbers(role: int, egress: Numbers, classes: int) -> NDArray[np.int64]:
    """int64[n]: the groups of that role of classes, where a switch has at most so many classes."""
    return 1 + role * classes + egress.astype(np.int64)


def groups(classes: Classes, vertex: int) -> Iterator[Groups]:
    """All groups of a switch, those that others lead to first."""
    there = np.flatnonzero(classes.port[vertex] > 0)
    minimal = classes.port[vertex, there, None]
    order = np.concatenate((minimal, classes.protection[vertex, there]), axis=1)
    weight = classes.weight[vertex, there]
    used = np.concatenate((minimal, classes.alternate[vertex, there]), axis=1) * (weight > 0)
    anywhere, always = np.zeros(len(there), np.int32), np.ones(len(there), np.bool_)

    yield from _alike(GroupRole.TRANSIT, there, order, anywhere, always)
    if used.shape[1] > 1 or not weight.all():
        enters = (used[:, 1:] > 0).any(axis=1) & (used.sum(axis=1) > 0)
        beyond = ~(order[:, :, None] == used[:, None, :]).any(axis=2) & (order > 0)
        falls = enters & beyond.any(axis=1)
        fine, shares = _finely(used * enters[:, None], weight)
        yield from _alike(GroupRole.ENTER, there, fine, anywhere, ~falls, shares)
        yield from _alike(GroupRole.FALLBACK, there, order * falls[:, None], anywhere, always)
    if classes.bounce.shape[2] or classes.alternate.shape[2]:
        bounce = _last(classes.bounce[vertex, there], minimal)
        yield from _alike(GroupRole.BOUNCE, there, bounce, minimal[:, 0], always)
    for place in range(1, order.shape[1]):
        came = order[:, place, None]
        aside = _last(order, came) * (came > 0)
        yield from _alike(GroupRole.ASIDE + place - 1, there, aside, came[:, 0], always)


def _last(order: Numbers, port: Numbers) -> Numbers:
    """int[n, B + 1]: the order without a port, int[n, 1], and that port at its end."""
    return np.concatenate((order * (order != port), port), axis=1)


def _finely(used: Numbers, weight: Numbers) -> tuple[Numbers, Numbers]:
    """Ports and weights, int[n, B + 1], that share traffic as the given ones, in finer steps.

    Open vSwitch deals hash values to buckets, the total over the smallest weight of them, from 16
    to 64: three equal buckets get 6, 5 and 5 of 16. So the first is split in two, a small one and
    the rest, and there are 64.
    """
    total = (weight * (used > 0)).sum(axis=1)
    scale = HASH_VALUES // np.maximum(total, 1)
    fine = (scale > 1) & (HASH_VALUES % np.maximum(total, 1) > 0)
    rows, first = np.arange(len(used)), (used > 0).argmax(axis=1)
    weight = weight * np.where(fine, scale, 1)[:, None]
    weight[rows, first] -= fine
    small = np.where(fine, used[rows, first], 0)
    return np.column_stack((used, small)), np.column_stack((weight, fine))


def _alike(
    role: int,
    classes: NDArray[np.int64],
    port: Numbers,
    in_port: Numbers,
    led: NDArray[np.bool_],
    weight: Numbers | None = None,
) -> Iterator[Groups]:
    """Groups by their number of buckets; ports that are 0 are none."""
    weight = np.zeros_like(port) if weight is None else weight
    present = port > 0
    count = present.sum(axis=1)
    for buckets in np.unique(count[count > 0]).tolist():
        rows = count == buckets
        kept, shape = present[rows], (-1, buckets)
        yield Groups(
            role=role,
            classes=classes[rows],
            port=port[rows][kept].reshape(shape),
            weight=weight[rows][kept].reshape(shape),
            in_port=in_port[rows],
            led=led[rows],
        )
