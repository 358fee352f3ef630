"""What a target can do and hold, and the refusal of a build that needs more.

The class of a target has its `Capabilities`: limits, and *features* by their names in
`compilers.spec.features`. Each value of the routing policy in fabric.yaml needs some features.
`Target.require` checks a build against the capabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compilers.spec.balances import balance_named, own_balances
from compilers.spec.features import (
    ADJACENT_NEEDS,
    AGGREGATES,
    MULTIPATH,
    PROTECT_NEEDS,
    TRANSIT_NEEDS,
    UNEQUAL_SHARES,
)
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Classes
from compilers.topology.families import family_of
from inventory.problems import InputError, Problem

Numbers = NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The features of a target, and its limits for each switch."""

    features: frozenset[str] = frozenset()
    """The names of the features that it has."""
    rows: int | None = None
    """How many routes of one address family a switch can hold; None: no limit."""
    groups: int | None = None
    """How many groups a switch can hold; None: no limit."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Why the target has not some features, by their names, for messages."""

    def require(self, build: Build, target: str, groups: int | None = None) -> None:
        """Check that the target can do all that the build asks for.

        Args:
            build: the build.
            target: the name of the target, for messages.
            groups: how many groups a switch needs at most; None: one for each egress class.

        Raises:
            InputError: it cannot; all reasons at once, with the values that it can do.
        """
        if problems := [
            *self._policy_problems(build, target),
            *self._weight_problems(build, target),
            *self._limit_problems(build, target, groups),
        ]:
            raise InputError(problems)

    def _policy_problems(self, build: Build, target: str) -> list[Problem]:
        """The problems of the values of the policy that need features which are missing."""
        forwarding = build.forwarding
        # The balances that a message may propose: those that fabrics of this family can have.
        needs_of_balance = {
            name: balance_named(name).forwarding.needs
            for name in own_balances()
            if not _is_refused(name, build)
        }
        needs_of_balance[build.balance] = forwarding.needs
        bounce = "bounce" if forwarding.bounces else "minimal"
        transit = "ecmp" if forwarding.every_hop else "minimal"
        problems = [
            self._value_problem("balance", build.balance, needs_of_balance, target),
            self._value_problem("protect", forwarding.protect, PROTECT_NEEDS, target),
            self._value_problem("adjacent", bounce, ADJACENT_NEEDS, target),
            self._value_problem("transit", transit, TRANSIT_NEEDS, target),
        ]
        return [problem for problem in problems if problem]

    def _value_problem(
        self, key: str, value: str, needs: Mapping[str, frozenset[str]], target: str
    ) -> Problem | None:
        """The problem with a value of a policy's key; None: the target can do it.

        Args:
            key: the key of the policy.
            value: the value of the key.
            needs: the features that each possible value needs.
            target: the name of the target, for messages.
        """
        missing = needs[value] - self.features
        if not missing:
            return None
        possible = [
            other_value
            for other_value, needed in needs.items()
            if needed <= self.features and other_value != value
        ]
        features = " and ".join(sorted(missing))
        reasons = [self.why[feature] for feature in sorted(missing) if feature in self.why]
        because = f" ({'; '.join(reasons)})" if reasons else ""
        return Problem(
            key=f"routing.{key}",
            required=f"{' or '.join(possible)}, as target {target} cannot do {features}{because}",
            given=value,
            todo="change the fabric's policy or choose another target",
        )

    def _weight_problems(self, build: Build, target: str) -> list[Problem]:
        """The problem of unequal weights, if the target shares traffic by equal weights only.

        The problem names the key of the policy from which the weights come.
        """
        if UNEQUAL_SHARES in self.features or MULTIPATH not in self.features:
            return []
        if not _has_unequal_weights(build.tables.classes):
            return []
        unknown = "unequal shares"  # in the place of a value that the policy does not have
        match build.forwarding.weights:
            case "fitted":
                key, required, given = "demand", "none", build.policy.get("demand", unknown)
            case "any":
                key, required, given = "balance", "another balance", build.balance
            case "minimal-share":
                given = build.policy.get("minimal_share", unknown)
                key, required = "minimal_share", "equal-cost"
            case _:
                # The tables have unequal weights for which no key of the policy asks.
                key, required, given = "minimal_share", "equal-cost", unknown
        return [
            Problem(
                key=f"routing.{key}",
                required=f"{required}, as target {target} cannot do {UNEQUAL_SHARES}",
                given=given,
                todo="change the fabric's policy, options of the target, or choose another target",
            )
        ]

    def _limit_problems(self, build: Build, target: str, groups: int | None) -> list[Problem]:
        """The problems of too many routes or groups, and of aggregates on a target without them."""
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
        most_routes = int(routes.rows().max())
        if self.rows is not None and most_routes > self.rows:
            problems.append(_limit_problem("routes", most_routes, self.rows, target))
        if self.groups is not None and groups > self.groups:
            problems.append(_limit_problem("groups", groups, self.groups, target))
        return problems


def _limit_problem(entries: str, count: int, limit: int, target: str) -> Problem:
    """The problem of a switch that needs more entries of a kind than a target can hold."""
    return Problem(
        key="topology",
        required=f"at most {limit} {entries} per switch for target {target}",
        given=f"{count}",
        todo="choose a smaller fabric or another target",
    )


def _is_refused(balance: str, build: Build) -> bool:
    """Whether fabrics of the build's family cannot have a balance, whatever the target can do.

    A balance may need alternates that are as short as the minimal path. There are none in a family
    with one shortest path between any two switches (`single`), whose alternates are made by algebra
    (`constructed`).
    """
    family = family_of(build.topology.family)
    return (
        balance_named(balance).forwarding.alternates == "shortest"
        and family.single
        and family.constructed
    )


def _has_unequal_weights(classes: Classes) -> bool:
    """Whether the ports of any egress class share its traffic by unequal weights."""
    port: Numbers = np.concatenate((classes.port[..., None], classes.alternate), axis=2)
    weight: Numbers = np.where(port > 0, classes.weight, 0)
    heaviest = weight.max(axis=2, keepdims=True, initial=0)
    return bool(((weight > 0) & (weight < heaviest)).any())
