"""Compares two files of one router: their routes, their facts and their interfaces.

The first file of a router states everything. Another file repeats a part of it, and gets a fault
for each difference. `router_files` calls the functions here.
"""

from __future__ import annotations

from compilers.readers.route_tables import RouteLines
from compilers.readers.routers.router_text import InterfaceText, RouterText


def compare_routes(first: RouterText, second: RouterText) -> None:
    """Note in the second file where its routes or its VRF differ from those of the first."""
    _compare_table(first, first.transit, second, second.transit)
    _compare_table(first, first.entering, second, second.entering)
    _compare_table(first, first.leaked, second, second.leaked)
    for vrf in first.marked_routes.keys() | second.marked_routes.keys():
        expected = first.marked_routes.get(vrf, RouteLines())
        _compare_table(first, expected, second, second.marked_routes.get(vrf, RouteLines()))
    if first.vrf != second.vrf:
        second.add_wrong(0, f"VRF {second.vrf or 'of none'}, in {first.file} {first.vrf or 'none'}")


def _compare_table(
    first: RouterText, expected: RouteLines, second: RouterText, routes: RouteLines
) -> None:
    """Note in the second file where its routes of one table differ from those of the first.

    Args:
        first: the first file.
        expected: its routes.
        second: the second file.
        routes: its routes.
    """
    if expected.has_same_routes(routes):
        return
    in_first, in_second = _next_hops_by_prefix(expected), _next_hops_by_prefix(routes)
    for prefix in in_first.keys() | in_second.keys():
        expected_hops, first_line = in_first.get(prefix, ([], 0))
        hops, line = in_second.get(prefix, ([], 0))
        if expected_hops != hops:
            in_words, expected_in_words = _hops_in_words(hops), _hops_in_words(expected_hops)
            text = f"{prefix} by {in_words}, in {first.file}:{first_line} by {expected_in_words}"
            second.add_wrong(line, text)


def _hops_in_words(next_hops: list[str]) -> str:
    """The next hops of a prefix in words."""
    return " and ".join(next_hops) or "nothing"


def compare_facts(first: RouterText, second: RouterText) -> None:
    """Note in the second file the facts that it has to state and that differ from the first's."""
    expected = {(fact.kind, *fact.value): fact.line for fact in first.facts}
    stated = {(fact.kind, *fact.value): fact.line for fact in second.facts}
    for fact in sorted(expected.keys() ^ stated.keys(), key=str):
        if fact[0] in second.complete_kinds:
            where = f"only in {first.file}:{expected[fact]}" if fact in expected else "only here"
            second.add_wrong(stated.get(fact, 0), f"{' '.join(map(str, fact))}, {where}")


def compare_interfaces(first: RouterText, second: RouterText) -> None:
    """Note in the second file the interfaces and VLANs that differ from the first's."""
    for name in first.interfaces.keys() | second.interfaces.keys():
        expected, interface = first.interfaces.get(name), second.interfaces.get(name)
        if _compared_facts(expected) != _compared_facts(interface):
            line = interface.line if interface else 0
            second.add_wrong(line, f"interface {name} is not as in {first.file}")
    if first.vlans != second.vlans:
        second.add_wrong(0, f"VLANs {sorted(second.vlans)}, not as in {first.file}")


def _compared_facts(interface: InterfaceText | None) -> object:
    """The facts about an interface on which two files have to agree; None for no interface."""
    if interface is None:
        return None
    addresses = sorted(address for address, _ in interface.addresses)
    return addresses, interface.vlan, interface.vrf, interface.port, interface.tag


def _next_hops_by_prefix(routes: RouteLines) -> dict[str, tuple[list[str], int]]:
    """The next hops of every prefix, and the line of the first one."""
    by_prefix: dict[str, tuple[list[str], int]] = {}
    for prefix, next_hop, line in routes.rows(*routes.next_hops):
        by_prefix.setdefault(prefix, ([], line))[0].append(next_hop or "discard")
    return by_prefix
