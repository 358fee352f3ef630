"""Readers of the rendered segment routes of switches: those of target srv6, and SONiC's.

A *segment route* says what a switch does with a packet whose carrier begins with one or two given
uSIDs (`carrier_parts`). Each reader makes the `SegmentTable` of a switch, which `switch_segments`
compares with the tables and `segment_paths` follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import read_exact
from compilers.readers.grammar.rules import grammar
from compilers.readers.grammar.text_engine import Statement, TextEngine
from compilers.readers.route_tables import RouteLines
from compilers.readers.routers.router_text import in_block, lines_of
from compilers.readers.strict_json import parse
from compilers.readers.text_lines import TextLines
from extensions.host_paths.carrier_parts import Usids, prefix_length, read_carrier

MOST_MATCHED = 2
"""The most uSIDs of a route's prefix. `segment_paths` looks carriers up by one uSID and by two."""
END, CROSS, DECAPSULATE = "End", "End.X", "End.DT6"
"""Actions of segment routes, which RFC 8986 calls behaviours.

- END: shift the carrier, and look its next uSID up.
- CROSS: shift the carrier, and send the packet to a neighbour.
- DECAPSULATE: take the outer header off.
"""
VIA = "via"
"""The action of a route that sends the packet to a next hop as it is."""
SONIC_ACTIONS = {"uN": END, "uA": CROSS, "uDT46": DECAPSULATE}
"""The actions by SONiC's names of them."""
SONIC_USID_LENGTHS = ["32", "16", "16", "0"]
"""The bits of a uSID's block, node, function and argument, as SONiC states them (F3216)."""


class Segment(NamedTuple):
    """What a switch does with a packet whose carrier begins with some uSIDs.

    A field is "" where the file does not state it.
    """

    action: str
    """END, CROSS, DECAPSULATE or VIA."""
    interface: str
    """The interface that the packet leaves by."""
    address: str
    """The address of the next hop."""


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
        if not usids:  # it is no carrier, or has no uSID
            differences.add_unread(self.file, line, prefix)
            return
        self.block = self.block or block
        is_of_block = block == self.block and length == prefix_length(usids)
        if not is_of_block or len(usids) > MOST_MATCHED or usids in self.rows:
            differences.add(self.file, line, prefix, "a prefix of the block, once")
        self.rows[usids], self.lines[usids] = segment, line


@dataclass(slots=True)
class _SegmentActor:
    """Collects segment routes while `TextEngine` reads srv6.batch or srv6.conf by its grammar.

    The engine collects the prefixes and lines of the routes itself, with the text of each next hop.
    Here that text is kept with the segment that it means.
    """

    file: Path
    """The file."""
    differences: DifferenceList
    """Gets lines that the grammar does not read."""
    locator_prefix: str = ""
    """The prefix of the switch's locator, "" before a line states one."""
    segments: dict[str, Segment] = field(default_factory=dict)
    """The segment of each next hop, by the text of the next hop."""

    def add_wrong(self, line: int, text: str) -> None:
        """See `GrammarActor.add_wrong`."""
        self.differences.add(self.file, line, text, "what the grammar says")

    def add_unread(self, line: int, text: str) -> None:
        """See `GrammarActor.add_unread`."""
        self.differences.add_unread(self.file, line, text)

    def next_hop(self, statement: Statement, kind: str, *words: str) -> tuple[str, str]:  # noqa: ARG002
        """Note the segment of a next hop.

        Args:
            statement: the first route with this next hop.
            kind: the action of the segment.
            words: its interface, and then the address of the next hop, as far as the line has them.

        Returns:
            The name of the only table, "", and the text of the next hop (`GrammarActor.next_hop`).
        """
        text = " ".join((kind, *words))
        interface, address = (*words, "", "")[:2]  # "" for a word that is not there
        self.segments[text] = Segment(kind, interface, address)
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
    table = SegmentTable(file)
    routes = engine.routes.get("", RouteLines())  # of the only table, see `_SegmentActor.next_hop`
    locator = actor.locator_prefix
    for prefix, next_hop, line in routes.rows(*routes.next_hops):  # the routes of all next hops
        table.add(prefix, actor.segments[next_hop], line, differences)
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
    if lengths != SONIC_USID_LENGTHS:
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
