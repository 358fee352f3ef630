"""Put the load-balancing weights that were read back from emitted files into a build's tables.

`polarfab verify --emitted` computes the guaranteed throughput of the files from the result.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compilers.readers.emitted_forwarding import unmarked
from compilers.readers.emitted_report import EmittedReport
from compilers.tables.build import Build
from inventory.problems import InputError


def with_emitted_shares(build: Build, report: EmittedReport) -> Build:
    """The build with the weights that were read back.

    Files that pass the check have the ports of the tables. But a system that cannot share packets
    over all alternates of a class, or cannot have weights, has other weights than the tables. The
    result has the weights of the files, which follow no policy: so its forwarding may have any.

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
    for vertex, port_set_of_class in report.shares.items():
        for egress_class, port_set in port_set_of_class.items():
            weight_of = {unmarked(port): port_weight for port, port_weight in port_set}
            minimal_port = int(classes.port[vertex, egress_class])
            ports = minimal_port, *classes.alternate[vertex, egress_class].tolist()
            weight[vertex, egress_class] = [weight_of.get(port, 0) if port else 0 for port in ports]
    weighted = replace(classes, alternate=np.asarray(classes.alternate), weight=weight)
    return replace(
        build,
        tables=replace(build.tables, classes=weighted),
        forwarding=replace(build.forwarding, weights="any", minimal_share=None),
    )
