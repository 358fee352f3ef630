"""Reader of the lossless priorities of EOS, and their check against the layers that were proved.

Here a packet keeps its traffic class, which is its PFC priority and its queue. So it is enough that
every switch takes each DSCP for the class of its layer, at every port, and that no packet enters
the fabric in the priority of a layer that its pair of switches is not in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

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
from extensions.lossless.priority_check import check_statements, on_each_switch

HARMLESS_QUEUE = re.compile(r"      (random-detect ecn [a-z0-9 -]+|priority strict)")
ENTRY = re.compile(r"   [0-9]+ permit (ip|ipv6) any (\S+) dscp ([0-9]+)")


def counted(commands: Iterable[str]) -> dict[str, int]:
    """How often each command is there."""
    return dict(Counter(line for line in commands if bare(line) not in ("", "!")))


def _about(text: str) -> list[str]:
    """The lines about priorities, but for those of interfaces."""
    kept = zip(exact_lines(text), exact_lines(without_priorities(text)), strict=True)
    return [line for line, other in kept if line != other and not line.startswith(SERVICE)]


@dataclass(slots=True)
class EosPriorities:
    """What a configuration says of priorities; names are those of sections."""

    classes: dict[int, int] = field(default_factory=dict)
    """The traffic class of each DSCP."""
    queues: dict[int, int] = field(default_factory=dict)
    """The transmit queue of each traffic class."""
    lists: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    """The prefixes and DSCPs of each access list."""
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
        said, head, inner = cls(), "", ""
        for number, line in enumerate(exact_lines(text), 1):
            if line[:1] != " ":
                head, inner = line, ""
            if line.startswith("   class "):
                inner = exact_words(line)[1]
            about = line.startswith(SERVICE) or QOS.match(head)
            if about and bare(line) != "!" and not said._understood(head, inner, line):
                said.unread.append((number, line))
        return said

    def _understood(self, head: str, inner: str, line: str) -> bool:
        """Take what a line says; False where it makes no sense, or names what is not there."""
        try:
            return not strange(line) and self._take(head, inner, line)
        except (LookupError, ValueError):
            return False

    def _take(self, head: str, inner: str, line: str) -> bool:
        match exact_words(head), exact_words(line):
            case ["interface", port], ["service-profile", profile]:
                self.ports[port] = profile
            case _, ["qos", "map", "dscp", *dscps, "to", "traffic-class", number]:
                self.classes |= dict.fromkeys(map(exact_number, dscps), exact_number(number))
            case _, ["qos", "map", "traffic-class", number, "to", "tx-queue", queue]:
                self.queues[exact_number(number)] = exact_number(queue)
            case [_, "access-list", name], [*_] if entry := ENTRY.fullmatch(line):
                self.lists[name].add((entry[2], exact_number(entry[3])))
            case ["class-map", *_, name], ["match", "ip" | "ipv6", "access-group", listed]:
                self.matches[name] = listed
            case ["policy-map", *_, name], ["class", _]:
                self.policies[name][inner] = {}
            case ["policy-map", *_, name], ["set", word, value] if inner:
                self.policies[name][inner][word] = exact_number(value)
            case ["qos", "profile", name], [*words] if line != head:
                if line[3:4] != " ":
                    self.profiles[name].add(" ".join(words))
                return line[3:4] != " " or HARMLESS_QUEUE.fullmatch(line) is not None
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
    """What the switches' files say otherwise than the plan, and than the commands of the build.

    Args:
        plan: the layers and their priorities.
        commands: those about priorities, by vertex.
        folder: of all switches.
        only: vertices of the switches that are there; None for all.
    """

    def check(vertex: int, here: Path, differences: DifferenceList) -> None:
        file, avd = here / "eos.cfg", here / "avd.json"
        text, tree = read_exact(file), parse(read_exact(avd))
        said, wanted = EosPriorities.of(text), counted(commands(vertex))
        for number, line in said.unread:
            differences.unread(file, number, line)
        for says, should in _wrong(plan, vertex, said):
            differences.add(file, 0, says, should)
        check_statements(file, counted(_about(text)), wanted, differences)
        check_statements(avd, counted(_about(tree.get("eos_cli", ""))), wanted, differences)
        ports = {e["name"]: e["service_profile"] for e in tree["ethernet_interfaces"]}
        check_statements(avd, ports, said.ports, differences)

    return on_each_switch(plan.build, folder, only, "eos.cfg", check)


def _wrong(plan: LayerPlan, vertex: int, said: EosPriorities) -> Iterator[tuple[str, str]]:
    """What a switch says, and what it should."""
    marks = {dscp_of(priority): priority for priority in plan.priorities}
    for dscp in range(64):
        number = said.classes.get(dscp, -1)
        queue = said.queues.get(number, number)
        if dscp in marks and (number, queue) != (marks[dscp], marks[dscp]):
            yield f"DSCP {dscp} in class {number}, queue {queue}", f"both {marks[dscp]}"
        elif dscp not in marks and {number, queue} & {*plan.priorities, -1}:
            yield f"DSCP {dscp} in class {number}, queue {queue}", "others, which may drop"
    wanted = {"qos trust dscp", "priority-flow-control on"} | {
        f"priority-flow-control priority {priority} no-drop" for priority in plan.priorities
    }
    w = plan.build.wiring
    hosts = {w.port_name(vertex, port) for port in w.host_port[vertex].tolist() if port}
    links = {w.port_name(vertex, p) for p in w.port[vertex][w.far[vertex] >= 0].tolist()}
    for port in sorted(hosts | links | said.ports.keys()):
        words = said.profiles.get(said.ports.get(port, ""), set())
        plain = {word for word in words if not word.startswith(("uc-tx-queue ", "service-policy "))}
        policies = [exact_words(word)[-1] for word in words if word.startswith("service-policy ")]
        if plain != (wanted if port in hosts | links else set()):
            yield f"{port} with {', '.join(sorted(plain)) or 'nothing'}", ", ".join(sorted(wanted))
        if len(policies) != (port in hosts):
            yield f"{port} with {len(policies)} policies", "one at every port of a host"
        for policy in policies:
            yield from _policed(plan, vertex, said, policy)


def _policed(
    plan: LayerPlan, vertex: int, said: EosPriorities, policy: str
) -> Iterator[tuple[str, str]]:
    """Packets of hosts that lose their priority: those marked for a layer of other pairs."""
    a, taken = plan.build.addressing, set()
    for name, values in said.policies[policy].items():
        taken |= said.lists[said.matches[name]]
        to = said.classes.get(values.get("dscp", -1), -1), values.get("traffic-class", -1)
        if {*to} & {*plan.priorities, -1}:
            yield f"class {name} of policy {policy} sets {values}", "what may be dropped"
    wanted = set()
    for far in np.flatnonzero(plan.build.topology.endpoints).tolist():
        texts = [str(a.network(far))] + ([str(a.network6(far))] if a.ipv6 else [])
        for layer, priority in enumerate(plan.priorities):
            if far != vertex and layer != plan.layer[vertex, far]:
                wanted |= {(text, dscp_of(priority)) for text in texts}
    for prefix, dscp in sorted(wanted - taken):
        yield f"DSCP {dscp} to {prefix} keeps its priority", "it loses it"
    for prefix, dscp in sorted(taken - wanted):
        yield f"DSCP {dscp} to {prefix} loses its priority", "it keeps it"
