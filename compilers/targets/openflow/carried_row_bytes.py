"""The rows for packets that carry an intermediate.

They are laid out once for the fabric, as all rows of `group_and_flow_bytes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow import message_parts as parts
from compilers.targets.openflow.carried_rows import PRIORITY as CARRIED_PRIORITY
from compilers.targets.openflow.flow_tables import CLASS_MASK, ClassPriority, RowKind, Table
from compilers.targets.openflow.group_and_flow_bytes import flow_rows
from compilers.targets.openflow.message_parts import Block, Parts, Template
from compilers.wiring.addressing import CARRIED_BITS

GIVEN_UP_NUMBER = 1 << 20
"""The number of the row that gives up an intermediate. Other rows by intermediates have the number
of the intermediate."""
NO_PORT_UP = 0xFFFF
"""What `port_if_up` writes for a port that is down."""


def towards(macs: NDArray[np.uint8], watched: bool) -> Template:
    """For each intermediate a row that matches its MAC address and looks up its class next.

    The column `metadata` is the class.

    Args:
        macs: the MAC addresses of the intermediates.
        watched: whether the row also writes the column `port` into register 0 while that port is
            up: for intermediates that are neighbours.
    """
    write_port = parts.apply_actions(parts.port_if_up("port", "reg0", CARRIED_BITS))
    return _carried_row(
        np.arange(len(macs)),
        *([write_port] if watched else []),
        parts.write_metadata("metadata", CLASS_MASK),
        parts.goto_table(Table.CLASSES),
        mac=macs,
    )


def reached(macs: NDArray[np.uint8], gateway: int) -> Template:
    """For each intermediate a row that sends its packets on as if a host here had sent them.

    The switch that is the intermediate has its row, and a switch without a route to it.
    """
    actions = parts.apply_actions(*_to_destination(gateway))
    return _carried_row(np.arange(len(macs)), actions, mac=macs)


def given_up(gateway: int) -> Block:
    """The row for packets whose register 0 has no port, as the neighbour's is down.

    They go on as if a host here had sent them.
    """
    actions = _to_destination(gateway, parts.clear("reg0", 0, CARRIED_BITS))
    place = Table.CLASSES, ClassPriority.NO_WAY, RowKind.CARRIED
    field = parts.oxm("reg0", NO_PORT_UP, NO_PORT_UP)
    return flow_rows(place, GIVEN_UP_NUMBER, (field,), parts.apply_actions(*actions)).block


def _carried_row(number: NDArray[np.int64], *instructions: Parts, **columns: Any) -> Template:
    """A row for packets to a MAC address, the column `mac`, which is that of an intermediate."""
    place = Table.ROUTES, CARRIED_PRIORITY, RowKind.CARRIED
    return flow_rows(place, number, (parts.oxm("eth_dst", "mac"),), *instructions, **columns)


def _to_destination(gateway: int, *more: Parts) -> tuple[Parts, ...]:
    """Actions that take the intermediate off a packet, and look it up as if a host had sent it.

    The ingress port is cleared, so that the packet may leave by the port on which it came in.

    Args:
        gateway: the MAC address of the gateway.
        more: further actions before the look-up.
    """
    without_intermediate = parts.set_field("eth_dst", gateway), parts.clear("in_port_16", 0, 16)
    return *without_intermediate, *more, parts.look_up_again(Table.ROUTES)
