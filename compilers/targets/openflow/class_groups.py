"""Egress classes as OpenFlow groups, and the rows of table 2 that lead to them.

An egress class is a forwarding equivalence class of a switch, with the ports for its destinations:
the minimal port, on a shortest path; alternates, which share packets from hosts with it by weight
(ECMP); ports of *protection*, to which packets in transit go when the minimal port is down
(loop-free alternates); and the ports of the *bounce*, for packets that came in by the minimal port
(U-turn alternates). Some balances, that is load-balancing rules, *mark* packets from hosts that
leave by an alternate, for the next switch to spread them over its other links; others share packets
in transit as well, at *every hop*. Table 2 is the table of classes of `flow_tables`.

Open vSwitch sends no packet back by its ingress port unless the output is IN_PORT, and a
fast-failover group may choose just that port. So a class has one more group for each port on which
its packets may have come in, and a row by in_port that leads to that group, where the port is the
last choice, as IN_PORT. `Pipeline` and the moves of switches between builds take these groups.

In shapes, n is the number of groups and B the number of buckets of each. Rows of ports end with
zeros, which stand for no port.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compilers.tables.intermediate_form import Classes
from compilers.targets.openflow.hash_shares import WeightedPorts, in_finer_steps, shared_ports
from compilers.targets.openflow.profiles import OVS, Profile
from compilers.targets.openflow.protocol import IN_PORT, GroupType

Numbers = NDArray[np.integer]
IntegerT = TypeVar("IntegerT", bound=np.integer)
ANY_PORT = 0
"""In place of an ingress port: the packets may have come in by any port."""
FROM_HOSTS = -1
"""In place of an ingress port: the ports of all hosts."""
NO_ROW = -2
"""In place of an ingress port: no row leads to the group."""


class GroupRole(IntEnum):
    """The packets that a group of a class is for, which decide the order of its ports.

    The roles from ASIDE on have consecutive numbers, and no names of their own.

    Example: the minimal port of a class is 1, its alternates are 2 and 3, its ports of protection 2
    and 4, and the port of the bounce is 5. TRANSIT tries 1, 2, 4, and ENTER shares packets among 1,
    2, 3. As no packet from a host would leave by port 4, FALLBACK tries ENTER, then 1, 2, 4. BOUNCE
    is for packets from port 1 and tries 5, 1. ASIDE is for packets from port 2 and tries 1, 4, 2,
    and ASIDE + 1 for packets from port 4 and tries 1, 2, 4.
    """

    TRANSIT = 0
    """Packets in transit: the minimal port, then the ports of protection."""
    ENTER = 1
    """Packets from hosts: the minimal port and the alternates, by weight."""
    BOUNCE = 2
    """Packets that came in on the minimal port: the ports of the bounce, then the minimal port."""
    FALLBACK = 3
    """Packets from hosts, where TRANSIT has ports that ENTER does not have: the group of ENTER
    first, then the ports of TRANSIT."""
    ASIDE = 4
    """Packets that came in on the first port of protection: the minimal port and the other ports of
    protection, then this port. ASIDE + i is the role for port i of protection, from 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """n groups of one role, each with B buckets.

    A group is one of three cases:

    - It has no buckets (`exists` is False). No switch gets it, and no row leads to it.
    - A row of table 2 leads to it (`has_row`), for packets from `ingress_of_row`.
    - No row of these `Groups` leads to it (`has_row` is False). Another group does, or rows of the
      same group in later `Groups` that are not new.
    """

    role: int
    """A `GroupRole`, or ASIDE + i."""
    egress: NDArray[np.int64]
    """int64[n]: the egress class of each group, by its number at its switch."""
    port: Numbers
    """int[n, B]: the port that each bucket watches; 0 for no bucket, behind the last one."""
    weight: Numbers
    """int[n, B]: the weight of each bucket; 0 in all roles except ENTER."""
    marks: NDArray[np.bool_]
    """bool[n, B]: the buckets that mark packets before they send them."""
    in_port: Numbers
    """int[n]: the ingress port of the packets for the group, or ANY_PORT."""
    has_row: NDArray[np.bool_]
    """bool[n]: whether a row of table 2 leads to the group."""
    is_new: bool = True
    """Whether these groups are to be added. If not, earlier `Groups` have them already. They are
    repeated with another `in_port`, as several rows lead to one group."""

    @property
    def output(self) -> Numbers:
        """int[n, B]: the port to which each bucket sends; IN_PORT for the ingress port."""
        return np.where(self.port == self.in_port[:, None], IN_PORT, self.port.astype(np.int64))

    @property
    def from_hosts(self) -> bool:
        """Whether the groups are for packets from hosts only."""
        return self.role in (GroupRole.ENTER, GroupRole.FALLBACK)

    @property
    def exists(self) -> NDArray[np.bool_]:
        """bool[n]: whether a group has buckets; one without any is not added to a switch."""
        return np.asarray((self.port > 0).any(axis=1))

    @property
    def ingress_of_row(self) -> NDArray[np.int64]:
        """int64[n]: the ingress port that the row leading to each group matches.

        In its place stand ANY_PORT, FROM_HOSTS, and NO_ROW where no row leads to the group.
        """
        ingress = FROM_HOSTS if self.from_hosts else self.in_port.astype(np.int64)
        return np.where(self.has_row & self.exists, ingress, NO_ROW)

    def with_rows(self) -> Groups:
        """The groups to which a row leads."""
        return self.take(self.has_row & self.exists)

    def from_ports(self, ports: NDArray[np.integer]) -> Groups:
        """A copy of each group for each of some ingress ports."""
        group_of_copy = np.repeat(np.arange(len(self.egress)), len(ports))
        return replace(self.take(group_of_copy), in_port=np.tile(ports, len(self.egress)))

    def take(self, rows: Numbers | NDArray[np.bool_] | slice, buckets: int | None = None) -> Groups:
        """Some of the groups, by index or mask, with their first `buckets` buckets; None: all."""
        return replace(
            self,
            egress=self.egress[rows],
            port=self.port[rows, :buckets],
            weight=self.weight[rows, :buckets],
            marks=self.marks[rows, :buckets],
            in_port=self.in_port[rows],
            has_row=self.has_row[rows],
        )

    @property
    def type(self) -> GroupType:
        """The OpenFlow type of the groups."""
        if self.role == GroupRole.ENTER:
            return GroupType.SELECT
        has_one_bucket = self.port.shape[1] == 1 and self.role != GroupRole.FALLBACK
        return GroupType.INDIRECT if has_one_bucket else GroupType.FAST_FAILOVER


def role_count(classes: Classes, every_hop: bool = False) -> int:
    """The number of roles that the classes of a fabric may need, counted from the first.

    Args:
        classes: the egress classes of the fabric.
        every_hop: whether packets in transit share the next hops of their class, too. Then there is
            one more role, the last: for packets that came in by a next hop that is no port of the
            bounce.
    """
    ports: int = classes.protection.shape[2]
    if ports:
        return GroupRole.ASIDE + ports + (1 if every_hop else 0)
    if classes.alternate.shape[2]:
        return GroupRole.FALLBACK + 1  # for classes whose minimal port has no weight
    return GroupRole.BOUNCE + 1 if classes.bounce.shape[2] else GroupRole.TRANSIT + 1


def group_numbers(role: int, egress: Numbers, classes: int) -> NDArray[np.int64]:
    """int64[n]: the OpenFlow numbers of the groups of a role, from 1, role by role.

    Args:
        role: the role.
        egress: int[n], the classes of the groups.
        classes: the most classes that a switch may have.
    """
    return 1 + role * classes + egress.astype(np.int64)


def groups_of_switch(
    classes: Classes,
    vertex: int,
    profile: Profile = OVS,
    marking: bool = False,
    every_hop: bool = False,
) -> Iterator[Groups]:
    """All groups of a switch, each before the groups that lead to it; see `class_groups`."""
    egress = np.flatnonzero(classes.port[vertex] > 0)
    for groups_of_role in class_groups(
        classes, switch=vertex, egress=egress, profile=profile, marking=marking, every_hop=every_hop
    ):
        for form in by_buckets(groups_of_role):
            yield form.groups


def class_groups(
    classes: Classes,
    switch: int | NDArray[np.int64],
    egress: NDArray[np.int64],
    profile: Profile = OVS,
    marking: bool = False,
    every_hop: bool = False,
) -> Iterator[Groups]:
    """The groups of n classes, role by role; a group comes before the groups that lead to it.

    Every role has n groups, of which those that a class does not need have no buckets. On switches
    without fast failover a group has only the first of its ports, and the controller changes the
    group when that port fails.

    Args:
        classes: the egress classes of the fabric.
        switch: int64[n], the switch of each of these classes, or one switch for all.
        egress: int64[n], the numbers of the classes at their switches.
        profile: what these switches can do.
        marking: whether packets from hosts that leave by an alternate are marked.
        every_hop: whether packets in transit share the next hops of their class, too.
    """
    minimal = classes.port[switch, egress][:, None]
    by_role = _groups_at_every_hop if every_hop else _groups_by_role
    for groups in by_role(classes, switch, egress, profile):
        if groups.role == GroupRole.ENTER and marking:
            yield replace(groups, marks=(groups.port > 0) & (groups.port != minimal))
        else:
            yield groups


def _groups_by_role(
    classes: Classes, switch: int | NDArray[np.int64], egress: NDArray[np.int64], profile: Profile
) -> Iterator[Groups]:
    """The groups of n classes, where packets in transit have one next hop (`class_groups`).

    They try the minimal port first, then the ports of protection in order. No bucket marks packets.
    """
    most_ports = None if profile.repairs else 1
    minimal = classes.port[switch, egress][:, None]
    # int[n, B]: the ports that packets in transit try.
    order = np.concatenate((minimal, classes.protection[switch, egress]), axis=1)[:, :most_ports]
    any_port, always = np.full(len(egress), ANY_PORT, np.int32), np.ones(len(egress), np.bool_)

    yield _with_packed_buckets(GroupRole.TRANSIT, egress, order, any_port, always)
    if classes.alternate.shape[2]:
        shared = shared_ports(classes, switch, egress, profile)
        yield from _groups_from_hosts(egress, shared, order, profile)
    if classes.bounce.shape[2] or classes.alternate.shape[2]:
        bounce = _with_port_last(classes.bounce[switch, egress], minimal)
        bounce = _first_ports(bounce, most_ports)
        yield _with_packed_buckets(GroupRole.BOUNCE, egress, bounce, minimal[:, 0], always)
    for index, protection in enumerate(order.T[1:]):
        in_port = protection[:, None]
        ports = _masked(in_port > 0, _with_port_last(order, in_port))
        ports = _first_ports(ports, most_ports)
        yield _with_packed_buckets(GroupRole.ASIDE + index, egress, ports, protection, always)


def _groups_from_hosts(
    egress: NDArray[np.int64], shared: WeightedPorts, order: Numbers, profile: Profile
) -> Iterator[Groups]:
    """The groups of n classes for packets from hosts, with the roles ENTER and FALLBACK.

    Args:
        egress: int64[n], the numbers of the classes.
        shared: the ports that share packets from hosts.
        order: int[n, B], the ports that packets in transit try.
        profile: what the switches can do.
    """
    any_port, always = np.full(len(egress), ANY_PORT, np.int32), np.ones(len(egress), np.bool_)
    has_alternates = np.asarray((shared.port[:, 1:] > 0).any(axis=1))
    # Ports that packets in transit try, and that packets from hosts do not share: they take packets
    # from hosts when all shared ports are down.
    only_transit = ~(order[:, :, None] == shared.port[:, None, :]).any(axis=2) & (order > 0)
    falls_back = has_alternates & only_transit.any(axis=1) & profile.repairs
    shared = WeightedPorts(_masked(has_alternates[:, None], shared.port), shared.weight)
    if not profile.buckets:
        shared = in_finer_steps(shared)
    yield _with_packed_buckets(
        GroupRole.ENTER,
        egress=egress,
        port=shared.port,
        in_port=any_port,
        has_row=~falls_back,
        weight=shared.weight,
    )
    yield _with_packed_buckets(
        GroupRole.FALLBACK, egress, _masked(falls_back[:, None], order), any_port, always
    )


def _groups_at_every_hop(
    classes: Classes, switch: int | NDArray[np.int64], egress: NDArray[np.int64], profile: Profile
) -> Iterator[Groups]:
    """The groups of n classes whose next hops share packets in transit as well.

    A class with several next hops has groups for packets that came in by one of them: BOUNCE for
    the minimal port, ASIDE and up for next hops that are ports of the bounce, and a last role for
    the other next hops. Packets that came in by any other port need no group: the row of the class
    shares them (`Pipeline.shared_classes`).

    Example: a class with the next hops 1, 2 and 3, the minimal one first, and the bounce 4, 2.
    Packets from port 1 take BOUNCE: 4, 2, then back by 1. Those from port 2 take ASIDE + 1, as 2 is
    the second port of the bounce: 4, 1. As port 4 is no next hop, ASIDE is empty. Packets from port
    3 take the last role: 4, 2, 1.
    """
    minimal = classes.port[switch, egress][:, None]
    has_weight = classes.weight[switch, egress][:, 1:] > 0
    alternate: Numbers = _masked(has_weight, classes.alternate[switch, egress])
    has_several = np.any(alternate > 0, axis=1)
    bounce = classes.bounce[switch, egress]
    for groups in _groups_by_role(classes, switch, egress, profile):
        if groups.role == GroupRole.TRANSIT:
            yield replace(groups, port=_masked(~has_several[:, None], groups.port))
        elif groups.role == GroupRole.BOUNCE:
            yield groups
        elif groups.role >= GroupRole.ASIDE:
            bounce_port = bounce[:, groups.role - GroupRole.ASIDE.value, None]
            is_next_hop = (bounce_port == alternate).any(axis=1, keepdims=True)
            in_port = _masked(has_several[:, None] & is_next_hop, bounce_port)
            yield _with_bounce_of_several(groups, in_port, bounce, minimal, has_several)
    if classes.protection.shape[2]:
        last_role = GroupRole.ASIDE + classes.protection.shape[2]
        yield from _groups_from_other_next_hops(last_role, egress, alternate, bounce, minimal)


def _groups_from_other_next_hops(
    role: int,
    egress: NDArray[np.int64],
    alternate: Numbers,
    bounce: Numbers,
    minimal: Numbers,
) -> Iterator[Groups]:
    """The groups for packets that came in by a next hop that is no port of the bounce.

    A class has one group for all of these next hops, and a row for each.

    Args:
        role: the last role.
        egress: int64[n], the numbers of the classes.
        alternate: int[n, A], the next hops of each class beside the minimal port; 0 for none.
        bounce: int[n, B], the ports of the bounce of each class.
        minimal: int[n, 1], the minimal port of each class.
    """
    is_bounce_port = (alternate[:, :, None] == bounce[:, None, :]).any(axis=2)
    other_next_hops = _masked(~is_bounce_port, alternate)
    has_others = (other_next_hops > 0).any(axis=1, keepdims=True)
    port = _masked(has_others, np.concatenate((bounce, minimal), axis=1))
    any_port, never = np.full(len(egress), ANY_PORT, np.int32), np.zeros(len(egress), np.bool_)
    groups = _with_packed_buckets(role, egress, port, any_port, never)
    yield groups
    for next_hop in other_next_hops.T:
        in_port = next_hop.astype(np.int32)
        yield replace(groups, in_port=in_port, has_row=in_port > 0, is_new=False)


def _with_bounce_of_several(
    groups: Groups,
    in_port: Numbers,
    bounce: Numbers,
    minimal: Numbers,
    has_several: NDArray[np.bool_],
) -> Groups:
    """The groups of a role from ASIDE on, with other ports for classes with several next hops.

    These are the other ports of the bounce, then the minimal port.

    Args:
        groups: the groups of the role as they are for classes with one next hop.
        in_port: int[n, 1], the port of the bounce on which the packets came in; 0 for none.
        bounce: int[n, B], the ports of the bounce of each class.
        minimal: int[n, 1], the minimal port of each class.
        has_several: bool[n], the classes with several next hops.
    """
    other_ports = np.concatenate((_masked(bounce != in_port, bounce), minimal), axis=1)
    other_ports = _masked(in_port > 0, other_ports)
    other_ports = _packed(other_ports, other_ports > 0)
    width = max(other_ports.shape[1], groups.port.shape[1])
    port = np.where(
        has_several[:, None], _widened(other_ports, width), _widened(groups.port, width)
    )
    in_ports = np.where(has_several, in_port[:, 0], groups.in_port)
    return _with_packed_buckets(groups.role, groups.egress, port, in_ports, groups.has_row)


@dataclass(frozen=True, slots=True, eq=False)
class GroupsOfForm:
    """Groups of one form: the same number of buckets, and the same buckets mark packets."""

    index: NDArray[np.int64]
    """int64[m]: the index of each group in the `Groups` that were divided by form."""
    groups: Groups
    """The m groups, without columns for buckets that none of them has."""


def by_buckets(groups: Groups) -> Iterator[GroupsOfForm]:
    """Divide groups by form: their number of buckets, and which of these mark packets."""
    present, marks = groups.port > 0, groups.marks
    if (present == present[:1]).all() and (marks == marks[:1]).all():  # most roles have one form
        if buckets := int(present[:1].sum()):  # of the first group, or 0 without groups
            yield GroupsOfForm(np.arange(len(present)), groups.take(slice(None), buckets))
        return
    marks = marks[:, marks.any(axis=0)]
    # A form is a row: the number of buckets, and whether each bucket marks packets.
    forms, form_of = np.unique(
        np.column_stack((present.sum(axis=1), marks)), axis=0, return_inverse=True
    )
    for form, buckets in enumerate(forms[:, 0].tolist()):
        if buckets:
            index = np.flatnonzero(form_of.ravel() == form)
            yield GroupsOfForm(index, groups.take(index, buckets))


def _masked(mask: ArrayLike, numbers: NDArray[IntegerT]) -> NDArray[IntegerT]:
    """The numbers where a mask holds, and 0 elsewhere."""
    return np.where(mask, numbers, 0)


def _with_port_last(order: Numbers, port: Numbers) -> Numbers:
    """int[n, B + 1]: each row of ports, in which one port, int[n, 1], is moved to the end."""
    return np.concatenate((_masked(order != port, order), port), axis=1)


def _first_ports(order: Numbers, count: int | None) -> Numbers:
    """int[n, count]: the first ports of each order; all of them if `count` is None."""
    if count is None:
        return order
    return _packed(order, order > 0)[:, :count]  # without zeros between the ports


def _widened(ports: Numbers, width: int) -> Numbers:
    """int[n, width]: rows of ports, with zeros at their ends."""
    return np.pad(ports, ((0, 0), (0, width - ports.shape[1])))


def _with_packed_buckets(
    role: int,
    egress: NDArray[np.int64],
    port: Numbers,
    in_port: Numbers,
    has_row: NDArray[np.bool_],
    weight: Numbers | None = None,
) -> Groups:
    """Groups with a bucket for each port that is not 0, in the order of the ports."""
    present = port > 0
    if not present.all():
        port = _packed(port, present)
        weight = None if weight is None else _packed(weight, present)
    weight = np.zeros_like(port) if weight is None else weight
    no_marks = np.zeros(port.shape, np.bool_)
    return Groups(
        role,
        egress=egress,
        port=port,
        weight=weight,
        marks=no_marks,
        in_port=in_port,
        has_row=has_row,
    )


def _packed(values: Numbers, present: NDArray[np.bool_]) -> Numbers:
    """int[n, B]: the values of each row that are present, in their order, then zeros."""
    packed = np.zeros_like(values)
    is_filled = ~np.sort(~present, axis=1)  # as many first places of each row as have values
    packed[is_filled] = values[present]
    return packed
