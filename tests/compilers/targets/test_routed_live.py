"""Linux kernels that forward by the linux and frr targets: routes, pings, shares, a link down."""

import json
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from compilers.targets.target_lookup import target
from compilers.topology.families import FAMILIES
from tests.compilers.routed import agreed
from tests.compilers.targets.makers import (
    FLOWS,
    TTL,
    hops,
)
from tests.compilers.targets.read_routed import (
    MAIN,
    read_frr,
    read_kernel,
    read_linux,
)
from tests.polarfab.forked import printed_apart


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """Compile, render, bring up; returns the build, its files and what live_routed.py saw."""

    def bring_up(name, q, wanted, routing="", control=None):
        folder = tmp_path_factory.mktemp("live")
        spec = f"name: lab\ntopology: {{family: polarfly, q: {q}}}\nrouting: {{{routing}}}\n"
        (folder / "fabric.yaml").write_text(f'{spec}addressing: {{ipv6: "fd00::/48"}}\n')
        build = compile_fabric(load_fabric(folder / "fabric.yaml"))
        save(agreed(build, control or {}), folder / "b")
        build = load(folder / "b")
        target(name).render(build, folder / "out")
        script = Path(__file__).with_name("live_routed.py")
        places = [str(folder / "b"), str(folder / "out"), name, json.dumps(wanted)]
        printed = printed_apart(script, *places, timeout=240)
        return build, folder / "out", json.loads(printed)

    return bring_up


pytestmark = pytest.mark.live
OURS, FRRS = ("80",), ("static", "196", "bgp", "186")


@pytest.fixture(scope="module")
def protected(live):
    return live("linux", 2, {"ping": True, "down": [0, 1]}, "protect: link")


@pytest.fixture(scope="module")
def routers(live):
    return live("frr", 2, {"ping": True, "down": [0, 1]}, "protect: link")


@pytest.fixture(scope="module")
def speakers(live):
    """eBGP with BFD, and the static routes of the same build to compare with."""
    topology = FAMILIES["polarfly"].build({"q": 2})
    after = shortest(topology, (0, int(topology.graph.padded()[0, 1])))
    wanted = {"ping": True, "down": [0, 1], "after": after}
    build, out, seen = live("frr", 2, wanted, control={"routing": "bgp", "bfd": "on"})
    target("frr").render(replace(build, control={}), out.parent / "static")
    return build, out.parent / "static", seen


def shortest(topology, dead):
    """The TTL of every answer over shortest paths without a link."""
    graph = nx.Graph(topology.graph.edges().tolist())
    graph.remove_edge(*dead)
    away = dict(nx.all_pairs_shortest_path_length(graph))
    everyone = range(topology.graph.order)
    return [[TTL - 1 - away[s][d] if s != d else 0 for d in everyone] for s in everyone]


def expected(build, dead=()):
    """The TTL of every answer, by who asked and who answered; 0 where there is none."""
    everyone = range(build.tables.switches)

    def ttl(asks, answers):
        there, back = hops(build, asks, answers, dead), hops(build, answers, asks, dead)
        return 0 if asks == answers or there is None or back is None else TTL - 1 - back

    return [[ttl(s, d) for d in everyone] for s in everyone]


def best(tables):
    """The first choice of every prefix: what zebra puts into the kernel."""
    return {
        table: {prefix: choices[:1] for prefix, choices in rows.items()}
        for table, rows in tables.items()
    }


def held(build, out, kernel, protocols, read):
    """Every kernel holds what its file says, and nothing else."""
    for node, (ipv4, ipv6) in zip(build.wiring.names, kernel, strict=True):
        wanted = read(out / node)[0]
        wanted = best(wanted) if read is read_frr else wanted
        assert read_kernel(ipv4, ipv6, protocols) == wanted


def test_frr_puts_the_tables_into_the_kernel(routers):
    build, out, seen = routers
    held(build, out, seen["kernel"], FRRS, read_frr)
    tables = read_kernel(*seen["kernel"][0], FRRS)
    assert len(tables[MAIN]) == 2 * (build.tables.switches - 1)


def test_frr_every_pair_answers_over_minimal_paths(routers):
    build, _, seen = routers
    assert min(seen["known"]) >= 2 * 2  # neighbours: none is counted, none has to be asked for
    assert seen["pings"] == [expected(build)] * 2
    assert {ttl for row in seen["pings"][0] for ttl in row} == {0, TTL - 2, TTL - 3}


def test_frr_repairs_in_the_order_of_the_tables(routers):
    build, out, seen = routers
    dead = {0, int(build.wiring.far[0, 1])}
    assert seen["down"] == [expected(build, dead)] * 2 != seen["pings"]
    held(build, out, seen["again"], FRRS, read_frr)
    assert seen["pings again"] == seen["pings"]


def test_bgp_takes_the_compiled_paths(speakers):
    build, static, seen = speakers
    held(build, static, seen["kernel"], FRRS, read_frr)
    assert seen["pings"] == [expected(build)] * 2


def test_bgp_finds_other_paths_after_a_failure(speakers):
    build, static, seen = speakers
    wanted = shortest(build.topology, (0, int(build.wiring.far[0, 1])))
    assert seen["down"] == [wanted] * 2 != seen["pings"]
    held(build, static, seen["again"], FRRS, read_frr)
    assert seen["pings again"] == seen["pings"]


def test_linux_kernel_holds_the_file(protected):
    build, out, seen = protected
    held(build, out, seen["kernel"], OURS, read_linux)


def test_linux_every_pair_answers_over_minimal_paths(protected):
    build, _, seen = protected
    assert seen["pings"] == [expected(build)] * 2


def test_linux_repairs_in_the_order_of_the_tables(protected):
    build, _, seen = protected
    dead = {0, int(build.wiring.far[0, 1])}
    wanted = expected(build, dead)
    assert seen["down"] == [wanted] * 2
    assert wanted != expected(build)
    assert all(ttl for s, row in enumerate(wanted) for d, ttl in enumerate(row) if s != d)


def test_linux_takes_a_link_back(protected):
    build, out, seen = protected
    held(build, out, seen["again"], OURS, read_linux)
    assert seen["pings again"] == seen["pings"]


def test_linux_loads_a_second_time(protected):
    _, out, seen = protected
    assert read_kernel(*seen["loaded twice"], OURS) == read_linux(out / "0")[0]


def shared(live, name, routing):
    """Flows from host 0 to one behind a common neighbour: [{port: packets}], {port: weight}."""
    apart = [[0, 2, version, FLOWS] for version in (4, 6)]
    build, _, seen = live(name, 2, {"share": apart}, routing)
    c, egress = build.tables.classes, int(build.tables.routes.egress[0, 2])
    ports = [int(c.port[0, egress]), *c.alternate[0, egress].tolist()]
    weight = {p: n for p, n in zip(ports, c.weight[0, egress].tolist(), strict=True) if p}
    links = build.wiring.port[0].tolist()
    sent = [{p: found[build.wiring.port_name(0, p)] for p in links if p} for found in seen["share"]]
    return sent, weight


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("linux", ", minimal_share: 2/3"),
        ("frr", ""),
        pytest.param("linux", "", marks=pytest.mark.long),
    ],
)
def test_flows_from_hosts_are_shared_by_weight(live, name, share):
    sent, weight = shared(live, name, f"balance: compact-valiant{share}")
    total = sum(weight.values())
    assert sorted(weight.values()) == ([1, 2] if share else [1, 1])
    for by_port in sent:
        assert sum(by_port.values()) == pytest.approx(FLOWS, abs=FLOWS / 100)
        for port, packets in by_port.items():
            part = weight.get(port, 0) / total
            deviation = (FLOWS * part * (1 - part)) ** 0.5
            assert abs(packets - FLOWS * part) < 5 * deviation + 10, (by_port, weight)


@pytest.mark.long
def test_linux_all_pairs_of_q4(live):
    build, out, seen = live("linux", 4, {"ping": True}, "protect: node")
    held(build, out, seen["kernel"], OURS, read_linux)
    assert seen["pings"] == [expected(build)] * 2
