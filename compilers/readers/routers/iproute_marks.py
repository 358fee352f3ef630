"""Reader of what a Linux kernel does with marked packets, from files for `ip -batch`.

A *mark* tells the next switch to *spread* a packet: to send it over any of its other ports. A
switch marks a packet by its next hop: the neighbour has that address on a macvlan device over its
port. Packets that come in on the device are looked up in the table of its first policy rule. This
table spreads packets for the fabric's addresses over the other ports. For other prefixes it has
`throw` routes, so that the packet goes on to the policy rule of the port itself.

What comes in are the statements that `iproute_reader` finds about such devices. What goes out are
the *claims* of a switch about marked packets (`MarkedDevices.claims`), which are facts besides
forwarding, and the faults.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from compilers.readers.emitted_forwarding import (
    Chain,
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
"""The bit that is set in link-local addresses of IPv6 for marked packets."""
MARK_CLAIM_KINDS = frozenset({"marked device", "onward", "thrown on"})
"""The kinds of claims about marked packets."""


def is_marked(address: str) -> bool:
    """Whether packets to a next hop are marked, by its address.

    Marked packets of IPv4 have a link-local next hop; other packets have none of IPv4 at all.
    """
    parsed = exact_address(address)
    return parsed.is_link_local and (parsed.version == 4 or bool(int(parsed) & MARK))


def port_to(port: str, address: str) -> str:
    """The port of a next hop, named with a mark if the address is for marked packets."""
    return with_mark(port) if is_marked(address) else port


class MarkedDevice(NamedTuple):
    """A macvlan device for marked packets."""

    port: str
    """The port that it is over."""
    mac: str
    """The MAC address of the device."""
    line: int
    """The line that makes it."""


@dataclass(slots=True)
class MarkedDevices:
    """The devices of a router for marked packets, while its files are read."""

    folder: Path
    """The folder of the router."""
    devices: dict[str, MarkedDevice] = field(default_factory=dict)
    """The devices by name."""
    rules: dict[str, dict[int, int]] = field(default_factory=dict)
    """The table of each policy rule, by device and preference."""
    thrown: dict[int, list[str]] = field(default_factory=dict)
    """The prefixes of `throw` routes, by table."""
    addresses: list[tuple[OwnAddress, Claim]] = field(default_factory=list)
    """The addresses of devices, each with the claim that it makes."""

    def add_address(self, file: str, line: int, name: str, text: str, scope: str) -> bool:
        """Note an address of a device; False: it is no address for marked packets.

        Args:
            file: the path of the file that states it.
            line: the line there.
            name: the device.
            text: the address with its length.
            scope: the scope that the line states, "" for none.

        Raises:
            ValueError: it is no address at all.
        """
        address, _ = interface_network(text)
        device = self.devices[name]
        length = text.partition("/")[2]
        expected = ("32", "host") if "." in address else ("64", "")
        if not is_marked(address) or (length, scope) != expected:
            return False
        claim = Claim("marked device", (Interface(device.port), device.mac, address), file, line)
        self.addresses.append((OwnAddress(device.port, address, file, line), claim))
        return True

    def template_variables(self) -> dict[str, object] | None:
        """The variable `marks` of the templates of scripts; None without devices."""
        ports = [{"device": d, "interface": device.port} for d, device in self.devices.items()]
        ipv4 = any("." in stated.address for stated, _ in self.addresses)
        return {"ports": ports, "ipv4": ipv4} if ports else None

    def tables(self) -> set[int]:
        """The tables that rules of devices lead to."""
        return {table for rules in self.rules.values() for table in rules.values()}

    def claims(self, tables: Mapping[int, Lookup]) -> Iterator[Claim]:
        """Yield claims about marked packets: addresses, and the ports over which they are spread.

        Args:
            tables: the routing tables of the router.
        """
        yield from (claim for stated, claim in self.addresses if "." not in stated.address)
        for name, device in self.devices.items():
            if lookup := tables.get(self._first_table(name)):
                for row, entry in enumerate(lookup.number[lookup.rows.entries].tolist()):
                    ports = map(Interface, _equal_ports(lookup.chains[entry]))
                    value = (Interface(device.port), lookup.rows.name(row), *ports)
                    yield Claim("onward", value, lookup.rows.file, int(lookup.rows.lines[row]))
        # All devices have the same `throw` routes, or `faults` says so: those of one are enough.
        rules = str(self.folder / "rules.batch")
        for prefix in next(iter(self._thrown_prefixes()), []):
            yield Claim("thrown on", (network_text(prefix),), rules, 0)

    def faults(
        self, interfaces_up: Collection[str], table_of: Mapping[str, int]
    ) -> Iterator[tuple[int, str]]:
        """Yield each fault: a line of links.batch, or 0 for rules.batch, and the text.

        Args:
            interfaces_up: the interfaces that are set up.
            table_of: the table of each port's policy rule, by interface.
        """
        for name, device in self.devices.items():
            if name not in interfaces_up:
                yield device.line, f"{name}, which is not set up"
            # The first rule of a device leads to the table of marked packets. Behind it is a rule
            # to the table of the port, if the port has a rule.
            tables = [table for _, table in sorted(self.rules.get(name, {}).items())]
            table_of_port = [table_of[device.port]] if device.port in table_of else []
            if tables[1:] != table_of_port:
                text = f"whose packets are not looked up as others of {device.port} behind"
                yield 0, f"{name}, {text}"
        thrown = [sorted(prefixes) for prefixes in self._thrown_prefixes()]
        if any(prefixes != thrown[0] for prefixes in thrown):
            yield 0, "tables of marked packets, which do not throw on the same prefixes"
        for table in self.thrown.keys() - {self._first_table(name) for name in self.devices}:
            yield 0, f"table {table}, which throws on and is for no marked packets"

    def _thrown_prefixes(self) -> list[list[str]]:
        """The prefixes of `throw` routes, for each device."""
        return [self.thrown.get(self._first_table(name), []) for name in self.devices]

    def _first_table(self, name: str) -> int:
        """The table in which packets of a device are looked up first, 0 without a rule."""
        by_preference = self.rules.get(name, {})
        return by_preference[min(by_preference)] if by_preference else 0


def _equal_ports(chain: Chain) -> list[str]:
    """The ports that share packets evenly; [] where weights differ or another port set follows."""
    if len(chain) != 1:
        return []
    weight_of = dict(chain[0])
    return sorted(map(str, weight_of)) if len(set(weight_of.values())) == 1 else []
