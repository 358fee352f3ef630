"""Kernels that forward by uSID carriers: all pairs, every path of a weighted set, link by link."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from compilers.targets.target_lookup import target
from tests.compilers.routing.paths import graph_of, wanted
from tests.extensions.host_paths.read_srv6 import read_host
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live
TTL = 64
FLOWS = 3000
STRAY = 12
"""Packets of neighbour discovery and refusals on a link while flows are counted."""


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    def bring_up(q, orders):
        folder = tmp_path_factory.mktemp("live")
        routing = "routing: {balance: compact-valiant, minimal_share: 2.5/(q+1.5)}\n"
        spec = f"name: lab\ntopology: {{family: polarfly, q: {q}}}\n{routing}"
        (folder / "fabric.yaml").write_text(f'{spec}addressing: {{ipv6: "fd00::/48"}}\n')
        save(compile_fabric(load_fabric(folder / "fabric.yaml")), folder / "b")
        build = load(folder / "b")
        target("linux").render(build, folder / "out" / "linux")
        for decap in ("host", "switch"):
            target("srv6").render(build, folder / "out" / decap, options={"decap": decap})
        script = Path(__file__).with_name("live_srv6.py")
        words = [str(folder / "b"), str(folder / "out"), json.dumps(orders)]
        printed = printed_apart(script, *words, timeout=300)
        return build, folder / "out", json.loads(printed)

    return bring_up


PAIRS = [[0, 2], [2, 0], [4, 11], [12, 1]]
ADJACENCY = [0, 2, "fc00:0:f002:1003:a000:e000::", 50]
"""From switch 0, not by its minimal port: by its third link."""


@pytest.fixture(scope="module")
def small(live):
    flows = [[s, d, FLOWS] for s, d in PAIRS]
    return live(3, {"ping": True, "flows": flows, "through": [ADJACENCY], "switch": True})


def along(build, path):
    """Every link of a path: its switch and its number there."""
    for here, there in pairwise(path):
        (link,) = (build.wiring.far[here] == there).nonzero()[0].tolist()
        yield here, link


def took_every_path(build, out, pair, sent):
    """All links of a path carried the same flows, as many as its weight says; together, all."""
    source, destination = pair
    weights = read_host(out / "host" / "hosts" / f"h{source}")[
        destination_prefix(build, destination)
    ]
    paths = wanted(graph_of(build.topology), source, destination)
    assert len(weights) == len(paths) > 1
    total, counted = sum(weights.values()), 0
    for path in paths:
        carrier = tuple(0x1001 + v for v in path)
        part = weights[*carrier, 0xA000, 0xE000] / total
        edges = list(along(build, [source, *path]))
        packets = [sent[switch][link] for switch, link in edges]
        assert max(packets) - min(packets) <= STRAY, (path, packets)
        deviation = (FLOWS * part * (1 - part)) ** 0.5
        assert abs(packets[0] - FLOWS * part) < 5 * deviation + STRAY, (path, packets, part)
        counted += packets[0]
    assert counted == pytest.approx(FLOWS, abs=FLOWS / 100)


def destination_prefix(build, vertex):
    return f"{build.addressing.host6(vertex, 0)}/128"


def test_every_pair_answers_through_carriers(small):
    """What is carried keeps its hop limit: no switch saw the inner packet."""
    build, _, seen = small
    order = build.tables.switches
    everyone = [[TTL if s != d else 0 for d in range(order)] for s in range(order)]
    assert seen["pings"] == everyone


def test_every_pair_answers_when_switches_take_the_header_off(small):
    """The last switch forwards the inner packet to the host, which costs it one hop."""
    build, _, seen = small
    order = build.tables.switches
    assert seen["switch"] == [
        [TTL - 1 if s != d else 0 for d in range(order)] for s in range(order)
    ]


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_flows_take_every_path_by_weight_link_by_link(small, number):
    build, out, seen = small
    took_every_path(build, out, PAIRS[number], seen["flows"][number])


def test_an_adjacency_sid_takes_its_link(small):
    build, _, seen = small
    (sent,) = seen["through"]
    assert sent[0][2] == pytest.approx(50, abs=STRAY)
    near = int(build.wiring.far[0, 2])
    path = [0, near, *wanted(graph_of(build.topology), near, 2)[0]]
    assert all(sent[v][link] >= 50 for v, link in along(build, path))


@pytest.mark.long
def test_q7_takes_the_paths_of_the_white_paper(live):
    """Between switches 10 and 19, counted from 1, and both ways between others."""
    pairs = [[9, 18], [18, 9], [0, 33], [25, 41]]
    build, out, seen = live(7, {"ping": True, "flows": [[*pair, FLOWS] for pair in pairs]})
    order = build.tables.switches
    everyone = [[TTL if s != d else 0 for d in range(order)] for s in range(order)]
    assert seen["pings"] == everyone
    for pair, sent in zip(pairs, seen["flows"], strict=True):
        took_every_path(build, out, pair, sent)
