"""Packet counters of every rule of the switches' programs: flows and buckets of groups."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from compilers.targets.openflow.bundled_blocks import ROW, entries, heads, restated
from compilers.targets.openflow.flow_tables import generation_of
from compilers.targets.openflow.protocol import (
    BUCKET_COUNTER,
    FLOW_STATS,
    GROUP_STATS,
    Multipart,
    padded,
)
from controller.openflow import multipart
from controller.openflow.row_forms import place
from controller.switches.reconcile import held
from mininet_scenarios.ovs.management_socket import replies

RuleKey = tuple[int, tuple[object, ...]]
"""A switch, and `Rule.key`."""


def packets_by_rule(folder: Path, bridges: Mapping[str, int]) -> dict[RuleKey, int]:
    """Packets since it was added, of each flow and each bucket.

    Args:
        folder: of Open vSwitch's sockets.
        bridges: the switch that each bridge is.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    counted: dict[RuleKey, int] = {}
    for bridge, body in replies(folder, bridges, Multipart.FLOW, multipart.flows_wanted()).items():
        for block in multipart.blocks(body, padded(FLOW_STATS.size)):
            packets = heads(block, FLOW_STATS)["packets"].tolist()
            rows = entries(restated(block, FLOW_STATS, ROW))
            for row, count in zip(rows, packets, strict=True):
                counted[bridges[bridge], _place(row)] = count
    wanted = multipart.groups_wanted()
    for bridge, body in replies(folder, bridges, Multipart.GROUP, wanted).items():
        for block in multipart.blocks(body, GROUP_STATS.size):
            numbers = heads(block, GROUP_STATS)["group"].tolist()
            buckets = np.ascontiguousarray(block[:, GROUP_STATS.size :]).view(BUCKET_COUNTER.dtype)
            for number, row in zip(numbers, buckets["packets"].tolist(), strict=True):
                for bucket, count in enumerate(row):
                    counted[bridges[bridge], (number, bucket)] = count
    return counted


def generations(folder: Path, bridges: Mapping[str, int]) -> dict[int, int]:
    """The generation of the class and group numbers in each switch, by its marker.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    bodies = replies(folder, bridges, Multipart.FLOW, multipart.flows_wanted())
    return {bridges[name]: generation_of(held(body, b"").marker) for name, body in bodies.items()}


@cache
def _place(row: bytes) -> tuple[object, ...]:
    """The same rows are read again and again."""
    return place(row)
