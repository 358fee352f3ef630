"""A model for Topograph, from which it writes Slurm's topology or the labels of Kubernetes nodes.

Source: docs/modeling.md and pkg/models/model.go of Topograph v1.0.0, which reads hosts from
`blocks:` alone. The fabric is over the clusters, these over the switches, each with its block.
Accelerated domains (NVLink) are inside hosts or racks of hosts, not in this fabric: there are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compilers.tables.build import Build
from extensions.clusters.host_groups import HostGroups


def files(builds: Sequence[Build]) -> Iterator[tuple[str, str]]:
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
    model = {"switches": switches, "blocks": blocks}
    yield "model.yaml", yaml.safe_dump(model, sort_keys=False, default_flow_style=None, width=100)
