"""What a person types on a switch so that it holds the routes of its build.

From the differences of its tables; from what it has as lines see `route_lines`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from compilers.audit.route_differences import RouteDifference
from compilers.audit.route_lines import Remediation
from inventory.route_tables.held_routes import MAIN, Hop

SINGLE = ("/32", "/128")
"""The ends of prefixes of one address."""


def typed(system: str, differences: Iterable[RouteDifference], hosts: str = "") -> Remediation:
    """What a person types on a system whose routes have one choice each.

    Args:
        system: one of TYPED.
        differences: of one switch.
        hosts: the VRF of the hosts, to whose single addresses the main table leads.
    """
    line = TYPED[system]
    add: list[str] = []
    remove: list[str] = []
    for one in differences:
        wanted, found = (
            [hop for hops in choices for hop in hops] for choices in (one.wanted, one.found)
        )
        towards = "default" if one.table != MAIN else ""
        back = hosts if one.table == MAIN and one.prefix.endswith(SINGLE) else towards
        add += [line(True, one, hop, back) for hop in wanted if hop not in found]
        remove += [line(False, one, hop, towards) for hop in found if hop not in wanted]
    return Remediation(tuple(dict.fromkeys(add)), tuple(dict.fromkeys(remove)))


Line = Callable[[bool, RouteDifference, Hop, str], str]
"""The line that adds a next hop, or takes it away; it may be in another VRF, "" if it is not."""


def _eos(add: bool, one: RouteDifference, hop: Hop, towards: str) -> str:
    vrf = "" if one.table == MAIN else f" vrf {one.table}"
    egress = f"egress-vrf {towards} " if towards else ""
    via = "Null0 254" if hop[0] == "discard" else f"{egress}{hop[1]} {hop[0]}"
    return f"{'' if add else 'no '}{_family(one)} route{vrf} {one.prefix} {via}"


def _nxos(add: bool, one: RouteDifference, hop: Hop, towards: str) -> str:
    context = "" if one.table == MAIN else f"vrf context {one.table}\n  "
    end = "\n  exit" if context else ""
    other = f" vrf {towards}" if towards else ""
    via = "Null0 254" if hop[0] == "discard" else f"{hop[1]} {hop[0]}{other}"
    return f"{context}{'' if add else 'no '}{_family(one)} route {one.prefix} {via}{end}"


def _family(one: RouteDifference) -> str:
    return "ipv6" if ":" in one.prefix else "ip"


def _junos(add: bool, one: RouteDifference, hop: Hop, _: str) -> str:
    instance = "" if one.table == MAIN else f"routing-instances {one.table} "
    six = ":" in one.prefix
    rib = (f"rib {'' if one.table == MAIN else f'{one.table}.'}inet6.0 ") * six
    word = "set" if add else "delete"
    route = f"{word} {instance}routing-options {rib}static route {one.prefix}"
    if hop[0] != "discard":
        return f"{route} next-hop {hop[0]}"
    return f"{route} discard\n{route} preference 254" if add else route


def _sonic(add: bool, one: RouteDifference, hop: Hop, towards: str) -> str:
    """`config route` overwrites a share in a VRF (sonic-utilities issue 2690): by the file only."""
    if towards:
        key = f"STATIC_ROUTE|{'default' if one.table == MAIN else one.table}|{one.prefix}"
        return "config load config_db.json" if add else f"sonic-db-cli CONFIG_DB del '{key}'"
    via = "dev null" if hop[0] == "discard" else f"nexthop {hop[0]} dev {hop[1]}"
    return f"config route {'add' if add else 'del'} prefix {one.prefix} {via}"


def _srlinux(add: bool, one: RouteDifference, hop: Hop, _: str) -> str:
    instance = "default" if one.table == MAIN else one.table
    route = f"/ network-instance {instance} static-routes route {one.prefix}"
    if not add:
        return f"delete {route}"
    family = "ipv6" if ":" in one.prefix else "ipv4"
    group = "nowhere" if hop[0] == "discard" else f"{hop[1]}-{family}"
    return f"set {route} next-hop-group {group}"


TYPED: Mapping[str, Line] = {
    "eos": _eos,
    "nxos": _nxos,
    "junos": _junos,
    "sonic": _sonic,
    "srlinux": _srlinux,
}
