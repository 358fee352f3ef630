"""The check of the lanes of hosts' packets: the QoS policy that OpenSM gets, against the layers.

The policy states a service level for each pair of hosts. `maps_levels_to_lanes` makes sure that the
number of a level is the number of its virtual lane, so here both are one number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extensions.infiniband.lid_walk import LidEnds
from extensions.infiniband.policy_text import read_policy
from extensions.infiniband.subnet_files import SubnetFiles

POLICY = "qos-policy.conf"
"""The file of the QoS policy."""


@dataclass(frozen=True, slots=True, eq=False)
class PolicyLevels:
    """The service levels of H hosts by the policy, in the order of their first LIDs."""

    level: NDArray[np.uint8]
    """uint8[H, H], the service level from host to host."""
    rule_line: dict[int, int]
    """The line of the first rule for packets from each host, or of the default level."""


def read_levels(files: SubnetFiles, ends: LidEnds) -> PolicyLevels:
    """Read the service level of every pair of hosts."""
    file = files.folder / POLICY
    policy = read_policy(file, files.differences)
    host_guids = ends.guid[ends.first_of_host].tolist()
    host_of = {guid: host for host, guid in enumerate(host_guids)}
    hosts = len(host_guids)
    level = np.full((hosts, hosts), policy.default.level, np.uint8)
    rule_line = dict.fromkeys(range(hosts), policy.default.line)
    # OpenSM uses the first rule that fits a pair, so the last rule is written first.
    for rule in reversed(policy.rules):
        sources = [host_of[guid] for guid in rule.source if guid in host_of]
        destinations = [host_of[guid] for guid in rule.destination if guid in host_of]
        if len(sources + destinations) < len(rule.source + rule.destination):
            files.differences.add(file, rule.line, "a rule for a GUID", "no host has it")
        level[np.ix_(sources, destinations)] = rule.level
        rule_line |= dict.fromkeys(sources, rule.line)
    return PolicyLevels(level, rule_line)


def check_levels(files: SubnetFiles, ends: LidEnds, levels: PolicyLevels) -> None:
    """Compare the level of every pair of hosts with the lane of their switches."""
    first_lid = ends.first_of_host
    vertex, guid = ends.vertex[first_lid], ends.guid[first_lid]
    expected = files.virtual_lanes.layer[np.ix_(vertex, vertex)]
    differs = levels.level != expected
    for source in np.flatnonzero(differs.any(axis=1)).tolist():
        # One message for all destinations of a host, with the first of them.
        destination, times = int(differs[source].argmax()), int(differs[source].sum())
        pair = f"{int(guid[source]):#x} to {int(guid[destination]):#x}"
        stated = f"{pair} on lane {levels.level[source, destination]}"
        lane = f"on lane {expected[source, destination]}"
        line = levels.rule_line.get(source, 0)
        files.differences.add(files.folder / POLICY, line, stated, lane, times)
