"""A cable of an `OvsFabric` with a bridge in its middle, which may carry one direction only."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from mininet_scenarios.ovs.ovsfabric import port_interface
from tests.compilers.targets.live_ovs import BRIDGE


class SplicedCable:
    """The cable from switch u to switch v."""

    def __init__(self, ovs, build, u, v, bridge="middle"):
        w = build.wiring
        self.ovs, self.bridge = ovs, bridge
        self.ends = [
            port_interface(a, int(w.port[a, np.flatnonzero(w.far[a] == b)[0]]))
            for a, b in ((u, v), (v, u))
        ]
        words = ["add-br", bridge, "--", "set", "bridge", bridge, *BRIDGE]
        for number, end in enumerate(self.ends, 1):
            name = f"{bridge}-{number}"
            words += ["--", "add-port", bridge, name, "--", "set", "interface", name]
            words += ["type=patch", f"options:peer={end}", f"ofport_request={number}"]
            words += ["--", "set", "interface", end, f"options:peer={name}"]
        ovs.vsctl(*words)
        self.carries(True, True)

    def carries(self, forth, back):
        """Whether packets from u pass, and those from v; both ports stay up."""
        for number, passes in ((1, forth), (2, back)):
            action = f"output:{3 - number}" if passes else "drop"
            self.ovs.ofctl("add-flow", self.bridge, f"in_port={number},actions={action}")

    def remove(self):
        one, other = self.ends
        words = ["del-br", self.bridge]
        for end, far in ((one, other), (other, one)):  # a switch without power has no ports
            words += ["--", "--if-exists", "set", "interface", end, f"options:peer={far}"]
        self.ovs.vsctl(*words)


@contextmanager
def spliced(ovs, build, u, v):
    """The cable with a bridge in it, and as it was afterwards."""
    cable = SplicedCable(ovs, build, u, v)
    try:
        yield cable
    finally:
        cable.remove()
