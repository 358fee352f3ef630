"""Readers of SRv6 uSIDs: what switches do with them, and which carriers hosts choose.

A carrier is an IPv6 address: a block of 32 bits, then uSIDs of 16 bits up to the first that is 0
(RFC 9800, F3216). A row is known by the uSIDs of its prefix.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from socket import AF_INET6, inet_pton
from struct import unpack
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import bare, exact_number, exact_words, read_exact
from compilers.readers.grammar.rules import grammar
from compilers.readers.grammar.text_engine import Place, TextEngine
from compilers.readers.route_tables import RouteLines
from compilers.readers.routers.router_text import in_block, lines_of
from compilers.readers.strict_json import parse
from compilers.readers.text_lines import Integers, TextLines

BLOCK = 32
Usids = tuple[int, ...]
END, CROSS, DECAPSULATE, VIA = "End", "End.X", "End.DT6", "via"
SONIC_ACTIONS = {"uN": END, "uA": CROSS, "uDT46": DECAPSULATE}
NEXTHOP, CARRIES = "nexthop replace id ", "encap seg6 mode encap.red segs "
GROUP = re.compile(r"group ([0-9]+,[1-9][0-9]{0,9}/)*[0-9]+,[1-9][0-9]{0,9} protocol 80")
TAKES_OFF = ["encap", "seg6local", "action", DECAPSULATE, "table", "local"]
USIDS = 6
"""In an address behind the block."""
OURS = ["protocol", "80"]
TAIL = ["dev", "lo", "table", "main", *OURS]


class Segment(NamedTuple):
    """What a switch does with a packet for some uSIDs; "" for what is not said."""

    action: str
    """What it does: END shifts the carrier, CROSS shifts it and sends the packet to a neighbour,
    DECAPSULATE takes the outer header off, VIA sends the packet to a neighbour."""
    interface: str
    """The interface that the packet leaves by."""
    address: str
    """The address of the next hop."""


@dataclass(slots=True)
class SegmentTable:
    """The rows of a switch's file."""

    file: Path
    """The file."""
    block: bytes = b""
    """The network of all uSIDs, packed."""
    rows: dict[Usids, Segment] = field(default_factory=dict)
    """What the switch does, by the uSIDs of the prefix."""
    lines: dict[Usids, int] = field(default_factory=dict)
    """The line of each row in the file."""

    def add(self, prefix: str, segment: Segment, line: int, differences: DifferenceList) -> None:
        """A row; a second one of its prefix, or one outside the block, is a difference."""
        address, _, length = prefix.partition("/")
        try:
            block, usids = carried(address)
        except (OSError, ValueError):
            usids = ()
        if not usids:  # it leads where no uSID is
            differences.unread(self.file, line, prefix)
            return
        self.block = self.block or block
        if block != self.block or length != str(BLOCK + 16 * len(usids)) or usids in self.rows:
            differences.add(self.file, line, prefix, "a prefix of the block, once")
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


@dataclass(slots=True)
class _SegmentActor:
    """Reads the rows of a file."""

    file: Path
    """The file."""
    differences: DifferenceList
    """Collects what is not as it should be."""
    locator_: tuple[str, int] = ("", 0)
    """The prefix of the switch's own locator, and its line."""
    rows: dict[str, Segment] = field(default_factory=dict)
    """What the switch does, by prefix."""

    def wrong(self, line: int, text: str) -> None:
        """See `GrammarActor.wrong`."""
        self.differences.add(self.file, line, text, "what the grammar says")

    def unknown(self, line: int, text: str) -> None:
        """See `GrammarActor.unknown`."""
        self.differences.unread(self.file, line, text)

    def next_hop(self, place: Place, kind: str, *words: str) -> tuple[str, str]:  # noqa: ARG002
        """A row: its action, and the interface and the address that it names."""
        text = " ".join((kind, *words))
        self.rows[text] = Segment(kind, *(*words, "", "")[:2])
        return "", text

    def locator(self, place: Place, prefix: str) -> None:
        """The locator of the switch."""
        self.locator_ = prefix, place.line


def read_segments(file: Path, differences: DifferenceList) -> SegmentTable:
    """The rows of a file of target srv6: for `ip -batch`, or of FRR, whose uN is its locator."""
    actor = _SegmentActor(file, differences)
    engine = TextEngine(grammar("srv6", file.name), actor)
    engine.read(TextLines.read(file))
    table, routes = SegmentTable(file), engine.routes.get("", RouteLines())
    for prefix, next_hop, line in routes.rows(*routes.next_hops):
        table.add(prefix, actor.rows[next_hop], line, differences)
        if next_hop == END and actor.locator_[1] and prefix != actor.locator_[0]:
            differences.add(
                file, line, f"{prefix} {next_hop}", f"the locator's {actor.locator_[0]}"
            )
    return table


def read_sonic_segments(file: Path, differences: DifferenceList) -> SegmentTable:
    """The SIDs of CONFIG_DB, and its static routes to the uSIDs of the block."""
    table, text = SegmentTable(file), read_exact(file)
    tree = parse(text)
    (locator,) = tree["SRV6_MY_LOCATORS"].values()
    lengths = [locator.get(f"{part}_len") for part in ("block", "node", "func", "arg")]
    if lengths != ["32", "16", "16", "0"]:
        differences.add(file, 0, f"a locator of {lengths}", "32, 16, 16 and 0 bits")
    sids = tree["SRV6_MY_SIDS"]
    lines = lines_of(text, (f'"{key}"' for key in sids))
    for (key, sid), line in zip(sids.items(), lines, strict=True):
        action = SONIC_ACTIONS.get(sid.get("action"), "")
        if not action:
            differences.unread(file, line, f"{key}: {sid}")
        where = sid.get("interface", ""), sid.get("adj", "")
        table.add(key.partition("|")[2], Segment(action, *where), line, differences)
    routes = tree["STATIC_ROUTE"]
    lines = lines_of(text, (f'"{key}"' for key in routes))
    for (key, route), line in zip(routes.items(), lines, strict=True):
        prefix = key.partition("|")[2]
        if "nexthop" in route and in_block(prefix, table.block):
            table.add(prefix, Segment(VIA, route["ifname"], route["nexthop"]), line, differences)
    return table


@dataclass(frozen=True, slots=True, eq=False)
class HostSegments:
    """What a host does: for each of P prefixes, the carriers that it chooses among."""

    file: Path
    """The file."""
    prefix: list[str]
    """The prefix of each of the P routes."""
    line: list[int]
    """The line of each of the P routes."""
    own: Usids
    """The uSIDs of the prefix for which the host takes the outer header off; () where it does not.
    """
    usids: Integers
    """int64[n, USIDS + 1], the uSIDs of each of n carriers, zeros behind the last."""
    route: Integers
    """int64[n], the place of the route that each carrier belongs to."""
    weight: Integers
    """int64[n], the weight of each carrier in its route."""


def read_host(
    file: Path, differences: DifferenceList, gateway: str, interface: str, block: bytes
) -> HostSegments:
    """The batch file of a host.

    Args:
        file: OUT/hosts/<host>/host.batch.
        differences: takes lines that make no sense.
        gateway: of its switch.
        interface: the host's.
        block: of the uSIDs, four bytes.
    """
    reader = _HostReader(file, differences, block)
    lines = TextLines.read(file)
    strange = lines.strange()
    for line, text in lines[strange]:
        if bare(text)[:1] != "#":
            differences.unread(file, line, text)
    lines = lines[~strange]
    mine = lines.beginning(NEXTHOP)
    numbers, next_hops = lines[mine].split(len(NEXTHOP))
    single = next_hops.beginning(CARRIES)
    reader.carriers(numbers[single], next_hops[single], ["via", gateway, "dev", interface, *OURS])
    reader.groups(numbers[~single], next_hops[~single])
    for line, text in lines[~mine]:
        if bare(text) and bare(text)[0] != "#":
            reader.route(text, line)
    return reader.host()


class _HostReader:
    """A host's file while it is read.

    hops: the carriers that each nexthop object chooses among, and their weights.
    """

    def __init__(self, file: Path, differences: DifferenceList, block: bytes) -> None:
        self.file, self.differences, self.block = file, differences, block
        self.own: Usids = ()
        self.usids = np.zeros((0, USIDS + 1), np.int64)
        self.hops: dict[str, tuple[Sequence[int], Sequence[int]]] = {}
        self.at: dict[str, int] = {}
        self.routes: dict[str, tuple[str, int]] = {}

    def carriers(self, numbers: TextLines, next_hops: TextLines, wanted: list[str]) -> None:
        """Nexthop objects that put a header before packets."""
        addresses, tails = next_hops.split(len(CARRIES))
        texts, which = tails.alike()
        understood = np.array([exact_words(text) == wanted for text in texts], np.bool_)
        packed = [_packed(address) for address in addresses.texts()]
        words = np.frombuffer(b"".join(packed), ">u2").reshape(-1, 8).astype(np.int64)
        usids = words[:, 2:]
        right = understood[which] & (words[:, :2] == np.frombuffer(self.block, ">u2")).all(axis=1)
        # A carrier ends with the first uSID that is 0.
        right &= (usids[:, 0] > 0) & ~((usids[:, :-1] == 0) & (usids[:, 1:] > 0)).any(axis=1)
        for line, text in next_hops[~right]:
            self.differences.unread(self.file, line, text)
        self.usids = np.pad(usids, ((0, 0), (0, 1)))
        self._hops(numbers, [((at,), (1,)) for at in range(len(usids))], right)

    def groups(self, numbers: TextLines, next_hops: TextLines) -> None:
        """Nexthop objects that share among others."""
        shares: list[tuple[Sequence[int], Sequence[int]]] = []
        for line, text in next_hops:
            members = [m.partition(",")[::2] for m in text[6:].partition(" ")[0].split("/")]
            defined = GROUP.fullmatch(text) and all(self.at.get(n, line) < line for n, _ in members)
            carriers = [self.hops[number][0][0] for number, _ in members] if defined else []
            weights = [exact_number(weight) for _, weight in members] if defined else []
            shares.append((carriers, weights))
            if not defined:
                self.differences.unread(self.file, line, text)
        self._hops(numbers, shares, np.array([bool(next_hop) for next_hop, _ in shares], np.bool_))

    def _hops(
        self,
        numbers: TextLines,
        shares: Sequence[tuple[Sequence[int], Sequence[int]]],
        right: NDArray[np.bool_],
    ) -> None:
        """Nexthop objects by their numbers; a second one of a number is a difference."""
        for (line, number), share, is_right in zip(numbers, shares, right.tolist(), strict=True):
            if number in self.hops:
                self.differences.unread(self.file, line, f"{NEXTHOP}{number} again")
            elif is_right:
                self.hops[number], self.at[number] = share, line

    def route(self, text: str, line: int) -> None:
        """A route to a nexthop object, or to where the header comes off."""
        match exact_words(text):
            case ["route", "replace", "local", prefix, *rest] if not self.own and rest == [
                *TAKES_OFF,
                *TAIL,
            ]:
                if self._is_own(prefix):
                    return
            case ["route", "replace", prefix, "nhid", number, *ours] if (
                ours == OURS and self.at.get(number, line) < line and prefix not in self.routes
            ):
                self.routes[prefix] = number, line
                return
        self.differences.unread(self.file, line, text)

    def _is_own(self, prefix: str) -> bool:
        """Keep the uSIDs of the host's own prefix; whether it is one of the block."""
        address, _, length = prefix.partition("/")
        try:
            block, self.own = carried(address)
        except (OSError, ValueError):
            return False
        return block == self.block and length == str(BLOCK + 16 * len(self.own))

    def host(self) -> HostSegments:
        """All of it."""
        next_hops = [self.hops[number] for number, _ in self.routes.values()]
        carriers, weights = (
            list(chain.from_iterable(next_hop[k] for next_hop in next_hops)) for k in (0, 1)
        )
        return HostSegments(
            self.file,
            list(self.routes),
            [line for _, line in self.routes.values()],
            self.own,
            self.usids[np.array(carriers, np.int64)],
            np.repeat(np.arange(len(next_hops)), [len(next_hop) for next_hop, _ in next_hops]),
            np.array(weights, np.int64),
        )


def _packed(address: str) -> bytes:
    """The bytes of an address, zeros for what is none."""
    try:
        return inet_pton(AF_INET6, address)
    except OSError:
        return bytes(16)
