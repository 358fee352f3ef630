"""Reader of what a Linux kernel does with marked packets.

A packet is marked by the address of its next hop, which the neighbour has on a macvlan device over
its port. What comes in there is looked up in the table of the device's first rule. That spreads
the fabric's addresses, or throws the packet on to the tables that others of the port meet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from compilers.readers.emitted_forwarding import (
    Claim,
    Interface,
    Lookup,
    OwnAddress,
    interface_network,
    network_text,
    with_mark,
)
from compilers.readers.exact_text import exact_address

MARK = 1 << 32
"""The bit of a link-local address of IPv6 that is for marked packets."""
CLAIMED = frozenset({"marked device", "onward", "thrown on"})


def is_marked(address: str) -> bool:
    """Whether packets to a next hop are marked."""
    at = exact_address(address)
    return at.is_link_local and (at.version == 4 or bool(int(at) & MARK))


def port_to(port: str, address: str) -> str:
    """The port of a next hop, with the mark that packets to it carry."""
    return with_mark(port) if is_marked(address) else port


@dataclass(slots=True)
class MarkedDevices:
    """The devices of a router for marked packets, while its files are read.

    over: by device, its port, its MAC address and the line. rules: by device the tables by
    preference. thrown: by table the prefixes that it throws on.
    """

    folder: Path
    over: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    rules: dict[str, dict[int, int]] = field(default_factory=dict)
    thrown: dict[int, list[str]] = field(default_factory=dict)
    addresses: list[tuple[OwnAddress, Claim]] = field(default_factory=list)

    def address(self, file: str, line: int, device: str, text: str, scope: str) -> bool:
        """An address of a device; False where it is none for marked packets.

        Raises:
            ValueError: it is no address.
        """
        own, _ = interface_network(text)
        port, mac, _ = self.over[device]
        wanted = ("/32", "host") if "." in own else ("/64", "")
        if not is_marked(own) or (text[text.find("/") :], scope) != wanted:
            return False
        claim = Claim("marked device", (Interface(port), mac, own), file, line)
        self.addresses.append((OwnAddress(port, own, file, line), claim))
        return True

    def known(self) -> dict[str, object] | None:
        """The variables of templates."""
        ports = [{"device": d, "interface": port} for d, (port, *_) in self.over.items()]
        ipv4 = any("." in own.address for own, _ in self.addresses)
        return {"ports": ports, "ipv4": ipv4} if ports else None

    def tables(self) -> set[int]:
        """Those of its rules."""
        return {table for by in self.rules.values() for table in by.values()}

    def claims(self, tables: Mapping[int, Lookup]) -> Iterator[Claim]:
        """What is said of marked packets, but for what `faults` finds."""
        yield from (claim for own, claim in self.addresses if "." not in own.address)
        rules = str(self.folder / "rules.batch")
        for device, (port, *_) in self.over.items():
            if lookup := tables.get(self._first(device)):
                for row, entry in enumerate(lookup.number[lookup.rows.entries].tolist()):
                    stages = [dict(stage) for stage in lookup.chains[entry]]
                    next_hops = sorted(map(str, stages[0])) if len(stages) == 1 else []
                    equal = bool(next_hops) and len(set(stages[0].values())) == 1
                    ports = map(Interface, next_hops * equal)
                    value = (Interface(port), lookup.rows.name(row), *ports)
                    yield Claim("onward", value, lookup.rows.file, int(lookup.rows.lines[row]))
        for prefix in next(iter(self._thrown()), []):
            yield Claim("thrown on", (network_text(prefix),), rules, 0)

    def faults(self, up: Collection[str], rules: Mapping[str, int]) -> Iterator[tuple[int, str]]:
        """What is wrong: the line of links.batch, 0 elsewhere, and the text.

        Args:
            up: the interfaces that are set up.
            rules: the table of each port, by interface.
        """
        for device, (port, _, line) in self.over.items():
            if device not in up:
                yield line, f"{device}, which is not set up"
            found = [table for _, table in sorted(self.rules.get(device, {}).items())]
            if found[1:] != ([rules[port]] if port in rules else []):
                yield 0, f"{device}, whose packets are not looked up as others of {port} behind"
        if any(sorted(each) != sorted(next(iter(self._thrown()))) for each in self._thrown()):
            yield 0, "tables of marked packets, which do not throw on the same prefixes"
        for table in self.thrown.keys() - {self._first(device) for device in self.over}:
            yield 0, f"table {table}, which throws on and is for no marked packets"

    def _thrown(self) -> list[list[str]]:
        return [self.thrown.get(self._first(device), []) for device in self.over]

    def _first(self, device: str) -> int:
        """The table that its packets meet first."""
        by_preference = self.rules.get(device, {})
        return by_preference[min(by_preference)] if by_preference else 0
