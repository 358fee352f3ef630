"""Checks of a routing policy against what systems and node types can do, before routing.

- `system_findings` refuses a policy in `routing` that the system of some node cannot do.
- `reduced_policy` reduces it instead, with `on_missing: minimal`, to what all systems and node
  types can do.
- `render_findings` refuses names of ports and pools of links that `render` would refuse later.
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
    MULTIPATH,
    PROTECT_NEEDS,
    TRANSIT,
    TRANSIT_NEEDS,
    UNEQUAL_SHARES,
    WITH_BGP,
)
from compilers.spec.node_systems import systems_of
from compilers.spec.policy import EQUAL_COST, EVERY_HOP
from inventory.problems import Finding

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
"""The keys of a policy that `on_missing: minimal` reduces, each with its least value."""


def system_findings(spec: FabricSpec, inventory: Inventory | None) -> Iterator[Finding]:
    """Yield a finding for each key of the policy and each system that cannot do it.

    With `on_missing: minimal` there are none. Node types that cannot do a policy are found later,
    with their limits (`compilers.capacity`).
    """
    if spec.routing.on_missing != "refuse":
        return
    systems = systems_of(spec, inventory)
    for key, least in LEAST_POLICY.items():
        for name, missing in _systems_without(spec, systems, _needs(spec.routing, key)):
            less = f"choose {least}" if least else f"remove `{key}`"
            yield Finding(
                ("routing", key),
                f"a policy that system {name} can do",
                f"{getattr(spec.routing, key)}, which needs {' and '.join(missing)}",
                f"{less}, let `on_missing: minimal` do so, or choose another `system`",
            )


def reduced_policy(spec: FabricSpec, inventory: Inventory) -> RoutingSpec:
    """Return the policy of the spec, reduced with `on_missing: minimal` to what can be done.

    Args:
        spec: its `routing` is the policy, and it names systems.
        inventory: the node types and systems that the build is for.
    """
    routing = spec.routing
    if routing.on_missing != "minimal":
        return routing
    systems = systems_of(spec, inventory)
    for key, least in LEAST_POLICY.items():
        needs = _needs(routing, key)
        if (
            any(_systems_without(spec, systems, needs))
            or _any_without_for_bgp(spec, systems, needs)
            or _any_type_without(inventory, needs)
        ):
            routing = routing.model_copy(update={key: least})
    return routing


def render_findings(build: Build) -> Iterator[Finding]:
    """Yield findings about names of ports and pools of links that the systems of a build refuse.

    Raises:
        InputError: the options of a system have values that it cannot have, or that do not go
            together. `render` would refuse them with the same messages.
    """
    if not build.systems:
        return
    from compilers.targets.node_systems import system_target
    from compilers.targets.system_port_names import port_name_findings

    yield from port_name_findings(build)
    system = system_target(build)
    for problem in dict.fromkeys(system.pool_problems(*system.check(build))):
        key = tuple(problem.key.split("."))
        yield Finding(key, problem.required, problem.given, problem.todo)


def _target(name: str) -> Target:
    """Return the target of a name. Templates and readers are imported only if a spec names one."""
    from compilers.targets.target_lookup import target

    return target(name)


def _needs(routing: RoutingSpec, key: str) -> frozenset[str]:
    """Return the features that a key of the policy needs of a target."""
    if key == "balance":
        forwarding = balance_named(routing.balance).forwarding
        return replace(forwarding, every_hop=routing.transit == EVERY_HOP).needs
    if key == "protect":
        return PROTECT_NEEDS[routing.protect]
    if key == "adjacent":
        return ADJACENT_NEEDS[routing.adjacent]
    if key == "transit":
        return TRANSIT_NEEDS[routing.transit]
    # A minimal share, or a demand, makes the shares of several ports unequal.
    has_alternates = balance_named(routing.balance).forwarding.has_alternates
    if has_alternates and getattr(routing, key) != LEAST_POLICY[key]:
        return frozenset({UNEQUAL_SHARES})
    return frozenset()


def _systems_without(
    spec: FabricSpec, systems: Iterable[str], needs: frozenset[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the names of systems that lack features, with these features.

    BGP shares packets at every hop, also in systems whose static routes do not. What a system lacks
    only with eBGP is found in its tables (`compilers.targets.routed.bgp.bgp_checks`).
    """
    bgp_features = (
        {TRANSIT, MULTIPATH} if _has_bgp(spec) and spec.routing.transit == EVERY_HOP else set[str]()
    )
    for name in systems:
        system = _target(name)
        features = system.capabilities.features
        if _routes_by_bgp(system):
            features |= bgp_features
        missing = needs - features
        # A system that cannot share traffic at all is reported with the key `balance`.
        if missing and not (missing == {UNEQUAL_SHARES} and MULTIPATH not in features):
            yield name, sorted(missing)


def _any_without_for_bgp(spec: FabricSpec, systems: Iterable[str], needs: frozenset[str]) -> bool:
    """Whether a system routes by eBGP, and for this reason lacks one of the features."""
    if not _has_bgp(spec) or needs <= WITH_BGP:
        return False
    return any(_routes_by_bgp(_target(name)) for name in systems)


def _has_bgp(spec: FabricSpec) -> bool:
    """Whether routes come from eBGP, on systems that have it."""
    return spec.control_plane.routes == "ebgp"


def _routes_by_bgp(system: Target) -> bool:
    """Whether a system has eBGP."""
    return "routing" in system.agreements


def _any_type_without(inventory: Inventory, needs: frozenset[str]) -> bool:
    """Whether a node type that is used is known to lack one of the features."""
    needed = {IN_NODE_TYPES[need] for need in needs if need in IN_NODE_TYPES}
    for name in {node.type for node in inventory.nodes}:
        capabilities = inventory.node_types[name].capabilities
        if capabilities is not None and not needed <= set(capabilities):
            return True
    return False
