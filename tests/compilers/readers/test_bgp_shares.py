"""Shares whose next hops BGP finds: read back, and followed under every failure by another walk."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from itertools import chain, pairwise

import networkx as nx
import pytest

from compilers.audit.route_table_file import device_texts, read_tables
from compilers.readers.bgp import bgp_failures
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.readers.emitted import STAR, assert_each_is_told, change, check, write
from tests.compilers.readers.test_bgp_reader import build_of
from tests.compilers.routed import agreed
from tests.compilers.targets.path_vectors import PathVectors

pytestmark = pytest.mark.usefixtures("read_once")

BGP = {"routing": "bgp", "bfd": "on"}
SYSTEMS = ("frr", "sonic", "eos", "nxos", "junos", "nvue")
NEAR = "^[0-9]+( [0-9]+){0,5}$"


SMALL = {"q": 3, "hosts": 2}, {"family": "oft", "q": 2}, STAR


@pytest.mark.parametrize(
    ("name", "parameters"), [*zip(("frr", "nvue", "junos"), SMALL, strict=True)]
)
def test_nothing_differs(name, parameters, tmp_path):
    build = build_of({"spread": True} | parameters)
    write(name, agreed(build, BGP), tmp_path)
    report = check(name, agreed(build, BGP), tmp_path)
    ends = int(build.topology.endpoints.sum())
    assert (report.differences, report.examples) == (0, ())
    assert report.pairs == report.delivered == ends * (ends - 1)


def shares(build, folder):
    """{(switch, other): neighbours} by the lines of frr.conf."""
    a, names = build.addressing, build.wiring.names
    block = {str(a.network(v)): v for v in range(len(names))}
    found = {}
    for v, name in enumerate(names):
        text = (folder / name / "frr.conf").read_text()
        for prefix, number in re.findall(r"^ip route (\S+) 100\.127\.0\.(\d+) table", text, re.M):
            found.setdefault((v, block[prefix]), []).append(int(number) - 1)
    return found


def walked(build, shares, down):
    """Switches of every path of every share with a link or a switch down; None: it is lost."""
    graph = nx.Graph(build.topology.graph.edges().tolist())
    graph.remove_edges_from([down] if isinstance(down, tuple) else [])
    graph.remove_nodes_from([down] if isinstance(down, int) else [])
    away = dict(nx.all_pairs_shortest_path_length(graph))

    def following(at, to):
        # Router ids are in the order of the switches.
        return min(u for u in graph[at] if away[u].get(to, 99) < away[at][to])

    paths = []
    for (source, destination), next_hops in shares.items():
        if source not in graph or destination not in away[source]:
            continue
        for next_hop in next_hops:
            if next_hop in away[source]:
                path = [source, following(source, next_hop)]
                while path[-1] != destination and len(path) < 99:
                    path.append(following(path[-1], destination))
                paths.append(path)
    return paths


def test_failures_against_another_walk(tmp_path):
    build = build_of({"spread": True, "q": 3})
    write("frr", agreed(build, BGP), tmp_path)
    known = shares(build, tmp_path)
    edges = [tuple(edge) for edge in build.topology.graph.edges().tolist()]
    cases = [None, *edges, *range(build.tables.switches)]
    paths = [walked(build, known, down) for down in cases]
    links = [[len(path) - 1 for path in found] for found in paths]
    found = target("frr").reader(target("frr").check(agreed(build, BGP))[1]).failures(tmp_path)
    assert found.cases == 2 * len(cases)
    assert found.followed == 2 * sum(map(len, links))
    assert found.longest == max(chain.from_iterable(links))
    assert found.faults == ()
    assert max(links[0]) == 3
    assert Counter(map(len, known.values())).keys() <= set(range(2, 5))
    cyclic = [down for down, found in zip(cases, paths, strict=True) if waits_in_a_circle(found)]
    assert cyclic == cases  # so lossless priorities are refused; one a hop would take `longest`


def waits_in_a_circle(paths):
    """Whether links wait for each other in a circle, each way holding one while it wants the next.

    The channel dependency graph of one lossless priority (Dally and Seitz 1987).
    """
    next_hops = [[*pairwise(path)] for path in paths]
    waits = nx.DiGraph(pair for links in next_hops for pair in pairwise(links))
    return not nx.is_directed_acyclic_graph(waits)


def test_what_is_not_proved_is_said(tmp_path, monkeypatch):
    """Above a limit failures are not tried, and a report that passes says so."""
    build = build_of({"spread": True, "q": 2})
    write("frr", build, tmp_path, BGP)
    assert check("frr", build, tmp_path, BGP).unproved == ""
    monkeypatch.setattr(bgp_failures, "MOST_SWITCHES", build.tables.switches - 1)
    report = check("frr", agreed(build, BGP), tmp_path)
    assert report.passed
    assert "with a link or a switch down: tried up to 6 switches, these are 7" in report.unproved
    assert report.as_dict()["unproved"] == report.unproved
    found = target("frr").reader(target("frr").check(agreed(build, BGP))[1]).failures(tmp_path)
    assert found.cases == 2
    assert found.followed == 2 * len(walked(build, shares(build, tmp_path), None))


def test_systems_prove_the_same(tmp_path):
    build = build_of({"spread": True, "q": 2})
    cases = {}
    for name in SYSTEMS:
        write(name, agreed(build, BGP), tmp_path / name)
        system = target(name)
        cases[name] = system.reader(system.check(agreed(build, BGP))[1]).failures(tmp_path / name)
        assert cases[name].faults == ()
        if "unnumbered" in system.agreements:
            alone = agreed(build, BGP | {"unnumbered": "on"})
            write(name, alone, tmp_path / f"{name}-alone")
            reader = system.reader(system.check(alone)[1])
            assert reader.failures(tmp_path / f"{name}-alone") == cases[name]
    # A VRF has the routes of the adjacent switches, too: a next hop each.
    adjacent = 2 * len(build.topology.graph.edges())
    frr, *others = (cases[name] for name in SYSTEMS)
    assert others[0].followed > frr.followed + 2 * adjacent
    assert set(others) == {replace(frr, followed=others[0].followed)}


def test_paths_that_policies_make_too_short_are_told(tmp_path):
    build = build_of({"spread": True, "q": 3})
    write("frr", agreed(build, BGP), tmp_path)
    for path in tmp_path.glob("*/frr.conf"):
        change(path, NEAR, NEAR.replace("5", "1"))
        change(path, "{0,4}$", "{0,0}$")
    report = check("frr", agreed(build, BGP), tmp_path)
    assert report.differences
    told = " ".join(str(example) for example in report.examples)
    assert re.search(r"with (link|switch) .* down packets of \S+ for \S+ by 100\.127\S+ are", told)


CHANGES = {
    ("frr", "frr.conf"): (
        ("10.0.0.16/30 100.127.0.4 table", "10.0.0.16/30 100.127.0.5 table"),
        ("100.127.0.4 table 5000", "100.127.0.4 table 5001"),
        ("10.0.0.16/30 100.127.0.4 table 5000", "10.0.0.16/30 100.127.0.4"),
        ("  network 100.127.0.1/32\n", "  network 100.127.0.2/32\n"),
        ("permit 100.127.0.0/16 ge 32 le 32", "permit 100.127.0.0/16 ge 31 le 31"),
        ("zebra nexthop-group keep 1\n", ""),
        ("no ip nht resolve-via-default\n", ""),
    ),
    ("sonic", "frr.conf"): (
        (" ip route 10.0.0.16/30 100.127.0.4 nexthop-vrf default tag 2\n", ""),
        ("100.127.0.4 nexthop-vrf default", "100.127.0.5 nexthop-vrf default"),
        ("  network 100.127.0.1/32\n", ""),
        ("zebra nexthop-group keep 1\n", ""),
        ("no fpm use-next-hop-groups\n", ""),
    ),
    ("sonic", "config_db.json"): (
        ('"nexthop": "100.127.0.2,', '"nexthop": "100.127.0.3,'),
        ('"frr_mgmt_framework_config": "true",', ""),
        ('"nexthop-vrf": "default,default', '"nexthop-vrf": "default,Vrf-hosts'),
    ),
    ("eos", "eos.cfg"): (
        ("ip route vrf hosts 10.0.0.16/30 egress-vrf default 100.127.0.4\n", ""),
        (
            "10.0.0.16/30 egress-vrf default 100.127.0.4",
            "10.0.0.16/30 egress-vrf default 100.64.0.3",
        ),
        ("ip route vrf hosts 10.0.0.16/30 egress-vrf default", "ip route vrf hosts 10.0.0.16/30"),
        ("ip route 100.127.0.1/32 Null0 254\n", ""),
        ("   seq 10 permit 100.127.0.0/16 ge 32 le 32\n", ""),
    ),
    ("eos", "avd.json"): (
        ("egress-vrf default 100.127.0.4", "egress-vrf default 100.127.0.5"),
        ("permit 100.127.0.0/16 ge 32 le 32", "permit 100.127.0.0/17 ge 32 le 32"),
    ),
    ("nxos", "nxos.cfg"): (
        ("  ip route 10.0.0.16/30 100.127.0.4 vrf default\n", ""),
        ("10.0.0.16/30 100.127.0.4 vrf default", "10.0.0.16/30 100.127.0.4"),
        ("ip route 100.127.0.1/32 Null0 254\n", ""),
        ("seq 10 permit 100.127.0.0/16 ge 32 le 32", "seq 10 permit 100.127.0.0/16 ge 31 le 31"),
    ),
    ("nvue", "startup.yaml"): (
        ("100.127.0.4 nexthop-vrf default", "100.127.0.5 nexthop-vrf default"),
        ("100.127.0.4 nexthop-vrf default", "100.127.0.4"),
        ("            no ip nht resolve-via-default\n", ""),
        ("            exit-vrf\n", ""),
        ("      hosts: {}\n", ""),
        ("10.0.0.2 swp4 nexthop-vrf hosts", "10.0.0.2 swp3 nexthop-vrf hosts"),
        ('"100.127.0.0/16": {min-prefix-len: 32', '"100.127.0.0/16": {min-prefix-len: 31'),
        ('            "100.127.0.1/32": {', '            "100.127.0.9/32": {'),
    ),
    ("junos", "junos.set"): (
        ("route 10.0.0.16/30 next-hop 100.127.0.4\n", "route 10.0.0.16/30 next-hop 100.127.0.5\n"),
        ("set routing-instances polarfab routing-options static defaults resolve\n", ""),
        (
            "resolution rib polarfab.inet.0 resolution-ribs inet.0",
            "resolution rib x resolution-ribs y",
        ),
        ("set routing-options static route 100.127.0.1/32 discard\n", ""),
        ("term 10 from route-filter 100.127.0.0/16 prefix-length-range /32-/32\n", "term 10\n"),
        ("term 20 from route-filter 100.127.0.0/16 prefix-length-range /32-/32\n", "term 20\n"),
    ),
}


@pytest.mark.parametrize("place", CHANGES, ids=" ".join)
def test_each_change_is_told(place, tmp_path):
    name, file = place
    build = build_of({"spread": True, "q": 2})
    write(name, build, tmp_path, BGP)
    assert check(name, build, tmp_path, BGP).examples == ()
    assert_each_is_told(name, build, tmp_path, file, CHANGES[place], BGP)


def test_a_system_that_cannot_says_why(tmp_path):
    reason = "a next hop of it names no network instance"
    with pytest.raises(InputError, match=rf"with eBGP \({reason}\) cannot do"):
        write("srlinux", agreed(build_of({"spread": True, "q": 3}), BGP), tmp_path)


@pytest.mark.parametrize(
    ("name", "options", "wrong"),
    [
        ("frr", {"nexthops": "10.0.0.0/16"}, "other than those of hosts"),
        ("frr", {"nexthops": "192.0.2.0/29"}, "at least 14 addresses"),
        ("sonic", {"nexthops6": "fd64::/60"}, "other than those of links"),
    ],
)
def test_pools_of_next_hops(name, options, wrong, tmp_path):
    with pytest.raises(InputError, match=wrong):
        write(name, build_of({"spread": True, "q": 3}), tmp_path, BGP | options)


def test_frr_says_what_next_hops_resolve_to(tmp_path):
    """As FRR 8.4.4 printed a share of table 5000 whose next hops static routes resolve."""
    hops = []
    next_hops = ("100.127.0.5", "192.168.7.2", "v0"), ("100.127.0.8", "fe80::1", "v1")
    for found, next_hop, port in next_hops:
        hops.append({"flags": 5, "ip": found, "active": True, "recursive": True, "weight": 1})
        known = {"ip": next_hop, "interfaceName": port, "resolver": True, "fib": True}
        hops.append({"flags": 3, "active": True, "weight": 1} | known)
    route = {"prefix": "10.0.0.8/30", "selected": True, "installed": True, "table": 5000}
    text = json.dumps({"10.0.0.8/30": [route | {"distance": 1, "nexthops": hops}]})
    (tmp_path / "0.json").write_text(text)
    held = read_tables(device_texts([tmp_path / "0.json"])).tables
    assert held["5000"]["10.0.0.8/30"] == ((("192.168.7.2", "v0", 1), ("fe80::1", "v1", 1)),)


def test_management_addresses_are_no_next_hops(tmp_path):
    build = build_of({"spread": True, "q": 3})
    management = ["100.127.0.9", *build.wiring.management[1:]]
    wiring = replace(build.wiring, management=management)
    with pytest.raises(InputError, match="other than those of management"):
        write("frr", agreed(replace(build, wiring=wiring), BGP), tmp_path)


@pytest.mark.parametrize(
    ("name", "line", "pool"),
    [
        ("nxos", r"^ip(v6)? route {} Null0 254\n", "10.0.0.0/27"),
        ("nvue", r'^ +"{}": {{address-family: .* blackhole.*\n', "fd::/61"),
        ("junos", r"^set routing-options (rib inet6.0 )?static route {} .*\n", "10.0.0.0/27"),
    ],
)
def test_the_route_that_discards_the_rest_is_needed(name, line, pool, tmp_path):
    """Also where the other static routes of the table are inside the switch's own prefix."""
    build = build_of({"spread": True, "q": 2})
    write(name, build, tmp_path, BGP)
    (file,) = (tmp_path / "3").iterdir()
    text, count = re.subn(line.format(pool), "", file.read_text(), flags=re.M)
    assert count in {1, 2}
    file.write_text(text)
    (found,) = check(name, agreed(build, BGP), tmp_path).examples
    assert f"no route that discards what is left of {pool}" in str(found)


def test_paths_over_another_neighbour_are_last_among_equals(tmp_path):
    """Ports that are left without a link, against routers that announce paths to each other."""
    build = build_of({"spread": True, "q": 3})
    write("frr", agreed(build, BGP), tmp_path)
    reader = target("frr").reader(target("frr").check(agreed(build, BGP))[1])
    w, routers, others = build.wiring, PathVectors(build, tmp_path), PathVectors(build, None)
    differ = 0
    for u, v in build.topology.graph.edges().tolist():
        closed = {frozenset((u, v))}
        paths, usual = routers.converged(closed), others.converged(closed)
        differ += paths != usual
        port = w.port_name(u, int(w.port[u][w.far[u] == v][0]))
        left = reader.ports_left(tmp_path, {(w.names[u], port)})
        for (at, to), path in paths.items():
            if at != to:
                (over,) = w.port[at][w.far[at] == path[1]].tolist()
                assert left[w.names[at]][str(build.addressing.network(to))] == {
                    w.port_name(at, over)
                }
    assert differ
