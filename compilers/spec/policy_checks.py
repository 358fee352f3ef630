"""Checks of the `routing:` section of fabric.yaml against its balance and the topology.

`cross_checks.check_spec` runs them, and gets a `Finding` for each mistake.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilers.spec.balances import Balance, balance_named, own_balances_with
from compilers.spec.fabric_spec import RoutingSpec
from compilers.spec.policy import EQUAL_COST, EVERY_HOP, LARGEST_SEARCH
from compilers.spec.share_expression import share_value
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Parameters
from inventory.problems import Finding


def fitted_share_findings(routing: RoutingSpec) -> Iterator[Finding]:
    """Yield findings about shares that are stated beside a demand, or limited without one."""
    if routing.demand and routing.minimal_share != EQUAL_COST:
        todo = "remove `minimal_share`: the demand says all shares"
        required = f"{EQUAL_COST} with `demand`"
        yield Finding(("routing", "minimal_share"), required, routing.minimal_share, todo)
    if routing.largest_share != "1" and not routing.demand:
        todo = "name a `demand`, or remove it"
        required = "a demand that shares are fitted to"
        yield Finding(("routing", "largest_share"), required, "none", todo)


def transit_findings(routing: RoutingSpec, balance: Balance) -> Iterator[Finding]:
    """Yield a finding if packets shall be shared at every hop by a balance that cannot do it."""
    if routing.transit == EVERY_HOP and balance.forwarding.alternates != "shortest":
        required = f"minimal with `balance: {routing.balance}`"
        names = own_balances_with(lambda forwarding: forwarding.alternates == "shortest")
        todo = f"write `balance: {' or '.join(names)}`, or remove `transit`"
        yield Finding(("routing", "transit"), required, EVERY_HOP, todo)


def policy_findings(
    routing: RoutingSpec, family: Family, parameters: Parameters
) -> Iterator[Finding]:
    """Yield findings about a policy in one member of a family."""
    yield from _share_findings(routing, int(parameters.get("q", 0)))
    yield from _search_findings(routing, family, parameters)


def _share_findings(routing: RoutingSpec, q: int) -> Iterator[Finding]:
    """Yield findings about shares that have no value from 0 to 1 at this q."""
    for key in ("minimal_share", "largest_share"):
        text = getattr(routing, key)
        if (key, text) == ("minimal_share", EQUAL_COST):
            continue
        try:
            share_value(text, q)
        except ValueError:
            required = f"an expression from 0 to 1 at q={q}, of numbers, q and + - * / ( )"
            example = "such as 1/q" if q else "such as 1/4"
            yield Finding(("routing", key), required, text, example)


def _search_findings(
    routing: RoutingSpec, family: Family, parameters: Parameters
) -> Iterator[Finding]:
    """Yield findings about policies that a fabric above `LARGEST_SEARCH` switches cannot have.

    A search for alternates and repairs takes too long in such a fabric. So it has only those that
    its family constructs.
    """
    switches = family.order(parameters)
    if switches <= LARGEST_SEARCH:
        return
    # In two kinds of families all routes are searched for, minimal ones too: in those that papers
    # compare with, and in those whose only member a file or a growth describes. Such a fabric is
    # too large whatever its policy is.
    searches_minimal_routes = family.compared or family.described
    # PolarFly constructs all alternates and repairs, for any size, and PolarStar classes that serve
    # whole supernodes. All other families construct nothing.
    constructs_all = family.constructed
    constructs_classes = not constructs_all and bool(family.constructed_classes(parameters))
    constructs_nothing = not constructs_all and not constructs_classes
    has_alternates = balance_named(routing.balance).forwarding.has_alternates
    if routing.adjacent == "bounce" and not constructs_all:
        yield _no_bounce(family)
    if constructs_classes and routing.disjoint == "edge" and has_alternates:
        yield _no_disjoint_alternates()
    asks_for_search = has_alternates or routing.protect != "none"
    if constructs_nothing and asks_for_search and not searches_minimal_routes:
        yield _minimal_routes_only(routing, switches)
    if searches_minimal_routes:
        yield _too_large(family, switches)


def _minimal_routes_only(routing: RoutingSpec, switches: int) -> Finding:
    """Return the finding that a large fabric has neither alternates nor repairs."""
    return Finding(
        ("routing",),
        f"minimal routes without protection for more than {LARGEST_SEARCH:,} switches",
        f"{routing.balance} and {routing.protect} for {switches:,}",
        "their alternates and repairs are searched for; in PolarFly and PolarStar they are "
        "constructed",
    )


def _no_bounce(family: Family) -> Finding:
    """Return the finding that a large fabric cannot have bounced paths."""
    required = f"minimal in a {family.name} of more than {LARGEST_SEARCH:,} switches"
    todo = "remove it: bounced paths are searched for; in PolarFly they are constructed"
    return Finding(("routing", "adjacent"), required, "bounce", todo)


def _no_disjoint_alternates() -> Finding:
    """Return the finding that a large PolarStar cannot have edge-disjoint alternates.

    Those would need an egress class for each destination switch. A class of a large PolarStar
    serves all switches of a supernode, and for some of them its alternates share a link.
    """
    return Finding(
        ("routing", "disjoint"),
        f"auto or none for a PolarStar of more than {LARGEST_SEARCH:,} switches",
        "edge",
        "remove it: one class serves all switches of a supernode, and for some of them alternates "
        "share a link",
    )


def _too_large(family: Family, switches: int) -> Finding:
    """Return the finding that a fabric is too large to search for any of its routes."""
    required = f"at most {LARGEST_SEARCH:,} switches in a {family.name}, which is searched"
    return Finding(("topology",), required, f"{switches:,}")
