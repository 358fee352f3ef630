"""The build whose tables share packets from hosts as what was emitted does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compilers.readers.emitted_forwarding import bare
from compilers.readers.emitted_report import EmittedReport
from compilers.tables.build import Build
from inventory.problems import InputError


def with_emitted_shares(build: Build, report: EmittedReport) -> Build:
    """The build with the weights that were read back.

    Files that pass have the ports of the tables. Where a switch cannot have all alternates of a
    class, or no weights, its shares are others: those are taken.

    Args:
        build: that was emitted.
        report: on what was read; it has passed.

    Raises:
        InputError: shares are no part of what was read.
    """
    if report.shares is None:
        required = "files of a target whose shares are read back"
        todo = "leave it out: polarfab throughput BUILD --guarantee has that of the tables"
        raise InputError.of(required, report.target, todo, key="guarantee")
    if not report.shares:
        return build
    classes = build.tables.classes
    weight = np.array(classes.weight)
    for vertex, shares in report.shares.items():
        for number, stage in shares.items():
            read = {bare(port): parts for port, parts in stage}
            ports = int(classes.port[vertex, number]), *classes.alternate[vertex, number].tolist()
            weight[vertex, number] = [read.get(port, 0) if port else 0 for port in ports]
    weighted = replace(classes, alternate=np.asarray(classes.alternate), weight=weight)
    return replace(
        build,
        tables=replace(build.tables, classes=weighted),
        forwarding=replace(build.forwarding, weights="any", minimal_share=None),
    )
