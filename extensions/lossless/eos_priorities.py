"""Checks the lossless priorities in EOS configurations against the proved layers.

`eos_lossless` calls `check_layers` for the rendered files. In EOS a packet keeps its traffic class,
which is its PFC priority and its queue. So it is enough that every switch takes each DSCP for the
class of its layer, at every port, and that no packet enters the fabric in the priority of a layer
that its pair of switches is not in (`priorities.LayerPlan`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import numpy as np

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import bare, exact_lines, exact_words, read_exact
from compilers.readers.strict_json import parse
from extensions.lossless.eos_priority_lines import SERVICE, without_priorities
from extensions.lossless.eos_priority_text import EosPriorities, MarkedPrefix
from extensions.lossless.priorities import LayerPlan, dscp_of
from extensions.lossless.priority_check import WrongPriority, check_statements, on_each_switch

NO_CLASS = -1
"""In place of a DSCP, a traffic class or a queue: the configuration sets none."""


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
        priorities, expected = EosPriorities.of(text), _command_counts(commands(vertex))
        for line in priorities.unread:
            differences.add_unread(file, line.number, line.text)
        for wrong in (
            *_wrong_classes(plan, priorities),
            *_wrong_ports(plan, vertex, priorities),
        ):
            differences.add(file, 0, wrong.stated, wrong.expected)
        check_statements(file, _command_counts(_priority_lines(text)), expected, differences)
        cli_lines = _priority_lines(tree.get("eos_cli", ""))
        check_statements(avd, _command_counts(cli_lines), expected, differences)
        ports = {port["name"]: port["service_profile"] for port in tree["ethernet_interfaces"]}
        check_statements(avd, ports, priorities.profile_of_port, differences)

    return on_each_switch(plan.build, folder, only, "eos.cfg", check)


def _wrong_classes(plan: LayerPlan, priorities: EosPriorities) -> Iterator[WrongPriority]:
    """The DSCPs whose traffic class or queue is another than their layer needs."""
    priority_of = {dscp_of(priority): priority for priority in plan.priorities}
    for dscp in range(64):
        traffic_class = priorities.class_of_dscp.get(dscp, NO_CLASS)
        # By default a class has the queue of its number.
        queue = priorities.queue_of_class.get(traffic_class, traffic_class)
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
    pfc_lines = {"qos trust dscp", "priority-flow-control on"} | {
        f"priority-flow-control priority {priority} no-drop" for priority in plan.priorities
    }
    wiring = plan.build.wiring
    host_ports = [port for port in wiring.host_port[vertex].tolist() if port]
    hosts = {wiring.port_name(vertex, port) for port in host_ports}
    link_ports = wiring.port[vertex][wiring.far[vertex] >= 0].tolist()
    in_use = hosts | {wiring.port_name(vertex, port) for port in link_ports}
    for port in sorted(in_use | priorities.profile_of_port.keys()):
        lines = priorities.qos_profiles.get(priorities.profile_of_port.get(port, ""), set())
        policies = [exact_words(line)[-1] for line in lines if line.startswith("service-policy ")]
        stated_pfc_lines = {
            line for line in lines if not line.startswith(("uc-tx-queue ", "service-policy "))
        }
        if stated_pfc_lines != (pfc_lines if port in in_use else set()):
            stated = f"{port} with {', '.join(sorted(stated_pfc_lines)) or 'nothing'}"
            yield WrongPriority(stated, ", ".join(sorted(pfc_lines)))
        # One policy at a port of a host, and none elsewhere.
        if len(policies) != (1 if port in hosts else 0):
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
    made_lossy: set[MarkedPrefix] = set()
    for class_map, values in priorities.policy_maps[policy].items():
        made_lossy |= priorities.access_lists[priorities.class_maps[class_map]]
        # The class that the packets have here, and the one that their new DSCP has at other
        # switches: both have to be lossy.
        class_here = values.get("traffic-class", NO_CLASS)
        class_elsewhere = priorities.class_of_dscp.get(values.get("dscp", NO_CLASS), NO_CLASS)
        if {class_here, class_elsewhere} & {*plan.priorities, NO_CLASS}:
            stated = f"class {class_map} of policy {policy} sets {values}"
            yield WrongPriority(stated, "what may be dropped")
    expected = _other_layers_packets(plan, vertex)
    for packets in sorted(expected - made_lossy):
        stated = f"DSCP {packets.dscp} to {packets.prefix} keeps its priority"
        yield WrongPriority(stated, "it loses it")
    for packets in sorted(made_lossy - expected):
        stated = f"DSCP {packets.dscp} to {packets.prefix} loses its priority"
        yield WrongPriority(stated, "it keeps it")


def _other_layers_packets(plan: LayerPlan, vertex: int) -> set[MarkedPrefix]:
    """The packets whose DSCP is that of a layer that their pair of switches is not in.

    Args:
        plan: the layers and their priorities.
        vertex: the switch of the hosts that send.
    """
    addressing, packets = plan.build.addressing, set[MarkedPrefix]()
    for destination in np.flatnonzero(plan.build.topology.endpoints).tolist():
        if destination == vertex:
            continue
        prefixes = [str(addressing.network(destination))]
        if addressing.ipv6:
            prefixes.append(str(addressing.network6(destination)))
        for layer, priority in enumerate(plan.priorities):
            if layer != plan.layer[vertex, destination]:
                packets |= {MarkedPrefix(prefix, dscp_of(priority)) for prefix in prefixes}
    return packets


def _command_counts(commands: Iterable[str]) -> dict[str, int]:
    """How often each command occurs, but for separators (`!`)."""
    return dict(Counter(line for line in commands if bare(line) not in ("", "!")))


def _priority_lines(text: str) -> list[str]:
    """The lines about priorities, but for those of interfaces."""
    # `without_priorities` keeps the number of lines, and writes "!" for those about priorities.
    lines = zip(exact_lines(text), exact_lines(without_priorities(text)), strict=True)
    return [line for line, remaining in lines if line != remaining and not line.startswith(SERVICE)]
