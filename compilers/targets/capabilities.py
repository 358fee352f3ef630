"""What a target can do and hold, and the refusal of a build that needs more."""

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
    """The abilities of a target, and its limits for each switch."""

    features: frozenset[str] = frozenset()
    """Its abilities, in the words of `compilers.spec.features`."""
    rows: int | None = None
    """The most routes of one address family; None: no limit."""
    groups: int | None = None
    """The most groups; None: no limit."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Reasons why an ability is missing, for messages."""

    def require(self, build: Build, target: str, groups: int | None = None) -> None:
        """Check that the target can do all that the build asks for.

        Args:
            build: what is to be emitted.
            target: its name, for messages.
            groups: how many groups a switch needs at most; None: one for each class.

        Raises:
            InputError: it cannot; all reasons at once, with what remains possible.
        """
        if problems := [
            *self._policies(build, target),
            *self._weights(build, target),
            *self._limits(build, target, groups),
        ]:
            raise InputError(problems)

    def _policies(self, build: Build, target: str) -> list[Problem]:
        """The keys of the policy whose values need abilities that are missing."""
        forwarding = build.forwarding
        by_balance = {
            name: balance_named(name).forwarding.needs
            for name in own_balances()
            if not _refused(name, build)
        }
        by_balance[build.balance] = forwarding.needs
        bounce = "bounce" if forwarding.bounces else "minimal"
        transit = "ecmp" if forwarding.every_hop else "minimal"
        problems = [
            self._policy("balance", build.balance, by_balance, target),
            self._policy("protect", forwarding.protect, PROTECT_NEEDS, target),
            self._policy("adjacent", bounce, ADJACENT_NEEDS, target),
            self._policy("transit", transit, TRANSIT_NEEDS, target),
        ]
        return [problem for problem in problems if problem]

    def _policy(
        self, key: str, value: str, needs: Mapping[str, frozenset[str]], target: str
    ) -> Problem | None:
        """The problem with a value of a policy's key; None: the target can do it.

        Args:
            key: of the policy.
            value: of the key.
            needs: the abilities that each possible value needs.
            target: its name, for messages.
        """
        missing = needs[value] - self.features
        if not missing:
            return None
        possible = [
            other for other, need in needs.items() if need <= self.features and other != value
        ]
        required = f"{' or '.join(possible)}, as target {target} cannot do "
        required += " and ".join(sorted(missing))
        if reasons := [self.why[feature] for feature in sorted(missing) if feature in self.why]:
            required += f" ({'; '.join(reasons)})"
        return Problem(
            key=f"routing.{key}",
            required=required,
            given=value,
            todo="change the fabric's policy or choose another target",
        )

    def _weights(self, build: Build, target: str) -> list[Problem]:
        """Unequal weights that the target cannot do, if it shares traffic at all."""
        if SHARES in self.features or WEIGHTS not in self.features:
            return []
        if not _unequal(build.tables.classes):
            return []
        if build.forwarding.weights == "fitted":
            key, required = "demand", "none"
            given = build.policy.get("demand", "unequal shares")
        elif build.forwarding.weights == "any":
            key, required, given = "balance", "another balance", build.balance
        else:
            key, required = "minimal_share", "equal-cost"
            given = "unequal shares"
            if build.forwarding.weights == "minimal-share":
                given = build.policy.get("minimal_share", given)
        return [
            Problem(
                key=f"routing.{key}",
                required=f"{required}, as target {target} cannot do {SHARES}",
                given=given,
                todo="change the fabric's policy, options of the target, or choose another target",
            )
        ]

    def _limits(self, build: Build, target: str, groups: int | None) -> list[Problem]:
        """Aggregates that the target does not have, and more routes or groups than it holds."""
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
