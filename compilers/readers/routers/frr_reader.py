"""Reader of frr.conf with static routes, and of the files for `ip -batch` beside it.

Of the static routes of a prefix in a table those of the least distance whose interface is up are
installed; several of one distance share by weight.
"""

from __future__ import annotations

from pathlib import Path

from compilers.readers.emitted_forwarding import Claim, EmittedSwitch, NextHop, address_text
from compilers.readers.route_tables import RouteLines, RouteWay
from compilers.readers.routers.iproute_marks import way_to
from compilers.readers.routers.iproute_reader import MAIN, RouterFiles

NAME = "frr.conf"
ALONE = frozenset({"end", "frr defaults datacenter", "service integrated-vtysh-config"})
"""Lines without a value, which have to be there."""
LARGEST_DISTANCE = 254
"""A route of distance 255 is never used."""
ROUTES = {"ip route ": False, "ipv6 route ": True}


def read_frr(folder: Path, bfd: bool = False) -> EmittedSwitch:
    """A switch of target frr with static routes, from its folder.

    Args:
        folder: of the switch.
        bfd: whether BFD is to watch every link.

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    files, routes = RouterFiles(folder), RouteLines()
    for line, text in read_frr_lines(files, routes):
        files.unknown(NAME, line, text)
    file = str(folder / NAME)
    ways = {text: _static(text, bfd) for text in routes.ways}
    hops: dict[tuple[str, str], NextHop] = {}
    for text, first in routes.first_lines().items():
        if (way := ways[text]) and way.stage:
            gateway, port = text.split(" ", 2)[:2]
            hop = NextHop(port, address_text(gateway), file, first)
            hops.setdefault((gateway, port), hop)
    return files.switch(file, files.tables(NAME, routes, ways), hops.values())


def read_frr_lines(files: RouterFiles, routes: RouteLines | None = None) -> list[tuple[int, str]]:
    """Read what frr.conf says of interfaces, and the files beside it; its other lines.

    Args:
        files: takes what was read.
        routes: takes static routes; None: those that discard are taken, and no others.

    Raises:
        OSError: a file is not there.
    """
    interface, others, alone = "", [], set()
    found = RouteLines() if routes is None else routes
    for line, text in files.but_routes(NAME, found, ROUTES, "!"):
        match text.split():
            case ["interface", name]:
                interface = name
            case ["exit"] if interface:
                interface = ""
            case ["ip" | "ipv6", "address", address] if interface and text[0] == " ":
                files.address(NAME, line, interface, address)
            case ["description", node, port] if interface:
                files.far_end(NAME, line, interface, node, port)
            case ["description", "hosts"] if interface:
                pass
            case ["shutdown"] if interface:
                files.wrong(NAME, line, text.strip())
            case ["hostname", name] if not interface:
                files.claims.append(Claim("node", (name,), str(files.folder / NAME), line))
                alone.add("hostname")
            case _ if not interface and text in ALONE:
                alone.add(text)
            case _:
                others.append((line, text))
    files.read_links()
    files.read_rules()
    files.read_settings("frr")
    for text in sorted({*ALONE, "hostname"} - alone):
        files.wrong(NAME, 0, f"no line {text}")
    if routes is None:
        files.tables(NAME, found, {text: last_resort(text) for text in found.ways})
    return others


def last_resort(text: str) -> RouteWay | None:
    """What a route that discards says behind its prefix."""
    return RouteWay(MAIN, LARGEST_DISTANCE, ()) if text == f"reject {LARGEST_DISTANCE}" else None


def _static(text: str, bfd: bool) -> RouteWay | None:
    """What a static route says behind its prefix."""
    if last := last_resort(text):
        return last
    match text.split():
        case ["reject", distance, "table", table] if (
            distance == str(LARGEST_DISTANCE) and table.isdecimal() and int(table) != MAIN
        ):
            return RouteWay(int(table), LARGEST_DISTANCE, ())
        case [gateway, interface, *rest] if gateway[0].isalnum() and gateway != "reject":
            pass
        case _:
            return None
    place = int(rest.pop(0)) if rest and rest[0].isdecimal() else 1
    if "." in gateway and "onlink" not in rest:
        return None  # no interface has a network in which it could be found
    given = {"table": MAIN, "weight": 1}
    while rest:
        word = rest.pop(0)
        if word in given and rest and rest[0].isdecimal():
            given[word] = int(rest.pop(0))
        elif word not in ("onlink", "bfd"):
            return None
    if text.endswith(" bfd") is not bfd or not 0 < place <= LARGEST_DISTANCE:
        return None
    port = way_to(interface, address_text(gateway))
    return RouteWay(given["table"], place, ((port, given["weight"]),))
