"""Reader of what a Linux kernel does with marked packets, from files for `ip -batch`.

A *mark* tells the next switch to *spread* a packet: to send it over any of its other ports. A
switch marks a packet by its next hop: the neighbour has that address on a macvlan device over its
port. Packets that come in on the device are looked up in the table of its first policy rule. This
table spreads packets for the fabric's addresses over the other ports. For other prefixes it has
`throw` routes, so that the packet goes on to the policy rule of the port itself.

For example, these are the statements about the device over port eth1:

    link add marked1 link eth1 address 02:50:46:80:00:06 type macvlan mode private
    address replace fe80::1:0:6/64 dev marked1 nodad
    rule add iif marked1 lookup 100001 pref 999 protocol 80
    route replace 10.0.0.0/26 nhid 800001 metric 1 table 100001 protocol 80
    route replace throw 10.0.0.4/30 metric 1 table 100001 protocol 80

Packets for 10.0.0.0/26 are spread over the ports of next hop 800001. Those for 10.0.0.4/30, such as
the prefix of a neighbour, are forwarded as if they had no mark.

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
"""The kinds of claims about marked packets.

- marked device: a port, and the MAC address and the IPv6 address of the device over it
- onward: a port, a prefix, and the ports over which the port's marked packets for it are spread
- thrown on: a prefix of `throw` routes
"""


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
    addresses: list[OwnAddress] = field(default_factory=list)
    """The addresses of devices."""
    device_claims: list[Claim] = field(default_factory=list)
    """The claims of the kind "marked device"."""

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
        is_ipv4 = _is_ipv4(address)
        if not is_marked(address) or (length, scope) != (("32", "host") if is_ipv4 else ("64", "")):
            return False
        self.addresses.append(OwnAddress(device.port, address, file, line))
        # Every device has an IPv6 address. Only routers whose IPv4 routes need IPv4 next hops have
        # an IPv4 address, too, so the tables say nothing of it. Whether it is the right one shows
        # where the next hops of the neighbours are compared with the addresses of this switch.
        if not is_ipv4:
            value = (Interface(device.port), device.mac, address)
            self.device_claims.append(Claim("marked device", value, file, line))
        return True

    def template_variables(self) -> dict[str, object] | None:
        """The variable `marks` of the templates of scripts; None without devices."""
        ports = [{"device": d, "interface": device.port} for d, device in self.devices.items()]
        ipv4 = any(_is_ipv4(stated.address) for stated in self.addresses)
        return {"ports": ports, "ipv4": ipv4} if ports else None

    def tables(self) -> set[int]:
        """The tables that rules of devices lead to."""
        return {table for rules in self.rules.values() for table in rules.values()}

    def claims(self, tables: Mapping[int, Lookup]) -> Iterator[Claim]:
        """Yield the claims about marked packets, of all three kinds.

        Args:
            tables: the routing tables of the router.
        """
        yield from self.device_claims
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
                yield device.line, f"{name} is not set up"
            # The first rule of a device leads to the table of marked packets. Behind it is a rule
            # to the table of the port, if the port has a rule.
            tables = [table for _, table in sorted(self.rules.get(name, {}).items())]
            table_of_port = [table_of[device.port]] if device.port in table_of else []
            if tables[1:] != table_of_port:
                yield 0, f"the rules of {name} behind its first one are not those of {device.port}"
        thrown = [sorted(prefixes) for prefixes in self._thrown_prefixes()]
        if any(prefixes != thrown[0] for prefixes in thrown):
            yield 0, "the tables of marked packets do not have `throw` routes of the same prefixes"
        for table in self.thrown.keys() - {self._first_table(name) for name in self.devices}:
            yield 0, f"table {table} has `throw` routes, but is not for marked packets"

    def _thrown_prefixes(self) -> list[list[str]]:
        """The prefixes of `throw` routes, for each device."""
        return [self.thrown.get(self._first_table(name), []) for name in self.devices]

    def _first_table(self, name: str) -> int:
        """The table in which packets of a device are looked up first, 0 without a rule."""
        by_preference = self.rules.get(name, {})
        return by_preference[min(by_preference)] if by_preference else 0


def _is_ipv4(address: str) -> bool:
    """Whether an address is one of IPv4."""
    return exact_address(address).version == 4


def _equal_ports(chain: Chain) -> list[str]:
    """The ports that share packets evenly; [] where weights differ or another port set follows."""
    if len(chain) != 1:
        return []
    weight_of = dict(chain[0])
    return sorted(map(str, weight_of)) if len(set(weight_of.values())) == 1 else []
