"""A fabric's routing policy against what its targets and node types can do.

Before any table is computed: if a target of `targets` cannot do the policy in `routing`, it is
refused by name, or with `on_missing: minimal` the policy is reduced to what all targets can do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from compilers.spec.balances import balance_named
from compilers.spec.fabric_spec import FabricSpec, RoutingSpec
from compilers.spec.features import (
    ADJACENT_NEEDS,
    IN_NODE_TYPES,
    PROTECT_NEEDS,
    SHARES,
    TRANSIT_NEEDS,
    WEIGHTS,
)
from compilers.spec.policy import EQUAL_COST, EVERY_HOP
from inventory.problems import Finding, InputError, Problem, few

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from compilers.tables.build import Build
    from compilers.targets.target import Target
    from inventory.model import Inventory

LEAST_POLICY: dict[str, str | None] = {
    "balance": "minimal",
    "protect": "none",
    "minimal_share": EQUAL_COST,
    "adjacent": "minimal",
    "transit": "minimal",
    "demand": None,
}
"""The words of a policy that `on_missing: minimal` reduces, each with what is left of it."""


def beyond_targets(spec: FabricSpec) -> Iterator[Finding]:
    """Words of the policy that a target cannot do, unless `on_missing` reduces them.

    Node types that cannot are reported with their limits (`compilers.capacity`).
    """
    for word, least in LEAST_POLICY.items() if spec.routing.on_missing == "refuse" else ():
        for name, missing in _targets_without(spec, _needs(spec.routing, word)):
            less = f"choose {least}" if least else f"remove `{word}`"
            todo = f"{less}, let `on_missing: minimal` do so, or take {name} out of"
            yield Finding(
                ("routing", word),
                f"a policy that target {name} can do",
                f"{getattr(spec.routing, word)}, which needs {' and '.join(missing)}",
                f"{todo} `targets`",
            )


def affordable(spec: FabricSpec, inventory: Inventory) -> RoutingSpec:
    """The routing policy to compile: what is asked for, or with `on_missing` what can be done.

    Args:
        spec: the policy, and the targets that the build is for.
        inventory: the node types that it is for.
    """
    routing = spec.routing
    for word, least in LEAST_POLICY.items() if routing.on_missing == "minimal" else ():
        needs = _needs(routing, word)
        if [*_targets_without(spec, needs)] or _types_without(inventory, needs):
            routing = routing.model_copy(update={word: least})
    return routing


def misnamed(build: Build, targets: Iterable[str]) -> Iterator[Finding]:
    """Node types whose ports have no name that these targets' systems can have."""
    for name in targets:
        if interfaces := _target(name).interfaces:
            yield from interfaces.wrong_names(interfaces.named(build, name))


def require_targets(build: Build, targets: Iterable[str]) -> None:
    """Pass when each of these targets, its options at their defaults, can do all of the build.

    Raises:
        InputError: they cannot; `render` would say the same.
    """
    problems: list[Problem] = []
    for name in targets:
        try:
            _target(name).check(build)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(few(problems))


def _target(name: str) -> Target:
    """The target of a name; templates and readers are imported where a spec names one."""
    from compilers.targets.target_lookup import target

    return target(name)


def _needs(routing: RoutingSpec, word: str) -> frozenset[str]:
    if word == "balance":
        of_balance = balance_named(routing.balance).forwarding
        return replace(of_balance, every_hop=routing.transit == EVERY_HOP).needs
    if word == "protect":
        return PROTECT_NEEDS[routing.protect]
    if word == "adjacent":
        return ADJACENT_NEEDS[routing.adjacent]
    if word == "transit":
        return TRANSIT_NEEDS[routing.transit]
    least = LEAST_POLICY[word]
    shared = (
        balance_named(routing.balance).forwarding.has_alternates and getattr(routing, word) != least
    )
    return frozenset({SHARES} if shared else ())


def _targets_without(spec: FabricSpec, needs: frozenset[str]) -> Iterator[tuple[str, list[str]]]:
    for name in spec.targets:
        able = _target(name).capabilities.features
        # One that shares no traffic at all is reported where balance is.
        if (missing := needs - able) and not (missing == {SHARES} and WEIGHTS not in able):
            yield name, sorted(missing)


def _types_without(inventory: Inventory, needs: frozenset[str]) -> bool:
    used = {node.type for node in inventory.nodes}
    words = {IN_NODE_TYPES[need] for need in needs if need in IN_NODE_TYPES}
    able = [inventory.node_types[name].capabilities for name in used]
    return any(known is not None and not words <= set(known) for known in able)
