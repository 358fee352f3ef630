"""Readers of SRv6 uSIDs: what switches do with them, and which carriers hosts choose.

A carrier is an IPv6 address: a block of 32 bits, then uSIDs of 16 bits up to the first that is 0
(RFC 9800, F3216). A row is known by the uSIDs of its prefix.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from socket import AF_INET6, inet_pton
from struct import unpack

from compilers.readers.difference_list import DifferenceList
from compilers.readers.router_text import in_block, lines_of
from compilers.readers.strict_json import parse

BLOCK = 32
Usids = tuple[int, ...]
SHIFTS = ["flavors", "next-csid", "lblen", "32", "nflen", "16"]
END, CROSS, DECAPSULATE, VIA = "End", "End.X", "End.DT6", "via"
FRR_ACTIONS = {"uN": END, "uA": CROSS, "uDT6": DECAPSULATE}
SONIC_ACTIONS = {"uN": END, "uA": CROSS, "uDT46": DECAPSULATE}
CARRIES = ["encap", "seg6", "mode", "encap.red", "segs"]
TAIL = ["dev", "lo", "table", "main", "protocol"]


@dataclass(frozen=True, slots=True)
class Segment:
    """What a switch does with a packet for some uSIDs; "" stands for what is not said.

    action: END shifts, CROSS shifts and sends, DECAPSULATE takes the outer header off, VIA sends.
    """

    action: str
    interface: str
    address: str


@dataclass(slots=True)
class SegmentTable:
    """The rows of a switch's file with their lines, by the uSIDs of their prefixes."""

    file: Path
    block: bytes = b""
    rows: dict[Usids, Segment] = field(default_factory=dict)
    lines: dict[Usids, int] = field(default_factory=dict)

    def add(self, prefix: str, segment: Segment, line: int, found: DifferenceList) -> None:
        """A row; a second one of its prefix, or one outside the block, is a difference."""
        address, _, length = prefix.partition("/")
        try:
            block, usids = carried(address)
        except (OSError, ValueError):
            found.unread(self.file, line, prefix)
            return
        self.block = self.block or block
        if block != self.block or length != str(BLOCK + 16 * len(usids)) or usids in self.rows:
            found.add(self.file, line, prefix, "a prefix of the block that stands once")
        self.rows[usids], self.lines[usids] = segment, line


@lru_cache(1 << 18)
def carried(address: str) -> tuple[bytes, Usids]:
    """The block and the uSIDs of an address.

    Raises:
        OSError: it is none.
    """
    packed = inet_pton(AF_INET6, address)
    usids: Usids = unpack("!6H", packed[4:])
    end = usids.index(0) if 0 in usids else len(usids)
    if any(usids[end:]):
        raise ValueError(address)
    return packed[:4], usids[:end]


def read_batch(file: Path, found: DifferenceList) -> SegmentTable:
    """The rows of a file for `ip -batch`."""
    table = SegmentTable(file)
    for line, text in enumerate(file.read_text().splitlines(), 1):
        segment: Segment | None = None
        match text.split():
            case ["route", "replace", "local", prefix, "encap", "seg6local", "action", *rest]:
                segment = _local(rest)
            case ["route", "replace", prefix, "via", address, "dev", interface, "protocol", _]:
                segment = Segment(VIA, interface, address)
            case [first, *_] if first[0] != "#":
                prefix = ""
            case _:
                continue
        if segment:
            table.add(prefix, segment, line, found)
        else:
            found.unread(file, line, text)
    return table


def _local(words: list[str]) -> Segment | None:
    match words:
        case ["End", *rest] if rest[:-1] == [*SHIFTS, *TAIL]:
            return Segment(END, "", "")
        case ["End.X", "nh6", address, "oif", interface, *rest] if rest[:-1] == [*SHIFTS, *TAIL]:
            return Segment(CROSS, interface, address)
        case ["End.DT6", "table", "main" | "local", *rest] if rest[:-1] == TAIL:
            return Segment(DECAPSULATE, "", "")
    return None


def read_frr_segments(file: Path, found: DifferenceList) -> SegmentTable:
    """The static SIDs and routes of a file for FRR."""
    table, locator = SegmentTable(file), ""
    for line, text in enumerate(file.read_text().splitlines(), 1):
        match text.split():
            case ["sid", prefix, "locator", "fabric", "behavior", "uN"]:
                table.add(prefix, Segment(END, "", ""), line, found)
                if prefix != locator:
                    found.add(file, line, f"uN {prefix}", f"the locator's {locator}")
            case ["sid", prefix, "locator", "fabric", "behavior", "uDT6", "vrf", "default"]:
                table.add(prefix, Segment(DECAPSULATE, "", ""), line, found)
            case ["sid", prefix, "locator", "fabric", "behavior", "uA", *rest]:
                match rest:
                    case ["interface", interface, "nexthop", address]:
                        table.add(prefix, Segment(CROSS, interface, address), line, found)
                    case _:
                        found.unread(file, line, text)
            case ["ipv6", "route", prefix, address, interface]:
                table.add(prefix, Segment(VIA, interface, address), line, found)
            case ["prefix", locator, "block-len", "32", "node-len", "16"]:
                pass
            case ["ip" | "ipv6" | "no" | "sid" | "prefix", *_]:
                found.unread(file, line, text)
    return table


def read_sonic_segments(file: Path, found: DifferenceList) -> SegmentTable:
    """The SIDs of CONFIG_DB, and its static routes to the uSIDs of the block."""
    table, text = SegmentTable(file), file.read_text()
    tree = parse(text)
    (locator,) = tree["SRV6_MY_LOCATORS"].values()
    lengths = [locator.get(f"{part}_len") for part in ("block", "node", "func", "arg")]
    if lengths != ["32", "16", "16", "0"]:
        found.add(file, 0, f"a locator of {lengths}", "32, 16, 16 and 0 bits")
    sids = tree["SRV6_MY_SIDS"]
    lines = lines_of(text, (f'"{key}"' for key in sids))
    for (key, sid), line in zip(sids.items(), lines, strict=True):
        action = SONIC_ACTIONS.get(sid.get("action"), "")
        if not action:
            found.unread(file, line, f"{key}: {sid}")
        where = sid.get("interface", ""), sid.get("adj", "")
        table.add(key.partition("|")[2], Segment(action, *where), line, found)
    routes = tree["STATIC_ROUTE"]
    lines = lines_of(text, (f'"{key}"' for key in routes))
    for (key, route), line in zip(routes.items(), lines, strict=True):
        prefix = key.partition("|")[2]
        if "nexthop" in route and in_block(prefix, table.block):
            table.add(prefix, Segment(VIA, route["ifname"], route["nexthop"]), line, found)
    return table


@dataclass(slots=True)
class HostSegments:
    """What a host does: per prefix the carriers it chooses among with their weights, and a line.

    own: the uSIDs of the prefix that it takes the outer header off for; () where it does not.
    """

    file: Path
    ways: dict[str, list[tuple[Usids, int]]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    own: Usids = ()


def read_host(file: Path, found: DifferenceList, gateway: str, block: bytes) -> HostSegments:
    """The batch file of a host.

    Args:
        file: OUT/hosts/<host>/host.batch.
        found: takes lines that make no sense.
        gateway: of its switch.
        block: of the uSIDs, four bytes.
    """
    host = HostSegments(file)
    nexthops: dict[str, list[tuple[Usids, int]]] = {}
    for line, text in enumerate(file.read_text().splitlines(), 1):
        if not text or text[0] == "#":
            continue
        try:
            _host_line(host, nexthops, text.split(), line, (gateway, block))
        except (LookupError, OSError, ValueError):
            found.unread(file, line, text)
    return host


def _host_line(
    host: HostSegments,
    nexthops: dict[str, list[tuple[Usids, int]]],
    words: list[str],
    line: int,
    wanted: tuple[str, bytes],
) -> None:
    """A line of a host's batch file.

    Raises:
        LookupError, OSError, ValueError: it makes no sense.
    """
    if words[:3] == ["nexthop", "replace", "id"] and words[3] not in nexthops:
        if words[4] == "group":
            members = [member.split(",") for member in words[5].split("/")]
            nexthops[words[3]] = [(nexthops[n][0][0], int(weight)) for n, weight in members]
            return
        block, usids = carried(words[9])
        if words[4:9] == CARRIES and words[10] == "via" and (words[11], block) == wanted:
            nexthops[words[3]] = [(usids, 1)]
            return
    elif words[:3] == ["route", "replace", "local"] and not host.own:
        if words[4:9] == ["encap", "seg6local", "action", DECAPSULATE, "table"]:
            block, host.own = carried(words[3].partition("/")[0])
            if block == wanted[1]:
                return
    elif words[:2] == ["route", "replace"] and words[3] == "nhid" and words[2] not in host.ways:
        host.ways[words[2]], host.lines[words[2]] = nexthops[words[4]], line
        return
    raise ValueError(words)
