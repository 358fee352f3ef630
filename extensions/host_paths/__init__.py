"""Paths that hosts choose by source routing: SRv6 uSIDs, path sets, and probes of links.

The functions here are those of the library: `host_paths` finds the paths from a host to another,
and `probing` a small set of probes that cross all links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from extensions.host_paths.host_path_set import HostPathSet
    from extensions.host_paths.localisation import Probing
    from polarfab.fabric import Fabric

ENTRY_POINTS = {
    "polarfab.verbs": {"hosts": "extensions.host_paths.hosts_verb:command"},
    "polarfab.targets": {"srv6": "extensions.host_paths.srv6:Srv6"},
    "polarfab.additions": {"sonic.srv6": "extensions.host_paths.sonic_srv6:SonicSrv6"},
    "polarfab.functions": {
        "host_paths": "extensions.host_paths:host_paths",
        "probing": "extensions.host_paths:probing",
    },
}


def host_paths(
    fabric: Fabric,
    source: str | int,
    destination: str | int,
    count: int = 8,
    planes: Sequence[int] = (),
    fail: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> HostPathSet:
    """The paths that a host may take to another over all planes, edge-disjoint ones first.

    Args:
        fabric: the fabric; it is compiled if it is not yet.
        source: a node, a vertex, a host or an address.
        destination: a node, a vertex, a host or an address.
        count: how many paths, one for each entropy value.
        planes: the planes that paths may take, from 1; () for all.
        fail: what is down: nodes, and links as `A-B`. Paths over these are replaced by others.
        options: the options of target srv6.

    Raises:
        InputError: a name is unknown, both ends are at one switch, no path is left, or the fabric
            has no IPv6 pool.
    """
    from extensions.host_paths.host_path_set import host_paths as host_paths_of_builds

    return host_paths_of_builds(fabric.builds, source, destination, count, planes, fail, options)


def probing(fabric: Fabric, options: Mapping[str, str] | None = None) -> Probing:
    """A small set of probes over all links of all planes: `.probes`, `.localise(lost, arrived)`.

    Args:
        fabric: the fabric; it is compiled if it is not yet.
        options: the options of target srv6.

    Raises:
        InputError: a switch has no hosts, or the fabric has no IPv6 pool.
    """
    from extensions.host_paths.localisation import Probing

    return Probing.of(fabric.builds, options)
