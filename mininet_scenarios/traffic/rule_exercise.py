"""An exercise: packets that reach every rule of the emitted program, counted in the switches.

First what hosts ask of their own switch; then frames of every kind between all hosts, compared
whole where they arrive. Select groups get flows enough to tell their shares. What is still missed
gets more flows, other ports each, until the counters say that it was reached or the limit is. With
`repairs`, what waits for ports to fail is reached with these ports down (`OvsFabric.hold`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, islice

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.targets.openflow.class_groups import GroupRole
from compilers.targets.openflow.protocol import LOCAL, TABLES
from mininet_scenarios.ovs.frames import (
    FRAME_KINDS,
    HASHED,
    CraftedFrames,
    FrameWriter,
    checksum,
    marked,
)
from mininet_scenarios.ovs.management_socket import (
    ManagementConnection,
    RuleKey,
    frame_out,
    generations,
    packets_by_rule,
    sent_by_port,
    settle,
)
from mininet_scenarios.ovs.ovsfabric import OvsFabric, bridge_name
from mininet_scenarios.scenario.engine import (
    SILENT,
    Check,
    Exercise,
    Flows,
    HostSample,
    Mismatch,
    Progress,
)
from mininet_scenarios.traffic.frame_exchange import HostEnds, exchanged
from mininet_scenarios.verdict.predict import FlowSpread, Prediction
from mininet_scenarios.verdict.rule_set import GroupRules, Pairs, Rule, RuleSet

FLOWS_AGAIN, MOST_ROUNDS = 64, 7
"""Flows to a rule that is missed, twice as many each time, and how often: a bucket with one of 256
hash values is missed after all of them once in 10^13 times."""
FIRST_HASHED = 2048
"""The source port of the first of them."""
SIGMAS = 5
"""Standard deviations that a share may be off, with so many flows, as chance has it."""
SHARE_FLOWS = 64
"""Flows to each select group."""
MOST_SHARE_FLOWS = 20_000
LAST_HOP = 2
"""The time to live of a packet that is to end at the next switch."""
FIXED_PORT = 1024
Injected = tuple[int, bytes, tuple[Rule, ...]]
"""A port, a packet that comes in on it, and the rules that it reaches."""
Groups = Mapping[tuple[int, int, int], GroupRules]
"""As `RuleSet.groups` has them."""


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
        """Get ready: `live` has the names of the build that is cabled; hosts: that take part.

        Raises:
            OpenVSwitchError: a bridge does not answer.
        """
        self.build, self.hosts, self.ends, self.progress = live, hosts, ends, progress
        number = {name: v for v, name in enumerate(fabric.build.wiring.names)}
        self.vertex = [number.get(name, SILENT) for name in live.wiring.names]
        self.fabric, self.ovs = fabric, fabric.ovs
        self.bridges = {
            bridge_name(self.vertex[v]): v for v in np.flatnonzero(live.topology.present).tolist()
        }
        self.rules = RuleSet(live, self.hosts, generations(self.ovs.folder, self.bridges))
        self.writers = {v: FrameWriter(live, self.hosts, v) for v in self.rules.versions}
        self.first_host = np.zeros(live.tables.switches, np.int64)
        self.first_host[self.hosts.switch[::-1]] = np.arange(len(self.hosts))[::-1]
        self.frames = 0
        self.wrong: list[Mismatch] = []
        self.before = self._counted()
        self.after = self.before

    def run(self, repairs: bool) -> Exercise:
        """Reach all rules; with `repairs` also those for packets that find ports down.

        Raises:
            OpenVSwitchError: Open vSwitch hung up or refused a message.
        """
        self._ask()
        for version in self.rules.versions:
            self._every_kind(version)
        shares = self._shares()
        self._until_reached()
        due = set(self.rules.due)
        if repairs:
            due |= self._repairs()
        idle = [rule for rule in self.rules.all if not self._reached(rule)]
        return Exercise(
            rules=len(self.rules.all),
            due=len(due),
            missed=tuple(rule.words for rule in idle if rule in due),
            waiting=tuple(rule.words for rule in idle if rule not in due),
            checks=(
                Check.of("frames arrive as they were sent", self.frames, tuple(self.wrong)),
                *(check for check in shares if check.required),
            ),
        )

    def _ask(self) -> None:
        """Hosts' own questions, and their answers, as they have to be."""
        questions = [q for writer in self.writers.values() for q in writer.questions()]
        due = [q.answer and (q.sent[0], q.answer) for q in questions]
        heard, _ = exchanged(self.ends, [q.sent for q in questions], due, came=lambda frame: frame)
        self.frames += len(questions)
        for question, answer in zip(questions, due, strict=True):
            host = question.sent[0]
            if answer and answer not in heard:
                others = [data for receiver, data in heard if receiver == host]
                near = next((d for d in others if len(d) == len(answer[1])), b"")
                seen = f"answered by {near.hex()}" if near else "no answer"
                self.wrong.append(Mismatch(question.words, "answered by the switch", seen))

    def _every_kind(self, version: int) -> None:
        """Frames of every kind between all hosts that the tables connect."""
        at = self.hosts.switch
        reached = self.rules.prediction.fewest[at[:, None], at] >= 0
        source, destination = np.nonzero(reached & ~np.eye(len(at), dtype=np.bool_))
        for kind in FRAME_KINDS:
            writer = self.writers[version]
            self._send(writer.of_kind(kind, source, destination, FIXED_PORT, self.frames))

    def _send(self, frames: CraftedFrames) -> list[int]:
        """Send them, and compare what arrives with what has to; how often each was sent."""
        first, count = self.frames, len(frames)
        self.frames += count
        sent = frames.by_host(self.hosts.names)
        arrived = np.zeros(count, np.int64)
        due = range(first, first + count)
        heard, times = exchanged(self.ends, sent, due, came=lambda frame: marked(frame[1]))
        for host, got in heard:
            number = marked(got)
            if number is not None and number in due:
                arrived[number - first] += 1
                self._judge(frames, number - first, host, got)
        for number in np.flatnonzero((arrived < 1) | (arrived > times)).tolist():
            seen = "lost" if not arrived[number] else f"arrived {arrived[number]} times"
            self._differs(frames, number, "delivered once", seen)
        self.progress(self.frames, self.frames)
        return times

    def _judge(self, frames: CraftedFrames, number: int, host: str, got: bytes) -> None:
        """Check a frame that arrived at a host."""
        receiver = int(frames.destination[number])
        if host != self.hosts.names[receiver]:
            self._differs(frames, number, "delivered", f"at {host}")
            return
        links, words = frames.difference(number, got)
        ends = self.hosts.switch[frames.source[number]], self.hosts.switch[receiver]
        prediction = self.rules.prediction
        fewest, most = int(prediction.fewest[ends]), int(prediction.most[ends])
        if words:
            self._differs(frames, number, "as it was sent", words)
        elif not fewest <= links <= most:
            self._differs(frames, number, f"over {fewest} to {most} links", f"over {links}")

    def _differs(self, frames: CraftedFrames, number: int, wanted: str, seen: str) -> None:
        """Note a packet that came otherwise than it should."""
        names = self.hosts.names
        pair = f"{names[frames.source[number]]} → {names[frames.destination[number]]}"
        of = f"IPv{frames.version}, {frames.kind}"
        self.wrong.append(Mismatch(f"{pair}, {of}", wanted, seen))

    def _shares(self) -> list[Check]:
        """Flows to every select group that hosts reach: how its ports shared them, and, where
        packets are marked, how all links did.
        """
        chosen = {
            key: group
            for key, group in self.rules.groups.items()
            if group.role == GroupRole.ENTER and self.rules.due.keys() & set(group.buckets)
        }
        wanted = [(self._pairs(group.buckets), SHARE_FLOWS) for group in chosen.values()]
        pipeline, at = self.rules.pipeline, np.unique(self.hosts.switch).tolist()
        if pipeline.whole and not pipeline.marks:  # no select group: links tell of all shares
            pairs = {(4, s, d) for s in at for d in at if s != d}
            wanted.append((pairs, min(MOST_SHARE_FLOWS, 4 * SHARE_FLOWS * len(at))))
        before, sent = self._counted(), self._sent()
        flows = self._flow(wanted, FIRST_HASHED)
        self.after = self._counted()
        checks, prediction = [self._group_shares(chosen, before)], self.rules.prediction
        if pipeline.whole and len(flows.rate):
            checks.append(link_shares(prediction, self.hosts, flows, self._sent() - sent, SIGMAS))
        return checks

    def _group_shares(self, chosen: Groups, before: dict[RuleKey, int]) -> Check:
        """How the ports of these groups shared the packets since."""
        cases, wrong = 0, list[Mismatch]()
        for (switch, _, egress), group in chosen.items():
            packets = [self._since(rule, before) for rule in group.buckets]
            where = f"{self.build.wiring.names[switch]}, egress class {egress}"
            for port in sorted(set(group.port)):
                cases += 1
                share, seen = (_part(group, port, of) for of in (group.weight, packets))
                total = sum(packets)
                chance = SIGMAS * (share * (1 - share) / max(total, 1)) ** 0.5 + 1 / max(total, 1)
                if not total or abs(seen - share) > chance:
                    name = self.build.wiring.port_name(switch, port)
                    words = f"{seen:.1%} of {total} packets"
                    wrong.append(Mismatch(f"{where}, port {name}", f"{share:.1%}", words))
        return Check.of("ports of select groups have their shares", cases, tuple(wrong))

    def _until_reached(self) -> None:
        """More flows to what is missed, from other ports each time."""
        flows, first = FLOWS_AGAIN, FIRST_HASHED + MOST_SHARE_FLOWS
        for _ in range(MOST_ROUNDS):
            missed = [rule for rule in self.rules.due if not self._reached(rule)]
            if not missed:
                return
            self._flow([(self.rules.due[rule], flows) for rule in missed], first)
            self.after = self._counted()
            first, flows = first + flows, 2 * flows

    def _flow(self, wanted: Iterable[tuple[Pairs, int]], first: int) -> Flows:
        """Send so many flows over pairs of switches, each in turn, with source ports from first.

        Returns those that were sent, with the number of packets of each for a rate.
        """
        chosen = {
            (*pair, first + number)
            for pairs, count in wanted
            for number, pair in enumerate(islice(cycle(sorted(pairs)), count))
        }
        done: list[NDArray[np.int64]] = [np.zeros((3, 0), np.int64)]
        for version, writer in self.writers.items():
            rows = [row[1:] for row in sorted(chosen) if row[0] == version and row[1] != row[2]]
            if rows:
                source, destination, ports = np.array(rows).T
                sender, receiver = self.first_host[source], self.first_host[destination]
                times = self._send(writer.of_kind(HASHED, sender, receiver, ports, self.frames))
                done.append(np.stack((sender, receiver, np.array(times))))
        source, destination, times = np.concatenate(done, axis=1)
        return Flows(source, destination, times.astype(np.float64))

    def _sent(self) -> NDArray[np.int64]:
        """Packets that have left each switch by each port, int64[S, ports + 1]."""
        return sent_by_port(self.ovs.folder, self.bridges, self.build.wiring)

    def _repairs(self) -> set[Rule]:
        """Reach what only packets reach that find ports down, or that took such a path; which."""
        switches = sorted({switch for switch, *_ in self.rules.groups})
        vertex = self.vertex
        steps = [list(self._steps(switch).items()) for switch in switches]
        reached: set[Rule] = set()
        connections: dict[int, ManagementConnection] = {}
        try:
            for number in range(max(map(len, steps))):
                now = [
                    (switch, *steps_of_switch[number])
                    for switch, steps_of_switch in zip(switches, steps, strict=True)
                    if number < len(steps_of_switch)
                ]
                self.fabric.hold(away={(vertex[at], port) for at, down, _ in now for port in down})
                for at, _, sent in now:
                    if at not in connections:
                        name = bridge_name(vertex[at])
                        connections[at] = ManagementConnection(self.ovs.folder / f"{name}.mgmt")
                    for port, frame, rules in sent:
                        connections[at].outgoing += frame_out(frame, TABLES, port)
                        reached.update(rules)
                settle(list(connections.values()))
                self.progress(number + 1, max(map(len, steps)))
        finally:
            self.fabric.hold()
            for connection in connections.values():
                connection.socket.close()
        self.after = self._counted()
        return reached

    def _steps(self, switch: int) -> dict[frozenset[int], list[Injected]]:
        """The packets to send by the ports that are down: where they come in, what they reach."""
        steps: dict[frozenset[int], list[Injected]] = {}
        for (at, role, egress), group in self.rules.groups.items():
            if at != switch or role == GroupRole.ENTER:
                continue
            entry, frame = self._entry(switch, group), self._frame_of(switch, egress)
            if entry is None or frame is None:
                continue
            row = self.rules.led_by(switch, role, egress)
            enter = self.rules.groups.get((switch, GroupRole.ENTER, egress))
            for place, rule in enumerate(group.buckets):
                down = set(group.port[:place]) - {0}
                if role == GroupRole.FALLBACK and place and enter:
                    down |= set(enter.port)
                if group.port[place] not in down:
                    steps.setdefault(frozenset(down), []).append((entry, frame, (row, rule)))
        return steps

    def _entry(self, switch: int, group: GroupRules) -> int | None:
        """The port by which packets come in that are led to a group; None if none can."""
        if group.role == GroupRole.TRANSIT:
            return LOCAL
        if not group.entry and group.role != GroupRole.FALLBACK:
            return None  # no row leads there
        if group.role == GroupRole.FALLBACK:
            ports = self.build.wiring.host_port[switch]
            return int(ports.max()) if (ports > 0).any() else None
        return group.entry

    def _frame_of(self, switch: int, egress: int) -> bytes | None:
        """A packet that a switch routes to a class, and that the next one drops."""
        led = self.rules.prediction.egress[switch] == egress
        led[switch] = False
        ends = np.flatnonzero(led[self.hosts.switch])
        if not len(ends):
            return None
        frames = self.writers[4].of_kind(HASHED, np.zeros(1, np.int64), ends[:1], FIXED_PORT, 0)
        ip = frames.sent["ip"]
        ip["ttl"], ip["checksum"] = LAST_HOP, 0
        ip["checksum"] = checksum(ip)
        return frames.sent.tobytes()

    def _pairs(self, rules: Iterable[Rule]) -> Pairs:
        """The pairs of hosts whose packets must reach some of these rules."""
        return {pair for rule in rules for pair in self.rules.due.get(rule, ())}

    def _counted(self) -> dict[RuleKey, int]:
        """Packets of each rule, those included that were led by flows in Open vSwitch's cache."""
        self.ovs.appctl("revalidator/wait")
        return packets_by_rule(self.ovs.folder, self.bridges)

    def _since(self, rule: Rule, before: dict[RuleKey, int]) -> int:
        """How many packets a rule has counted since earlier counts."""
        key = rule.switch, rule.key
        return self.after.get(key, 0) - before.get(key, 0)

    def _reached(self, rule: Rule) -> bool:
        """Whether a packet has reached a rule."""
        return self._since(rule, self.before) > 0


def _part(group: GroupRules, port: int, of: Sequence[int]) -> float:
    """The part of amounts, one a bucket, that the buckets of a port have."""
    chosen = sum(n for p, n in zip(group.port, of, strict=True) if p == port)
    return chosen / max(sum(of), 1)


UNEVEN_HASH = 0.03
"""The part of a share that it may be off: hash values do not divide by every number of ports."""


def link_shares(
    prediction: Prediction, hosts: HostSample, flows: Flows, seen: NDArray[np.int64], sigmas: float
) -> Check:
    """Whether every link carried as many of the flows as their shares say, but for chance.

    Args:
        prediction: where packets go.
        hosts: the ends of flows.
        flows: with how many packets of different ports each had for a rate.
        seen: int64[S, ports + 1], packets out of each port meanwhile.
        sigmas: standard deviations that a count may be off.
    """
    spread = FlowSpread.of(prediction, hosts, flows)
    place, part = np.unique(spread.arc * len(flows.rate) + spread.flow, return_inverse=True)
    chance = np.bincount(part, spread.share)
    arc, flow = np.divmod(place, len(flows.rate))
    amount, arcs = flows.rate[flow], prediction.arcs
    mean = prediction.by_port(np.bincount(arc, amount * chance, arcs))
    variance = prediction.by_port(np.bincount(arc, amount * chance * (1 - chance), arcs))
    off = np.abs(seen - mean) > sigmas * np.sqrt(variance) + 1 + UNEVEN_HASH * mean
    wiring, wrong = prediction.build.wiring, list[Mismatch]()
    switch, link = np.nonzero(wiring.far >= 0)
    for s, k in zip(switch.tolist(), link.tolist(), strict=True):
        port = int(wiring.port[s, k])
        if off[s, port]:
            where = f"{wiring.names[s]} → {wiring.names[wiring.far[s, k]]}"
            wrong.append(Mismatch(where, f"about {mean[s, port]:.0f} packets", f"{seen[s, port]}"))
    return Check.of("links have their shares of packets", len(switch), tuple(wrong))
