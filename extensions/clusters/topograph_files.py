"""Topograph v1.0.0: a model for it, and the labels of Kubernetes nodes that it writes by one.

Labels tell a scheduler which nodes share a switch and which a cluster; their keys have a number for
each tier of switches, 0 next to the node (its docs/reference/node-labels.md). Kubernetes reserves
none for racks or switches yet (KEP-4962). Names of nodes: RFC 1123.

In the model, which Slurm's topology follows from, too, the fabric is over the clusters, these over
the switches, each with its block: hosts are read from `blocks:` alone (docs/modeling.md and
pkg/models/model.go). Accelerated domains (NVLink) are inside hosts or racks of hosts, not in this
fabric: there are none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from compilers.tables.build import Build
from extensions.clusters.host_groups import HostGroups
from inventory.problems import InputError, Problem

PREFIX = "fabric.topograph.run/tier-"
NODE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def labels(builds: Sequence[Build]) -> Iterator[tuple[str, str]]:
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
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": host, "labels": own}}
        for switch in groups.switches
        for tiers in [(switch.name, switch.cluster, groups.name)]
        for own in [{f"{PREFIX}{tier}": name for tier, name in enumerate(tiers)}]
        for host in switch.hosts
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}, indent=1)
    yield "labels.json", text + "\n"


def model(builds: Sequence[Build]) -> Iterator[tuple[str, str]]:
    """`model.yaml`.

    Raises:
        InputError: the fabric has no hosts.
    """
    import yaml

    groups = HostGroups.of(builds)
    clusters = {name: [s.name for s in members] for name, members in groups.clusters()}
    switches: dict[str, Any] = {groups.name: {"switches": [*clusters]}}
    switches |= {name: {"switches": members} for name, members in clusters.items()}
    blocks = [{"switch": each.name, "nodes": [*each.hosts]} for each in groups.switches]
    tree = {"switches": switches, "blocks": blocks}
    yield "model.yaml", yaml.safe_dump(tree, sort_keys=False, default_flow_style=None, width=100)
