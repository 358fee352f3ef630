"""Configs for eos, nxos, junos, srlinux and sonic: read back, walked, and refused by name."""

from itertools import product

import numpy as np
import pytest

from compilers.targets.target_lookup import target
from tests.compilers.targets.makers import SYSTEMS, every, fabric, wanted
from tests.compilers.targets.network_configs import deliver, owners

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
