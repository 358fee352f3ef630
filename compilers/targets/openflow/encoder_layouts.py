"""The message layouts that an `Encoder` fills for every switch of a fabric.

A `Template` has the bytes of one kind of message, and columns for what differs between switches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compilers.tables.build import Build
from compilers.targets.openflow import carried_row_bytes
from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow.carried_rows import carried_addresses
from compilers.targets.openflow.group_and_flow_bytes import IPV4, IPV6
from compilers.targets.openflow.message_parts import Block, Template, mac_bytes


@dataclass(frozen=True, slots=True, eq=False)
class CarriedLayouts:
    """The layouts of flows for packets that carry an intermediate switch in their MAC address."""

    first: int
    """The MAC address of the first intermediate."""
    within: list[Template]
    """By address family: packets from a host to another host of its switch."""
    draw: list[Template]
    """By address family: packets from a host, which draw an intermediate."""
    far: Template
    """Packets to an intermediate that is no neighbour."""
    near: Template
    """Packets to an intermediate behind a port, as long as that port is up."""
    reached: Template
    """Packets whose intermediate is reached or has no route: the destination decides from here."""
    given_up: Block
    """Packets whose intermediate is a neighbour behind a port that is down: the destination decides
    from here."""

    @classmethod
    def of(cls, build: Build) -> CarriedLayouts:
        """The layouts for the intermediates of a build."""
        a, hosts = build.addressing, build.wiring.host_port.shape[1]
        addresses = carried_addresses(build)
        first, macs = addresses[0], mac_bytes(np.array(addresses, np.uint64))
        families = [IPV4, IPV6] if a.ipv6 else [IPV4]
        gateway, count, checked = a.gateway_mac, len(addresses), a.source_checks
        return cls(
            first=first,
            within=[
                rows.within(gateway, hosts, family, a.ipv4_length, checked) for family in families
            ],
            draw=[rows.draw(gateway, first, hosts, family, count, checked) for family in families],
            far=carried_row_bytes.towards(macs, watched=False),
            near=carried_row_bytes.towards(macs, watched=True),
            reached=carried_row_bytes.reached(macs, gateway),
            given_up=carried_row_bytes.given_up(gateway),
        )


@dataclass(frozen=True, slots=True, eq=False)
class TableLayouts:
    """The layouts of routes and egress classes, for switches with a table for each of them."""

    routes: list[Template]
    """The layout of routes, by address family."""
    classes: list[list[Template]]
    """The layout of rows that lead to the groups of classes, by generation and role."""


@dataclass(frozen=True, slots=True, eq=False)
class SingleTableLayouts:
    """The layouts of the only table of a switch."""

    routes: list[list[Template]]
    """By address family, the layout of a prefix for packets from any port, and its layout for
    packets from one ingress port."""
    hosts: list[Template]
    """The layout of hosts, by address family."""
