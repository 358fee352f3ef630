"""The templates of rows that an `Encoder` fills for every switch of a fabric.

A `Template` has the bytes of one kind of message, and columns for what differs between switches. It
is made once for the fabric, and filled for each switch. *Layouts* are all templates for switches
with certain tables, in these classes:

- `TwoTableLayouts`: the switch looks packets up in two tables: by destination in the table of
  routes, which gives the egress class, then by class in the table of classes. Most switches do.
- `SingleTableLayouts`: the switch has one table, whose rows lead a destination to a group at once.
- `IntermediateLayouts`: what a switch has besides two tables if the balance sends packets over an
  intermediate switch, which packets carry as a MAC address (`carried_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from compilers.tables.build import Build
from compilers.targets.openflow import carried_row_bytes
from compilers.targets.openflow.carried_rows import carried_addresses
from compilers.targets.openflow.group_and_flow_bytes import (
    IPV4,
    IPV6,
    drawing_rows,
    rows_to_same_switch,
)
from compilers.targets.openflow.message_parts import Block, Template, mac_bytes


@dataclass(frozen=True, slots=True, eq=False)
class IntermediateLayouts:
    """The templates of rows for packets that carry an intermediate switch as their MAC address."""

    first_mac: int
    """The MAC address of the first intermediate."""
    to_same_switch: list[Template]
    """By address family, rows for packets from a host to another host of its switch."""
    from_hosts: list[Template]
    """By address family, rows that give packets from a host an intermediate by a hash."""
    to_far: Template
    """Rows for packets to an intermediate that is not a neighbour."""
    to_neighbour: Template
    """Rows for packets to an intermediate that is a neighbour, while the port to it is up."""
    to_destination: Template
    """Rows for packets whose intermediate is this switch or has no route: they go on to their
    destination from here."""
    port_down: Block
    """The row for packets whose intermediate is a neighbour behind a port that is down: they go on
    to their destination from here."""

    @classmethod
    def of(cls, build: Build) -> IntermediateLayouts:
        """The templates for the intermediates of a build."""
        addressing, most_hosts = build.addressing, build.wiring.host_port.shape[1]
        addresses = carried_addresses(build)
        first, macs = addresses[0], mac_bytes(np.array(addresses, np.uint64))
        families = [IPV4, IPV6] if addressing.ipv6 else [IPV4]
        gateway, length = addressing.gateway_mac, addressing.ipv4_length
        checks_sources = addressing.source_checks
        return cls(
            first_mac=first,
            to_same_switch=[
                rows_to_same_switch(gateway, most_hosts, family, length, checks_sources)
                for family in families
            ],
            from_hosts=[
                drawing_rows(
                    gateway,
                    first_mac=first,
                    hosts=most_hosts,
                    ethertype=family,
                    count=len(addresses),
                    checked=checks_sources,
                )
                for family in families
            ],
            to_far=carried_row_bytes.rows_to_intermediates(macs, are_neighbours=False),
            to_neighbour=carried_row_bytes.rows_to_intermediates(macs, are_neighbours=True),
            to_destination=carried_row_bytes.rows_to_destination(macs, gateway),
            port_down=carried_row_bytes.row_with_port_down(gateway),
        )


@dataclass(frozen=True, slots=True, eq=False)
class TwoTableLayouts:
    """The templates for switches that have a table of routes and a table of egress classes."""

    routes: list[Template]
    """By address family, rows that give a destination its egress class."""
    classes: list[list[Template]]
    """By generation and `GroupRole`, rows that send the packets of a class to its group for this
    role. Class and group numbers are in two sets, the generations, so that the rows of two builds
    fit into a switch side by side while it moves from one to the other."""


class PrefixTemplates(NamedTuple):
    """The templates of rows that send packets for a prefix to a group, in a single table."""

    from_any_port: Template
    """Rows for packets from any port."""
    from_one_port: Template
    """Rows for packets from one ingress port, the column `port`."""


@dataclass(frozen=True, slots=True, eq=False)
class SingleTableLayouts:
    """The templates for switches that have one table."""

    routes: list[PrefixTemplates]
    """By address family, rows that send packets for a prefix to a group."""
    hosts: list[Template]
    """By address family, rows that deliver packets to hosts of the switch."""
