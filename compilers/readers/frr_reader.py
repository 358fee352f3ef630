"""Reader of frr.conf with static routes, and of the files for `ip -batch` beside it.

Of the static routes of a prefix in a table those of the least distance whose interface is up are
installed; several of one distance share by weight.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from compilers.readers.emitted_forwarding import EmittedSwitch, NextHop, Stage, address_text
from compilers.readers.iproute_reader import MAIN, RouterFiles, RoutingTables

NAME = "frr.conf"
HARMLESS = frozenset({"!", "end", "exit", "frr", "hostname", "service", "log"})
"""Words at the beginning of lines that forward nothing."""
LARGEST_DISTANCE = 254
"""A route of distance 255 is never used."""


def read_frr(folder: Path) -> EmittedSwitch:
    """A switch of target frr with static routes, from its folder.

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    files = RouterFiles(folder)
    tables = RoutingTables(str(folder / NAME))
    numbers: dict[tuple[str, str, int], int] = {}
    lines: dict[tuple[str, str], int] = {}
    interface = ""
    for line, text in files.lines(NAME, "!"):
        family, _, rest = text.partition(" route ")
        if rest and family in ("ip", "ipv6"):
            prefix, _, way = rest.partition(" ")
            route = _static(way)
            if route is None:
                discard = way.split()
                if discard[:1] == ["reject"] and discard[1:] == [str(LARGEST_DISTANCE)]:
                    files.discards.append((prefix, tables.file, line))
                else:
                    files.unknown(NAME, line, text)
                continue
            table, distance, hop = route
            if hop not in numbers:
                numbers[hop] = len(numbers)
                lines.setdefault(hop[:2], line)
            tables.add(table, prefix, (distance, numbers[hop]), line)
            continue
        match text.split():
            case ["interface", name]:
                interface = name
            case ["exit"]:
                interface = ""
            case ["ip" | "ipv6", "address", address] if interface and text[0] == " ":
                files.address(NAME, line, interface, address)
            case ["description", node, port] if interface:
                files.far_end(NAME, line, interface, node, port)
            case ["description", _] if interface:
                pass
            case [word, *_] if not interface and word in HARMLESS:
                pass
            case _:
                files.unknown(NAME, line, text)
    files.read_links()
    files.read_rules()
    files.read_settings()
    stages: dict[int, Stage] = {n: ((hop[1], hop[2]),) for hop, n in numbers.items()}
    hops = {
        n: NextHop(port, address_text(gateway), tables.file, line)
        for n, ((gateway, port), line) in enumerate(lines.items())
    }
    return files.switch(tables, stages, hops)


@lru_cache(1 << 16)
def _static(way: str) -> tuple[int, int, tuple[str, str, int]] | None:
    """The table, the distance, and gateway, interface and weight of a static route."""
    match way.split():
        case [gateway, interface, *rest] if gateway[0].isalnum() and gateway != "reject":
            pass
        case _:
            return None
    distance = int(rest.pop(0)) if rest and rest[0].isdecimal() else 1
    if "." in gateway and "onlink" not in rest:
        return None  # no interface has a network in which it could be found
    given = {"table": MAIN, "weight": 1}
    while rest:
        word = rest.pop(0)
        if word in given and rest and rest[0].isdecimal():
            given[word] = int(rest.pop(0))
        elif word not in ("onlink", "bfd"):
            return None
    if not 0 < distance <= LARGEST_DISTANCE:
        return None
    return given["table"], distance, (gateway, interface, given["weight"])
