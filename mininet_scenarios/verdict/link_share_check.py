"""The check that links carried the shares of flows that the tables give them.

The exercise of rules (`mininet_scenarios.traffic.rule_exercise`) calls it for programs that need
Open vSwitch. An arc is a link in one direction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.scenario.check import Check, Mismatch
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.observations import Flows
from mininet_scenarios.verdict.flow_rates import FlowSpread
from mininet_scenarios.verdict.predict import Prediction

UNEVEN_HASH = 0.03
"""The relative error that a share may have: hash values do not divide by every number of ports."""


def link_share_check(
    prediction: Prediction, hosts: HostSample, flows: Flows, sent: NDArray[np.int64], sigmas: float
) -> Check:
    """The check that every link carried as many packets as its shares of flows, within chance.

    Args:
        prediction: has the paths.
        hosts: the ends of the flows.
        flows: the flows; their rates are the numbers of packets, which all have different ports.
        sent: int64[S, ports + 1], the packets that left by each port meanwhile.
        sigmas: by how many standard deviations a count may differ from its mean.
    """
    spread = FlowSpread.of(prediction, hosts, flows)
    # A flow can cross an arc on several of its paths: their shares are added. An arc and a flow
    # make one number, arc · n + flow.
    flow_count, arc_count = len(flows.rate), prediction.arcs
    crossing, crossing_of_row = np.unique(
        spread.arc * flow_count + spread.flow, return_inverse=True
    )
    arc, flow = np.divmod(crossing, flow_count)
    # The packets of a flow that cross an arc are binomially distributed.
    probability = np.bincount(crossing_of_row, spread.share)
    packets = flows.rate[flow]  # here rates are numbers of packets
    mean = prediction.by_port(np.bincount(arc, packets * probability, arc_count))
    variance_by_arc = np.bincount(arc, packets * probability * (1 - probability), arc_count)
    variance = prediction.by_port(variance_by_arc)
    # One packet more may be missing or left over: counts are whole numbers, and means are not.
    differs = np.abs(sent - mean) > sigmas * np.sqrt(variance) + 1 + UNEVEN_HASH * mean
    wiring = prediction.build.wiring
    mismatches: list[Mismatch] = []
    switches, links = np.nonzero(wiring.far >= 0)
    for switch, link in zip(switches.tolist(), links.tolist(), strict=True):
        port = int(wiring.port[switch, link])
        if differs[switch, port]:
            where = f"{wiring.names[switch]} → {wiring.names[wiring.far[switch, link]]}"
            expected = f"about {mean[switch, port]:.0f} packets"
            mismatches.append(Mismatch(where, expected, f"{sent[switch, port]}"))
    return Check.of("links have their shares of packets", len(switches), tuple(mismatches))
