"""Slurm's topology: a tree of switches and clusters, and clusters as blocks.

Sources: topology.conf(5) for topology/tree (every version) and topology/block (from 23.11),
topology.yaml(5) for both at once (from 25.05).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from compilers.tables.build import Build
from extensions.clusters.host_groups import HostGroups

NUMBERED = re.compile(r"(.*?[^0-9])([0-9]{1,9})")


def files(builds: Sequence[Build]) -> Iterator[tuple[str, str]]:
    """`tree/topology.conf`, `block/topology.conf` and `topology.yaml`, which has both.

    Raises:
        InputError: the fabric has no hosts.
    """
    import yaml

    groups = HostGroups.of(builds)
    leaves = [(each.name, hostlist(each.hosts)) for each in groups.switches]
    clusters = [(name, [s.name for s in members]) for name, members in groups.clusters()]
    upper = [(name, hostlist(children)) for name, children in clusters]
    upper += [(groups.name, hostlist(name for name, _ in clusters))] if len(clusters) > 1 else []
    hosts = [
        [host for switch in members for host in switch.hosts] for _, members in groups.clusters()
    ]
    blocks = [(name, hostlist(some)) for (name, _), some in zip(clusters, hosts, strict=True)]
    size = min(map(len, hosts))
    yield (
        "tree/topology.conf",
        "".join(
            [f"SwitchName={name} Nodes={nodes}\n" for name, nodes in leaves]
            + [f"SwitchName={name} Switches={children}\n" for name, children in upper]
        ),
    )
    lines = [f"BlockName={name} Nodes={nodes}\n" for name, nodes in blocks]
    yield "block/topology.conf", "".join([*lines, f"BlockSizes={size}\n"])
    switches = [{"switch": name, "nodes": nodes} for name, nodes in leaves]
    switches += [{"switch": name, "children": children} for name, children in upper]
    both = [
        {"topology": "tree", "cluster_default": True, "tree": {"switches": switches}},
        {
            "topology": "block",
            "cluster_default": False,
            "block": {
                "block_sizes": [size],
                "blocks": [{"block": name, "nodes": nodes} for name, nodes in blocks],
            },
        },
    ]
    yield "topology.yaml", yaml.safe_dump(both, sort_keys=False, width=1 << 30)


def hostlist(names: Iterable[str]) -> str:
    """Names as a Slurm hostlist, in their order: `h[0-3,7],gpu01`."""
    parts: list[str] = []
    for (prefix, numbered), group in groupby(map(_split, names), key=lambda part: part[:2]):
        if not numbered:
            parts += [prefix for _ in group]
            continue
        runs: list[list[str]] = []
        for *_, number in group:
            if runs and _follows(runs[-1], number):
                runs[-1] = [runs[-1][0], number]
            else:
                runs.append([number])
        inside = ",".join("-".join(run) for run in runs)
        parts.append(f"{prefix}{inside}" if inside.isdigit() else f"{prefix}[{inside}]")
    return ",".join(parts)


def _follows(run: list[str], number: str) -> bool:
    """Whether a number is the next of a run, written with as many digits."""
    return str(int(run[-1]) + 1).zfill(len(run[0])) == number


def _split(name: str) -> tuple[str, bool, str]:
    """The part of a name before its last number, whether there are both, and the number."""
    match = NUMBERED.fullmatch(name)
    return (match[1], True, match[2]) if match else (name, False, "")
