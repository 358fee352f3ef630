"""Every path of every pair under every single failure, by the emitted text alone, and channels."""

from __future__ import annotations

import numpy as np
import pytest

from compilers.proof.lossless.channels import find_channels, switch_ranks
from polarfab.fabric import Fabric
from tests.compilers.targets.ovs_text_fabric import TextFabric, channels_needed


def polarstar(supernode, q, degree):
    return {"family": "polarstar", "supernode": supernode, "q": q, "degree": degree}


POLARFLY = [{"family": "polarfly", "q": q} for q in (2, 3, 4, 5, 7, 8)]
POLARSTARS = [
    *(polarstar("inductive-quad", q, d) for q, d in ((2, 3), (3, 3), (2, 4), (4, 3), (5, 3))),
    *(polarstar("paley", q, d) for q, d in ((2, 2), (3, 2), (4, 4))),
]
GRAPHS = [
    *({"family": "slimfly", "q": q} for q in (4, 5)),
    {"family": "jellyfish", "nodes": 30, "degree": 6, "seed": 0},
    {"family": "dragonfly", "h": 2},
    {"family": "hyperx", "sides": "3x3x3"},
    {"family": "fat-tree", "k": 4},
    {"family": "megafly", "h": 2, "a": 4},
]
PN = [{"family": "pn", "q": q} for q in (2, 3, 4, 5)]
OFT = [{"family": "oft", "q": q} for q in (2, 3, 4, 5)]
BOUNCED = {"balance": "compact-valiant", "adjacent": "bounce"}
KINDS = {
    "bounced": (BOUNCED, [*POLARFLY, *POLARSTARS, *GRAPHS], [POLARFLY[1], GRAPHS[-1]]),
    "spread": (
        {"balance": "spread"},
        [*POLARFLY[1:], *OFT, *POLARSTARS, *GRAPHS[:-1]],
        [POLARFLY[1], OFT[0]],
    ),
    "ecmp": ({"balance": "ecmp"}, [*POLARSTARS, *GRAPHS, *PN, *OFT], [PN[0]]),
}
"""Each kind of paths: the policy, the fabrics that have it, and those of the short tests."""
EMITTED = [
    pytest.param(
        routing,
        topology,
        id=f"{word}-{'-'.join(map(str, topology.values()))}",
        marks=[] if topology in short else [pytest.mark.long],
    )
    for word, (routing, topologies, short) in KINDS.items()
    for topology in topologies
]


def by_port(wiring):
    """int[S, P + 1] twice: the switch behind each port, and its port."""
    far = np.full((len(wiring.port), int(wiring.port.max()) + 1), -1)
    far_port = far.copy()
    switch, link = np.nonzero(wiring.far >= 0)
    far[switch, wiring.port[switch, link]] = wiring.far[switch, link]
    far_port[switch, wiring.port[switch, link]] = wiring.far_port[switch, link]
    return far, far_port


@pytest.mark.parametrize(("routing", "topology"), EMITTED)
def test_every_way(routing, topology, tmp_path):
    routing = {**routing, "protect": "node"}
    fabric = Fabric.from_spec({"name": "lab", "topology": topology, "routing": routing})
    report = fabric.verify(method="walk").reports[0]
    assert report.passed
    fabric.render("ovs", tmp_path / "out", unverified=True, check=False)
    (emitted,) = fabric.check_emitted(tmp_path / "out")
    assert emitted.passed

    build, rank = fabric.build, switch_ranks(fabric.build)
    text = TextFabric(tmp_path / "out", build.wiring.names, *by_port(build.wiring), rank)
    whole = text.every_path()
    walks = {"": whole, "link": text.one_link_down(whole), "node": text.one_switch_down(whole)}
    assert all(packets.arrived.all() for packets in walks.values())
    # Slim Fly q=5 has one shortest path a pair, and no paths beside it.
    longest = {case.kind: case.max_hops for case in report.failures}
    longest[""] = report.alternates.max_hops if report.alternates else report.max_hops
    assert {kind: packets.links.max() for kind, packets in walks.items()} == {
        kind: longest[kind] for kind in walks
    }
    found = find_channels(build, "valley", ("link", "node"))
    assert found.is_deadlock_free
    assert channels_needed(rank, *walks.values()) == found.count
