"""A build whose tables share packets from hosts as the emitted files do.

`verify` computes the guarantee of emitted files from it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compilers.readers.emitted_forwarding import bare
from compilers.readers.emitted_report import EmittedReport
from compilers.tables.build import Build
from inventory.problems import InputError


def with_emitted_shares(build: Build, report: EmittedReport) -> Build:
    """The build with the weights that were read back.

    Files that pass have the ports of the tables. A switch that cannot have all alternates of a
    class, or cannot have weights, has other shares than the tables: these are taken.

    Args:
        build: the build that was emitted.
        report: the report on the emitted files, which has passed.

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
            weight_of = {bare(port): share for port, share in stage}
            ports = int(classes.port[vertex, number]), *classes.alternate[vertex, number].tolist()
            weight[vertex, number] = [weight_of.get(port, 0) if port else 0 for port in ports]
    weighted = replace(classes, alternate=np.asarray(classes.alternate), weight=weight)
    return replace(
        build,
        tables=replace(build.tables, classes=weighted),
        forwarding=replace(build.forwarding, weights="any", minimal_share=None),
    )
