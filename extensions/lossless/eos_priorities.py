"""Reads the lossless priorities in EOS configurations, and checks them against the proved layers.

`eos_lossless` calls `check_layers` for the rendered files. In EOS a packet keeps its traffic class,
which is its PFC priority and its queue. So it is enough that every switch takes each DSCP for the
class of its layer, at every port, and that no packet enters the fabric in the priority of a layer
that its pair of switches is not in (`priorities.LayerPlan`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import (
    bare,
    exact_lines,
    exact_number,
    exact_words,
    read_exact,
    strange,
)
from compilers.readers.strict_json import parse
from extensions.lossless.eos_priority_lines import QOS, SERVICE, without_priorities
from extensions.lossless.priorities import LayerPlan, dscp_of
from extensions.lossless.priority_check import WrongPriority, check_statements, on_each_switch

NO_CLASS = -1
"""In place of a DSCP, a traffic class or a queue: the configuration sets none."""
HARMLESS_QUEUE = re.compile(r"      (random-detect ecn [a-z0-9 -]+|priority strict)")
"""A line of a queue that does not change which packets are lossless, such as `priority strict`."""
QUEUE_INDENT = "    "
"""Begins the lines below a queue of a QoS profile; lines of the profile are indented by three."""
ENTRY = re.compile(r"   [0-9]+ permit (ip|ipv6) any (\S+) dscp ([0-9]+)")
"""A line of an access list: `10 permit ip any 10.0.0.8/29 dscp 26`."""


def command_counts(commands: Iterable[str]) -> dict[str, int]:
    """How often each command occurs."""
    return dict(Counter(line for line in commands if bare(line) not in ("", "!")))


def _priority_lines(text: str) -> list[str]:
    """The lines about priorities, but for those of interfaces."""
    # `without_priorities` keeps the number of lines, and writes "!" for those about priorities.
    lines = zip(exact_lines(text), exact_lines(without_priorities(text)), strict=True)
    return [line for line, remaining in lines if line != remaining and not line.startswith(SERVICE)]


class MarkedPrefix(NamedTuple):
    """The packets that an entry of an access list matches."""

    prefix: str
    """Their destinations."""
    dscp: int
    """Their DSCP."""


@dataclass(slots=True)
class EosPriorities:
    """The statements of a configuration about priorities, by the names of sections."""

    classes: dict[int, int] = field(default_factory=dict)
    """The traffic class of each DSCP."""
    queues: dict[int, int] = field(default_factory=dict)
    """The transmit queue of each traffic class."""
    lists: dict[str, set[MarkedPrefix]] = field(default_factory=dict)
    """The packets that each access list matches."""
    matches: dict[str, str] = field(default_factory=dict)
    """The access list of each class map."""
    policies: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    """By policy map and class map, the DSCP and the traffic class that are set."""
    profiles: dict[str, set[str]] = field(default_factory=dict)
    """The lines of each QoS profile."""
    ports: dict[str, str] = field(default_factory=dict)
    """The QoS profile of each interface."""
    unread: list[tuple[int, str]] = field(default_factory=list)
    """Lines that cannot be read, with their numbers."""

    @classmethod
    def of(cls, text: str) -> EosPriorities:
        """Read a configuration."""
        priorities, head, class_name = cls(), "", ""
        for number, line in enumerate(exact_lines(text), 1):
            if line[:1] != " ":
                head, class_name = line, ""
            if line.startswith("   class "):
                class_name = exact_words(line)[1]
            is_relevant = line.startswith(SERVICE) or QOS.match(head)
            if is_relevant and bare(line) != "!" and not priorities._read(head, class_name, line):
                priorities.unread.append((number, line))
        return priorities

    def _read(self, head: str, class_name: str, line: str) -> bool:
        """Enter what a line states; False if it makes no sense, or names a missing section.

        Args:
            head: the first line of the section.
            class_name: the class map of a policy map that the line is below; "" for none.
            line: the line.
        """
        try:
            return not strange(line) and self._enter(head, class_name, line)
        except (LookupError, ValueError):
            return False

    def _enter(self, head: str, class_name: str, line: str) -> bool:
        """Enter what a line states; False if it makes no sense."""
        match exact_words(head), exact_words(line):
            case ["interface", port], ["service-profile", profile]:
                self.ports[port] = profile
            case _, ["qos", "map", "dscp", *dscps, "to", "traffic-class", number]:
                self.classes |= dict.fromkeys(map(exact_number, dscps), exact_number(number))
            case _, ["qos", "map", "traffic-class", number, "to", "tx-queue", queue]:
                self.queues[exact_number(number)] = exact_number(queue)
            case [_, "access-list", name], [*_] if entry := ENTRY.fullmatch(line):
                self.lists[name].add(MarkedPrefix(entry[2], exact_number(entry[3])))
            case ["class-map", *_, name], ["match", "ip" | "ipv6", "access-group", access_list]:
                self.matches[name] = access_list
            case ["policy-map", *_, name], ["class", _]:
                self.policies[name][class_name] = {}
            case ["policy-map", *_, name], ["set", word, value] if class_name:
                self.policies[name][class_name][word] = exact_number(value)
            case ["qos", "profile", _], [*_] if line.startswith(QUEUE_INDENT):
                return HARMLESS_QUEUE.fullmatch(line) is not None
            case ["qos", "profile", name], [*words] if line != head:
                self.profiles[name].add(" ".join(words))
            case [_, "access-list", name], _ if line == head:
                self.lists[name] = set()
            case ["class-map", *_, name], _ if line == head:
                self.matches[name] = ""
            case ["policy-map", *_, name], _ if line == head:
                self.policies[name] = {}
            case ["qos", "profile", name], _ if line == head:
                self.profiles[name] = set()
            case _:
                return False
        return True


def check_layers(
    plan: LayerPlan,
    commands: Callable[[int], Iterable[str]],
    folder: Path,
    only: Collection[int] | None = None,
) -> DifferenceList:
    """The differences of the switches' files from the plan, and from the commands of the build.

    Args:
        plan: the layers and their priorities.
        commands: makes the commands about priorities of a switch, from its vertex.
        folder: the folder with a folder of files for each switch.
        only: vertices of the switches that are there; None for all.
    """

    def check(vertex: int, of_switch: Path, differences: DifferenceList) -> None:
        """Compare the files of a switch."""
        file, avd = of_switch / "eos.cfg", of_switch / "avd.json"
        text, tree = read_exact(file), parse(read_exact(avd))
        priorities, expected = EosPriorities.of(text), command_counts(commands(vertex))
        for number, line in priorities.unread:
            differences.add_unread(file, number, line)
        for wrong in (
            *_wrong_classes(plan, priorities),
            *_wrong_ports(plan, vertex, priorities),
        ):
            differences.add(file, 0, wrong.says, wrong.expected)
        check_statements(file, command_counts(_priority_lines(text)), expected, differences)
        cli_lines = _priority_lines(tree.get("eos_cli", ""))
        check_statements(avd, command_counts(cli_lines), expected, differences)
        ports = {port["name"]: port["service_profile"] for port in tree["ethernet_interfaces"]}
        check_statements(avd, ports, priorities.ports, differences)

    return on_each_switch(plan.build, folder, only, "eos.cfg", check)


def _wrong_classes(plan: LayerPlan, priorities: EosPriorities) -> Iterator[WrongPriority]:
    """The DSCPs whose traffic class or queue is another than their layer needs."""
    priority_of = {dscp_of(priority): priority for priority in plan.priorities}
    for dscp in range(64):
        traffic_class = priorities.classes.get(dscp, NO_CLASS)
        queue = priorities.queues.get(traffic_class, traffic_class)
        stated = f"DSCP {dscp} in class {traffic_class}, queue {queue}"
        if dscp in priority_of:
            expected = priority_of[dscp]
            if (traffic_class, queue) != (expected, expected):
                yield WrongPriority(stated, f"both {expected}")
        elif {traffic_class, queue} & {*plan.priorities, NO_CLASS}:
            # Packets of no layer need a class and a queue that are lossy.
            yield WrongPriority(stated, "others, which may drop")


def _wrong_ports(
    plan: LayerPlan, vertex: int, priorities: EosPriorities
) -> Iterator[WrongPriority]:
    """The ports of a switch whose profile is not that of a link or of a host's port."""
    expected = {"qos trust dscp", "priority-flow-control on"} | {
        f"priority-flow-control priority {priority} no-drop" for priority in plan.priorities
    }
    wiring = plan.build.wiring
    host_ports = [port for port in wiring.host_port[vertex].tolist() if port]
    hosts = {wiring.port_name(vertex, port) for port in host_ports}
    link_ports = wiring.port[vertex][wiring.far[vertex] >= 0].tolist()
    in_use = hosts | {wiring.port_name(vertex, port) for port in link_ports}
    for port in sorted(in_use | priorities.ports.keys()):
        lines = priorities.profiles.get(priorities.ports.get(port, ""), set())
        policies = [exact_words(line)[-1] for line in lines if line.startswith("service-policy ")]
        plain = {line for line in lines if not line.startswith(("uc-tx-queue ", "service-policy "))}
        if plain != (expected if port in in_use else set()):
            stated = f"{port} with {', '.join(sorted(plain)) or 'nothing'}"
            yield WrongPriority(stated, ", ".join(sorted(expected)))
        if len(policies) != (port in hosts):
            stated = f"{port} with {len(policies)} policies"
            yield WrongPriority(stated, "one at every port of a host")
        for policy in policies:
            yield from _wrong_policy(plan, vertex, priorities, policy)


def _wrong_policy(
    plan: LayerPlan, vertex: int, priorities: EosPriorities, policy: str
) -> Iterator[WrongPriority]:
    """The wrong statements of a policy map, which makes some packets of hosts lossy.

    It must do so for just those packets whose DSCP belongs to a layer that their pair of switches
    does not use: these packets are remarked as lossy.
    """
    addressing = plan.build.addressing
    made_lossy: set[MarkedPrefix] = set()
    for name, values in priorities.policies[policy].items():
        made_lossy |= priorities.lists[priorities.matches[name]]
        class_of_dscp = priorities.classes.get(values.get("dscp", NO_CLASS), NO_CLASS)
        classes_set = {class_of_dscp, values.get("traffic-class", NO_CLASS)}
        if classes_set & {*plan.priorities, NO_CLASS}:
            stated = f"class {name} of policy {policy} sets {values}"
            yield WrongPriority(stated, "what may be dropped")
    expected: set[MarkedPrefix] = set()
    for far in np.flatnonzero(plan.build.topology.endpoints).tolist():
        prefixes = [str(addressing.network(far))]
        if addressing.ipv6:
            prefixes.append(str(addressing.network6(far)))
        for layer, priority in enumerate(plan.priorities):
            if far != vertex and layer != plan.layer[vertex, far]:
                expected |= {MarkedPrefix(prefix, dscp_of(priority)) for prefix in prefixes}
    for packets in sorted(expected - made_lossy):
        stated = f"DSCP {packets.dscp} to {packets.prefix} keeps its priority"
        yield WrongPriority(stated, "it loses it")
    for packets in sorted(made_lossy - expected):
        stated = f"DSCP {packets.dscp} to {packets.prefix} loses its priority"
        yield WrongPriority(stated, "it keeps it")
