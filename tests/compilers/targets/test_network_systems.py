"""Configs for eos, nxos, junos, srlinux and sonic: read back, walked, and refused by name."""

from dataclasses import replace
from functools import cache
from ipaddress import IPv6Network
from itertools import product

import numpy as np
import pytest

from compilers.tables.intermediate_form import no_route
from compilers.targets.routed.interfaces import EOS, JUNOS, NXOS, SONIC, SRLINUX
from compilers.targets.routed.nvue import CUMULUS
from compilers.targets.target_lookup import target
from tests.compilers.routed import routed
from tests.compilers.targets.network_configs import deliver, owners
from tests.compilers.targets.read_cli import read_eos, read_nxos
from tests.compilers.targets.read_junos import read_junos
from tests.compilers.targets.read_nvue import read_nvue
from tests.compilers.targets.read_sonic import read_sonic
from tests.compilers.targets.read_srlinux import read_srlinux

SYSTEMS = {
    "eos": (EOS, read_eos),
    "nvue": (CUMULUS, read_nvue),
    "nxos": (NXOS, read_nxos),
    "junos": (JUNOS, read_junos),
    "srlinux": (SRLINUX, read_srlinux),
    "sonic": (SONIC, read_sonic),
}
every = pytest.mark.parametrize("name", SYSTEMS)


@cache
def fabric(family="polarfly", hosts=1, ipv6="fd00::/48", **parameters):
    build = routed(family, hosts=hosts, **parameters)
    pool = IPv6Network(ipv6) if ipv6 else None
    plan = replace(build.addressing, ipv6=pool, hierarchy=build.topology.hierarchy)
    return replace(build, addressing=plan)


BUILDS = {
    "q=3": fabric(q=3),
    "q=4, IPv4": fabric(q=4, ipv6=""),
    "no hosts": fabric(q=2, hosts=0),
    "three hosts": fabric(q=2, hosts=3),
    "some without hosts": fabric("oft", q=2, hosts=2),
    "aggregates": fabric("polarstar", q=2, supernode="paley", degree=2),
}


def read(name, build, out, **options):
    """Every router's config, by node."""
    target(name).render(build, out, options=options)
    return {node: SYSTEMS[name][1](out / node) for node in build.wiring.names}


def wanted(build, vertex):
    """{prefix: {port name: 1}} as the tables say."""
    a, w, routes = build.addressing, build.wiring, build.tables.routes
    table = {}
    for prefix, egress in zip(routes.prefixes(vertex), routes.egress[vertex], strict=True):
        if egress < no_route(routes.egress):
            port = int(build.tables.classes.port[vertex, egress])
            networks = [a.network(int(prefix)), *([a.network6(int(prefix))] if a.ipv6 else [])]
            table |= {str(network): {w.port_name(vertex, port): 1} for network in networks}
    return table


@every
@pytest.mark.parametrize("case", BUILDS)
def test_the_config_says_what_the_tables_say(name, case, tmp_path):
    build = BUILDS[case]
    configs = read(name, build, tmp_path)
    build = SYSTEMS[name][0].named(build)
    w = build.wiring
    owned = owners(configs)
    nodes = {config.hostname: node for node, config in configs.items()}
    assert len(nodes) == len(configs)
    for vertex, node in enumerate(w.names):
        config = configs[node]
        assert config.table() == wanted(build, vertex)
        for k in np.flatnonzero(w.far[vertex] >= 0).tolist():
            here, far = w.port_name(vertex, w.port[vertex, k]), int(w.far[vertex, k])
            there = w.port_name(far, w.far_port[vertex, k])
            told, port = config.descriptions[here].split(" ")
            assert (nodes[told], port) == (w.names[far], there)
            for own in config.addresses[here]:
                (other,) = {*own.network} - {own.ip}
                assert owned[other] == (w.names[far], there)
    assert_hosts(build, configs, owned)


def assert_hosts(build, configs, owned):
    """Gateways are at the hosts' ports; the fabric's other addresses are discarded."""
    a, w = build.addressing, build.wiring
    for vertex, node in enumerate(w.names):
        ports = [w.port_name(vertex, port) for port in w.host_port[vertex] if port]
        gateways = [a.gateway(vertex), *([a.network6(vertex)[1]] if a.ipv6 else [])]
        (at,) = {owned[gateway] for gateway in gateways}
        assert at[0] == node
        config = configs[node]
        if len(ports) == 1:
            assert at[1] == ports[0]
        elif ports:
            assert {**config.members} == {at[1]: ports}
        lengths = {own.network.prefixlen for own in config.addresses[at[1]]}
        blocks = [a.network(vertex), *([a.network6(vertex)] if a.ipv6 else [])]
        assert lengths == ({b.prefixlen for b in blocks} if ports else {32, 128})
        assert set(config.discards.values()) == {254}
        for block in blocks:
            covering = [p for p in config.discards if p.version == block.version]
            assert [block.subnet_of(p) for p in covering] == [True]
        assert len(config.discards) == len(blocks)


@every
@pytest.mark.parametrize("case", ["q=3", "aggregates"])
def test_a_packet_walked_by_the_configs_alone_takes_the_shortest_way(name, case, tmp_path):
    build = BUILDS[case]
    configs = read(name, build, tmp_path)
    owned, names = owners(configs), build.wiring.names
    distance = _distances(build)
    sources = range(0, len(names), 1 + len(names) // 4)
    for source, destination in product(sources, range(len(names))):
        for to in (build.addressing.host(destination, 0), build.addressing.host6(destination, 0)):
            way = deliver(configs, owned, names[source], str(to), most=build.topology.diameter)
            assert way[-1] == names[destination]
            assert len(way) - 1 == distance[source, destination]


def _distances(build):
    """int[S, S] by Floyd and Warshall, from the wiring."""
    far = build.wiring.far
    count = len(far)
    distance = np.full((count, count), count)
    np.fill_diagonal(distance, 0)
    vertex, link = np.nonzero(far >= 0)
    distance[vertex, far[vertex, link]] = 1
    for middle in range(count):
        distance = np.minimum(distance, distance[:, [middle]] + distance[middle])
    return distance
