"""The packets that reach a switch's rules for failures, and the ports that are down meanwhile.

The exercise of rules (`mininet_scenarios.traffic.rule_exercise`) takes ports of a switch down and
sends these packets into it. `repair_steps` goes through the switch's fast-failover groups: a switch
tries the buckets of such a group in order, and takes the first whose port is up. So each bucket has
a packet, which is sent into the switch while the ports of the buckets before it are down. The next
switch drops the packet, whose time to live ends there.

The role of a group says which packets come to it (`GroupRole`): TRANSIT, packets from other
switches; FALLBACK, packets from hosts; BOUNCE and ASIDE, packets that came in by one certain port.
ENTER groups choose a port by a hash, and are left out here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compilers.targets.openflow.class_groups import GroupRole
from compilers.targets.openflow.protocol import LOCAL
from mininet_scenarios.ovs.frames import HASHED, FrameWriter, checksum
from mininet_scenarios.verdict.rule_set import TO_ENTER_GROUP, GroupRules, Rule, RuleSet

LAST_HOP = 2
"""The time to live of a packet that ends at the next switch."""
FIXED_PORT = 1024
"""The source port of packets that need no port of their own."""


@dataclass(frozen=True, slots=True)
class InjectedPacket:
    """A packet that is sent into a switch."""

    port: int
    """The port on which it comes in."""
    frame: bytes
    """The whole frame."""
    rules: tuple[Rule, ...]
    """The rules that it reaches."""


@dataclass(frozen=True, slots=True)
class RepairStep:
    """The packets that are sent into a switch while some of its ports are down."""

    down: frozenset[int]
    """The ports that are down."""
    packets: tuple[InjectedPacket, ...]
    """The packets."""


def repair_steps(rules: RuleSet, writer: FrameWriter, switch: int) -> list[RepairStep]:
    """The packets to send into a switch, by the ports that are down.

    Args:
        rules: the rules of the build.
        writer: writes the packets.
        switch: the switch.
    """
    packets: dict[frozenset[int], list[InjectedPacket]] = {}
    for (vertex, role, egress), group in rules.groups.items():
        if vertex != switch or role == GroupRole.ENTER:
            continue
        in_port, frame = _ingress_port(rules, switch, group), _frame(rules, writer, switch, egress)
        if in_port is None or frame is None:
            continue
        row = rules.row_to_group(switch, role, egress)
        enter = rules.groups.get((switch, GroupRole.ENTER, egress))
        for number, (bucket, port) in enumerate(zip(group.buckets, group.port, strict=True)):
            down = set(group.port[:number]) - {TO_ENTER_GROUP}
            # The first bucket of a FALLBACK group leads to the ENTER group. The switch tries the
            # other buckets only when all ports of the ENTER group are down.
            if role == GroupRole.FALLBACK and number > 0 and enter:
                down |= set(enter.port)
            if port not in down:
                packet = InjectedPacket(in_port, frame, (row, bucket))
                packets.setdefault(frozenset(down), []).append(packet)
    return [RepairStep(down, tuple(injected)) for down, injected in packets.items()]


def _ingress_port(rules: RuleSet, switch: int, group: GroupRules) -> int | None:
    """The port on which packets come in that a row leads to a group; None if no row does."""
    if group.role == GroupRole.TRANSIT:
        return LOCAL  # such a packet counts as one from another switch
    if group.role == GroupRole.FALLBACK:
        ports = rules.build.wiring.host_port[switch]
        return int(ports.max()) if (ports > 0).any() else None
    return group.in_port or None


def _frame(rules: RuleSet, writer: FrameWriter, switch: int, egress: int) -> bytes | None:
    """A packet that a switch routes to a class, and that the next switch drops.

    Returns:
        The frame; None if the class leads to no host that takes part.
    """
    is_routed = rules.prediction.egress[switch] == egress  # bool[S], by destination
    is_routed[switch] = False
    receivers = np.flatnonzero(is_routed[rules.hosts.switch])
    if not len(receivers):
        return None
    # The class of a packet depends on its destination only: host 0 stands for any sender.
    any_sender = np.zeros(1, np.int64)
    frames = writer.of_kind(HASHED, any_sender, receivers[:1], FIXED_PORT, 0)
    ip = frames.sent["ip"]
    ip["ttl"], ip["checksum"] = LAST_HOP, 0
    ip["checksum"] = checksum(ip)
    return frames.sent.tobytes()
