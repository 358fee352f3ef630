"""Differences of routes: policy rules that a switch does not show, gateways that nobody knows."""

from __future__ import annotations

from compilers.readers.devices.held_routes import ANY, DISCARD, IPV4_RULES, MAIN_TABLE, RouteTables
from compilers.targets.devices.route_differences import route_differences

HOP, OTHER = ((("10.0.0.1", "eth1", 1),),), ((("10.0.0.2", "eth2", 1),),)


def kinds(wanted: RouteTables, held: RouteTables) -> list[tuple[str, str, str]]:
    found = route_differences("a", wanted, held, (), ())
    return sorted((each.kind, each.table, each.prefix) for each in found)


def test_rules() -> None:
    wanted: RouteTables = {MAIN_TABLE: {"10.0.0.0/24": HOP}, IPV4_RULES: {"iif eth1": HOP}}
    right = {MAIN_TABLE: {"10.0.0.0/24": HOP}}
    assert kinds(wanted, {**right}) == []
    assert kinds(wanted, {**right, IPV4_RULES: {"iif eth1": HOP}}) == []
    assert kinds(wanted, {**right, IPV4_RULES: {"iif eth1": OTHER}}) == [
        ("next hop", IPV4_RULES, "iif eth1")
    ]
    assert kinds(wanted, {**right, IPV4_RULES: {"iif eth2": (DISCARD,)}}) == [
        ("missing", IPV4_RULES, "iif eth1"),
        ("stale", IPV4_RULES, "iif eth2"),
    ]
    assert kinds(wanted, {}) == [("missing", MAIN_TABLE, "10.0.0.0/24")]


def test_a_gateway_that_nobody_knows_is_any() -> None:
    wanted = (((ANY, "eth1", 1), (ANY, "eth2", 2)),)
    for held, kind in (
        ((("10.0.0.1", "eth1", 1), ("10.0.0.2", "eth2", 2)), []),
        ((("10.0.0.1", "eth1", 1), ("10.0.0.2", "eth2", 1)), ["weight"]),
        ((("10.0.0.1", "eth1", 1), ("10.0.0.2", "eth3", 2)), ["next hop"]),
        ((("10.0.0.1", "eth1", 1),), ["next hop"]),
    ):
        found = kinds({MAIN_TABLE: {"10.0.0.0/24": wanted}}, {MAIN_TABLE: {"10.0.0.0/24": (held,)}})
        assert [each[0] for each in found] == kind


def test_gateways_that_are_not_known_are_in_any_order() -> None:
    """Hops are in the order of their gateways, which differs where these are learned."""
    wanted: RouteTables = {MAIN_TABLE: {"10.0.0.0/24": (((ANY, "eth1", 1), (ANY, "eth2", 1)),)}}
    for last, differing in (("eth1", False), ("eth3", True), ("eth2", True)):
        hops = (("fe80::1", "eth2", 1), ("fe80::2", last, 1))
        assert bool(kinds(wanted, {MAIN_TABLE: {"10.0.0.0/24": (hops,)}})) == differing
