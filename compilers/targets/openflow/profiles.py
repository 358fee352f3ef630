"""Pipeline profiles: what an OpenFlow 1.3 switch can do, from which its program follows.

A node type names its profile in the inventory, and may change single values of it. The controller
lowers the profile of a switch when the switch refuses a message, or reports less of itself.
docs/targets/openflow.md shows the rows that follow from each profile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from compilers.tables.build import Build

SEPARATE_TABLES = 3
"""The number of tables with which dispatch, routes and classes each have one."""
FAILOVER_BUCKETS = 4
"""The buckets of the largest group that repairs: the group of alternates, the minimal port and two
ports of protection."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The parts of OpenFlow 1.3 and of its extensions that a switch has."""

    name: str
    """Its name in the inventory, with the values that the inventory changes. Of a profile that the
    controller has lowered, the name of the nearest one (`nearest`)."""
    bundles: bool = True
    """Bundles, by ONF extension 230."""
    experimenters: bool = True
    """Nicira's actions that move and load fields, and Open vSwitch's fields of ND."""
    masks: bool = True
    """Rows match and write single bits of metadata."""
    fast_failover: bool = True
    """Groups of type fast failover."""
    select_liveness: bool = True
    """Select groups do not choose dead ports."""
    buckets: int | None = None
    """The most buckets of a group; None: no limit."""
    tables: int = 4
    """The number of tables."""

    @property
    def single(self) -> bool:
        """Whether all rows are in one table."""
        return self.tables < SEPARATE_TABLES

    @property
    def repairs(self) -> bool:
        """Whether a group can try all ports that repair, one after the other."""
        enough_buckets = self.buckets is None or self.buckets >= FAILOVER_BUCKETS
        return self.fast_failover and enough_buckets

    @property
    def marks(self) -> bool:
        """Whether packets can be marked for the next switch, and spread there."""
        return not self.missing_for_marks

    @property
    def missing_for_marks(self) -> tuple[str, ...]:
        """What the switch lacks for marking packets and for spreading marked ones, in words."""
        is_present = {
            "extensions": self.experimenters,
            "metadata masks": self.masks,
            "fast failover": self.fast_failover,
            "separate tables": not self.single,
            "groups of any size": self.buckets is None,
        }
        return tuple(need for need, present in is_present.items() if not present)

    @property
    def answers_by_moves(self) -> bool:
        """Whether one row of a switch can answer the ARP requests of all its hosts.

        The row makes a request into its answer: it moves the addresses of the sender to those of
        the receiver. Other switches need a row for each answer. A switch that can move fields
        answers neighbour discovery as well, for which its program has a table more.
        """
        return self.experimenters and self.tables > SEPARATE_TABLES

    def within(self, limits: Profile) -> Profile:
        """What a switch of this profile can do that has the limits of another one as well."""
        bucket_limits = [
            profile.buckets for profile in (self, limits) if profile.buckets is not None
        ]
        limited = replace(
            self,
            bundles=self.bundles and limits.bundles,
            experimenters=self.experimenters and limits.experimenters,
            masks=self.masks and limits.masks,
            fast_failover=self.fast_failover and limits.fast_failover,
            select_liveness=self.select_liveness and limits.select_liveness,
            buckets=min(bucket_limits, default=None),
            tables=min(self.tables, limits.tables),
        )
        return limited if limited == self else replace(limited, name=limited.nearest())

    def nearest(self) -> str:
        """The name of the most capable profile of `PROFILES` that can do no more than this one.

        `PROFILES` begins with the most capable profile.
        """
        candidates = (
            profile.name for profile in PROFILES.values() if profile.abilities <= self.abilities
        )
        return next(candidates, LEAST_CAPABLE)

    @property
    def abilities(self) -> frozenset[str]:
        """The names of the abilities that the switch has.

        Some abilities count only where they are of use: "experimenters" if the switch can answer
        ARP in one row, "fast failover" if it can repair, "tables" if routes and classes have one
        each, "buckets" if a group may have any number of them.
        """
        is_present = {
            "bundles": self.bundles,
            "experimenters": self.answers_by_moves,
            "masks": self.masks,
            "fast failover": self.repairs,
            "select liveness": self.select_liveness,
            "buckets": self.buckets is None,
            "tables": not self.single,
        }
        return frozenset(ability for ability, present in is_present.items() if present)

    def deviations(self, build: Build) -> Iterator[str]:
        """What switches of this profile do otherwise than a build asks for, each in a clause."""
        classes = build.tables.classes
        if self.single:
            yield (
                "routes and classes are in one table, so a prefix takes one more row for each port "
                "whose packets have another group"
            )
            if build.addressing.source_checks:
                yield "source addresses of hosts are not checked"
        if not self.bundles:
            yield "a change is sent in steps with barriers, and taken back when one is refused"
        if not self.answers_by_moves:
            yield "ARP is answered from a row for each host and address"
            if build.addressing.ipv6 is not None:
                yield (
                    "neighbour discovery is not answered, so IPv6 hosts need the gateway as a "
                    "static neighbour"
                )
        yield from self.losses(build)
        most_paths = np.count_nonzero(classes.weight, axis=2).max(initial=1)
        if self.buckets is not None and most_paths > self.buckets:
            yield f"at most {self.buckets} of up to {most_paths} paths of a class are used"

    def losses(self, build: Build) -> Iterator[str]:
        """Why switches of this profile lose packets that a build's tables repair, in clauses."""
        classes = build.tables.classes
        if not self.repairs and classes.protection.shape[2]:
            yield "the switch does not repair, the controller does"
        if not self.select_liveness and classes.alternate.shape[2]:
            yield (
                "a group of alternates sends to dead ports, too, until the controller has taken "
                "them out"
            )


_PLAIN_OPENFLOW = Profile(
    "openflow13",
    bundles=False,
    experimenters=False,
    masks=False,
    select_liveness=False,
    tables=3,
)
PROFILES = {
    profile.name: profile
    for profile in (
        Profile("openflow13-ovs"),
        _PLAIN_OPENFLOW,
        replace(_PLAIN_OPENFLOW, name="single-table", tables=1),
        replace(_PLAIN_OPENFLOW, name="few-buckets", fast_failover=False, buckets=8),
    )
}
"""The profiles by name, the most capable first."""
OVS = PROFILES["openflow13-ovs"]
"""The profile of Open vSwitch, for nodes whose inventory names no other."""
LEAST_CAPABLE = "few-buckets, single-table"
"""The name for a profile that is less capable than all of these: it lacks what both lack."""


def profile_of(keys: Mapping[str, Any]) -> Profile:
    """The profile of a node type, by the keys of its `openflow` in the inventory."""
    named = PROFILES[keys.get("profile", OVS.name)]
    changes = {
        key: value
        for key, value in keys.items()
        if key != "profile" and value != getattr(named, key)
    }
    if not changes:
        return named
    values = (f"{key}={str(value).lower()}" for key, value in changes.items())
    return replace(named, **changes, name=f"{named.name} with {', '.join(values)}")


def profile_notes(build: Build) -> Iterator[str]:
    """A line for each node type whose OpenFlow switches do otherwise than a build asks for."""
    yield from _notes(build, Profile.deviations)


def loss_notes(build: Build) -> Iterator[str]:
    """A line for each node type whose OpenFlow switches lose packets that the tables repair."""
    yield from _notes(build, Profile.losses)


def _notes(build: Build, clauses_of: Callable[[Profile, Build], Iterator[str]]) -> Iterator[str]:
    """A line for each node type of a build with clauses about its profile."""
    for facts in build.hardware.types if build.hardware else ():
        profile = profile_of(facts.openflow)
        if clauses := list(clauses_of(profile, build)):
            yield f"node type {facts.name}, OpenFlow profile {profile.name}: {'; '.join(clauses)}"


def profiles_of(build: Build) -> tuple[Profile, ...]:
    """The profile of each vertex, by its node type."""
    if build.hardware is None:
        return (OVS,) * build.tables.switches
    by_type = [profile_of(facts.openflow) for facts in build.hardware.types]
    return tuple(by_type[node_type] for node_type in build.wiring.node_type.tolist())
