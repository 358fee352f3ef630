"""Puts into words what a message of a program is about, by the xid of the message.

A switch that sends an error back quotes the xid of the message. The xid holds a kind and a number,
which tells the messages of a kind apart (`group_and_flow_bytes.xid`). `Encoder.describe` calls
`message_words` for the controller.
"""

from __future__ import annotations

from compilers.targets.openflow.class_groups import GroupRole
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import (
    IPV6_NUMBER,
    MOST_NUMBER,
    ROLE_SHIFT,
    XID_BITS,
)
from compilers.wiring.addressing import Addressing

ROLE_WORDS = {
    GroupRole.TRANSIT: "",
    GroupRole.ENTER: ", entering",
    GroupRole.BOUNCE: ", bouncing",
    GroupRole.FALLBACK: ", entering or repaired",
    GroupRole.ASIDE: ", repaired elsewhere",
}
"""What follows the egress class in the text, by the role of its group."""
KIND_WORDS = {
    RowKind.OWN: "silence about the own address of host {}",
    RowKind.ANSWER: "answer to ARP or neighbour discovery",
    RowKind.FORWARD: "dispatch of IP packets",
    RowKind.HOST: "host {}",
    RowKind.CLASS: "egress class {}",
    RowKind.MARKER: "build marker",
    RowKind.GROUP: "group of egress class {}",
    RowKind.CLEAR: "removal of what this build has not",
    RowKind.OPEN: "start of the bundle",
    RowKind.BARRIER: "barrier",
    RowKind.COMMIT: "commit of the bundle",
    RowKind.SPREAD: "marked packets of port {}",
    RowKind.CARRIED: "packets by way of intermediate {}",
    RowKind.DISCOVERY: "discovery frames to the controller",
    RowKind.GUARD: "drop of what host {} may not send",
}
"""What a message is about, by its kind; `{}` stands for its number."""


def message_words(xid: int, addressing: Addressing) -> str:
    """What the message with an xid is about, in words: `route 3 (10.0.0.12/30)`.

    Args:
        xid: the xid of the message.
        addressing: the prefixes of the fabric.
    """
    kind, number = xid >> XID_BITS, xid & MOST_NUMBER
    if kind == RowKind.ROUTE:
        # Routes of IPv6 are numbered from IPV6_NUMBER on.
        is_ipv6, prefix = divmod(number, IPV6_NUMBER)
        network = addressing.network6(prefix) if is_ipv6 else addressing.network(prefix)
        return f"route {prefix} ({network})"
    if kind not in KIND_WORDS:
        return f"message {xid:#x}"
    role, number_in_role = divmod(number, 1 << ROLE_SHIFT)
    words = KIND_WORDS[RowKind(kind)].format(number_in_role)
    if kind in (RowKind.GROUP, RowKind.CLASS):
        # All roles from ASIDE on are for ports of protection, and have the words of ASIDE.
        words += ROLE_WORDS[GroupRole(min(role, GroupRole.ASIDE))]
    return words
