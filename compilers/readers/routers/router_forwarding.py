"""What a router does, in the common form, from what its configuration says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from operator import attrgetter

from compilers.readers.emitted_forwarding import (
    Claim,
    EmittedSwitch,
    Interface,
    Lookup,
    NextHop,
    OwnAddress,
    found_by,
    network_text,
    with_mark,
)
from compilers.readers.exact_text import exact_address, exact_interface, exact_network
from compilers.readers.route_tables import RouteHop, RouteLines
from compilers.readers.routers.router_text import DISCARD, RouterText

SMALL = 4
"""Addresses of a network below which all of them are listed."""
STAGED = ("stage", "staged")
"""Claims of what is done with marked packets."""


def forwarding(router: RouterText, *others: RouterText, recursive: bool = False) -> EmittedSwitch:
    """What a router does with packets; with what is wrong in its files.

    Args:
        router: its configuration.
        others: more files, of which only the faults count.
        recursive: whether next hops of entering packets may be addresses that another table finds.
    """
    ends = dict(far_ends(router))
    for rows in (router.transit, router.entering):
        _last_resorts(router, rows)
    transit = _lookup(router, router.transit, ends)
    entering = _lookup(router, router.entering, ends)
    members = {name: found for name, found in router.interfaces.items() if found.vrf}
    inside = [name for name, found in members.items() if not found.port]
    for name, found in members.items():
        if found.vrf not in (router.stages if found.port else (router.vrf,)):
            router.fault(found.line, f"{name} is in a VRF that is not there")
    inner = [vrf for found in router.interfaces.values() for vrf in found.looked.values()]
    for vrf in router.stages.keys() - {*inner, *(found.vrf for found in members.values())}:
        router.fault(0, f"VRF {vrf}, in which no packet comes in")
    if router.entering.next_hops and not (inside or router.ingress):
        line = min(router.entering.first_lines().values(), default=0)
        router.fault(line, f"routes of VRF {router.vrf}, in which no packet comes in")
    ports = {port for name in (*router.ingress.values(), *inside) for port in router.ports(name)}
    hops = list(_next_hops(router, router.transit, ends))
    for rows in (router.entering, *router.stages.values()):
        hops += _next_hops(router, rows, ends, recursive)
    file = router.file
    hosts = list(_hosts(router))
    alone = not hosts or any(claim.kind == "loopback" for claim in hosts)
    return EmittedSwitch(
        anywhere=transit,
        by_ingress=dict.fromkeys(ports, entering) if entering else {},
        claimed=frozenset(
            {
                "hosts",
                "port",
                *STAGED,
                *(["host route", "staged host"] if inside else ["staged block"]),
                *(["loopback"] if alone else []),
                *router.stated,
            }
        ),
        claims=[
            *(Claim(kind, value, file, line) for kind, value, line in router.facts),
            *hosts,
            *_host_routes(router),
            *_ports(router),
            *_stages(router, ends),
        ],
        next_hops=hops,
        addresses=[
            OwnAddress(_port(router, name), address.partition("/")[0], file, line)
            for name, found in router.interfaces.items()
            for address, line in found.addresses
            if _listed(address)
        ],
        discards=[
            (prefix, file, line)
            for rows in (router.transit, router.entering)
            for prefix, _, line in rows.rows(DISCARD)
        ],
        unread=[(part.file, *each) for part in (router, *others) for each in part.strange],
        wrong=[(part.file, *fault) for part in (router, *others) for fault in part.faults],
    )


def agree(first: RouterText, second: RouterText) -> None:
    """Note in the second file what it says otherwise than the first, where both say the same."""
    for of in (attrgetter("transit"), attrgetter("entering"), attrgetter("back")):
        _agree_on_routes(first, of(first), second, of(second))
    for vrf in first.stages.keys() | second.stages.keys():
        routes = (each.stages.get(vrf, RouteLines()) for each in (first, second))
        own, others = routes
        _agree_on_routes(first, own, second, others)
    if first.vrf != second.vrf:
        second.fault(0, f"VRF {second.vrf or 'of none'}, in {first.file} {first.vrf or 'none'}")


def _agree_on_routes(
    first: RouterText, own: RouteLines, second: RouterText, others: RouteLines
) -> None:
    if own.same(others):
        return
    rows = _with_lines(own), _with_lines(others)
    for prefix in rows[0].keys() | rows[1].keys():
        hops, line = rows[0].get(prefix, ([], 0))
        given, place = rows[1].get(prefix, ([], 0))
        if hops != given:
            said = f"{prefix} by {' and '.join(given) or 'nothing'}"
            second.fault(
                place, f"{said}, in {first.file}:{line} by {' and '.join(hops) or 'nothing'}"
            )


def agree_on_facts(first: RouterText, second: RouterText) -> None:
    """Note in the second file the facts that it has to state and that differ from the first's."""
    facts = [{(kind, *value): line for kind, value, line in r.facts} for r in (first, second)]
    for fact in sorted(facts[0].keys() ^ facts[1].keys(), key=str):
        if fact[0] in second.stated:
            where = f"only in {first.file}:{facts[0][fact]}" if fact in facts[0] else "only here"
            second.fault(facts[1].get(fact, 0), f"{' '.join(map(str, fact))}, {where}")


def agree_on_interfaces(first: RouterText, second: RouterText) -> None:
    """Note in the second file the interfaces that it has otherwise than the first."""
    for name in first.interfaces.keys() | second.interfaces.keys():
        found = [router.interfaces.get(name) for router in (first, second)]
        facts = [
            f and (sorted(a for a, _ in f.addresses), f.vlan, f.vrf, f.port, f.tag) for f in found
        ]
        if facts[0] != facts[1]:
            line = found[1].line if found[1] else 0
            second.fault(line, f"interface {name} is not as in {first.file}")
    if first.vlans != second.vlans:
        second.fault(0, f"VLANs {sorted(second.vlans)}, not as in {first.file}")


def _with_lines(rows: RouteLines) -> dict[str, tuple[list[str], int]]:
    """The next hops of every prefix, and the line where the first one is."""
    found: dict[str, tuple[list[str], int]] = {}
    for prefix, hop, line in rows.rows(*rows.next_hops):
        found.setdefault(prefix, ([], line))[0].append(hop or "discard")
    return found


def _last_resorts(router: RouterText, rows: RouteLines) -> None:
    """Each family has a route that discards what the fabric's other routes are not for.

    Without it such packets would go back and forth between aggregates.
    """
    for prefix in rows.uncovered({prefix for prefix, _, _ in rows.rows(DISCARD)}):
        router.fault(0, f"no route that discards what is near {prefix}")


def _lookup(router: RouterText, rows: RouteLines, ends: dict[str, str]) -> tuple[Lookup, ...]:
    """The table of some routes, those of one prefix as one that shares; none where none lead on."""
    next_hops = {
        hop: RouteHop(0, 0, ((_leaves_by(router, hop, ends), 1),))
        for hop in rows.next_hops
        if hop != DISCARD
    }
    return tuple(rows.tables(router.file, next_hops).values())


def _leaves_by(router: RouterText, hop: str, ends: dict[str, str]) -> str:
    """The port of a next hop, with the mark of its subinterface, or what is found by its address.

    One whose VRF is said, and which is no subinterface, leads to no port of the fabric.
    """
    gateway, interface, vrf = (*hop.split(" "), "", "")[:3]
    name = interface or ends.get(gateway, "")
    found = router.interfaces.get(name)
    if vrf and not (found and found.port):
        return f"{name} in {vrf}"
    return _port(router, name) or found_by(gateway)


def _port(router: RouterText, name: str) -> str:
    """The port of an interface: that of a subinterface is marked."""
    found = router.interfaces.get(name)
    return with_mark(found.port) if found and found.port else name


def _next_hops(
    router: RouterText, rows: RouteLines, ends: dict[str, str], recursive: bool = False
) -> Iterator[NextHop]:
    """Each next hop once, where it is first said; those that cannot be reached are faults."""
    for text, line in rows.first_lines().items():
        gateway, interface, vrf = (*text.split(" "), "", "")[:3]
        found = recursive and not interface and gateway not in ends
        if text == DISCARD or found or vrf == router.vrf != "":
            continue
        through = ends.get(gateway, interface)
        at_end = gateway in ends and interface in ("", through)
        if not at_end and not _reaches(router, gateway, through, interface):
            router.fault(line, f"no interface has a network with {gateway}")
        elif (inside := router.interfaces[through].vrf) != vrf:
            router.fault(line, f"{text} is in VRF {inside}, not where its next hop is looked up")
        else:
            yield NextHop(_port(router, through), gateway, router.file, line)


def _to_hosts(router: RouterText, rows: RouteLines) -> Iterator[tuple[str, int]]:
    """The hosts that these routes find in their VRF, each through itself."""
    next_hops = [next_hop for next_hop in rows.next_hops if next_hop.count(" ") > 1]
    for prefix, next_hop, line in rows.rows(*next_hops):
        gateway, interface, vrf = next_hop.split(" ")
        found = router.interfaces.get(interface)
        if prefix not in (f"{gateway}/32", f"{gateway}/128") or not found or found.vrf != vrf:
            router.fault(line, f"{prefix} by {next_hop} is no host of a VRF")
        elif not _reaches(router, gateway, interface, interface):
            router.fault(line, f"no interface has a network with {gateway}")
        else:
            yield gateway, line


def _host_routes(router: RouterText) -> Iterator[Claim]:
    """The hosts that packets of the default VRF find in the other one."""
    for gateway, line in _to_hosts(router, router.back):
        yield Claim("host route", (gateway,), router.file, line)


def _stages(router: RouterText, ends: dict[str, str]) -> Iterator[Claim]:
    """What is done with packets that come in marked by each link."""
    for found in router.interfaces.values():
        if not found.port:
            continue
        port = Interface(found.port)
        yield Claim("stage", (port, found.tag), router.file, found.line)
        for family, vrf in found.looked.items() or [("", found.vrf)]:
            rows = router.stages.get(vrf, RouteLines())
            for gateway, line in _to_hosts(router, rows):
                yield Claim("staged host", (port, gateway), router.file, line)
            by_prefix: dict[str, list[str]] = {}
            links = (hop for hop in rows.next_hops if hop.count(" ") < 2)
            for prefix, hop, _ in rows.rows(*links):
                by_prefix.setdefault(prefix, []).append(_leaves_by(router, hop, ends))
            for prefix, next_hops in by_prefix.items():
                if not family or _within(prefix, router.wanted.get((family, vrf), "")):
                    value = (port, network_text(prefix), *map(Interface, sorted(next_hops)))
                    yield Claim("staged", value, router.file, found.line)
            for block in _blocks(router) if (family, vrf) in router.direct else ():
                if _within(block, router.wanted.get((family, vrf), "")):
                    yield Claim("staged block", (port, block), router.file, found.line)


def _blocks(router: RouterText) -> Iterator[str]:
    """The networks of hosts."""
    for found in router.interfaces.values():
        for address, _ in found.addresses:
            if not (address.endswith(("/32", "/128")) or _listed(address)):
                yield str(exact_interface(address).network)


def _within(prefix: str, network: str) -> bool:
    """Whether a network is part of another one of its family."""
    part, whole = exact_network(prefix), exact_network(network or "::/128")
    return part.version == whole.version and part.subnet_of(whole)  # type: ignore[arg-type]


def _reaches(router: RouterText, gateway: str, interface: str, named: str) -> bool:
    """Whether a gateway is in a network of the interface through which it is said to be."""
    found = router.interfaces.get(interface)
    if found is None or named not in ("", interface):
        return False
    try:
        address = exact_address(gateway)
        return any(address in exact_interface(own).network for own, _ in found.addresses)
    except ValueError:
        return False


def far_ends(router: RouterText) -> Iterator[tuple[str, str]]:
    """The other addresses of the small networks of a router, with their interfaces."""
    for name, found in router.interfaces.items():
        for address, line in found.addresses:
            try:
                yield from ((other, name) for other in _others(address))
            except ValueError:
                router.fault(line, f"{address} is no address")


@lru_cache(1 << 17)
def _others(text: str) -> tuple[str, ...]:
    """The other addresses of an interface's network, if they are few.

    Raises:
        ValueError: it is none.
    """
    own = exact_interface(text)
    if own.network.num_addresses >= SMALL:
        return ()
    return tuple(str(other) for other in own.network if other != own.ip)


def _listed(address: str) -> bool:
    try:
        return bool(_others(address))
    except ValueError:
        return False


def _hosts(router: RouterText) -> Iterator[Claim]:
    """The gateways' addresses and the ports behind them; addresses that are alone."""
    for name, found in router.interfaces.items():
        for address, line in found.addresses:
            if address.endswith(("/32", "/128")):
                yield Claim("loopback", (address.partition("/")[0],), router.file, line)
            elif not _listed(address):
                for port in router.ports(name):
                    yield Claim("hosts", (address, Interface(port)), router.file, line)


def _ports(router: RouterText) -> Iterator[Claim]:
    """The ports that are up: each is routed or a port of a VLAN, with an address a family."""
    for name, found in router.interfaces.items():
        for six in (False, True):
            several = [(a, line) for a, line in found.addresses if (":" in a) == six]
            if len({address for address, _ in several}) > 1:
                address, line = several[-1]
                router.fault(line, f"{address} on {name}, which has {several[0][0]}")
        if found.port:
            continue
        if bool(found.vlan) + bool(found.addresses) + found.unnumbered != 1:
            router.fault(found.line, f"interface {name} is neither routed nor a port of a VLAN")
        if name in router.shared.values() and not router.ports(name):
            router.fault(found.line, f"interface {name} of a VLAN without ports")
        own = all(address.endswith(("/32", "/128")) for address, _ in found.addresses)
        if found.vlan or found.unnumbered or not (own or name in router.shared.values()):
            yield Claim("port", (Interface(name),), router.file, found.line)
