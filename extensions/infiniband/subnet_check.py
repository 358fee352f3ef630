"""The check of the files that OpenSM gets: cables, forwarding tables, service levels and settings.

The target opensm (`extensions.infiniband.opensm`) calls `check_subnet` after it has written the
files of a build. The check reads them back, and compares all that they state with the build, a file
after the other. Then it follows a packet from every switch to every LID through the tables and
cables of the files (`extensions.infiniband.lid_walk`), and looks for credit loops.

A *LID* is the address of a port in the subnet; a host may have several, one for each of its paths.
A service level in a packet chooses its virtual lane, and with lanes a fabric avoids deadlocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compilers.readers.emitted_report import DifferenceList, EmittedReport
from compilers.tables.build import Build
from extensions.infiniband.cable_check import check_definitions, checked_cables
from extensions.infiniband.lane_check import POLICY, check_levels, read_levels
from extensions.infiniband.lid_layers import LidLayers
from extensions.infiniband.lid_walk import LidWalk
from extensions.infiniband.setting_check import check_environment, check_settings
from extensions.infiniband.subnet_files import SubnetFiles
from extensions.infiniband.table_check import Progress, checked_ports


def check_subnet(
    build: Build,
    folder: Path,
    progress: Progress = None,
    lid_layers: LidLayers | None = None,
    accept: tuple[str, ...] = (),
) -> EmittedReport:
    """Compare the files of target opensm with the tables.

    Args:
        build: the build of one plane.
        folder: where fabric.net, lfts.txt, opensm.conf and qos-policy.conf are.
        progress: called with (switches done, all switches).
        lid_layers: the layers, if hosts have several LIDs.
        accept: the differences that the user accepts (`DifferenceList`).
    """
    differences = DifferenceList(accept)
    files = SubnetFiles(build, folder, differences, lid_layers)
    followed = FollowedPairs(0, 0)  # none, if a file cannot be read
    try:
        cables = checked_cables(files)
        check_definitions(files)
        check_environment(files)
        port = checked_ports(files, cables, progress)
        levels = read_levels(files, cables.ends)
        followed = _follow(files, LidWalk(cables.ends, cables.far, port, levels.level))
        check_levels(files, cables.ends, levels)
        check_settings(files)
    except (OSError, UnicodeDecodeError) as error:
        file = Path(getattr(error, "filename", None) or folder)
        differences.add(file, 0, "cannot be read", "a file of target opensm")
    return EmittedReport(
        "opensm",
        switches=int(build.topology.present.sum()),
        pairs=followed.pairs,
        delivered=followed.delivered,
        differences=differences.count,
        examples=tuple(differences.examples),
        accepted=differences.accepted,
    )


@dataclass(frozen=True, slots=True)
class FollowedPairs:
    """How many pairs of switches with hosts were followed, and how many packets arrived."""

    pairs: int
    """How many ordered pairs of switches with hosts there are."""
    delivered: int
    """From how many of them packets arrive at all LIDs of the second switch's hosts."""


def _follow(files: SubnetFiles, walk: LidWalk) -> FollowedPairs:
    """Follow packets between all switches with hosts, and report credit loops."""
    build, delivery = files.build, walk.delivery()
    for loop in walk.credit_loops(delivery.dependencies):
        name = build.wiring.names[loop.vertex]
        stated = f"waits on lane {loop.lane} in a circle, one of them at {name}"
        files.differences.add(files.folder / POLICY, 0, stated, "none")
    has_hosts = build.topology.endpoints & (build.wiring.host_port > 0).any(axis=1)
    delivered = delivery.arrived & has_hosts[:, None] & has_hosts
    np.fill_diagonal(delivered, False)
    switches = int(has_hosts.sum())
    return FollowedPairs(switches * (switches - 1), int(delivered.sum()))
