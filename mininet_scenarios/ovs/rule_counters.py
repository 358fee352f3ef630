"""Packet counters of every rule of the switches' programs: flows and buckets of groups."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np

from compilers.targets.openflow.bundled_blocks import ROW, entries, heads, restated
from compilers.targets.openflow.protocol import (
    BUCKET_COUNTER,
    FLOW_STATS,
    GROUP_STATS,
    Multipart,
    padded,
)
from controller.openflow import multipart
from controller.openflow.row_forms import place
from mininet_scenarios.ovs.management_socket import replies
from mininet_scenarios.ovs.ovsfabric import bridge_name

RuleKey = tuple[int, tuple[object, ...]]
"""A switch, and `Rule.key`."""


def packets_by_rule(folder: Path, switches: Iterable[int]) -> dict[RuleKey, int]:
    """Packets since it was added, of each flow and each bucket of these switches.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    bridges = {bridge_name(switch): switch for switch in switches}
    counted: dict[RuleKey, int] = {}
    for bridge, body in replies(folder, bridges, Multipart.FLOW, multipart.flows_wanted()).items():
        for block in multipart.blocks(body, padded(FLOW_STATS.itemsize)):
            packets = heads(block, FLOW_STATS)["packets"].tolist()
            rows = entries(restated(block, FLOW_STATS, ROW))
            for row, count in zip(rows, packets, strict=True):
                counted[bridges[bridge], _place(row)] = count
    wanted = multipart.groups_wanted()
    for bridge, body in replies(folder, bridges, Multipart.GROUP, wanted).items():
        for block in multipart.blocks(body, GROUP_STATS.itemsize):
            numbers = heads(block, GROUP_STATS)["group"].tolist()
            buckets = np.ascontiguousarray(block[:, GROUP_STATS.itemsize :]).view(BUCKET_COUNTER)
            for number, row in zip(numbers, buckets["packets"].tolist(), strict=True):
                for bucket, count in enumerate(row):
                    counted[bridges[bridge], (number, bucket)] = count
    return counted


@cache
def _place(row: bytes) -> tuple[object, ...]:
    """The same rows are read again and again."""
    return place(row)
