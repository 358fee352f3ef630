"""Links of a fabric that marks packets: what part of many flows each carries, and has to.

No counter tells the ports that a switch spreads marked packets over apart, so all links are
compared with what the shares of both switches, the first and the next, say of every flow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.ovs.management_socket import port_counters
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from mininet_scenarios.scenario.engine import Deviation, Findings, Flows, HostSample
from mininet_scenarios.verdict.predict import Prediction, crossed

UNEVEN_HASH = 0.03
"""The part of a share that it may be off: hash values do not divide by every number of ports."""


def sent_by_port(ovs: PrivateOvs, bridges: dict[str, int], known: Prediction) -> NDArray[np.int64]:
    """int64[S, ports + 1]: packets that have left each switch by each port.

    Args:
        ovs: runs the bridges.
        bridges: the switch that each is.
        known: of the build.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    counted = known.by_port(np.zeros(known.arcs, np.int64))
    for bridge, rows in port_counters(ovs.folder, bridges).items():
        rows = rows[rows["port"] < counted.shape[1]]
        counted[bridges[bridge], rows["port"]] = rows["sent_packets"]
    return counted


def link_shares(
    known: Prediction, hosts: HostSample, flows: Flows, seen: NDArray[np.int64], sigmas: float
) -> Findings:
    """Whether every link carried as many of the flows as their shares say, but for chance.

    Args:
        known: where packets go.
        hosts: the ends of flows.
        flows: with how many packets of different ports each had for a rate.
        seen: int64[S, ports + 1], packets out of each port meanwhile.
        sigmas: standard deviations that a count may be off.
    """
    arc, flow, share, _ = crossed(known, hosts, flows)
    place, part = np.unique(arc * len(flows.rate) + flow, return_inverse=True)
    chance = np.bincount(part, share)
    arc, flow = np.divmod(place, len(flows.rate))
    amount, arcs = flows.rate[flow], known.arcs
    mean = known.by_port(np.bincount(arc, amount * chance, arcs))
    variance = known.by_port(np.bincount(arc, amount * chance * (1 - chance), arcs))
    off = np.abs(seen - mean) > sigmas * np.sqrt(variance) + 1 + UNEVEN_HASH * mean
    wiring, wrong = known.build.wiring, list[Deviation]()
    switch, link = np.nonzero(wiring.far >= 0)
    for s, k in zip(switch.tolist(), link.tolist(), strict=True):
        port = int(wiring.port[s, k])
        if off[s, port]:
            where = f"{wiring.names[s]} → {wiring.names[wiring.far[s, k]]}"
            wrong.append((where, f"about {mean[s, port]:.0f} packets", f"{seen[s, port]}"))
    return Findings(len(switch), tuple(wrong))
