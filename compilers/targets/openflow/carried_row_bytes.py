"""The messages that add rows for packets which carry an intermediate switch as a MAC address.

An intermediate is a switch over which a balance sends packets on their way to the destination.
`IntermediateLayouts` has the messages, laid out once for the fabric. Each is a `Template`: bytes
with *columns*, such as `metadata` and `port`, whose values `Encoder` fills in for each switch.
`carried_rows` says which of the rows a switch has. All rows are in the table of routes, except that
of `row_with_port_down`, which is in the table of classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow import message_parts as parts
from compilers.targets.openflow.carried_rows import PRIORITY as CARRIED_PRIORITY
from compilers.targets.openflow.flow_tables import CLASS_MASK, ClassPriority, RowKind, Table
from compilers.targets.openflow.group_and_flow_bytes import RowPlace, flow_rows
from compilers.targets.openflow.message_parts import Block, Parts, Template
from compilers.wiring.mac_addresses import CARRIED_BITS

PORT_DOWN_NUMBER = 1 << 20
"""The number, in the xid of its message, of the row for packets whose port is down. All other rows
here have the number of their intermediate."""
NO_PORT_UP = 0xFFFF
"""What the action `bundle_load` writes into register 0 for a port that is down."""


def rows_to_intermediates(macs: NDArray[np.uint8], are_neighbours: bool) -> Template:
    """For each intermediate a row that sends its packets on towards it.

    The row matches the MAC address of the intermediate, and looks the packet up in the table of
    classes by the egress class of the route to the intermediate, the column `metadata`.

    Args:
        macs: uint8[n, 6], the MAC addresses of the intermediates.
        are_neighbours: whether the intermediates are neighbours, each at the port in the column
            `port`. Then the row also writes this port into register 0, or `NO_PORT_UP` while the
            port is down.
    """
    write_port = parts.apply_actions(parts.bundle_load("port", "reg0", CARRIED_BITS))
    return _carried_row(
        np.arange(len(macs)),
        *([write_port] if are_neighbours else []),
        parts.write_metadata("metadata", CLASS_MASK),
        parts.goto_table(Table.CLASSES),
        mac=macs,
    )


def rows_to_destination(macs: NDArray[np.uint8], gateway: int) -> Template:
    """For each intermediate a row that routes its packets to their destination from here.

    It is for the intermediate itself, and for switches without a route to the intermediate.

    Args:
        macs: uint8[n, 6], the MAC addresses of the intermediates.
        gateway: the MAC address of the gateway.
    """
    actions = parts.apply_actions(*_to_destination(gateway))
    return _carried_row(np.arange(len(macs)), actions, mac=macs)


def row_with_port_down(gateway: int) -> Block:
    """The row for packets to a neighbour behind a port that is down, as register 0 says.

    They are routed to their destination from here.
    """
    actions = _to_destination(gateway, parts.clear("reg0", 0, CARRIED_BITS))
    place = RowPlace(Table.CLASSES, ClassPriority.PORT_DOWN, RowKind.CARRIED)
    field = parts.oxm("reg0", NO_PORT_UP, NO_PORT_UP)
    return flow_rows(place, PORT_DOWN_NUMBER, (field,), parts.apply_actions(*actions)).block


def _carried_row(number: NDArray[np.int64], *instructions: Parts, **columns: Any) -> Template:
    """Rows for packets to the MAC addresses of intermediates, the column `mac`."""
    place = RowPlace(Table.ROUTES, CARRIED_PRIORITY, RowKind.CARRIED)
    return flow_rows(place, number, (parts.oxm("eth_dst", "mac"),), *instructions, **columns)


def _to_destination(gateway: int, *before_look_up: Parts) -> tuple[Parts, ...]:
    """Actions that remove the intermediate from a packet, and look up the packet's destination.

    After them the packet has the gateway's MAC address, as if a host here had sent it. Its ingress
    port is cleared, so that it may leave by the port on which it came in.

    Args:
        gateway: the MAC address of the gateway.
        before_look_up: further actions before the look-up.
    """
    without_intermediate = parts.set_field("eth_dst", gateway), parts.clear("in_port_16", 0, 16)
    return *without_intermediate, *before_look_up, parts.resubmit(Table.ROUTES)
