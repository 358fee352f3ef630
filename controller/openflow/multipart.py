"""Multipart requests to switches, and their replies as numpy arrays (OpenFlow 1.3.5, §7.3.5).

Sessions (`controller.switches`) and the counters of ports (`controller.upkeep`) send the requests.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.openflow.rows import Malformed
from compilers.targets.openflow.protocol import (
    ALL_GROUPS,
    ALL_TABLES,
    ANY,
    FLOW_REQUEST,
    GROUP_REQUEST,
    HEADER,
    MATCH,
    MORE_PARTS,
    MULTIPART,
    OXM_MATCH,
    PORT_REQUEST,
    MessageType,
    Multipart,
    WireLayout,
    message,
)


class ReplyPart(NamedTuple):
    """A part of a multipart reply."""

    kind: int
    """The type of the reply."""
    body: bytes
    """The bytes of the part."""
    is_last: bool
    """Whether no part follows."""


def request(kind: Multipart, xid: int, body: bytes = b"") -> bytes:
    """A multipart request in one part."""
    return message(MessageType.MULTIPART_REQUEST, xid, MULTIPART.pack(kind=kind) + body)


def flows_body(cookie: int = 0, mask: int = 0) -> bytes:
    """The body of a request for the flows of all tables, or for their number.

    Args:
        cookie: only flows with this cookie, in the bits of `mask`.
        mask: the bits of the cookie that are compared; 0 for all flows.
    """
    match = {"match_type": OXM_MATCH, "match_length": MATCH.size}
    return FLOW_REQUEST.pack(
        table=ALL_TABLES, out_port=ANY, out_group=ANY, cookie=cookie, cookie_mask=mask, **match
    )


def ports_body(port: int = ANY) -> bytes:
    """The body of a request for the counters of a port, by default of all."""
    return PORT_REQUEST.pack(port=port)


def groups_body() -> bytes:
    """The body of a request for the counters of all groups."""
    return GROUP_REQUEST.pack(group=ALL_GROUPS)


def part(reply_message: bytes) -> ReplyPart:
    """A message as a part of a multipart reply.

    Raises:
        Malformed: it is too short.
    """
    reply = MULTIPART.read(reply_message, HEADER.size)
    body = reply_message[HEADER.size + MULTIPART.size :]
    return ReplyPart(reply.kind, body, not reply.flags & MORE_PARTS)


def records(body: bytes, layout: WireLayout) -> NDArray[np.void]:
    """The body as records of one layout: `PORT` or `PORT_STATS`.

    Raises:
        Malformed: the body is no whole number of records.
    """
    if len(body) % layout.size:
        raise Malformed(f"{len(body)} bytes are no whole number of {layout.size}")
    return np.frombuffer(body, layout.dtype)
