"""Traffic followed through tables one way after the other, for tests of weights that follow it."""

from __future__ import annotations

import numpy as np

from compilers.demand.traffic_matrix import Traffic
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local


def followed(build: Build, weight: np.ndarray, traffic: Traffic) -> tuple[np.ndarray, np.ndarray]:
    """What each port sends, and each row carries, [S, …]: a walk by classes and cables alone."""
    w, c, egress = build.wiring, build.tables.classes, build.tables.routes.egress
    sent = np.zeros(w.cables().shape)
    rows = np.zeros(egress.shape)
    to = w.cables()
    back = np.zeros_like(to)
    s, k = np.nonzero(w.far >= 0)
    back[s, w.port[s, k]] = w.far_port[s, k]
    for s, d, amount in zip(traffic.source, traffic.destination, traffic.amount, strict=True):
        rows[s, d] += amount
        k = egress[s, d]
        ports = [c.port[s, k], *c.alternate[s, k]]
        for port, part in zip(ports, weight[s, k] / weight[s, k].sum(), strict=True):
            at, out, much = s, port, amount * part
            while much:
                sent[at, out] += much
                at, came = to[at, out], back[at, out]
                rows[at, d] += much
                k = egress[at, d]
                if k == local(egress):
                    break
                out = c.port[at, k] if c.port[at, k] != came else c.bounce[at, k, 0]
    return sent, rows
