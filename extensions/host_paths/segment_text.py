"""Readers of the rendered files about SRv6: the segment routes of switches, the paths of hosts.

A *carrier* is an IPv6 address that names a path: a block of 32 bits, then micro-SIDs (uSIDs) of 16
bits, up to the first that is 0 (format F3216 of RFC 9800). A switch has a route for the prefix of
one or two uSIDs. A host has, for each destination, nexthop objects that put a header with a carrier
before packets. The results are values that `segment_paths` follows and `segment_check` compares.
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
from compilers.readers.grammar.text_engine import Statement, TextEngine
from compilers.readers.route_tables import RouteLines
from compilers.readers.routers.router_text import in_block, lines_of
from compilers.readers.strict_json import parse
from compilers.readers.text_lines import Integers, TextLines

BLOCK_BITS = 32
"""The bits of the block of a carrier."""
USID_BITS = 16
"""The bits of a uSID."""
MOST_USIDS = 6
"""How many uSIDs fit into an address behind the block."""
MOST_MATCHED = 2
"""How many uSIDs a switch's prefix has at most: carriers are looked up by so many."""
Usids = tuple[int, ...]
"""Some uSIDs in the order of a carrier."""
END, CROSS, DECAPSULATE = "End", "End.X", "End.DT6"
"""Behaviours of segments (RFC 8986): shift the carrier; shift it and send the packet to a
neighbour; take the outer header off."""
VIA = "via"
"""The action of a route that sends the packet to a next hop as it is."""
SONIC_ACTIONS = {"uN": END, "uA": CROSS, "uDT46": DECAPSULATE}
"""SONiC's names of these behaviours."""
NEXTHOP = "nexthop replace id "
"""Begins the line of a nexthop object."""
ENCAPSULATES = "encap seg6 mode encap.red segs "
"""Follows the number of a nexthop object that puts a header with a carrier before packets."""
GROUP = re.compile(r"group ([0-9]+,[1-9][0-9]{0,9}/)*[0-9]+,[1-9][0-9]{0,9} protocol 80")
"""Follows the number of a nexthop object that shares packets: `group NUMBER,WEIGHT/…`."""
PROTOCOL = ["protocol", "80"]
"""Ends the lines of polarfab."""
DECAPSULATES = ["encap", "seg6local", "action", DECAPSULATE, "table", "local"]
"""Follows the prefix of a route that takes the outer header off at a host."""
ON_LOOPBACK = ["dev", "lo", "table", "main", *PROTOCOL]
"""Ends such a route."""


class Segment(NamedTuple):
    """What a switch does with a packet for some uSIDs; "" for what the file does not state."""

    action: str
    """END, CROSS, DECAPSULATE or VIA."""
    interface: str
    """The interface that the packet leaves by."""
    address: str
    """The address of the next hop."""


class Carrier(NamedTuple):
    """The parts of a carrier."""

    block: bytes
    """The first 32 bits."""
    usids: Usids
    """The uSIDs up to the first that is 0."""


@lru_cache(1 << 18)
def read_carrier(address: str) -> Carrier:
    """The parts of an address.

    Raises:
        OSError: it is no IPv6 address.
        ValueError: a uSID follows one that is 0.

    >>> read_carrier("fc00:0:1001:a000::").usids == (0x1001, 0xA000)
    True
    """
    packed = inet_pton(AF_INET6, address)
    usids: Usids = unpack("!6H", packed[4:])
    end = usids.index(0) if 0 in usids else len(usids)
    if any(usids[end:]):
        raise ValueError(address)
    return Carrier(packed[:4], usids[:end])


def prefix_length(usids: Usids) -> str:
    """The length of the prefix that these uSIDs are matched by."""
    return str(BLOCK_BITS + USID_BITS * len(usids))


@dataclass(slots=True)
class SegmentTable:
    """The segment routes of a switch, from one of its files."""

    file: Path
    """The file."""
    block: bytes = b""
    """The first 32 bits of all prefixes."""
    rows: dict[Usids, Segment] = field(default_factory=dict)
    """The routes by the uSIDs of their prefixes."""
    lines: dict[Usids, int] = field(default_factory=dict)
    """The line of each row."""

    def add(self, prefix: str, segment: Segment, line: int, differences: DifferenceList) -> None:
        """Add a row.

        A prefix outside the block, of more than `MOST_MATCHED` uSIDs, or for the second time is a
        difference.
        """
        address, _, length = prefix.partition("/")
        try:
            block, usids = read_carrier(address)
        except (OSError, ValueError):
            usids = ()
        if not usids:  # no prefix of a uSID
            differences.add_unread(self.file, line, prefix)
            return
        self.block = self.block or block
        is_right = block == self.block and length == prefix_length(usids)
        if not is_right or len(usids) > MOST_MATCHED or usids in self.rows:
            differences.add(self.file, line, prefix, "a prefix of the block, once")
        self.rows[usids], self.lines[usids] = segment, line


@dataclass(slots=True)
class _SegmentActor:
    """Collects segment routes while srv6.batch or srv6.conf is read by its grammar."""

    file: Path
    """The file."""
    differences: DifferenceList
    """Collects lines that make no sense."""
    locator_prefix: str = ""
    """The prefix of the switch's locator, "" before a line states one."""
    rows: dict[str, Segment] = field(default_factory=dict)
    """The segment of each next hop, by its text."""

    def add_wrong(self, line: int, text: str) -> None:
        """See `GrammarActor.add_wrong`."""
        self.differences.add(self.file, line, text, "what the grammar says")

    def add_unread(self, line: int, text: str) -> None:
        """See `GrammarActor.add_unread`."""
        self.differences.add_unread(self.file, line, text)

    def next_hop(self, statement: Statement, kind: str, *words: str) -> tuple[str, str]:  # noqa: ARG002
        """Note a segment route: its action, and the interface and the address that it names.

        Returns:
            The name of the only table, "", and the text of the next hop (`GrammarActor.next_hop`).
        """
        text = " ".join((kind, *words))
        interface, address = (*words, "", "")[:2]  # "" for a word that is not there
        self.rows[text] = Segment(kind, interface, address)
        return "", text

    def locator(self, statement: Statement, prefix: str) -> None:  # noqa: ARG002
        """Note the locator of the switch."""
        self.locator_prefix = prefix


def read_segments(file: Path, differences: DifferenceList) -> SegmentTable:
    """Read the segment routes of a switch of target srv6.

    Args:
        file: srv6.batch for `ip -batch`, or srv6.conf for FRR, which states the locator too.
        differences: gets lines that no rule reads, and a segment END that is not the locator.

    Raises:
        OSError: the file cannot be read.
    """
    actor = _SegmentActor(file, differences)
    engine = TextEngine(grammar("srv6", file.name), actor)
    engine.read(TextLines.read(file))
    table, routes = SegmentTable(file), engine.routes.get("", RouteLines())
    locator = actor.locator_prefix
    for prefix, next_hop, line in routes.rows(*routes.next_hops):
        table.add(prefix, actor.rows[next_hop], line, differences)
        if next_hop == END and locator and prefix != locator:
            differences.add(file, line, f"{prefix} {next_hop}", f"the locator's {locator}")
    return table


def read_sonic_segments(file: Path, differences: DifferenceList) -> SegmentTable:
    """Read the segment routes of a SONiC switch: its SIDs, and static routes to uSIDs.

    Args:
        file: config_db.json.
        differences: gets SIDs with other actions, and locators of other lengths.

    Raises:
        OSError: the file cannot be read.
        LookupError, TypeError, ValueError: it has no such tables.
    """
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
            differences.add_unread(file, line, f"{key}: {sid}")
        segment = Segment(action, sid.get("interface", ""), sid.get("adj", ""))
        table.add(key.partition("|")[2], segment, line, differences)
    routes = tree["STATIC_ROUTE"]
    lines = lines_of(text, (f'"{key}"' for key in routes))
    for (key, route), line in zip(routes.items(), lines, strict=True):
        prefix = key.partition("|")[2]
        if "nexthop" in route and in_block(prefix, table.block):
            table.add(prefix, Segment(VIA, route["ifname"], route["nexthop"]), line, differences)
    return table


@dataclass(frozen=True, slots=True, eq=False)
class HostSegments:
    """The paths of a host: P routes, which choose among n carriers."""

    file: Path
    """The file that states them."""
    prefix: list[str]
    """The prefix of each of the P routes."""
    line: list[int]
    """The line of each of the P routes."""
    own_usids: Usids
    """The uSIDs of the prefix for which the host takes the outer header off; () where its switch
    does."""
    usids: Integers
    """int64[n, MOST_USIDS + 1]: the uSIDs of each carrier, then zeros."""
    route: Integers
    """int64[n]: the index of the route that each carrier belongs to."""
    weight: Integers
    """int64[n]: the weight of each carrier in its route."""


def read_host(
    file: Path, differences: DifferenceList, gateway: str, interface: str, block: bytes
) -> HostSegments:
    """Read the paths of a host.

    Args:
        file: OUT/hosts/<host>/host.batch.
        differences: gets lines that are no nexthop objects and no routes.
        gateway: the address of its switch.
        interface: the interface to its switch.
        block: the block of the uSIDs, four bytes.

    Raises:
        OSError: the file cannot be read.
    """
    reader = _HostReader(file, differences, block)
    lines = TextLines.read(file)
    has_strange_characters = lines.strange()
    for line, text in lines[has_strange_characters]:
        if bare(text)[:1] != "#":
            differences.add_unread(file, line, text)
    lines = lines[~has_strange_characters]
    are_nexthops = lines.begin_with(NEXTHOP)
    numbers, nexthops = lines[are_nexthops].split(len(NEXTHOP))
    single = nexthops.begin_with(ENCAPSULATES)
    tail = ["via", gateway, "dev", interface, *PROTOCOL]
    reader.read_carriers(numbers[single], nexthops[single], tail)
    reader.read_groups(numbers[~single], nexthops[~single])
    for line, text in lines[~are_nexthops]:
        if bare(text) and bare(text)[0] != "#":
            reader.read_route(text, line)
    return reader.host()


class _Nexthop(NamedTuple):
    """A nexthop object: the carriers among which it shares packets, and their weights."""

    carriers: Sequence[int]
    """The rows of the carriers in `_HostReader.usids`."""
    weights: Sequence[int]
    """The weight of each carrier."""


class _HostReader:
    """The reading of a host's file."""

    def __init__(self, file: Path, differences: DifferenceList, block: bytes) -> None:
        self.file, self.differences, self.block = file, differences, block
        self.own_usids: Usids = ()
        """See `HostSegments.own_usids`."""
        self.usids = np.zeros((0, MOST_USIDS + 1), np.int64)
        """The uSIDs of every carrier."""
        self.nexthops: dict[str, _Nexthop] = {}
        """The nexthop objects by number."""
        self.nexthop_lines: dict[str, int] = {}
        """The line of each nexthop object, by number."""
        self.routes: dict[str, tuple[str, int]] = {}
        """By prefix, the number of the nexthop object and the line."""

    def read_carriers(self, numbers: TextLines, nexthops: TextLines, tail: list[str]) -> None:
        """Read nexthop objects that put a header with a carrier before packets.

        Args:
            numbers: the numbers of the objects.
            nexthops: what follows the numbers on their lines.
            tail: the words that have to follow the carrier.
        """
        addresses, tails = nexthops.split(len(ENCAPSULATES))
        texts, text_of_line = tails.different_texts()
        has_tail = np.array([exact_words(text) == tail for text in texts], np.bool_)[text_of_line]
        packed = [_packed(address) for address in addresses.texts()]
        words = np.frombuffer(b"".join(packed), ">u2").reshape(-1, 8).astype(np.int64)
        usids = words[:, 2:]
        in_block = (words[:, :2] == np.frombuffer(self.block, ">u2")).all(axis=1)
        has_gap = ((usids[:, :-1] == 0) & (usids[:, 1:] > 0)).any(axis=1)
        is_correct = has_tail & in_block & (usids[:, 0] > 0) & ~has_gap
        for line, text in nexthops[~is_correct]:
            self.differences.add_unread(self.file, line, text)
        self.usids = np.pad(usids, ((0, 0), (0, 1)))
        objects = [_Nexthop((row,), (1,)) for row in range(len(usids))]
        self._add_nexthops(numbers, objects, is_correct)

    def read_groups(self, numbers: TextLines, nexthops: TextLines) -> None:
        """Read nexthop objects that share packets among the objects of carriers above them."""
        groups: list[_Nexthop] = []
        for line, text in nexthops:
            texts = text.removeprefix("group ").partition(" ")[0].split("/")
            members = [member.partition(",")[::2] for member in texts]
            defined = GROUP.fullmatch(text) and all(
                self.nexthop_lines.get(number, line) < line for number, _ in members
            )
            if defined:
                carriers = [self.nexthops[number].carriers[0] for number, _ in members]
                groups.append(_Nexthop(carriers, [exact_number(weight) for _, weight in members]))
            else:
                groups.append(_Nexthop((), ()))
                self.differences.add_unread(self.file, line, text)
        is_correct = np.array([bool(group.carriers) for group in groups], np.bool_)
        self._add_nexthops(numbers, groups, is_correct)

    def _add_nexthops(
        self, numbers: TextLines, nexthops: Sequence[_Nexthop], is_correct: NDArray[np.bool_]
    ) -> None:
        """Add nexthop objects that are right; a second one of a number is a difference."""
        rows = zip(numbers, nexthops, is_correct.tolist(), strict=True)
        for (line, number), nexthop, correct in rows:
            if number in self.nexthops:
                self.differences.add_unread(self.file, line, f"{NEXTHOP}{number} again")
            elif correct:
                self.nexthops[number], self.nexthop_lines[number] = nexthop, line

    def read_route(self, text: str, line: int) -> None:
        """Read a route to a nexthop object, or one that takes the outer header off."""
        match exact_words(text):
            case ["route", "replace", "local", prefix, *rest] if not self.own_usids and rest == [
                *DECAPSULATES,
                *ON_LOOPBACK,
            ]:
                if self._set_own_usids(prefix):
                    return
            case ["route", "replace", prefix, "nhid", number, *rest] if (
                rest == PROTOCOL
                and self.nexthop_lines.get(number, line) < line
                and prefix not in self.routes
            ):
                self.routes[prefix] = number, line
                return
        self.differences.add_unread(self.file, line, text)

    def _set_own_usids(self, prefix: str) -> bool:
        """Set the host's own uSIDs from a prefix; False if it is not one of the block."""
        address, _, length = prefix.partition("/")
        try:
            block, self.own_usids = read_carrier(address)
        except (OSError, ValueError):
            return False
        return block == self.block and length == prefix_length(self.own_usids)

    def host(self) -> HostSegments:
        """The paths of the host, once all lines were read."""
        nexthops = [self.nexthops[number] for number, _ in self.routes.values()]
        carriers = list(chain.from_iterable(nexthop.carriers for nexthop in nexthops))
        weights = list(chain.from_iterable(nexthop.weights for nexthop in nexthops))
        counts = [len(nexthop.carriers) for nexthop in nexthops]
        return HostSegments(
            file=self.file,
            prefix=list(self.routes),
            line=[line for _, line in self.routes.values()],
            own_usids=self.own_usids,
            usids=self.usids[np.array(carriers, np.int64)],
            route=np.repeat(np.arange(len(nexthops)), counts),
            weight=np.array(weights, np.int64),
        )


def _packed(address: str) -> bytes:
    """The bytes of an IPv6 address; zeros for a text that is none."""
    try:
        return inet_pton(AF_INET6, address)
    except OSError:
        return bytes(16)
