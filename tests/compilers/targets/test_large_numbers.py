"""Numbers that small fabrics never reach: classes, weights, addresses and ports beyond a byte's."""

from __future__ import annotations

import re
from dataclasses import replace
from ipaddress import IPv6Address

import numpy as np

from compilers.forwarding.walks import minimal_hops
from compilers.tables.fib import Fib
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.routed.link_addresses import link_pairs
from compilers.targets.routed.linux_tables import HOSTS_TABLE, INGRESS_TABLES
from compilers.targets.routed.static_routes import BuildRouters
from compilers.targets.target_lookup import target
from tests.compilers.routed import classes_from, routed
from tests.compilers.targets.makers import names, rows, with_ipv6
from tests.compilers.targets.read_routed import choices, entering, read_linux, transit

IDENTITY = "0123456789abcdef"
ROUTE = re.compile(r"ip_dst=(\S+?),actions=write_metadata:(\d+)/")
CLASS = re.compile(r"metadata=(\d+)/\S+,actions=group:(\d+)")
GROUP = re.compile(r"group_id=(\d+),.*output:(\d+)")


def ports_by_prefix(folder):
    """Where the ovs text sends each prefix, over its class and its group."""
    flows, groups = ((folder / f"{name}.txt").read_text() for name in ("flows", "groups"))
    of_class, port = dict(CLASS.findall(flows)), dict(GROUP.findall(groups))
    return {prefix: port[of_class[number]] for prefix, number in ROUTE.findall(flows)}


def test_packets_take_classes_beyond_a_byte():
    build = classes_from(routed(q=3), 254)
    fib = Fib.of(build.tables, build.wiring.far_by_port())
    assert minimal_hops(fib, np.arange(13)).max() == 2


def test_every_link_has_its_own_pair_of_addresses():
    build = routed(q=17)
    numbers = link_pairs(build)
    pairs, ends = np.unique(numbers[numbers >= 0], return_counts=True)
    assert (ends == 2).all()
    assert len(pairs) == build.topology.graph.size > 2500
    far = build.wiring.far
    s, k = 300, 5
    back = int(np.flatnonzero(far[far[s, k]] == s)[0])
    assert numbers[far[s, k], back] == numbers[s, k]


def test_ovs_keeps_classes_beyond_a_byte_apart(tmp_path):
    """Numbers of which the low byte is the same."""
    build = replace(routed(q=3), identity=IDENTITY)
    target("ovs").render(build, tmp_path / "few", only=[3])
    target("ovs").render(classes_from(build, 1, 256), tmp_path / "many", only=[3])
    many = ports_by_prefix(tmp_path / "many" / "3")
    assert len(set(many.values())) == 4
    assert many == ports_by_prefix(tmp_path / "few" / "3")


def test_a_switch_with_more_than_a_byte_of_rows_has_as_many_as_are_told():
    encoder = Encoder(replace(routed(q=17), identity=IDENTITY))
    assert sum(map(len, encoder.program(300).flows)) == encoder.row_count(300) > 307


def test_linux_has_weights_up_to_what_the_kernel_takes(tmp_path):
    build = with_ipv6(routed(q=3, spread=True))
    weight = build.tables.classes.weight.copy()
    weight[weight > 0] = np.resize([16, 17, 100, 255, 256, 1], np.count_nonzero(weight))
    classes = replace(build.tables.classes, weight=weight)
    build = replace(build, tables=replace(build.tables, classes=classes))
    target("linux").render(build, tmp_path, only=[3])
    tables, _ = read_linux(tmp_path / "3")
    found = {tuple(sorted(row[0].items())) for row in tables[HOSTS_TABLE].values()}
    shares = (entering(build, 3, k) for k in range(classes.port.shape[1]))
    name = build.wiring.port_name
    wanted = {tuple(sorted((name(3, p), w) for p, w in s.items())) for s in shares if len(s) > 1}
    assert found == wanted
    assert max(w for row in found for _, w in row) == 256


def test_every_switch_has_its_own_link_local_address():
    build = with_ipv6(routed(q=17))
    addresses = [IPv6Address(text) for text in BuildRouters.of(build).link_locals]
    assert len(set(addresses)) == build.tables.switches == 307
    assert all(address.is_link_local for address in addresses)


def test_every_port_has_its_own_table(tmp_path):
    """A switch of 32 ports: rules lead to the table of the port that a packet came in on."""
    build = routed(q=31, protect="link")
    vertex = 500
    target("linux").render(build, tmp_path, only=[vertex])
    node = build.wiring.names[vertex]
    tables, rules = read_linux(tmp_path / node)
    links = build.wiring.port[vertex][build.wiring.far[vertex] >= 0].tolist()
    assert max(links) == 32
    of_port = {build.wiring.port_name(vertex, port): INGRESS_TABLES + port for port in links}
    assert {name: rules.get(name) for name in of_port} == of_port
    for prefix, egress in [*rows(build, vertex)][::9]:
        for port in links:
            name = build.wiring.port_name(vertex, port)
            order = names(build, vertex, transit(build, vertex, egress, port))
            found = choices(tables, rules, prefix, name)
            upto = found.index({name: 1}) + 1 if {name: 1} in found else None
            assert found[:upto] == order, (prefix, name)
