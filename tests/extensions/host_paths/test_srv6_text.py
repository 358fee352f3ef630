"""The srv6 target: carriers against paths by brute force, followed through the switches' files."""

import re
from dataclasses import replace
from ipaddress import IPv6Address, IPv6Network

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.fib import Fib
from compilers.targets.target_lookup import target
from extensions.host_paths.usid_blocks import UsidBlock, require_numbers
from inventory.problems import InputError
from tests.compilers.routed import routed
from tests.compilers.routing.paths import graph_of, wanted
from tests.extensions.host_paths.read_srv6 import cables, carried, read_frr, read_host, read_switch
from tests.vtysh import NEEDS_VTYSH, judged

HOST, DECAPSULATE = 0xA000, 0xE000


def with_ipv6(build):
    plan = replace(
        build.addressing, ipv6=IPv6Network("fd00::/48"), hierarchy=build.topology.hierarchy
    )
    return replace(build, addressing=plan)


def compiled(folder, q, hosts=1, share="equal-cost"):
    """Compact Valiant with edge-disjoint alternates, as a user gets it."""
    (folder / "fabric.yaml").write_text(
        f"name: lab\ntopology: {{family: polarfly, q: {q}}}\nhosts_per_node: {hosts}\n"
        "addressing: {ipv6: 'fd00::/48'}\n"
        f"routing: {{balance: compact-valiant, minimal_share: {share}}}\n"
    )
    return compile_fabric(load_fabric(folder / "fabric.yaml"))


def rendered(build, folder, **options):
    """The files of all switches, and {source: {prefix: {uSIDs: weight}}} of the first hosts."""
    target("srv6").render(build, folder, options=options)
    w = build.wiring
    hosts = w.host_port.shape[1]
    switches = [read_switch(folder / name) for name in w.names]
    first = {
        v: read_host(folder / "hosts" / w.host_names[v * hosts])
        for v in range(len(w.names))
        if w.host_port[v, 0]
    }
    return switches, first


def test_the_paths_of_the_white_paper(tmp_path):
    """v4.0, table 2: switch 10 to switch 19 of q = 7, counted from 1."""
    build = compiled(tmp_path, 7)
    target("srv6").render(build, tmp_path / "out", options={"host": "h9"})
    found = read_host(tmp_path / "out" / "hosts" / "h9")[f"{build.addressing.host6(18, 0)}/128"]
    assert [[usid - 0x1000 for usid in carrier[:-2]] for carrier in found] == [
        *([29, 19], [2, 11, 19], [15, 31, 19], [22, 51, 19]),
        *([36, 20, 19], [43, 40, 19], [50, 49, 19]),
    ]
    assert {carrier[-2:] for carrier in found} == {(HOST, DECAPSULATE)}
    assert [path.name for path in (tmp_path / "out" / "hosts").iterdir()] == ["h9"]


@pytest.mark.parametrize("q", [2, 3, 5, pytest.param(8, marks=pytest.mark.long)])
def test_every_carrier_is_a_path_of_the_set_and_is_followed(q, tmp_path):
    build = compiled(tmp_path, q)
    graph = graph_of(build.topology)
    switches, hosts = rendered(build, tmp_path / "out")
    cable = cables(build)
    order = build.tables.switches
    for source in range(0, order, 1 if q < 5 else 9):
        assert len(hosts[source]) == order - 1
        for there in set(range(order)) - {source}:
            routes = hosts[source][f"{build.addressing.host6(there, 0)}/128"]
            paths = [carried(cable, switches, source, carrier) for carrier in routes]
            assert sorted(p for p, _ in paths) == sorted(wanted(graph, source, there))
            assert {left for _, left in paths} == {(HOST, DECAPSULATE)}
            assert len(set(routes.values())) == 1


@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        ("polarstar", {"q": 2, "supernode": "inductive-quad", "degree": 3}),
        ("pn", {"q": 2}),
        ("oft", {"q": 2}),
    ],
)
def test_other_families_by_their_tables(family, parameters, tmp_path):
    build = with_ipv6(routed(family, spread=True, **parameters))
    order = build.tables.switches
    after = Fib.of(build.tables, build.wiring.far_by_port()).next_switch(np.arange(order)).tolist()

    def minimal(at, there):
        path = [at]
        while path[-1] != there:
            path.append(after[path[-1]][there])
        return path

    switches, hosts = rendered(build, tmp_path)
    cable = cables(build)
    ends = set(np.flatnonzero(build.topology.endpoints).tolist())
    for source in sorted(ends)[::13]:
        for there in ends - {source}:
            routes = hosts[source][f"{build.addressing.host6(there, 0)}/128"]
            paths = [carried(cable, switches, source, carrier)[0] for carrier in routes]
            assert minimal(source, there)[1:] in paths
            assert all(path[-1] == there and source not in path for path in paths)
            assert all(minimal(path[0], there) == path for path in paths)


def test_hosts_of_a_switch_and_headers_taken_off_at_the_switch(tmp_path):
    build = compiled(tmp_path, 3, hosts=2)
    switches, hosts = rendered(build, tmp_path / "host")
    second = hosts[0][f"{build.addressing.host6(2, 1)}/128"]
    assert {carried(cables(build), switches, 0, chosen)[1] for chosen in second} == {
        (HOST + 1, DECAPSULATE)
    }
    own = (tmp_path / "host" / "hosts" / "h2-1" / "host.batch").read_text()
    assert "route replace local fc00:0:a001:e000::/64 encap seg6local action End.DT6" in own

    switches, hosts = rendered(build, tmp_path / "switch", decap="switch")
    routes = hosts[0][str(build.addressing.network6(2))]
    assert len(hosts[0]) == build.tables.switches - 1
    followed = [carried(cables(build), switches, 0, chosen) for chosen in routes]
    assert len(followed) == 3
    assert {path[-1] for path, _ in followed} == {2}
    assert {left for _, left in followed} == {(0x1003, DECAPSULATE)}
    text = (tmp_path / "switch" / "hosts" / "h2-1" / "host.batch").read_text()
    assert "End.DT6" not in text


def test_weights_are_those_of_the_tables(tmp_path):
    build = compiled(tmp_path, 7, share="4/10")
    target("srv6").render(build, tmp_path / "out", options={"host": "h9"})
    routes = read_host(tmp_path / "out" / "hosts" / "h9")[f"{build.addressing.host6(18, 0)}/128"]
    assert list(routes.values()) == [4, 1, 1, 1, 1, 1, 1]


def test_minimal_routing_is_one_carrier_each(tmp_path):
    build = with_ipv6(routed(q=3))
    _, hosts = rendered(build, tmp_path)
    assert {len(routes) for routes in hosts[0].values()} == {1}


@pytest.mark.parametrize("decap", ["host", "switch"])
def test_frr_has_the_same_sids_and_routes(decap, tmp_path):
    build = with_ipv6(routed(q=3, hosts=2, spread=True))
    switches, _ = rendered(build, tmp_path, decap=decap)
    for name, table in zip(build.wiring.names, switches, strict=True):
        assert read_frr(tmp_path / name) == table


@NEEDS_VTYSH
def test_vtysh_accepts_the_routes(tmp_path):
    """FRR 8.4 has no static SIDs: without that block."""
    target("srv6").render(with_ipv6(routed(q=2)), tmp_path)
    for path in tmp_path.glob("*/srv6.conf"):
        text = re.sub(r"^segment-routing\n.*?^exit\n", "", path.read_text(), flags=re.M | re.S)
        assert "ipv6 route" in text
        path.write_text(text)
        assert judged(path) == (0, "", "")


def test_golden(tmp_path, golden):
    build = replace(with_ipv6(routed(q=2, hosts=2, spread=True)), identity="0123456789abcdef")
    target("srv6").render(build, tmp_path)
    for path in sorted([*(tmp_path / "3").iterdir(), *(tmp_path / "hosts" / "h3-0").iterdir()]):
        golden(path.read_text(), f"srv6_q2_{path.name}")


def test_refusals(tmp_path):
    build = routed(q=2, protect="link")
    with pytest.raises(InputError, match=r"routing\.protect: required none, as target srv6 cann"):
        target("srv6").render(build, tmp_path)
    build = routed(q=2)
    with pytest.raises(InputError, match="ipv6: required an IPv6 pool, as target srv6 carries"):
        target("srv6").render(build, tmp_path)
    build = with_ipv6(build)
    for options, message in (
        ({"host": "h99"}, "set host: required a host's name, given h99"),
        ({"block": "fd00::/32"}, "set block: required a block outside the hosts' pool fd00::/48"),
        ({"block": "fc00::/48"}, "set block: required an IPv6 network of 32 bits such as"),
        ({"interface": "eth0; reboot"}, "set interface: required the name of a Linux interf"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            target("srv6").render(build, tmp_path, options=options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("decap", "todo"),
    [("host", "set decap=switch, change routing.balance"), ("switch", "; change routing.balance")],
)
def test_paths_that_are_too_long_name_no_option_that_was_given(tmp_path, decap, todo):
    """It named the one that had been given."""
    spec = {
        "name": "lab",
        "topology": {"family": "jellyfish", "nodes": 90, "degree": 3},
        "addressing": {"ipv6": "fd00::/48"},
    }
    build = compile_fabric(load_fabric(spec))
    with pytest.raises(InputError, match=f"has longer ones.*{todo}"):
        target("srv6").render(build, tmp_path, options={"decap": decap})


def test_no_name_of_a_host_gets_into_a_path_unchecked(tmp_path):
    build = with_ipv6(routed(q=2))
    wiring = replace(build.wiring, host_names=("../x", *build.wiring.host_names[1:]))
    with pytest.raises(InputError, match=r"hosts: required a name of at most 63 .*'\.\./x'"):
        target("srv6").render(replace(build, wiring=wiring), tmp_path)


def test_a_carrier_of_any_length_is_an_address():
    usids = UsidBlock(IPv6Network("fcbb:bb00::/32"))
    for count in range(1, 7):
        text = "fcbb:bb00" + "".join(f":{n + 1}" for n in range(count)) + ":0" * (6 - count)
        assert IPv6Address(usids.carrier(*range(1, count + 1))) == IPv6Address(text)
        prefix = IPv6Network(usids.prefix(*range(1, count + 1)))
        assert prefix == IPv6Network(f"{text}/{32 + 16 * count}")


def test_numbers_that_16_bits_have_not():
    require_numbers(36_863, 1)  # 0x9fff
    with pytest.raises(InputError) as error:
        require_numbers(36_864, 16_385)
    assert "topology.q: required at most 36,863 switches" in str(error.value)
    assert "hosts_per_node: required at most 16,384 hosts per switch" in str(error.value)
