"""Junos: packets from hosts share ports as the classes say, packets in transit go minimally."""

from dataclasses import replace

import numpy as np
import pytest

from compilers.tables.intermediate_form import no_route
from compilers.targets.routed.interfaces import JUNOS
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.targets.read_junos import read_junos
from tests.compilers.targets.read_routed import entering
from tests.compilers.targets.test_network_systems import fabric, wanted

BUILDS = {
    "q=3": fabric(q=3, spread=True),
    "q=4, IPv4": fabric(q=4, ipv6="", spread=True),
    "two hosts": fabric(q=2, hosts=2, spread=True),
    "aggregates": fabric("polarstar", q=2, supernode="paley", degree=2, spread=True),
}


def shared(build, vertex):
    """{prefix: {port name: weight}} for packets from hosts, as the tables say."""
    a, w, routes = build.addressing, build.wiring, build.tables.routes
    table = {}
    for prefix, egress in zip(routes.prefixes(vertex), routes.egress[vertex], strict=True):
        if egress < no_route(routes.egress):
            ports = {w.port_name(vertex, p): n for p, n in entering(build, vertex, egress).items()}
            table[str(a.network(int(prefix)))] = ports
            if a.ipv6:
                table[str(a.network6(int(prefix)))] = ports
    return table


@pytest.mark.parametrize("case", BUILDS)
def test_hosts_share_and_transit_is_minimal(case, tmp_path):
    build = BUILDS[case]
    target("junos").render(build, tmp_path)
    build = JUNOS.named(build)
    families = {"inet", "inet6"} if build.addressing.ipv6 else {"inet"}
    several = 0
    for vertex, node in enumerate(build.wiring.names):
        config = read_junos(tmp_path / node)
        assert config.table() == wanted(build, vertex)
        assert config.table(entering=True) == shared(build, vertex)
        several += sum(len(hops) > 1 for hops in config.entering.values())
        assert config.entering_discards == config.discards
        assert set(config.ingress) == families
        ports = [build.wiring.port_name(vertex, p) for p in build.wiring.host_port[vertex] if p]
        (at,) = set(config.ingress.values())
        assert at == (ports[0] if len(ports) == 1 else "irb.2")
    assert several


def test_a_switch_without_hosts_has_no_table_for_them(tmp_path):
    build = fabric(q=2, hosts=0, spread=True)
    target("junos").render(build, tmp_path)
    for node in build.wiring.names:
        assert not read_junos(tmp_path / node).entering


def test_golden(tmp_path, golden):
    target("junos").render(replace(fabric(q=2, spread=True), identity="0" * 16), tmp_path)
    golden((tmp_path / "3" / "junos.set").read_text(), "junos_entering_junos.set")


def test_unequal_shares_are_refused(tmp_path):
    build = BUILDS["q=3"]
    weight = build.tables.classes.weight * np.array(
        [3] + [1] * (build.tables.classes.weight.shape[2] - 1), np.uint16
    )
    classes = replace(build.tables.classes, weight=weight)
    unequal = replace(build, tables=replace(build.tables, classes=classes))
    with pytest.raises(InputError) as error:
        target("junos").render(unequal, tmp_path / "out")
    assert str(error.value) == (
        "routing.minimal_share: required equal-cost: target junos cannot do unequal weights, "
        "given unequal shares; change the fabric's policy, options of the target, or choose "
        "another target"
    )
    assert not (tmp_path / "out").exists()
