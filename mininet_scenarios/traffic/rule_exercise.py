"""Sends packets to every rule of the emitted program, and counts them in the switches.

The engines with Open vSwitch call `RuleExercise.run` for a rehearsal. A rule is a flow of a switch
or a bucket of a group. `run` sends, in this order:

1. the requests of hosts for addresses, which their own switch answers;
2. frames of every kind between all hosts, which are compared whole where they arrive;
3. flows to select groups, enough to measure the shares of their ports;
4. more flows to rules that are still missed, from other source ports, at most `MOST_ROUNDS` times;
5. with `repairs`, packets that need ports to be down (`repair_packets`).

A rule is *due* if packets between hosts must reach it (`RuleSet.due`), or those of step 5. The
*live* build is the one whose program the switches hold; during a move it is another build than the
one that is *cabled*. A *version* is that of IP, 4 or 6. A *question* is a request for an address
(ARP or neighbour discovery), with the answer that the switch must give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, permutations

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.targets.openflow.class_groups import GroupRole
from compilers.targets.openflow.protocol import TABLES
from mininet_scenarios.ovs.counters import (
    RuleKey,
    generations,
    packets_by_rule,
    sent_by_port,
)
from mininet_scenarios.ovs.frames import (
    FRAME_KINDS,
    HASHED,
    CraftedFrames,
    FrameWriter,
    frame_number,
)
from mininet_scenarios.ovs.management_socket import ManagementConnection, frame_out, settle
from mininet_scenarios.ovs.ovsfabric import OvsFabric, bridge_name
from mininet_scenarios.scenario.check import Check, Mismatch
from mininet_scenarios.scenario.engine import HostSample, Progress
from mininet_scenarios.scenario.observations import SILENT, Exercise, Flows
from mininet_scenarios.traffic.frame_exchange import HostEnds, exchange
from mininet_scenarios.traffic.repair_packets import FIXED_PORT, RepairStep, repair_steps
from mininet_scenarios.verdict.link_share_check import link_share_check
from mininet_scenarios.verdict.rule_set import GroupRules, Rule, RuleSet, SwitchPair, SwitchPairs

FLOWS_TO_MISSED = 64
"""How many flows are sent to a rule that is missed in the first round. Each round doubles them."""
MOST_ROUNDS = 7
"""Most rounds of flows to rules that are missed. A bucket with one of 256 hash values is missed by
all flows of these rounds once in 10^13 times.
"""
FIRST_HASHED = 2048
"""The source port of the first flow."""
SIGMAS = 5
"""By how many standard deviations a share may differ from the share of the tables."""
SHARE_FLOWS = 64
"""Flows to each select group."""
MOST_SHARE_FLOWS = 20_000
"""The most flows for the shares of links."""
Groups = Mapping[tuple[int, int, int], GroupRules]
"""Groups by switch, role and egress class, as in `RuleSet.groups`."""


@dataclass(frozen=True, slots=True)
class FlowBatch:
    """Flows to send between some pairs of switches."""

    pairs: SwitchPairs
    """The pairs; the flows take them in turn."""
    count: int
    """How many flows there are."""


class RuleExercise:
    """An exercise of the program of the build that is live in a running Open vSwitch."""

    def __init__(
        self,
        live: Build,
        hosts: HostSample,
        ends: HostEnds,
        fabric: OvsFabric,
        progress: Progress,
    ) -> None:
        """Get ready, and read the counters of all rules.

        Args:
            live: the build that switches hold, with the names of the build that is cabled.
            hosts: the hosts that take part.
            ends: sends and receives frames as these hosts do.
            fabric: the bridges.
            progress: takes how many frames are done, and how many there are.

        Raises:
            OpenVSwitchError: a bridge does not answer.
        """
        self.build, self.hosts, self.ends, self.progress = live, hosts, ends, progress
        vertex_of = {name: v for v, name in enumerate(fabric.build.wiring.names)}
        self.vertex = [vertex_of.get(name, SILENT) for name in live.wiring.names]
        """The vertex of each switch of `live` in the cabled build."""
        self.fabric, self.ovs = fabric, fabric.ovs
        self.bridges = {
            bridge_name(self.vertex[v]): v for v in np.flatnonzero(live.topology.present).tolist()
        }
        """The switches of `live` by the names of their bridges."""
        self.rules = RuleSet(live, self.hosts, generations(self.ovs.folder, self.bridges))
        self.writers = {v: FrameWriter(live, self.hosts, v) for v in self.rules.versions}
        self.first_host = np.zeros(live.tables.switches, np.int64)
        """int64[S], the first host of each switch."""
        # Of several values for one index numpy keeps the last, here that of the first host.
        self.first_host[self.hosts.switch[::-1]] = np.arange(len(self.hosts))[::-1]
        self.frames = 0
        """How many frames were sent."""
        self.mismatches: list[Mismatch] = []
        """The frames that did not arrive as they should."""
        self.before = self._count_packets()
        """The packets of each rule when they were first counted."""
        self.after = self.before
        """The packets of each rule when they were last counted."""

    def run(self, repairs: bool) -> Exercise:
        """Send packets to all rules; with `repairs` also to rules that need ports to be down.

        Raises:
            OpenVSwitchError: Open vSwitch hung up or refused a message.
        """
        self._resolve_addresses()
        for version in self.rules.versions:
            self._send_every_kind(version)
        shares = self._check_shares()
        self._reach_missed_rules()
        due = set(self.rules.due)
        if repairs:
            due |= self._exercise_repairs()
        idle = [rule for rule in self.rules.all_rules if not self._is_reached(rule)]
        return Exercise(
            rules=len(self.rules.all_rules),
            due=len(due),
            missed=tuple(rule.words for rule in idle if rule in due),
            waiting=tuple(rule.words for rule in idle if rule not in due),
            checks=(
                Check.of("frames arrive as they were sent", self.frames, tuple(self.mismatches)),
                *(check for check in shares if check.required),
            ),
        )

    def _resolve_addresses(self) -> None:
        """Send the requests of hosts for addresses, and compare the switches' answers."""
        questions = [
            question for writer in self.writers.values() for question in writer.questions()
        ]
        sent = [question.sent for question in questions]
        # The host, and the frame that it has to get; None for silence.
        expected = [
            (question.sent[0], question.answer) if question.answer else None
            for question in questions
        ]
        heard, _ = exchange(self.ends, sent, expected, identify=lambda frame: frame)
        self.frames += len(questions)
        for question in questions:
            host, _ = question.sent
            answer = question.answer
            if answer and (host, answer) not in heard:
                # A frame of the same length is likely the answer, with other bytes.
                lengths_agree = (
                    data
                    for receiver, data in heard
                    if receiver == host and len(data) == len(answer)
                )
                similar = next(lengths_agree, b"")
                seen = f"answered by {similar.hex()}" if similar else "no answer"
                self.mismatches.append(Mismatch(question.words, "answered by the switch", seen))

    def _send_every_kind(self, version: int) -> None:
        """Send frames of every kind between all hosts that the tables connect."""
        switch = self.hosts.switch
        is_reached = self.rules.prediction.fewest_hops[switch[:, None], switch] >= 0
        source, destination = np.nonzero(is_reached & ~np.eye(len(switch), dtype=np.bool_))
        for kind in FRAME_KINDS:
            writer = self.writers[version]
            self._send(writer.of_kind(kind, source, destination, FIXED_PORT, self.frames))

    def _send(self, frames: CraftedFrames) -> list[int]:
        """Send frames, and compare those that arrive with those that have to.

        Returns:
            How many times each frame was sent.
        """
        # Each frame carries its number, which goes on from the frames that were sent before.
        first, count = self.frames, len(frames)
        self.frames += count
        sent = frames.by_host(self.hosts.names)
        arrived = np.zeros(count, np.int64)
        numbers = range(first, first + count)
        heard, times = exchange(
            self.ends, sent, numbers, identify=lambda frame: frame_number(frame[1])
        )
        for host, data in heard:
            number = frame_number(data)
            if number is not None and number in numbers:
                arrived[number - first] += 1
                self._compare(frames, number - first, host, data)
        for number in np.flatnonzero((arrived < 1) | (arrived > times)).tolist():
            seen = "lost" if not arrived[number] else f"arrived {arrived[number]} times"
            self._note_mismatch(frames, number, "delivered once", seen)
        self.progress(self.frames, self.frames)
        return times

    def _compare(self, frames: CraftedFrames, number: int, host: str, data: bytes) -> None:
        """Compare a frame that arrived at a host with the one that was sent."""
        receiver = int(frames.destination[number])
        if host != self.hosts.names[receiver]:
            self._note_mismatch(frames, number, "delivered", f"at {host}")
            return
        links, difference = frames.difference(number, data)
        ends = self.hosts.switch[frames.source[number]], self.hosts.switch[receiver]
        prediction = self.rules.prediction
        fewest, most = int(prediction.fewest_hops[ends]), int(prediction.most_hops[ends])
        if difference:
            self._note_mismatch(frames, number, "as it was sent", difference)
        elif not fewest <= links <= most:
            self._note_mismatch(frames, number, f"over {fewest} to {most} links", f"over {links}")

    def _note_mismatch(self, frames: CraftedFrames, number: int, required: str, seen: str) -> None:
        """Note a frame that did not arrive as required."""
        names = self.hosts.names
        pair = f"{names[frames.source[number]]} → {names[frames.destination[number]]}"
        where = f"{pair}, IPv{frames.version}, {frames.kind}"
        self.mismatches.append(Mismatch(where, required, seen))

    def _check_shares(self) -> list[Check]:
        """Send flows to every select group that hosts reach, and check how its ports share them.

        Without select groups the shares of all links are checked.
        """
        entered_groups = {
            key: group
            for key, group in self.rules.groups.items()
            if group.role == GroupRole.ENTER and self.rules.due.keys() & set(group.buckets)
        }
        batches = [
            FlowBatch(self._pairs_reaching(group.buckets), SHARE_FLOWS)
            for group in entered_groups.values()
        ]
        pipeline, switches = self.rules.pipeline, np.unique(self.hosts.switch).tolist()
        if pipeline.needs_open_vswitch and not pipeline.marks:  # no select groups
            pairs = {SwitchPair(4, *ends) for ends in permutations(switches, 2)}
            count = min(MOST_SHARE_FLOWS, 4 * SHARE_FLOWS * len(switches))
            batches.append(FlowBatch(pairs, count))
        rules_before, ports_before = self._count_packets(), self._packets_sent()
        flows = self._send_flows(batches, FIRST_HASHED)
        self.after = self._count_packets()
        checks = [self._group_share_check(entered_groups, rules_before)]
        if pipeline.needs_open_vswitch and len(flows.rate):
            sent = self._packets_sent() - ports_before
            checks.append(link_share_check(self.rules.prediction, self.hosts, flows, sent, SIGMAS))
        return checks

    def _group_share_check(self, groups: Groups, before: dict[RuleKey, int]) -> Check:
        """The check that the ports of groups had their shares of packets.

        Args:
            groups: the select groups.
            before: the packets of each rule before the flows were sent.
        """
        cases = 0
        mismatches: list[Mismatch] = []
        for (switch, _, egress), group in groups.items():
            packets = [self._since(rule, before) for rule in group.buckets]
            total = sum(packets)
            for port in sorted(set(group.port)):
                cases += 1
                expected = _share_of_port(group, port, group.weight)
                measured = _share_of_port(group, port, packets)
                deviation = (expected * (1 - expected) / max(total, 1)) ** 0.5
                tolerance = SIGMAS * deviation + 1 / max(total, 1)
                if not total or abs(measured - expected) > tolerance:
                    wiring = self.build.wiring
                    where = f"{wiring.names[switch]}, egress class {egress}"
                    where += f", port {wiring.port_name(switch, port)}"
                    words = f"{measured:.1%} of {total} packets"
                    mismatches.append(Mismatch(where, f"{expected:.1%}", words))
        return Check.of("ports of select groups have their shares", cases, tuple(mismatches))

    def _reach_missed_rules(self) -> None:
        """Send flows to rules that are missed, from other source ports in each round."""
        flows, first = FLOWS_TO_MISSED, FIRST_HASHED + MOST_SHARE_FLOWS
        for _ in range(MOST_ROUNDS):
            missed = [rule for rule in self.rules.due if not self._is_reached(rule)]
            if not missed:
                return
            self._send_flows([FlowBatch(self.rules.due[rule], flows) for rule in missed], first)
            self.after = self._count_packets()
            first, flows = first + flows, 2 * flows

    def _send_flows(self, batches: Iterable[FlowBatch], first: int) -> Flows:
        """Send flows between switches.

        Args:
            batches: the flows.
            first: the source port of the first flow of each batch; the port rises with each flow.

        Returns:
            The flows that were sent, between hosts; the rate of each is its number of packets.
        """
        # A flow is a pair of switches and a source port. It is sent once although several batches
        # have it.
        flows: set[tuple[SwitchPair, int]] = set()
        for batch in batches:
            pairs = islice(cycle(sorted(batch.pairs)), batch.count)
            flows |= {(pair, port) for port, pair in enumerate(pairs, first)}
        # int64[3, n] of each version: the sending hosts, the receiving hosts, and how many times
        # each frame was sent. The first host of a switch stands for the switch.
        sent: list[NDArray[np.int64]] = [np.zeros((3, 0), np.int64)]
        for version, writer in self.writers.items():
            rows = [
                (pair.source, pair.destination, port)
                for pair, port in sorted(flows)
                if pair.version == version and pair.source != pair.destination
            ]
            if rows:
                sources, destinations, ports = np.array(rows).T
                sender, receiver = self.first_host[sources], self.first_host[destinations]
                times = self._send(writer.of_kind(HASHED, sender, receiver, ports, self.frames))
                sent.append(np.stack((sender, receiver, np.array(times))))
        sender, receiver, times = np.concatenate(sent, axis=1)
        return Flows(sender, receiver, times.astype(np.float64))

    def _packets_sent(self) -> NDArray[np.int64]:
        """Packets that have left each switch by each port, int64[S, ports + 1]."""
        return sent_by_port(self.ovs.folder, self.bridges, self.build.wiring)

    def _exercise_repairs(self) -> set[Rule]:
        """Send packets to rules that need ports to be down.

        Returns:
            The rules that the packets had to reach.
        """
        switches = sorted({switch for switch, *_ in self.rules.groups})
        steps = {switch: repair_steps(self.rules, self.writers[4], switch) for switch in switches}
        rounds = max(map(len, steps.values()))
        connections: dict[int, ManagementConnection] = {}
        try:
            for number in range(rounds):
                round_steps = {
                    switch: switch_steps[number]
                    for switch, switch_steps in steps.items()
                    if number < len(switch_steps)
                }
                self._inject(round_steps, connections)
                self.progress(number + 1, rounds)
        finally:
            self.fabric.set_bridges()
            for connection in connections.values():
                connection.socket.close()
        self.after = self._count_packets()
        return {
            rule
            for switch_steps in steps.values()
            for step in switch_steps
            for packet in step.packets
            for rule in packet.rules
        }

    def _inject(
        self, steps: Mapping[int, RepairStep], connections: dict[int, ManagementConnection]
    ) -> None:
        """Take ports down, and send packets into their switches.

        Args:
            steps: the ports and the packets of each switch.
            connections: the open connections, by switch; new ones are added.
        """
        down = {(self.vertex[switch], port) for switch, step in steps.items() for port in step.down}
        self.fabric.set_bridges(without=down)
        for switch, step in steps.items():
            if switch not in connections:
                socket = self.ovs.folder / f"{bridge_name(self.vertex[switch])}.mgmt"
                connections[switch] = ManagementConnection(socket)
            for packet in step.packets:
                connections[switch].outgoing += frame_out(packet.frame, TABLES, packet.port)
        settle(list(connections.values()))

    def _pairs_reaching(self, rules: Iterable[Rule]) -> SwitchPairs:
        """The pairs of switches whose packets must reach some of these rules."""
        return {pair for rule in rules for pair in self.rules.due.get(rule, ())}

    def _count_packets(self) -> dict[RuleKey, int]:
        """The packets of each rule, also those that Open vSwitch forwarded by its flow cache."""
        self.ovs.refresh_cached_flows()
        return packets_by_rule(self.ovs.folder, self.bridges)

    def _since(self, rule: Rule, before: dict[RuleKey, int]) -> int:
        """How many packets a rule has counted between `before` and `self.after`."""
        key = rule.switch, rule.key
        return self.after.get(key, 0) - before.get(key, 0)

    def _is_reached(self, rule: Rule) -> bool:
        """Whether a packet has reached a rule."""
        return self._since(rule, self.before) > 0


def _share_of_port(group: GroupRules, port: int, amounts: Sequence[int]) -> float:
    """The share of a port in the amounts of a group's buckets."""
    bucket_amounts = zip(group.port, amounts, strict=True)
    port_amount = sum(amount for watched, amount in bucket_amounts if watched == port)
    return port_amount / max(sum(amounts), 1)
