"""The rows by which a switch answers its hosts' ARP requests and neighbour solicitations.

A switch is the gateway of its hosts, and answers in the gateway's name. `Encoder` asks for these
layouts once for the fabric, and fills their *columns*, the values that differ between switches, for
each switch (`group_and_flow_bytes`). Switches with the extensions of Open vSwitch answer by moving
fields of the request. Other switches have an ARP row for each host and address.
"""

from __future__ import annotations

import numpy as np

from compilers.targets.openflow import message_parts as parts
from compilers.targets.openflow.flow_tables import ND_ANSWER_FLAGS, FlowPriority, RowKind, Table
from compilers.targets.openflow.group_and_flow_bytes import (
    FAMILY_NUMBERS,
    IPV6,
    IPV6_MASK,
    RowPlace,
    flow_rows,
    prefix_mask,
)
from compilers.targets.openflow.message_parts import Block, Parts, Template
from compilers.targets.openflow.protocol import IN_PORT

ARP = 0x0806
"""The EtherType of ARP."""
ICMPV6 = 58
"""The IP protocol number of ICMPv6."""
REQUEST = 1
"""The operation of an ARP request."""
REPLY = 2
"""The operation of an ARP reply."""
SOLICITATION = 135
"""The ICMPv6 type of a neighbour solicitation (RFC 4861, §4.3)."""
ADVERTISEMENT = 136
"""The ICMPv6 type of a neighbour advertisement (RFC 4861, §4.4)."""
TARGET_LINK_LAYER = 2
"""The type of the option with the target's link-layer address (RFC 4861, §4.6.1)."""
ARP_NUMBER, ND_NUMBER, ND_FINISH_NUMBER = 0, 1, 2
"""The numbers in the xids of the messages that add the rows of `arp_answer_by_moves`, `nd_answer`
and `nd_finish`."""


def arp_answer_by_moves(gateway: int, length: int) -> Template:
    """The row that answers ARP requests for any address of the switch's network.

    Hosts of one switch share a network and ask for each other, but are reached by routing: so every
    answer is the gateway's MAC address. The row turns the request into the answer by moves of
    fields. The column `block` is the network.

    Args:
        gateway: the MAC address of the gateway.
        length: the prefix length of the network.
    """
    mask = prefix_mask(32, length)
    actions = parts.apply_actions(
        parts.reg_move("arp_tpa", "reg0"),
        parts.reg_move("arp_spa", "arp_tpa"),
        parts.reg_move("reg0", "arp_spa"),
        parts.reg_move("arp_sha", "arp_tha"),
        parts.set_field("arp_sha", gateway),
        parts.set_field("arp_op", REPLY),
        *_send_back(gateway),
    )
    return flow_rows(
        RowPlace(Table.DISPATCH, FlowPriority.ANSWER, RowKind.ANSWER),
        ARP_NUMBER,
        (*_arp_request(), parts.oxm("arp_tpa", "block", mask)),
        actions,
    )


def arp_answers_by_address(gateway: int, rows: int) -> Template:
    """Rows that answer a host's ARP request for one address, on switches that move no fields.

    The columns `port`, `mac` and `address` are those of the host that asks: its port, its MAC
    address and its IPv4 address. `target` is the address for which it asks.

    Args:
        gateway: the MAC address of the gateway.
        rows: how many rows the layout has.
    """
    actions = parts.apply_actions(
        parts.set_field("eth_dst", "mac"),
        parts.set_field("eth_src", gateway),
        parts.set_field("arp_op", REPLY),
        parts.set_field("arp_sha", gateway),
        parts.set_field("arp_spa", "target"),
        parts.set_field("arp_tha", "mac"),
        parts.set_field("arp_tpa", "address"),
        parts.output(IN_PORT),
    )
    place = RowPlace(Table.DISPATCH, FlowPriority.ANSWER, RowKind.ANSWER)
    fields = parts.oxm("in_port", "port"), *_arp_request(), parts.oxm("arp_tpa", "target")
    return flow_rows(place, np.arange(rows), fields, actions)


def nd_answer() -> Template:
    """The row that turns neighbour solicitations for the switch's network into advertisements.

    OpenFlow lets a row set the link-layer address only if it matches an advertisement, so the next
    table does that (`nd_finish`). The column `block` is the network, uint64[1, 2], its upper half
    first.
    """
    actions = parts.apply_actions(
        parts.reg_move("ipv6_src", "ipv6_dst"),
        parts.reg_move("nd_target", "ipv6_src"),
        parts.set_field("icmpv6_type", ADVERTISEMENT),
        parts.set_field("nd_options_type", TARGET_LINK_LAYER),
        parts.set_field("nd_reserved", ND_ANSWER_FLAGS),
    )
    return flow_rows(
        RowPlace(Table.DISPATCH, FlowPriority.ANSWER, RowKind.ANSWER),
        ND_NUMBER,
        (*_icmpv6(SOLICITATION), parts.oxm("nd_target", "block", IPV6_MASK)),
        actions,
        parts.goto_table(Table.ND),
    )


def nd_finish(gateway: int) -> Block:
    """The row that completes an advertisement of `nd_answer` and sends it back to the host."""
    actions = parts.apply_actions(parts.set_field("nd_tll", gateway), *_send_back(gateway))
    place = RowPlace(Table.ND, FlowPriority.ANSWER, RowKind.ANSWER)
    return flow_rows(place, ND_FINISH_NUMBER, _icmpv6(ADVERTISEMENT), actions).block


def own_arp(hosts: int) -> Template:
    """For each host a row that drops its ARP requests for its own address (RFC 5227).

    An answer would tell the host that another host has the address. The columns are the host's
    `port` and `address`.
    """
    return _rows_for_own_address(hosts, _arp_request(), "arp_tpa", 0)


def own_nd(hosts: int) -> Template:
    """For each host a row that drops its solicitations for its own address (RFC 4862, §5.4).

    The columns are those of `own_arp`.
    """
    # The numbers of IPv6 rows follow those of IPv4 rows.
    first_number = FAMILY_NUMBERS
    return _rows_for_own_address(hosts, _icmpv6(SOLICITATION), "nd_target", first_number)


def _rows_for_own_address(
    hosts: int, request: tuple[Parts, ...], target: str, first_number: int
) -> Template:
    """For each host a row without instructions, which drops its requests for its own address.

    Args:
        hosts: how many hosts a switch may have.
        request: the fields of a match on requests.
        target: the field with the address that a request asks for.
        first_number: the number of the first row.
    """
    fields = (parts.oxm("in_port", "port"), *request, parts.oxm(target, "address"))
    place = RowPlace(Table.DISPATCH, FlowPriority.OWN, RowKind.OWN)
    return flow_rows(place, first_number + np.arange(hosts), fields)


def _arp_request() -> tuple[Parts, ...]:
    """The fields of a match on ARP requests."""
    return parts.oxm("eth_type", ARP), parts.oxm("arp_op", REQUEST)


def _icmpv6(kind: int) -> tuple[Parts, ...]:
    """The fields of a match on ICMPv6 messages of a type."""
    return (
        parts.oxm("eth_type", IPV6),
        parts.oxm("ip_proto", ICMPV6),
        parts.oxm("icmpv6_type", kind),
    )


def _send_back(gateway: int) -> tuple[Parts, ...]:
    """Actions that return a frame to its sender, from the gateway and by its ingress port."""
    return (
        parts.reg_move("eth_src", "eth_dst"),
        parts.set_field("eth_src", gateway),
        parts.output(IN_PORT),
    )
