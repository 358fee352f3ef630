"""Blocks, aggregates and their inverse; the pool that fits; rendered rows by longest prefix."""

from __future__ import annotations

import re
import struct
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compilers.pipeline import compile_fabric
from compilers.proof.explanation import explain
from compilers.proof.name_lookup import find_switch
from compilers.proof.walks.delivery import verify
from compilers.spec.address_blocks import ipv4_block_length
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.folders.build_folder import load, save
from compilers.tables.intermediate_form import no_route
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.target_lookup import target
from compilers.wiring.addressing import Addressing
from compilers.wiring.mac_addresses import default_host_macs
from inventory.problems import InputError

STAR = "topology: {family: polarstar, q: 3, supernode: paley, degree: 2}\n"


def compiled(folder: Path, topology: str = STAR, more: str = "") -> Build:
    path = folder / "fabric.yaml"
    path.write_text(f"name: lab\n{topology}{more}")
    return save(compile_fabric(load_fabric(path)), folder / "build")


@given(hierarchy=st.integers(1, 70), supernodes=st.integers(1, 30), hosts=st.integers(0, 20))
@settings(max_examples=12)
def test_blocks_are_apart_and_inside_their_aggregate(
    hierarchy: int, supernodes: int, hosts: int
) -> None:
    order = hierarchy * supernodes
    plan = Addressing(
        ipv4=IPv4Network("10.0.0.0/8"),
        ipv4_length=ipv4_block_length(hosts),
        ipv6=ip_network("fd00::/48"),
        gateway_mac=1,
        host_mac=default_host_macs(order, hosts),
        hierarchy=hierarchy,
    )
    for network, prefixes in (
        (plan.network, plan.ipv4_prefixes),
        (plan.network6, plan.ipv6_prefixes),
    ):
        numbers, lengths = prefixes()
        listed = [network(p) for p in range(len(lengths))]
        assert [n.prefixlen for n in listed] == lengths.tolist()
        shift = 0 if network == plan.network else 64
        assert [int(n.network_address) >> shift for n in listed] == numbers.tolist()
        blocks, aggregates = listed[:order], listed[order:]
        assert len(aggregates) == (supernodes if hierarchy > 1 else 0)
        assert all(a.broadcast_address < b.network_address for a, b in pairwise(blocks))
        for v, block in enumerate(blocks):
            assert plan.vertex(block[1]) == v
            assert plan.vertex(block[-1]) == v
            holders = [x for x, whole in enumerate(aggregates) if block.subnet_of(whole)]
            assert holders == ([v // hierarchy] if hierarchy > 1 else [])
        assert plan.vertex(blocks[-1].broadcast_address + 1) is None
        assert plan.vertex(blocks[0].network_address - 1) is None
        if hierarchy & (hierarchy - 1) and supernodes > 1:
            assert plan.vertex(blocks[hierarchy - 1].broadcast_address + 1) is None


@pytest.mark.parametrize(
    "topology",
    [
        STAR,
        "topology: {family: oft, q: 2}\n",
    ],
)
def test_every_family_compiles_verifies_and_reads_back(tmp_path: Path, topology: str) -> None:
    build = compiled(tmp_path, topology)
    again = load(tmp_path / "build")
    report = verify(again)
    assert report.passed
    assert report.max_hops == (2 if "oft" in topology else 3)
    assert again.addressing.hierarchy == build.topology.hierarchy
    assert (again.tables.routes.prefix == build.tables.routes.prefix).all()
    for v in np.flatnonzero(build.topology.endpoints)[::5].tolist():
        assert find_switch(again, str(again.addressing.host(v, 0))) == v
        assert explain(again, 0, v).fault == ""


def test_an_address_between_supernodes_is_nobodys(tmp_path: Path) -> None:
    """Five members have eight blocks of four addresses: from 10.0.0.20 on there is none."""
    build = compiled(tmp_path)
    assert find_switch(build, "10.0.0.19") == 4
    assert find_switch(build, "10.0.0.32") == 5
    with pytest.raises(InputError):
        find_switch(build, "10.0.0.20")


def test_a_spine_is_no_destination(tmp_path: Path) -> None:
    build = compiled(tmp_path, "topology: {family: oft, q: 2}\n")
    assert explain(build, 8, 0).fault == ""
    with pytest.raises(InputError, match="required a destination with hosts, given 8, a spine"):
        explain(build, 0, 8)


@pytest.mark.parametrize(("pool", "fits"), [("10.0.0.0/23", True), ("10.0.0.0/24", False)])
def test_the_pool_holds_what_lies_between_supernodes(tmp_path: Path, pool: str, fits: bool) -> None:
    """13 supernodes of 8 blocks of 4 addresses: 416, though 65 vertices need 260."""
    more = f"addressing: {{ipv4: {pool}}}\n"
    if fits:
        build = compiled(tmp_path, more=more)
        last = build.addressing.network(64)
        assert last.subnet_of(IPv4Network(pool))
    else:
        with pytest.raises(
            InputError, match="pool of /23 or larger: 65 vertices with a /30 each, 5"
        ):
            compiled(tmp_path, more=more)


ROUTE = re.compile(
    r"table=1,priority=(\d+),cookie=0x5046000000000004,ip,ip_dst=(\S+?),actions=write_metadata:(\d+)"
)


@pytest.mark.parametrize("topology", [STAR, "topology: {family: oft, q: 2}\n"])
def test_rendered_rows_by_priority_are_what_the_walker_looks_up(
    tmp_path: Path, topology: str
) -> None:
    build = compiled(tmp_path, topology)
    target("ovs").render(build, tmp_path / "out")
    ends = np.flatnonzero(build.topology.endpoints)
    table = Fib.of(build.tables, build.wiring.far_by_port()).egress(ends)
    hosts = [ip_address(build.addressing.host(v, 0)) for v in ends.tolist()]
    for switch, name in enumerate(build.wiring.names):
        text = (tmp_path / "out" / name / "flows.txt").read_text()
        rows = [(int(p), IPv4Network(n), int(k)) for p, n, k in ROUTE.findall(text)]
        assert all(priority == network.prefixlen for priority, network, _ in rows)
        for column, (v, host) in enumerate(zip(ends.tolist(), hosts, strict=True)):
            if v != switch:
                assert best(rows, host) == table[switch, column]


def best(rows: list[tuple[int, IPv4Network, int]], address: IPv4Address) -> int:
    """The class of the row of the highest priority that matches."""
    return max((priority, k) for priority, network, k in rows if address in network)[1]


def test_the_wire_has_every_prefix_once_with_its_length_as_priority(tmp_path: Path) -> None:
    build = compiled(tmp_path)
    encoder, routes = Encoder(build), build.tables.routes
    for switch in (0, 17, 64):
        program = b"".join(encoder.program(switch).parts)
        used = routes.egress[switch] < no_route(routes.egress)
        for prefix in routes.prefixes(switch)[used].tolist():
            network = build.addressing.network(prefix)
            match = struct.pack(">HBB", 0x8000, 12 << 1 | 1, 8)  # OXM of ipv4_dst with a mask
            match += network.network_address.packed + network.netmask.packed
            assert program.count(match) == 1
            # The match begins 48 bytes into the flow-mod, with 4 bytes and 6 of eth_type.
            flow = program.index(match) - 10 - 48
            assert struct.unpack_from(">BB", program, flow) == (4, 14)
            assert struct.unpack_from(">H", program, flow + 30)[0] == network.prefixlen
