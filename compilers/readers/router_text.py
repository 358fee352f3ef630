"""A router's configuration as values, in the words that all routers share.

The readers of the systems fill it line by line and know nothing of polarfab: what stands here was
read from text alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from socket import AF_INET6, inet_pton

DISCARD = ""
"""In the place of a next hop: packets for this prefix end here."""
LAST_RESORT = "254"
"""The distance of a route that discards, behind every other."""


@dataclass(slots=True)
class StaticRows:
    """The static routes of a table, a prefix, a hop and a line each; those of one prefix share it.

    hop is an index into `hops`, whose texts are `GATEWAY`, `GATEWAY INTERFACE`, `INTERFACE` behind
    a blank, or DISCARD. line is 0 where only the file is known.
    """

    prefix: list[str] = field(default_factory=list)
    hop: list[int] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    hops: dict[str, int] = field(default_factory=dict)

    def number(self, hop: str) -> int:
        """The index of a next hop."""
        return self.hops.setdefault(hop, len(self.hops))

    def without(self, block: bytes) -> StaticRows:
        """The rows whose prefixes are not in an IPv6 block, by the first bytes of an address."""
        others = StaticRows(hops=self.hops)
        for prefix, hop, line in zip(self.prefix, self.hop, self.line, strict=True):
            if not in_block(prefix, block):
                others.add(prefix, hop, line)
        return others

    def add(self, prefix: str, hop: int, line: int) -> None:
        """A route."""
        self.prefix.append(prefix)
        self.hop.append(hop)
        self.line.append(line)


@dataclass(slots=True)
class InterfaceText:
    """An interface: the line where it begins, its addresses with their lines, the words about it.

    vlan: the network that it is a port of, "" where it is none.
    """

    line: int
    addresses: list[tuple[str, int]] = field(default_factory=list)
    vlan: str = ""
    words: set[str] = field(default_factory=set)


@dataclass(slots=True)
class RouterText:
    """What a file says of a router.

    segments: the first bytes of the addresses of SRv6 uSIDs, whose routes are others'. shared: the
    interface that stands for the ports of a network, by that network. transit: the
    routes of packets that come in anywhere; entering: of those that come in on `ingress`, an
    interface by address family, and are in its prefixes. faults: lines that are not understood, or
    without which nothing is forwarded.
    """

    file: str
    hostname: str = ""
    interfaces: dict[str, InterfaceText] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)
    transit: StaticRows = field(default_factory=StaticRows)
    entering: StaticRows = field(default_factory=StaticRows)
    ingress: dict[str, str] = field(default_factory=dict)
    segments: bytes = b""
    faults: list[tuple[int, str]] = field(default_factory=list)

    def interface(self, name: str, line: int) -> InterfaceText:
        """The interface of a name, new where it was not seen before."""
        if name not in self.interfaces:
            self.interfaces[name] = InterfaceText(line)
        return self.interfaces[name]

    def fault(self, line: int, text: str) -> None:
        """Note that a line is wrong."""
        self.faults.append((line, text.strip()))

    def ports(self, name: str) -> list[str]:
        """The ports of a switched network that an interface stands for, or the interface."""
        networks = {network for network, shared in self.shared.items() if shared == name}
        if not networks:
            return [name]
        return [port for port, found in self.interfaces.items() if found.vlan in networks]


def in_block(prefix: str, block: bytes) -> bool:
    """Whether an IPv6 prefix is in a block, by the first bytes of an address."""
    if ":" not in prefix:
        return False
    return inet_pton(AF_INET6, prefix.partition("/")[0]).startswith(block)


def lines_of(text: str, needles: Iterable[str]) -> Iterator[int]:
    """The line of each needle, 0 where it is not there: JSON does not tell the lines of its values.

    Needles in the order of the text take one pass over it.
    """
    at, line = 0, 1
    for needle in needles:
        if (found := text.find(needle, at)) >= 0:
            line += text.count("\n", at, found)
            at = found
            yield line
        else:
            found = text.find(needle)
            yield text.count("\n", 0, found) + 1 if found >= 0 else 0
