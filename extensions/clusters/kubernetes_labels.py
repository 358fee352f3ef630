"""Labels that tell a Kubernetes scheduler which nodes share a switch and which a cluster.

The keys are those that Topograph v1.0.0 writes (its docs/reference/node-labels.md): a number for
each tier of switches, 0 next to the node. Kubernetes reserves none for racks or switches
yet (KEP-4962). Names of nodes: RFC 1123.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from compilers.tables.build import Build
from extensions.clusters.host_groups import HostGroups
from inventory.problems import InputError, Problem

PREFIX = "fabric.topograph.run/tier-"
NODE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def files(builds: Sequence[Build]) -> Iterator[tuple[str, str]]:
    """`labels.json`, a list of nodes with nothing but labels, for `kubectl apply --server-side`.

    Raises:
        InputError: the fabric has no hosts, or Kubernetes does not take a name.
    """
    groups = HostGroups.of(builds)
    values = {groups.name, *(n for s in groups.switches for n in (s.name, s.cluster))}
    rules = (
        (groups.hosts(), NODE, "a node's name of small letters, digits, - and ."),
        (
            sorted(values),
            VALUE,
            "a label's value: at most 63 letters, digits, . _ and -, no . _ - last",
        ),
    )
    if wrong := [
        Problem(required, name, "rename it in the inventory")
        for names, rule, required in rules
        for name in names
        if not rule.fullmatch(name)
    ]:
        raise InputError(wrong)
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": host, "labels": labels}}
        for switch in groups.switches
        for tiers in [(switch.name, switch.cluster, groups.name)]
        for labels in [{f"{PREFIX}{tier}": name for tier, name in enumerate(tiers)}]
        for host in switch.hosts
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}, indent=1)
    yield "labels.json", text + "\n"
