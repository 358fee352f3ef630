"""One build, every target: what each wrote is read back, and all say the same.

The readers know their system's words and nothing of polarfab; here interfaces become port numbers
and weights become shares. Target srv6 is not among them: there hosts choose the paths.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from compilers.readers.difference_list import DifferenceList
from compilers.spec.balances import balance_named
from compilers.spec.target_names import SHIPPED_SYSTEMS
from compilers.targets.routed.interfaces import EOS, JUNOS, NXOS, SONIC, SRLINUX
from compilers.targets.routed.nvue import CUMULUS
from compilers.targets.target_lookup import target
from extensions.infiniband.guids import Guids
from extensions.infiniband.subnet_text import read_tables
from tests.compilers.routed import routed
from tests.compilers.targets.read_cli import read_eos, read_nxos
from tests.compilers.targets.read_junos import read_junos
from tests.compilers.targets.read_nvue import read_nvue
from tests.compilers.targets.read_routed import choices, read_frr, read_linux
from tests.compilers.targets.read_sonic import read_sonic
from tests.compilers.targets.read_srlinux import read_srlinux

IQ = {"family": "polarstar", "supernode": "inductive-quad", "q": 2, "degree": 3}
CASES = {
    "q=3": routed(q=3),
    "q=4": routed(q=4),
    "aggregates": routed(**IQ),
    "spread": routed(q=3, spread=True),
    "spread, q=4": routed(q=4, spread=True),
}
CASES = {
    name: replace(
        build,
        identity="0123456789abcdef",
        addressing=replace(build.addressing, hierarchy=build.topology.hierarchy),
    )
    for name, build in CASES.items()
}
OPTIONS = {"opensm": {"guids": "made-up"}}
ROUTERS = {
    "eos": (EOS, read_eos),
    "junos": (JUNOS, read_junos),
    "nvue": (CUMULUS, read_nvue),
    "nxos": (NXOS, read_nxos),
    "sonic": (SONIC, read_sonic),
    "srlinux": (SRLINUX, read_srlinux),
}


def shares(weights):
    """{port: share of the whole}."""
    whole = sum(weights.values())
    return {port: Fraction(weight, whole) for port, weight in weights.items()}


def by_port(wiring, vertex, weights):
    """Interfaces as port numbers."""
    names = wiring.port_names[int(wiring.node_type[vertex])]
    return shares({names.index(name) + 1: weight for name, weight in weights.items()})


def of_router(name, build, vertex, folder):
    system, read = ROUTERS[name]
    wiring, config = system.named(build).wiring, read(folder)
    transit = {p: by_port(wiring, vertex, w) for p, w in config.table().items()}
    own = {p: by_port(wiring, vertex, w) for p, w in config.table(entering=True).items()}
    return {prefix: (to, own.get(prefix, to)) for prefix, to in transit.items()}


def of_linux(read, build, vertex, folder):
    wiring, (tables, rules) = build.wiring, read(folder)
    host = next(wiring.port_name(vertex, p) for p in wiring.host_port[vertex] if p)
    return {
        prefix: (
            by_port(wiring, vertex, choices(tables, rules, prefix)[0]),
            by_port(wiring, vertex, choices(tables, rules, prefix, host)[0]),
        )
        for prefix in tables[254]
    }


def of_ovs(folder):
    """flows.txt and groups.txt: route to class, class to group, group to ports."""
    groups, route, classes = {}, {}, {}
    for line in (folder / "groups.txt").read_text().splitlines():
        if found := re.match(r"group_id=(\d+),", line):
            weights = defaultdict(int)
            for bucket in line.split("bucket=")[1:]:
                weight = re.search(r"weight:(\d+)", bucket)
                port = re.search(r"output:(\d+)", bucket)
                weights[int(port[1]) if port else 0] += int(weight[1]) if weight else 1
            groups[int(found[1])] = shares(weights)
    for line in (folder / "flows.txt").read_text().splitlines():
        if "in_port" in line:
            continue
        if found := re.search(r"ip_dst=(\S+/\d+),actions=write_metadata:(\d+)/", line):
            route[found[1]] = int(found[2])
        elif found := re.search(r"table=2,.*\w,metadata=(\d+)/\w+,actions=group:(\d+)", line):
            classes[int(found[1])] = groups[int(found[2])]
    return {
        prefix: (classes[k], classes.get(k | 0x10000, classes[k])) for prefix, k in route.items()
    }


@cache
def linear(file):
    return {block.switch: block for block in read_tables(file, DifferenceList())}


def of_opensm(build, vertex, out):
    """By the host's port GUID; every host of a prefix of several switches is one destination."""
    guids, a = Guids.made_up(build), build.addressing
    block = linear(out / "lfts.txt")[int(guids.switch[vertex])]
    port = dict(zip(block.guid.tolist(), block.port.tolist(), strict=True))
    to = {d: {port[int(guids.host[d, 0])]: Fraction(1)} for d in range(len(guids.switch))}
    return {str(a.network(d)): (way, way) for d, way in to.items() if d != vertex}


def read(name, build, vertex, out):
    """{prefix: (shares in transit, shares of what enters)} of a switch, from a target's files."""
    folder = out / build.wiring.names[vertex]
    if name == "opensm":
        return of_opensm(build, vertex, out)
    if name == "ovs":
        return of_ovs(folder)
    if name in ROUTERS:
        return of_router(name, build, vertex, folder)
    return of_linux({"linux": read_linux, "frr": read_frr}[name], build, vertex, folder)


@cache
def covering(block):
    """Every prefix that a network is in, longest first."""
    return [str(block.supernet(new_prefix=length)) for length in range(block.prefixlen, -1, -1)]


def every_destination(build, table):
    """The same by destination, for targets that have a row for each: longest prefix first."""
    ways = [covering(build.addressing.network(d)) for d in range(build.tables.switches)]
    longest = {way[0]: next((p for p in way if p in table), None) for way in ways}
    return {block: table[prefix] for block, prefix in longest.items() if prefix}


@pytest.mark.parametrize("case", CASES)
def test_all_targets_say_the_same(case, tmp_path):
    build = CASES[case]
    needs = balance_named(build.balance).needs
    able = [
        name
        for name in SHIPPED_SYSTEMS
        if name != "srv6" and needs <= target(name).capabilities.features
    ]
    assert set(able) >= {"frr", "junos", "linux", "ovs"}
    for name in able:
        target(name).render(build, tmp_path / name, options=OPTIONS.get(name))
    entering = 0
    for vertex in range(build.tables.switches):
        told = {name: read(name, build, vertex, tmp_path / name) for name in able}
        exact = {name: every_destination(build, table) for name, table in told.items()}
        for name in able:
            assert exact[name] == exact["linux"], (name, vertex)
            if name != "opensm":
                assert told[name] == told["linux"], (name, vertex)
        assert len(exact["linux"]) == build.tables.switches - 1
        entering += sum(len(own) > 1 for _, own in told["linux"].values())
    assert bool(entering) == (build.balance != "minimal")
