"""Limits and abilities of a target, and the refusal of a build that needs more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compilers.spec.balances import balance_named, own_balances
from compilers.spec.features import (
    ADJACENT_NEEDS,
    AGGREGATES,
    PROTECT_NEEDS,
    SHARES,
    TRANSIT_NEEDS,
    WEIGHTS,
)
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Classes
from compilers.topology.families import family_of
from inventory.problems import InputError, Problem

Numbers = NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """A target's limits a switch; None is no limit of its own.

    features: its abilities, in the words of `compilers.spec.features`. rows counts route rows
    of one address family, groups the classes, or whatever the target makes of them. why: by ability
    the reason for which it is missing.
    """

    features: frozenset[str] = frozenset()
    rows: int | None = None
    groups: int | None = None
    why: Mapping[str, str] = field(default_factory=dict)

    def require(self, build: Build, target: str, groups: int | None = None) -> None:
        """Pass when the target can do all that the build asks for.

        Args:
            build: what is to be emitted.
            target: its name, for messages.
            groups: how many it needs of these, None for one a class.

        Raises:
            InputError: it cannot; every reason at once, with what remains.
        """
        if problems := [
            *self._policies(build, target),
            *self._weights(build, target),
            *self._limits(build, target, groups),
        ]:
            raise InputError(problems)

    def _policies(self, build: Build, target: str) -> list[Problem]:
        problems = []
        forwarding = build.forwarding
        by_balance = {
            name: balance_named(name).forwarding.needs
            for name in own_balances()
            if not _refused(name, build)
        }
        by_balance[build.balance] = forwarding.needs
        for key, given, needs in (
            ("routing.balance", build.balance, by_balance),
            ("routing.protect", build.forwarding.protect, PROTECT_NEEDS),
            ("routing.adjacent", "bounce" if forwarding.bounces else "minimal", ADJACENT_NEEDS),
            ("routing.transit", "ecmp" if forwarding.every_hop else "minimal", TRANSIT_NEEDS),
        ):
            if missing := needs[given] - self.features:
                able = [
                    name for name, need in needs.items() if need <= self.features and name != given
                ]
                reasons = [self.why[each] for each in sorted(missing) if each in self.why]
                problems.append(
                    Problem(
                        key=key,
                        required=f"{' or '.join(able)}, as target {target} cannot do "
                        f"{' and '.join(sorted(missing))}"
                        + f" ({'; '.join(reasons)})"
                        * bool(reasons),
                        given=given,
                        todo="change the fabric's policy or choose another target",
                    )
                )
        return problems

    def _weights(self, build: Build, target: str) -> list[Problem]:
        """Only where the target shares traffic at all; otherwise that is the message."""
        if SHARES in self.features or WEIGHTS not in self.features:
            return []
        if not _unequal(build.tables.classes):
            return []
        key, equal, given = "minimal_share", "equal-cost", "unequal shares"
        if build.forwarding.weights == "fitted":
            key, equal, given = "demand", "none", build.policy.get("demand", given)
        elif build.forwarding.weights == "minimal-share":
            given = build.policy.get("minimal_share", given)
        elif build.forwarding.weights == "any":
            key, equal, given = "balance", "another balance", build.balance
        return [
            Problem(
                key=f"routing.{key}",
                required=f"{equal}, as target {target} cannot do {SHARES}",
                given=given,
                todo="change the fabric's policy, options of the target, or choose another target",
            )
        ]

    def _limits(self, build: Build, target: str, groups: int | None) -> list[Problem]:
        routes = build.tables.routes
        if groups is None:
            groups = int((build.tables.classes.port > 0).sum(axis=1).max())
        problems = []
        if AGGREGATES not in self.features and routes.aggregated:
            problems.append(
                Problem(
                    key="topology.family",
                    required=f"a fabric without {AGGREGATES}, as target {target} cannot do them",
                    given=build.topology.title(),
                    todo="choose another target",
                )
            )
        for what, most, limit in (
            ("routes", int(routes.rows().max()), self.rows),
            ("groups", groups, self.groups),
        ):
            if limit is not None and most > limit:
                problems.append(
                    Problem(
                        key="topology",
                        required=f"at most {limit} {what} per switch for target {target}",
                        given=f"{most}",
                        todo="choose a smaller fabric or another target",
                    )
                )
        return problems


def _refused(balance: str, build: Build) -> bool:
    """Whether no fabric of this family may have the balance, whatever the target can do."""
    family = family_of(build.topology.family)
    return (
        balance_named(balance).forwarding.alternates == "shortest"
        and family.single
        and family.constructed
    )


def _unequal(classes: Classes) -> bool:
    """Whether the ports that share the traffic of any class have unequal parts of it."""
    port: Numbers = np.concatenate((classes.port[..., None], classes.alternate), axis=2)
    weight: Numbers = np.where(port > 0, classes.weight, 0)
    heaviest = weight.max(axis=2, keepdims=True, initial=0)
    return bool(((weight > 0) & (weight < heaviest)).any())
