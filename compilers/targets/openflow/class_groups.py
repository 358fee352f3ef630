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
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compilers.tables.intermediate_form import Classes
from compilers.targets.openflow.profiles import OVS, Profile
from compilers.targets.openflow.protocol import IN_PORT, GroupType

Numbers = NDArray[np.integer]
IntegerT = TypeVar("IntegerT", bound=np.integer)
FROM_HOSTS, NOT_LED = -1, -2
"""In place of an ingress port: the ports of all hosts; no port, as no row leads to the group."""
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
    """bool[n]: whether a row of table 2 leads to the group. Otherwise only another group does."""
    made: bool = True
    """Whether the groups are new. If not, the switch has them already, and these only stand for
    more rows that lead to them."""

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
        repeated = np.repeat(np.arange(len(self.classes)), len(ports))
        return replace(self.take(repeated), in_port=np.tile(ports, len(self.classes)))

    def take(self, rows: Numbers | NDArray[np.bool_] | slice, buckets: int | None = None) -> Groups:
        """Some of the groups, with their first `buckets` buckets, or all buckets."""
        return replace(
            self,
            classes=self.classes[rows],
            port=self.port[rows, :buckets],
            weight=self.weight[rows, :buckets],
            marks=self.marks[rows, :buckets],
            in_port=self.in_port[rows],
            led=self.led[rows],
        )

    @property
    def type(self) -> GroupType:
        """The OpenFlow type of the groups."""
        if self.role == GroupRole.ENTER:
            return GroupType.SELECT
        has_one_bucket = self.port.shape[1] == 1 and self.role != GroupRole.FALLBACK
        return GroupType.INDIRECT if has_one_bucket else GroupType.FAST_FAILOVER


def roles(classes: Classes, every_hop: bool = False) -> int:
    """The number of roles that the classes of a fabric may need, counted from the first.

    Args:
        classes: of the fabric.
        every_hop: whether packets in transit share the next hops of their class, too. Then there is
            one more role, for packets that came in by another next hop.
    """
    ports: int = classes.protection.shape[2]
    if ports:
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
    for of_role in class_groups(classes, vertex, number, profile, marking, every_hop):
        for same_form in by_buckets(of_role):
            yield same_form.groups


def class_groups(
    classes: Classes,
    switch: int | NDArray[np.int64],
    number: NDArray[np.int64],
    profile: Profile = OVS,
    marking: bool = False,
    every_hop: bool = False,
) -> Iterator[Groups]:
    """The groups of n classes, role by role; groups to which others lead come before these.

    Every role has n groups. Those that a class does not need have no buckets. Without fast failover
    a group has only the first port that it would try, and the controller replaces it if it fails.

    Args:
        classes: of the fabric.
        switch: int64[n], the switch of each of these classes, or one switch for all.
        number: int64[n], their numbers there.
        profile: of these switches.
        marking: whether packets from hosts that leave by an alternate are marked.
        every_hop: whether packets in transit share the next hops of their class, too.
    """
    minimal = classes.port[switch, number][:, None]
    by_role = _groups_at_every_hop if every_hop else _groups_by_role
    for of_role in by_role(classes, switch, number, profile):
        if of_role.role == GroupRole.ENTER and marking:
            yield replace(of_role, marks=(of_role.port > 0) & (of_role.port != minimal))
        else:
            yield of_role


def _groups_by_role(
    classes: Classes, switch: int | NDArray[np.int64], number: NDArray[np.int64], profile: Profile
) -> Iterator[Groups]:
    """The groups of n classes, none of which marks packets (`class_groups`)."""
    ports_tried = None if profile.repairs else 1
    minimal = classes.port[switch, number][:, None]
    order = np.concatenate((minimal, classes.protection[switch, number]), axis=1)[:, :ports_tried]
    any_port, always = np.zeros(len(number), np.int32), np.ones(len(number), np.bool_)

    yield _groups(GroupRole.TRANSIT, number, order, any_port, always)
    if classes.alternate.shape[2]:
        shared = _shared_ports(classes, switch, number, profile)
        has_alternates = np.asarray((shared.port[:, 1:] > 0).any(axis=1))
        # Ports that only packets in transit try take those of hosts when all shared ones are down.
        only_transit = ~(order[:, :, None] == shared.port[:, None, :]).any(axis=2) & (order > 0)
        falls_back = has_alternates & only_transit.any(axis=1) & profile.repairs
        shared = WeightedPorts(_where(has_alternates[:, None], shared.port), shared.weight)
        if not profile.buckets:
            shared = _in_finer_steps(shared)
        yield _groups(GroupRole.ENTER, number, shared.port, any_port, ~falls_back, shared.weight)
        yield _groups(
            GroupRole.FALLBACK, number, _where(falls_back[:, None], order), any_port, always
        )
    if classes.bounce.shape[2] or classes.alternate.shape[2]:
        bounce = _moved_to_end(classes.bounce[switch, number], minimal)
        bounce = _first_ports(bounce, ports_tried)
        yield _groups(GroupRole.BOUNCE, number, bounce, minimal[:, 0], always)
    for place in range(1, order.shape[1]):
        in_port = order[:, place, None]
        aside = _first_ports(_where(in_port > 0, _moved_to_end(order, in_port)), ports_tried)
        yield _groups(GroupRole.ASIDE + place - 1, number, aside, in_port[:, 0], always)


def _groups_at_every_hop(
    classes: Classes, switch: int | NDArray[np.int64], number: NDArray[np.int64], profile: Profile
) -> Iterator[Groups]:
    """The groups of n classes whose next hops are shared by packets in transit as well.

    A class with several next hops has groups for packets that came in by one of these: BOUNCE by
    the minimal port, ASIDE by a port of the bounce, and one more role by any other next hop. A row,
    not a group, shares the packets that came in by other ports.
    """
    minimal = classes.port[switch, number][:, None]
    has_weight = classes.weight[switch, number][:, 1:] > 0
    alternate: Numbers = _where(has_weight, classes.alternate[switch, number])
    has_several = np.any(alternate > 0, axis=1)
    bounce = classes.bounce[switch, number]
    for of_role in _groups_by_role(classes, switch, number, profile):
        if of_role.role == GroupRole.TRANSIT:
            yield replace(of_role, port=_where(~has_several[:, None], of_role.port))
        elif of_role.role == GroupRole.BOUNCE:
            yield of_role
        elif of_role.role >= GroupRole.ASIDE:
            in_port = bounce[:, of_role.role - GroupRole.ASIDE.value, None]
            in_port = _where(has_several[:, None], in_port)
            in_port = _where((in_port == alternate).any(axis=1, keepdims=True), in_port)
            without_in_port = _where(bounce != in_port, bounce)
            aside = np.concatenate((without_in_port, minimal), axis=1)
            aside = _where(in_port > 0, aside)
            aside = _packed(aside, aside > 0)
            width = max(aside.shape[1], of_role.port.shape[1])
            port = np.where(
                has_several[:, None], _widened(aside, width), _widened(of_role.port, width)
            )
            in_ports = np.where(has_several, in_port[:, 0], of_role.in_port)
            yield _groups(of_role.role, number, port, in_ports, of_role.led)
    if classes.protection.shape[2]:
        role = GroupRole.ASIDE + classes.protection.shape[2]
        bounces = (alternate[:, :, None] == bounce[:, None, :]).any(axis=2)
        others = _where(~bounces, alternate)
        has_others = (others > 0).any(axis=1, keepdims=True)
        turned = _where(has_others, np.concatenate((bounce, minimal), axis=1))
        any_port, never = np.zeros(len(number), np.int32), np.zeros(len(number), np.bool_)
        from_others = _groups(role, number, turned, any_port, never)
        yield from_others
        for port in others.T:
            in_port = port.astype(np.int32)
            yield replace(from_others, in_port=in_port, led=in_port > 0, made=False)


@dataclass(frozen=True, slots=True, eq=False)
class SameForm:
    """Groups with equally many buckets, of which the same ones mark packets."""

    place: NDArray[np.int64]
    """int64[m], their places among the groups that were divided."""
    groups: Groups
    """The m groups, without buckets that they do not have."""


def by_buckets(groups: Groups) -> Iterator[SameForm]:
    """Divide groups by their numbers of buckets, and by which buckets mark packets."""
    present, marks = groups.port > 0, groups.marks
    if (present == present[:1]).all() and (marks == marks[:1]).all():  # most roles have one form
        if buckets := int(present[:1].sum()):
            yield SameForm(np.arange(len(present)), groups.take(slice(None), buckets))
        return
    marks = marks[:, marks.any(axis=0)]
    forms, form_of = np.unique(
        np.column_stack((present.sum(axis=1), marks)), axis=0, return_inverse=True
    )
    for form, buckets in enumerate(forms[:, 0].tolist()):
        if buckets:
            place = np.flatnonzero(form_of.ravel() == form)
            yield SameForm(place, groups.take(place, buckets))


def _where(mask: ArrayLike, numbers: NDArray[IntegerT]) -> NDArray[IntegerT]:
    """The numbers where a mask holds, and 0 elsewhere."""
    return np.where(mask, numbers, 0)


def _moved_to_end(order: Numbers, port: Numbers) -> Numbers:
    """The order without a port, int[n, 1], and that port at its end, int[n, B + 1]."""
    return np.concatenate((_where(order != port, order), port), axis=1)


def _first_ports(order: Numbers, count: int | None) -> Numbers:
    """The first `count` ports of each order, int[n, count]; all if it is None."""
    if count is None:
        return order
    return _packed(order, order > 0)[:, :count]


def _widened(ports: Numbers, width: int) -> Numbers:
    """The rows with zeros at their ends, int[n, width]."""
    return np.pad(ports, ((0, 0), (0, width - ports.shape[1])))


@dataclass(frozen=True, slots=True, eq=False)
class WeightedPorts:
    """The ports that share the packets of n classes."""

    port: Numbers
    """int[n, B], 0 for none; the first one is the minimal port."""
    weight: Numbers
    """int[n, B], the weight of each port."""


def _shared_ports(
    classes: Classes, switch: int | NDArray[np.int64], number: NDArray[np.int64], profile: Profile
) -> WeightedPorts:
    """The ports with a weight, as many as the groups of a profile can have.

    These are the minimal port and the alternates of most weight, the first of equal ones.
    """
    weight = classes.weight[switch, number]
    minimal, alternate = classes.port[switch, number][:, None], classes.alternate[switch, number]
    port = _where(weight > 0, np.concatenate((minimal, alternate), axis=1))
    if profile.buckets is None:
        return WeightedPorts(port, weight)
    weight = _where(port > 0, weight)
    if profile.buckets >= port.shape[1]:
        return WeightedPorts(port, weight)
    by_weight = np.argsort(-weight[:, 1:].astype(np.int64), axis=1, kind="stable")
    heaviest = 1 + np.sort(by_weight[:, : profile.buckets - 1], axis=1)
    kept = np.column_stack((np.zeros(len(port), np.int64), heaviest))
    return WeightedPorts(
        np.take_along_axis(port, kept, axis=1), np.take_along_axis(weight, kept, axis=1)
    )


def _in_finer_steps(shared: WeightedPorts) -> WeightedPorts:
    """Ports and weights, with one column more, that share traffic alike but more exactly.

    Open vSwitch hashes packets into values, and deals these to buckets in proportion to their
    weights. There are as many values as the total weight is times the smallest one, rounded up to a
    power of two, and at least 16. So three equal buckets get 6, 5 and 5 of 16 values. Where the
    shares are not exact, the heaviest bucket is split into a small one and the rest: the small one
    makes Open vSwitch take as many values as `_hash_values` says.
    """
    port, weight = shared.port, _where(shared.port > 0, shared.weight.astype(np.int64))
    total = np.maximum(weight.sum(axis=1), 1)
    least = np.where(weight > 0, weight, total[:, None]).min(axis=1)
    usual_values = np.maximum(2 ** np.ceil(np.log2(np.ceil(total / least))), 16)
    divisor = np.maximum(np.gcd.reduce(weight, axis=1), 1)
    is_exact = usual_values % (total // divisor) == 0
    values = _hash_values(weight, usual_values)
    scale = values // total
    # The small bucket has to get about one value, or the two buckets get another share than one.
    scale = np.maximum(np.where(10 * total * scale < 9 * values, 16 * values // total, scale), 1)
    small = -(-total * scale // values)
    rows, heaviest = np.arange(len(port)), weight.argmax(axis=1)
    is_divisible = weight[rows, heaviest] * scale >= 2 * small
    splits = (usual_values < values) & ~is_exact & is_divisible
    weight = weight * np.where(splits, scale, 1)[:, None]
    weight[rows, heaviest] -= splits * small
    small_port = np.where(splits, port[rows, heaviest], 0)
    return WeightedPorts(
        np.column_stack((port, small_port)), np.column_stack((weight, splits * small))
    )


def _hash_values(weight: NDArray[np.int64], least: Numbers) -> NDArray[np.int64]:
    """How many hash values each group needs, int64[n]: the fewest that share its traffic evenly.

    Shares are even if no port's is off by more than `UNEVEN`. If none of `MORE_VALUES` is enough,
    groups of equal weights get `HIGHEST_RANDOM_WEIGHT`, and others the most values.

    Args:
        weight: int64[n, B], of the buckets.
        least: int[n], the fewest values that Open vSwitch takes.
    """
    has_weight = weight > 0
    is_equal = (weight == has_weight * weight.max(axis=1, initial=0)[:, None]).all(axis=1)
    # One row stands for all groups of so many equal weights.
    kind = np.where(is_equal, -has_weight.sum(axis=1), 1 + np.arange(len(weight)))
    _, row, kind_of = np.unique(kind, return_index=True, return_inverse=True)
    weight, least = weight[row], least[row]
    needed = np.where(is_equal[row], HIGHEST_RANDOM_WEIGHT, MORE_VALUES[0])
    for values in MORE_VALUES:
        quota = values * weight / np.maximum(weight.sum(axis=1, keepdims=True), 1)
        is_even = (np.abs(_dealt(quota, values) - quota) <= UNEVEN * quota).all(axis=1)
        needed[is_even & (values >= least)] = values
    return np.asarray(needed[kind_of.ravel()])


def _dealt(quota: Numbers, values: int) -> Numbers:
    """Hash values dealt to buckets by Webster's method, as Open vSwitch does, int[n, B].

    Of buckets with equal claims the lighter one gets a value more or less, which is the worse case.

    Args:
        quota: float[n, B], the exact part of the values for each bucket.
        values: how many there are.
    """
    dealt = np.rint(quota)
    undealt = values - dealt.sum(axis=1, keepdims=True)
    lightness = 1 - quota / values / 100
    claim = np.argsort(np.argsort(-lightness * quota / (2 * dealt + 1), axis=1), axis=1)
    surplus = np.where(dealt > 0, quota / np.maximum(2 * dealt - 1, 1) / lightness, np.inf)
    loss = np.argsort(np.argsort(surplus, axis=1), axis=1)
    return np.asarray(dealt + (claim < undealt) - (loss < -undealt))


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
    """The present values of each row in their order, then zeros, int[n, B]."""
    packed = np.zeros_like(values)
    packed[~np.sort(~present, axis=1)] = values[present]
    return packed
