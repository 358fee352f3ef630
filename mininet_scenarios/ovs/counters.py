"""What bridges report: the packets of their ports, flows and buckets, and which ports are live.

The engines with Open vSwitch read the loads of links here (`sent_by_port`), and the exercise of
rules how many packets each rule has forwarded (`packets_by_rule`), and which of the two sets of
class and group numbers a switch holds (`generations`).

A bridge replies with the bytes of many entries, of flows or groups. `blocks_of_one_length` cuts
them into blocks of entries of one length. `heads` has a field of all entries of a block as an
array, and `entries` the bytes of each. `settle` sends the requests, and waits until all bridges
have answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.readers.openflow.rows import (
    REPORTED_ROW,
    ROW_ENTRY_BYTES,
    blocks_of_one_length,
    entries,
    heads,
    read_row,
    reported_rows,
)
from compilers.targets.openflow.bundled_blocks import fields_at
from compilers.targets.openflow.flow_tables import generation_of
from compilers.targets.openflow.protocol import (
    BUCKET_COUNTER,
    GROUP_STATS,
    PORT,
    PORT_LIVE,
    PORT_STATS,
    MessageType,
    Multipart,
)
from compilers.wiring.wiring import Wiring
from controller.openflow import multipart
from controller.switches.reconcile import read_content
from mininet_scenarios.ovs.management_socket import ManagementConnection, settle

RuleKey = tuple[int, tuple[object, ...]]
"""A switch, and the `Rule.key` of one of its rules."""


def sent_by_port(
    folder: Path, bridges: Mapping[str, int], wiring: Wiring, unit: str = "packets"
) -> NDArray[np.int64]:
    """int64[S, ports + 1]: packets, or bytes, that have left each switch by its cabled ports.

    Args:
        folder: of Open vSwitch's sockets.
        bridges: by the name of a bridge, its switch.
        wiring: has the ports.
        unit: `packets` or `bytes`.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    cables = wiring.far_by_port()
    sent = np.zeros(cables.shape, np.int64)
    bodies = replies(folder, bridges, Multipart.PORT_STATS, multipart.ports_body())
    for bridge, body in bodies.items():
        rows = multipart.records(body, PORT_STATS)
        rows = rows[rows["port"] < cables.shape[1]]
        sent[bridges[bridge], rows["port"]] = rows[f"sent_{unit}"]
    sent[cables < 0] = 0
    return sent


def live_ports(folder: Path, bridges: Iterable[str]) -> set[str]:
    """The names of the ports that groups of fast failover may use now.

    Args:
        folder: of Open vSwitch's sockets.
        bridges: the names of the bridges.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    live: set[str] = set()
    for body in replies(folder, bridges, Multipart.PORT_DESC).values():
        rows = multipart.records(body, PORT)
        names = rows["name"][rows["state"] & PORT_LIVE != 0].tolist()
        live |= {name.decode() for name in names}
    return live


def replies(
    folder: Path, bridges: Iterable[str], kind: Multipart, request_body: bytes = b""
) -> dict[str, bytes]:
    """The body of each bridge's reply to a multipart request.

    Args:
        folder: of Open vSwitch's sockets.
        bridges: their names.
        kind: the type of the request.
        request_body: the body of the request.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    names, request = list(bridges), multipart.request(kind, 0, request_body)
    connections = [ManagementConnection(folder / f"{bridge}.mgmt") for bridge in names]
    for connection in connections:
        connection.outgoing += request
    bodies = [bytearray() for _ in names]
    for answer in settle(connections, barriers=1):
        if answer.kind == MessageType.MULTIPART_REPLY:
            body = multipart.part(answer.data).body
            bodies[answer.connection] += body
    for connection in connections:
        connection.socket.close()
    return dict(zip(names, map(bytes, bodies), strict=True))


def packets_by_rule(folder: Path, bridges: Mapping[str, int]) -> dict[RuleKey, int]:
    """How many packets each flow and each bucket has forwarded since it was added.

    Args:
        folder: of Open vSwitch's sockets.
        bridges: by the name of a bridge, its switch.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    bodies = replies(folder, bridges, Multipart.FLOW, multipart.flows_body())
    packets: dict[RuleKey, int] = {}
    for bridge, body in bodies.items():
        packets |= _packets_by_flow(bridges[bridge], body)
    bodies = replies(folder, bridges, Multipart.GROUP, multipart.groups_body())
    for bridge, body in bodies.items():
        packets |= _packets_by_bucket(bridges[bridge], body)
    return packets


def _packets_by_flow(switch: int, body: bytes) -> dict[RuleKey, int]:
    """Packets of each flow of a switch, from the body of its reply."""
    packets: dict[RuleKey, int] = {}
    for block in blocks_of_one_length(body, ROW_ENTRY_BYTES):
        counts = heads(block, REPORTED_ROW)["packets"].tolist()
        for row, count in zip(entries(reported_rows(block)), counts, strict=True):
            packets[switch, _place(row)] = count
    return packets


def _packets_by_bucket(switch: int, body: bytes) -> dict[RuleKey, int]:
    """Packets of each bucket of a switch's groups, from the body of its reply."""
    packets: dict[RuleKey, int] = {}
    for block in blocks_of_one_length(body, GROUP_STATS.size):
        numbers = fields_at(block, GROUP_STATS)["group"].tolist()
        buckets = np.ascontiguousarray(block[:, GROUP_STATS.size :]).view(BUCKET_COUNTER.dtype)
        for group, counts in zip(numbers, buckets["packets"].tolist(), strict=True):
            for bucket, count in enumerate(counts):
                packets[switch, (group, bucket)] = count
    return packets


def generations(folder: Path, bridges: Mapping[str, int]) -> dict[int, int]:
    """By switch, the generation of its class and group numbers, from its marker.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    bodies = replies(folder, bridges, Multipart.FLOW, multipart.flows_body())
    return {
        bridges[name]: generation_of(read_content(body, b"").marker)
        for name, body in bodies.items()
    }


@cache
def _place(row: bytes) -> tuple[object, ...]:
    """The place of a row (`FlowRow.place`); cached, as a rehearsal reads each row many times."""
    return read_row(row).place
