"""Egress classes as OpenFlow groups, and the rows of table 2 that lead to them.

A class is a set of ports that lead to the same destinations (`intermediate_form.Classes` says which
port a switch takes when). Open vSwitch sends no packet back by its ingress port unless the output
is IN_PORT, and a fast-failover group may choose just that port. So a class has one more group for
each port on which its packets may have come in, and a row by in_port that leads to that group,
where the port is the last choice, as IN_PORT.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import Classes
from compilers.targets.openflow.profiles import OVS, Profile
from compilers.targets.openflow.protocol import IN_PORT, GroupType

Numbers = NDArray[np.integer]
FROM_HOSTS, NOT_LED = -1, -2
"""Stand for an ingress port: the ports of all hosts; no port, as no row leads to the group."""
HASH_VALUES = 64
"""The fewest hash values of a select group; each that occurs is an entry in the switch's cache."""
MORE_VALUES = (256, 128, HASH_VALUES)
"""The numbers of hash values that Open vSwitch may be led to use, the most first."""
HIGHEST_RANDOM_WEIGHT = 60_000
"""Parts of a group for which Open vSwitch has too few values (`group_setup_dp_hash_table`, 256 from
2.17 on): it then takes the bucket with the highest random weight, which is fair to equal weights.
"""
UNEVEN = 0.1
"""The largest error of the traffic of a port, as a part of its share."""


class GroupRole(IntEnum):
    """The packets that a group of a class is for, which decide the order of its ports."""

    TRANSIT = 0
    """Packets from switches: the minimal port, then the ports of protection."""
    ENTER = 1
    """Packets from hosts: the minimal port and the alternates, by weight."""
    BOUNCE = 2
    """Packets that came in on the minimal port."""
    FALLBACK = 3
    """Packets from hosts, where TRANSIT has ports that ENTER does not have: the group of ENTER
    first, then the ports of TRANSIT."""
    ASIDE = 4
    """Packets that came in on the first port of protection; 5 and up: on the next ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """n groups of one role, each with B buckets."""

    role: int
    """A `GroupRole`, or a number above those."""
    classes: NDArray[np.int64]
    """int64[n]: the class of each group."""
    port: Numbers
    """int[n, B]: the port that each bucket watches, 0 behind the last bucket."""
    weight: Numbers
    """int[n, B]: the weight of each bucket; 0 in all roles except ENTER."""
    marks: NDArray[np.bool_]
    """bool[n, B]: the buckets that mark packets before they send them."""
    in_port: Numbers
    """int[n]: the ingress port of the packets that a row leads to the group; 0: any."""
    led: NDArray[np.bool_]
    """bool[n]: whether a row leads to the group; to others only a group does."""
    made: bool = True
    """False: the groups were made before, and these only stand for more rows that lead to them."""

    @property
    def output(self) -> Numbers:
        """int[n, B]: the port to which each bucket sends; IN_PORT for the ingress port."""
        return np.where(self.port == self.in_port[:, None], IN_PORT, self.port.astype(np.int64))

    @property
    def entering(self) -> bool:
        """Whether only packets from hosts are led here."""
        return self.role in (GroupRole.ENTER, GroupRole.FALLBACK)

    @property
    def there(self) -> NDArray[np.bool_]:
        """bool[n]: whether the group has buckets; without, it does not exist."""
        return np.asarray((self.port > 0).any(axis=1))

    @property
    def entry(self) -> NDArray[np.int64]:
        """int64[n]: the ingress port of the row that leads to each group.

        0 for any port, FROM_HOSTS for those of hosts, NOT_LED where no row leads to the group.
        """
        entry = FROM_HOSTS if self.entering else self.in_port.astype(np.int64)
        return np.where(self.led & self.there, entry, NOT_LED)

    def led_here(self) -> Groups:
        """The groups to which a row leads."""
        return self.take(self.led & self.there)

    def from_ports(self, ports: NDArray[np.integer]) -> Groups:
        """Each group once for each of some ingress ports."""
        each = np.repeat(np.arange(len(self.classes)), len(ports))
        return replace(self.take(each), in_port=np.tile(ports, len(self.classes)))

    def take(
        self, chosen: Numbers | NDArray[np.bool_] | slice, buckets: int | None = None
    ) -> Groups:
        """Some of the groups, with their first `buckets` buckets, or all."""
        return replace(
            self,
            classes=self.classes[chosen],
            port=self.port[chosen, :buckets],
            weight=self.weight[chosen, :buckets],
            marks=self.marks[chosen, :buckets],
            in_port=self.in_port[chosen],
            led=self.led[chosen],
        )

    @property
    def type(self) -> GroupType:
        """The OpenFlow type of the groups."""
        if self.role == GroupRole.ENTER:
            return GroupType.SELECT
        alone = self.port.shape[1] == 1 and self.role != GroupRole.FALLBACK
        return GroupType.INDIRECT if alone else GroupType.FAST_FAILOVER


def roles(classes: Classes, every_hop: bool = False) -> int:
    """The number of roles that the classes of a fabric may need, counted from the first."""
    ports: int = classes.protection.shape[2]
    if ports:  # where packets are shared at every hop, one more: for packets that came in by others
        return GroupRole.ASIDE + ports + every_hop
    if classes.alternate.shape[2]:
        return GroupRole.FALLBACK + 1  # for classes whose minimal port has no weight
    return GroupRole.BOUNCE + 1 if classes.bounce.shape[2] else GroupRole.TRANSIT + 1


def group_numbers(role: int, egress: Numbers, classes: int) -> NDArray[np.int64]:
    """int64[n]: the OpenFlow numbers of the groups of a role.

    Args:
        role: the role.
        egress: int[n], the classes of the groups.
        classes: the most classes that a switch may have.
    """
    return 1 + role * classes + egress.astype(np.int64)


def groups(
    classes: Classes,
    vertex: int,
    profile: Profile = OVS,
    marking: bool = False,
    every_hop: bool = False,
) -> Iterator[Groups]:
    """All groups of a switch, each before the groups that forward to it; see `class_groups`."""
    number = np.flatnonzero(classes.port[vertex] > 0)
    for role in class_groups(classes, vertex, number, profile, marking, every_hop):
        for _, alike in by_buckets(role):
            yield alike


def class_groups(
    classes: Classes,
    switch: int | NDArray[np.int64],
    number: NDArray[np.int64],
    profile: Profile = OVS,
    marking: bool = False,
    every_hop: bool = False,
) -> Iterator[Groups]:
    """The groups of n classes, a role after the other, those that others lead to first.

    Every role has n groups; those that a class does not need have no buckets. Without fast failover
    a group has the first port that it would try, and the controller puts another in its place.

    Args:
        classes: of the fabric.
        switch: int64[n], where each of these classes is, or one for all.
        number: int64[n], their numbers there.
        profile: of these switches.
        marking: whether packets from hosts that leave by an alternate are marked.
        every_hop: packets in transit share the next hops of their class, too.
    """
    minimal = classes.port[switch, number][:, None]
    by_role = _at_every_hop if every_hop else _by_role
    for made in by_role(classes, switch, number, profile):
        if made.role == GroupRole.ENTER and marking:
            made = replace(made, marks=(made.port > 0) & (made.port != minimal))
        yield made


def _by_role(
    classes: Classes, switch: int | NDArray[np.int64], number: NDArray[np.int64], profile: Profile
) -> Iterator[Groups]:
    """The groups of n classes, none of which marks packets."""
    tried = None if profile.repairs else 1
    minimal = classes.port[switch, number][:, None]
    order = np.concatenate((minimal, classes.protection[switch, number]), axis=1)[:, :tried]
    anywhere, always = np.zeros(len(number), np.int32), np.ones(len(number), np.bool_)

    yield _groups(GroupRole.TRANSIT, number, order, anywhere, always)
    if classes.alternate.shape[2]:
        weight = classes.weight[switch, number]
        used = np.concatenate((minimal, classes.alternate[switch, number]), axis=1) * (weight > 0)
        if profile.buckets is not None:
            used, weight = _heaviest(used, weight * (used > 0), profile.buckets)
        enters = (used[:, 1:] > 0).any(axis=1)
        beyond = ~(order[:, :, None] == used[:, None, :]).any(axis=2) & (order > 0)
        falls = enters & beyond.any(axis=1) & profile.repairs
        used = used * enters[:, None]
        fine, shares = (used, weight) if profile.buckets else _finely(used, weight)
        yield _groups(GroupRole.ENTER, number, fine, anywhere, ~falls, shares)
        yield _groups(GroupRole.FALLBACK, number, order * falls[:, None], anywhere, always)
    if classes.bounce.shape[2] or classes.alternate.shape[2]:
        bounce = _last(classes.bounce[switch, number], minimal)
        yield _groups(GroupRole.BOUNCE, number, _first(bounce, tried), minimal[:, 0], always)
    for place in range(1, order.shape[1]):
        came = order[:, place, None]
        aside = _first(_last(order, came) * (came > 0), tried)
        yield _groups(GroupRole.ASIDE + place - 1, number, aside, came[:, 0], always)


def _at_every_hop(
    classes: Classes, switch: int | NDArray[np.int64], number: NDArray[np.int64], profile: Profile
) -> Iterator[Groups]:
    """The groups of n classes whose next hops are shared by packets in transit as well.

    A class with several next hops has groups for packets that came in by one: BOUNCE by the minimal
    port, ASIDE by one of the bounce, and one more role by any other. Others are shared by a row.
    """
    minimal = classes.port[switch, number][:, None]
    alternate = classes.alternate[switch, number] * (classes.weight[switch, number][:, 1:] > 0)
    several = (alternate > 0).any(axis=1)
    bounce = classes.bounce[switch, number]
    aside, last = GroupRole.ASIDE.value, GroupRole.ASIDE + classes.protection.shape[2]
    for made in _by_role(classes, switch, number, profile):
        if made.role == GroupRole.TRANSIT:
            yield replace(made, port=made.port * ~several[:, None])
        elif made.role == GroupRole.BOUNCE:
            yield made
        elif made.role >= GroupRole.ASIDE:
            came = bounce[:, made.role - aside, None] * several[:, None]
            came = came * (came == alternate).any(axis=1, keepdims=True)
            turned = np.concatenate((bounce * (bounce != came), minimal), axis=1) * (came > 0)
            turned = _packed(turned, turned > 0)
            width = max(turned.shape[1], made.port.shape[1])
            one, other = (np.pad(p, ((0, 0), (0, width - p.shape[1]))) for p in (made.port, turned))
            in_port = np.where(several, came[:, 0], made.in_port)
            port = np.where(several[:, None], other, one)
            yield _groups(made.role, number, port, in_port, made.led)
    if not classes.protection.shape[2]:
        return
    others = alternate * ~(alternate[:, :, None] == bounce[:, None, :]).any(axis=2)
    turned = np.concatenate((bounce, minimal), axis=1) * (others > 0).any(axis=1, keepdims=True)
    whole = _groups(last, number, turned, np.zeros(len(number), np.int32), several & False)
    yield whole
    for port in others.T:
        row = port.astype(np.int32)
        yield replace(whole, in_port=row, led=row > 0, made=False)


def by_buckets(groups: Groups) -> Iterator[tuple[NDArray[np.int64], Groups]]:
    """Groups with as many buckets each, of which the same mark, and int64[m], which of the given
    ones they are.
    """
    there, marks = groups.port > 0, groups.marks
    if (there == there[:1]).all() and (marks == marks[:1]).all():  # most roles have one form
        if buckets := int(there[:1].sum()):
            yield np.arange(len(there)), groups.take(slice(None), buckets)
        return
    marks = marks[:, marks.any(axis=0)]
    shape, which = np.unique(
        np.column_stack((there.sum(axis=1), marks)), axis=0, return_inverse=True
    )
    for number, buckets in enumerate(shape[:, 0].tolist()):
        if buckets:
            rows = np.flatnonzero(which.ravel() == number)
            yield rows, groups.take(rows, buckets)


def _last(order: Numbers, port: Numbers) -> Numbers:
    """int[n, B + 1]: the order without a port, int[n, 1], and that port at its end."""
    return np.concatenate((order * (order != port), port), axis=1)


def _first(order: Numbers, count: int | None) -> Numbers:
    """int[n, count]: the first of the ports that are there, those behind them left out."""
    if count is None:
        return order
    return _packed(order, order > 0)[:, :count]


def _heaviest(used: Numbers, weight: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """int[n, count] twice: the minimal port and the alternates of most weight, the first of equal
    ones.
    """
    if count >= used.shape[1]:
        return used, weight
    rank = np.argsort(-weight[:, 1:].astype(np.int64), axis=1, kind="stable")[:, : count - 1]
    chosen = np.column_stack((np.zeros(len(used), np.int64), 1 + np.sort(rank, axis=1)))
    return np.take_along_axis(used, chosen, axis=1), np.take_along_axis(weight, chosen, axis=1)


def _finely(used: Numbers, weight: Numbers) -> tuple[Numbers, Numbers]:
    """Ports and weights, int[n, B + 1], that share traffic as those passed in, in finer steps.

    Open vSwitch hashes packets into values, and deals these to buckets in proportion to their
    weights. There are as many values as the total weight is times the smallest one, rounded up to a
    power of two, and at least 16. So three equal buckets get 6, 5 and 5 of 16 values. Where the
    shares are not exact, the heaviest bucket is split into a small one and the rest: the small one
    makes Open vSwitch take as many values as `_hash_values` says.
    """
    weight = weight.astype(np.int64) * (used > 0)
    total = np.maximum(weight.sum(axis=1), 1)
    least = np.where(weight > 0, weight, total[:, None]).min(axis=1)
    dealt = np.maximum(2 ** np.ceil(np.log2(np.ceil(total / least))), 16)
    exact = dealt % (total // np.maximum(np.gcd.reduce(weight, axis=1), 1)) == 0
    values = _hash_values(weight, dealt)
    scale = values // total
    # The small one has to be about a value, or what it and the rest get is not what one would.
    scale = np.maximum(np.where(10 * total * scale < 9 * values, 16 * values // total, scale), 1)
    small = -(-total * scale // values)
    rows, heaviest = np.arange(len(used)), weight.argmax(axis=1)
    fine = (dealt < values) & ~exact & (weight[rows, heaviest] * scale >= 2 * small)
    weight = weight * np.where(fine, scale, 1)[:, None]
    weight[rows, heaviest] -= fine * small
    split = np.where(fine, used[rows, heaviest], 0)
    return np.column_stack((used, split)), np.column_stack((weight, fine * small))


def _hash_values(weight: NDArray[np.int64], least: Numbers) -> NDArray[np.int64]:
    """int64[n]: the fewest values, at least as many as these, that deal ports their shares but for
    `UNEVEN`.

    Where none of `MORE_VALUES` does, equal weights get `HIGHEST_RANDOM_WEIGHT`, others the most.
    """
    there = weight > 0
    count = there.sum(axis=1)
    alike = (weight == there * weight.max(axis=1, initial=0)[:, None]).all(axis=1)
    key = np.where(alike, -count, 1 + np.arange(len(weight)))  # one row represents all of a kind
    _, row, kind = np.unique(key, return_index=True, return_inverse=True)
    some, least = weight[row], least[row]
    found = np.where(alike[row], HIGHEST_RANDOM_WEIGHT, MORE_VALUES[0])
    for values in MORE_VALUES:
        quota = values * some / np.maximum(some.sum(axis=1, keepdims=True), 1)
        even = (np.abs(_dealt(quota, values) - quota) <= UNEVEN * quota).all(axis=1)
        found[even & (values >= least)] = values
    return np.asarray(found[kind.ravel()])


def _dealt(quota: Numbers, values: int) -> Numbers:
    """int[n, B]: values dealt by Webster's method, as Open vSwitch deals them to weights.

    Of equally good ports the one of less weight gets one more or less, which is the worse for it.
    """
    dealt = np.rint(quota)
    left = values - dealt.sum(axis=1, keepdims=True)
    light = 1 - quota / values / 100
    more = np.argsort(np.argsort(-light * quota / (2 * dealt + 1), axis=1), axis=1) < left
    last = np.where(dealt > 0, quota / np.maximum(2 * dealt - 1, 1) / light, np.inf)
    fewer = np.argsort(np.argsort(last, axis=1), axis=1) < -left
    return np.asarray(dealt + more - fewer)


def _groups(
    role: int,
    classes: NDArray[np.int64],
    port: Numbers,
    in_port: Numbers,
    led: NDArray[np.bool_],
    weight: Numbers | None = None,
) -> Groups:
    """Groups whose buckets, ports that are not 0, come first in their order."""
    present = port > 0
    if not present.all():
        port = _packed(port, present)
        weight = None if weight is None else _packed(weight, present)
    weight = np.zeros_like(port) if weight is None else weight
    return Groups(role, classes, port, weight, np.zeros(port.shape, np.bool_), in_port, led)


def _packed(values: Numbers, present: NDArray[np.bool_]) -> Numbers:
    """int[n, B]: of each row those that are present, in their order, then zeros."""
    packed = np.zeros_like(values)
    packed[~np.sort(~present, axis=1)] = values[present]
    return packed
