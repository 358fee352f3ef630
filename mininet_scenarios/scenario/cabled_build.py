"""The build that is cabled where a fabric moves from build to build, and its names in the others.

Engines know switches and hosts by the names of the build that they have cabled. Where another build
calls one otherwise, the cabled build's name goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from compilers.tables.build import Build
from compilers.update.loss import cables_apart
from compilers.update.matching import HostTable, Matching, kept_hosts
from inventory.problems import InputError


def as_cabled(build: Build, ground: Build) -> Build:
    """A build with the names that its switches and hosts have in the one that is cabled."""
    nodes, wiring = Matching.of(build, ground), build.wiring
    names, host_names = list(wiring.names), list(wiring.host_names)
    for here, there in zip(nodes.before.tolist(), nodes.after.tolist(), strict=True):
        if here >= 0 and there >= 0:
            names[here] = ground.wiring.names[there]
    own, other = HostTable.of(build), HostTable.of(ground)
    kept = kept_hosts(own, other)
    for row, there in enumerate(kept.tolist()):
        if there >= 0:
            place = int(own.vertex[row]) * wiring.host_port.shape[1] + int(own.host[row])
            at = int(other.vertex[there]) * ground.wiring.host_port.shape[1]
            host_names[place] = ground.wiring.host_names[at + int(other.host[there])]
    return replace(build, wiring=replace(wiring, names=tuple(names), host_names=tuple(host_names)))


def ground_of(builds: Sequence[Build]) -> Build:
    """The one of them that has all switches, cables and hosts of the others, the first if several.

    Raises:
        InputError: none has.
    """
    for candidate in builds:
        if not any(lacking(build, candidate) for build in builds if build is not candidate):
            return candidate
    first, last = builds[0], builds[-1]
    raise InputError.of(
        required="builds of which one has all switches, cables and hosts of the others",
        given=f"one without {lacking(first, last)}, the other without {lacking(last, first)}",
        todo="go by way of a build in between, which has all",
    )


def lacking(build: Build, ground: Build) -> str:
    """A description of what one build has and another lacks; "" if it lacks nothing."""
    nodes = Matching.of(build, ground)
    gone = np.flatnonzero((nodes.before >= 0) & (nodes.after < 0))
    if len(gone):
        return f"switch {build.wiring.names[nodes.before[gone[0]]]} ({len(gone):,} in all)"
    if cables := cables_apart(build, ground, nodes.node_before, nodes.node_after):
        return f"the cable from {cables[0][0]} to {cables[0][1]} ({len(cables):,} in all)"
    here = HostTable.of(build)
    lost = np.flatnonzero(kept_hosts(here, HostTable.of(ground)) < 0)
    if len(lost):
        number = int(here.vertex[lost[0]]) * build.wiring.host_port.shape[1]
        name = build.wiring.host_names[number + int(here.host[lost[0]])]
        return f"host {name} at its place with its address ({len(lost):,} in all)"
    return ""
